"""HiPCW 2021, figures 6 and 7: bins over the epochs, what is cut off, what is missing."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from panels import words

from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.samples import write_samples
from epochwatt.figures.common.runs import read_runs
from epochwatt.figures.common.series import series
from epochwatt.figures.draw_figure import draw_figure
from epochwatt.figures.hipcw2021.over_time import (
    Points,
    binned,
)

ALONE = {"num_workers": 0, "prefetch_factor": None}
QUARTER = {"dataset_scale": 0.25, "dataset_source": "synthetic"}


@pytest.fixture
def with_records(measure, tmp_path):
    """Return a function that writes records of a run: two mini-batches, three reads, an epoch."""

    def write(path, n_epochs=2):
        run = SimpleNamespace(id=os.path.basename(os.path.dirname(path)), factors={})
        for epoch in range(n_epochs):
            folder = measure(run, epoch, root=tmp_path / "measured").epoch_path(epoch)
            t_s = np.array([10.0, 11.0, 13.5])
            reads = np.array([[np.nan], [20.0 + epoch], [40.0 + epoch]])
            write_samples(folder, "host", ("read_iops",), t_s, t_s, reads)
            write_sums(folder)
        return {run.id: str(tmp_path / "measured" / run.id)}

    return write


def test_bins_hold_their_points_and_no_others():
    points = Points(np.arange(8) + 0.5, np.arange(8.0), [4.0, 8.0], [0, 2])
    assert list(binned(points, n_bins=2)) == [
        *((0, 1.0, 2, 0.0, 0.5, 1.0), (0, 3.0, 2, 2.0, 2.5, 3.0)),
        *((2, 5.0, 2, 4.0, 4.5, 5.0), (2, 7.0, 2, 6.0, 6.5, 7.0)),
    ]
    ends = Points(np.array([1.0, 4.0, 6.0]), np.array([9.0, 9.0, 0.0]), [4.0, 8.0], [0, 1])
    assert [(b.epoch, b.n, b.high) for b in binned(ends, n_bins=1)] == [(0, 2, 9.0), (1, 1, 0.0)]
    few = Points(np.array([0.1, 4.0]), np.array([1.0, 2.0]), [4.0], [0])
    assert [(told.n, told.mean) for told in binned(few, n_bins=4)] == [(1, 1.0), (1, 2.0)]


def test_a_rate_since_before_the_epoch_is_none_of_it(made_up, tmp_path, measure):
    (run,) = read_runs([made_up({})], [])
    folder = measure(SimpleNamespace(id=run.id, factors={}), 0, root=tmp_path).epoch_path(0)
    record = json.loads(Path(folder, "record.json").read_text("utf-8"))
    t_s = record["t_start_mono_s"] + np.array([-0.5, 0.5, 1.0])
    write_samples(folder, "host", ("read_iops",), t_s, t_s, np.array([[30.0], [20.0], [0.0]]))
    write_sums(folder)
    assert series(run, os.path.dirname(folder), "host", "read_iops").values.tolist() == [0.0]


def test_reads_are_over_training_time_with_the_mean_of_each_epoch_on_top(
    job_of, nx, with_records, numbers
):
    path = nx(storage="ssd")
    job = job_of("hipcw_fig06", path, records=with_records(path))
    draw_figure(job)
    assert numbers("hipcw_fig06b", "epoch", "t_s", "value", "n_points") == [
        *(("0", "1.0", "20.0", "1"), ("0", "3.5", "40.0", "1")),
        *(("1", "5.0", "21.0", "1"), ("1", "7.5", "41.0", "1")),
    ]
    assert {"mean 30.0 0.1 k reads", "31.0 0.1 k reads"} <= set(words(job, "hipcw_fig06b"))


def test_stall_of_a_minibatch_is_wait_and_copy_with_what_is_published(
    job_of, nx, with_records, numbers
):
    path = nx(storage="hdd", **ALONE, **QUARTER)
    draw_figure(job_of("hipcw_fig07", path, records=with_records(path)))
    columns = ("epoch_set", "epoch", "minibatch", "value", "published")
    assert numbers("hipcw_fig07d", *columns) == [
        *(("all", "0", "0.5", "1000.0", ""), ("all", "0", "1.5", "500.0", "")),
        *(("all", "1", "2.5", "1000.0", ""), ("all", "1", "3.5", "500.0", "")),
        *(("0", "0", "", "750.0", "550.0"), ("1+", "1", "", "750.0", "300.0")),
    ]


def test_epochs_that_are_not_valid_are_left_out(job_of, nx, with_records, numbers):
    path = nx({}, {"valid": False, "flags": {"fresh_weights"}}, {}, storage="ssd")
    draw_figure(job_of("hipcw_fig07", path, records=with_records(path, 3)))
    assert numbers("hipcw_fig07b", "epoch", "minibatch") == [
        *(("0", "0.5"), ("0", "1.5"), ("2", "2.5"), ("2", "3.5"))
    ]
