"""Rules of ceilings: the modes that are measured, and measured runs as points beside them."""

import json
from pathlib import Path

import pytest

from epochwatt.counting.count_workload import write_workload
from epochwatt.roofline.points import read_points
from epochwatt.roofline.wanted import wanted_ceilings
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.table import load_sweeps

CONFIG = {"studies": ["small"]}


@pytest.fixture
def settings(checkout):
    """A study of one run that asks for ceilings."""
    checkout.sweep({"torch_threads": 1, "batch_size": 32}, ceilings=True)
    return load_settings(CONFIG, checkout.path)


def test_modes_are_listed(settings, run_rule, checkout):
    (job,) = wanted_ceilings(settings, load_sweeps(CONFIG, checkout.path)).values()
    run_rule("list_ceiling_modes", job.modes_file)
    assert json.loads(Path(job.modes_file).read_text("utf-8")) == [{"cores": 1}]


def test_a_measured_run_becomes_a_point(settings, run_rule, write_epochs):
    (run,) = settings.table.runs.values()
    write_epochs(run.id, run.factors, {"compute_s": 1.0})
    write_workload({"model": "lenet"}, run.counts)
    run_rule("place_points", "results/roofline/points.csv")
    (point,) = read_points("results/roofline/points.csv")
    assert (point.workload, point.batch_size, point.cores) == ("lenet", 32, 1)
    assert point.time_s == 0.5  # two mini-batches
    assert point.flops > 1e6
