"""HiPCW 2021's figures: medians of all epochs, series over them, what is missing."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from epochwatt.figures import hipcw_fig02, hipcw_fig04, hipcw_fig06, hipcw_fig07, hipcw_fig08
from epochwatt.figures.hipcw import Points, binned, draw_series
from epochwatt.records.checksums import write_sums
from epochwatt.records.samples import write_samples

from .conftest import INVALID

NX = {
    **{"setup": "hipcw2021", "device": "nx", "model": "mobilenet", "dataset": "gld23k"},
    **{"power_mode": "15W"},
}
ALONE = {"num_workers": 0, "prefetch_factor": None}
QUARTER = {"dataset_scale": 0.25, "dataset_source": "synthetic"}


@pytest.fixture
def nx(made_up):
    """Return a function that writes a run of HiPCW on NX."""
    return lambda *epochs, **factors: made_up(*epochs, **{**NX, **factors})


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


class TestBars:
    """Figures 2 to 5, 8."""

    def test_hold_the_median_of_all_epochs_beside_what_is_published(self, job_of, nx, numbers):
        three = [{"wait_s": 9.5}, {"wait_s": 1.5}, {"wait_s": 2.5}]
        runs = [nx(*three, storage="hdd", **ALONE), nx(*three, storage="ssd", num_workers=1)]
        hipcw_fig02.draw(job_of("hipcw_fig02", *runs))
        columns = ("num_workers", "storage", "value", "n_epochs", "statistic", "epoch_set")
        assert numbers("hipcw_fig02", *columns, "published", "seen_by_fit") == [
            ("0", "hdd", "3.0", "3", "median", "all", "704.0", "True"),
            ("1", "ssd", "3.0", "3", "median", "all", "18.6", "True"),
            ("0", "hdd", "10.0", "1", "median", "0", "", ""),
            ("1", "ssd", "10.0", "1", "median", "0", "", ""),
        ]

    def test_first_epochs_stand_beside_what_is_published_of_them(self, job_of, made_up, numbers):
        agx = {**NX, "device": "agx", "power_mode": "g"}
        hipcw_fig04.draw(job_of("hipcw_fig04", made_up(**agx, storage="sd", num_workers=2)))
        told = numbers("hipcw_fig04", "epoch_set", "value", "published", "published_id")
        assert told[1] == ("0", "1.5", "12.3", "H-III.B-04")

    def test_are_in_order_of_workers_and_name_what_is_missing(self, job_of, nx, gone, numbers):
        runs = [nx(storage="ssd", num_workers=4), nx(storage="hdd", num_workers=2)]
        missing = [gone(**NX, storage="sd", num_workers=2)]
        hipcw_fig02.draw(job_of("hipcw_fig02", *runs, missing=missing))
        assert numbers("hipcw_fig02", "num_workers", "storage", "value", "missing")[:3] == [
            ("2", "hdd", "1.5", ""),
            ("2", "sd", "", "out of memory"),
            ("4", "ssd", "1.5", ""),
        ]

    def test_name_a_first_epoch_that_is_missing(self, job_of, nx, numbers, tmp_path):
        runs = [nx(INVALID, {}, {}, storage=medium, num_workers=1) for medium in ("hdd", "ssd")]
        runs.append(nx(storage="sd", num_workers=1))
        hipcw_fig02.draw(job_of("hipcw_fig02", *runs))
        assert numbers("hipcw_fig02", "storage", "value", "missing")[3:] == [
            *(("hdd", "", "no valid first epoch"), ("sd", "1.5", "")),
            ("ssd", "", "no valid first epoch"),
        ]
        svg = (tmp_path / "figures/hipcw_fig02.svg").read_text("utf-8")
        assert svg.count(">missing: no valid first epoch<") == 2

    def test_missing_in_both_epoch_sets_say_so_once(self, job_of, nx, gone, tmp_path):
        missing = [gone(**NX, storage="sd", num_workers=2)]
        path = nx(storage="ssd", num_workers=4)
        hipcw_fig02.draw(job_of("hipcw_fig02", path, missing=missing))
        svg = (tmp_path / "figures/hipcw_fig02.svg").read_text("utf-8")
        assert svg.count(">missing: out of memory<") == 1

    def test_of_several_boards_stand_in_groups_of_their_own(self, job_of, nx, tmp_path):
        runs = [nx(storage="hdd", instance=board, num_workers=1) for board in ("d1", "d2")]
        hipcw_fig02.draw(job_of("hipcw_fig02", *runs))
        svg = (tmp_path / "figures/hipcw_fig02.svg").read_text("utf-8")
        assert "instance d1" in svg
        assert "instance d2" in svg

    def test_growth_is_linear_where_time_at_one_times_scale_says_so(self, job_of, nx, numbers):
        quick = {"wait_s": 0.0, "copy_s": 0.0, "e2e_s": 3.0}
        runs = [
            nx({}, {}, {}, storage="ssd"),
            nx(quick, quick, quick, storage="ssd", **QUARTER),
            nx({}, {}, {}, storage="ssd", num_workers=2, **QUARTER),  # nothing to compare with
        ]
        hipcw_fig08.draw(job_of("hipcw_fig08", *runs))
        columns = ("quantity", "dataset_scale", "num_workers", "value", "published")
        assert numbers("hipcw_fig08c", *columns) == [
            ("e2e_s", "0.25", "2", "4.0", ""),
            ("e2e_s", "0.25", "4", "3.0", ""),
            ("e2e_s", "1.0", "4", "4.0", "600.0"),
            ("e2e_s_linear", "0.25", "4", "1.0", ""),
        ]

    def test_share_in_the_cache_is_that_after_epochs_and_a_zero_is_told(
        self, job_of, nx, numbers, tmp_path
    ):
        shares = [{"cached_after_pct": share} for share in (0.0, 30.0, 40.0)]
        none = {"cached_after_pct": 0.0}
        runs = [nx(*shares, storage="hdd"), nx(none, none, storage="hdd", **QUARTER)]
        hipcw_fig08.draw(job_of("hipcw_fig08", *runs))
        assert numbers("hipcw_fig08b", "dataset_scale", "value") == [
            ("0.25", "0.0"),
            ("1.0", "30.0"),
        ]
        assert numbers("hipcw_fig08a", "value") == []  # no run with an SSD


class TestSeries:
    """Figures 6 and 7."""

    def test_bins_hold_their_points_and_no_others(self):
        points = Points(np.arange(8) + 0.5, np.arange(8.0), [4.0, 8.0], [0, 2])
        assert list(binned(points, n_bins=2)) == [
            *((0, 1.0, 2, 0.0, 0.5, 1.0), (0, 3.0, 2, 2.0, 2.5, 3.0)),
            *((2, 5.0, 2, 4.0, 4.5, 5.0), (2, 7.0, 2, 6.0, 6.5, 7.0)),
        ]

    def test_bins_without_a_point_are_none(self):
        points = Points(np.array([0.1, 4.0]), np.array([1.0, 2.0]), [4.0], [0])
        assert [(told.n, told.mean) for told in binned(points, n_bins=4)] == [(1, 1.0), (1, 2.0)]

    @pytest.mark.parametrize(
        ("start", "title"),
        [(40.0, "4 workers (starts of epochs: up to 40 ms)"), (2.5, "4 workers")],
    )
    def test_starts_of_epochs_that_tower_above_the_rest_are_cut_off_and_told(
        self, job_of, nx, tmp_path, start, title
    ):
        values = np.array([start, *([2.0] * 199)])
        told = Points(np.arange(200) + 0.5, values, [200.0], [0])
        job = job_of("hipcw_fig07", nx(storage="ssd"))
        draw_series(
            job, "stall_ms_per_minibatch", ("a", "ms"), ("n", "n"), lambda run, folder: told
        )
        svg = (tmp_path / "figures/hipcw_fig07b.svg").read_text("utf-8")
        assert f">{title}<" in svg

    def test_reads_are_over_training_time(self, job_of, nx, with_records, numbers):
        path = nx(storage="ssd")
        hipcw_fig06.draw(job_of("hipcw_fig06", path, records=with_records(path)))
        assert numbers("hipcw_fig06b", "epoch", "t_s", "value", "n_points") == [
            *(("0", "1.0", "20.0", "1"), ("0", "3.5", "40.0", "1")),
            *(("1", "5.0", "21.0", "1"), ("1", "7.5", "41.0", "1")),
        ]

    def test_stall_of_a_minibatch_is_wait_and_copy_with_what_is_published(
        self, job_of, nx, with_records, numbers
    ):
        path = nx(storage="hdd", **ALONE, **QUARTER)
        hipcw_fig07.draw(job_of("hipcw_fig07", path, records=with_records(path)))
        columns = ("epoch_set", "epoch", "minibatch", "value", "published")
        assert numbers("hipcw_fig07d", *columns) == [
            *(("all", "0", "0.5", "1000.0", ""), ("all", "0", "1.5", "500.0", "")),
            *(("all", "1", "2.5", "1000.0", ""), ("all", "1", "3.5", "500.0", "")),
            *(("0", "0", "", "750.0", "550.0"), ("1+", "1", "", "750.0", "300.0")),
        ]

    def test_epochs_that_are_not_valid_are_left_out(self, job_of, nx, with_records, numbers):
        path = nx({}, {"valid": False, "flags": {"fresh_weights"}}, {}, storage="ssd")
        hipcw_fig07.draw(job_of("hipcw_fig07", path, records=with_records(path, 3)))
        assert numbers("hipcw_fig07b", "epoch", "minibatch") == [
            *(("0", "0.5"), ("0", "1.5"), ("2", "2.5"), ("2", "3.5")),
        ]

    @pytest.mark.parametrize("figure", [hipcw_fig06, hipcw_fig07])
    def test_runs_without_records_and_panels_without_runs_say_so(
        self, figure, job_of, nx, gone, tmp_path
    ):
        name = figure.__name__.rpartition(".")[2]
        missing = [gone(**NX, storage="hdd", reason="no hard disk")]
        path = nx(storage="ssd")
        records = {os.path.basename(os.path.dirname(path)): str(tmp_path / "none")}
        job = job_of(name, path, missing=missing, lacking=["hipcw-scale"], records=records)
        figure.draw(job)
        for panel, told in {
            "a": "missing: lacks hipcw-scale",
            "b": "missing: no r",  # no record, no reads
            "e": "missing: no hard disk",
        }.items():
            assert told in (tmp_path / f"figures/{name}{panel}.svg").read_text("utf-8")


def test_every_panel_of_the_paper_has_settings_and_a_caption(job_of, pytestconfig):
    names = [f"hipcw_fig0{n}" for n in (2, 3, 4, 5)]
    names += [f"hipcw_fig06{c}" for c in "abcdef"] + [f"hipcw_fig07{c}" for c in "abcdef"]
    names += [f"hipcw_fig08{c}" for c in "abcd"]
    figures = dict.fromkeys(name[:11] for name in names)
    assert [panel for figure in figures for panel in job_of(figure).panels] == names
    captions = pytestconfig.rootpath / "workflow/report"
    assert [name for name in names if not (captions / f"{name}.rst").exists()] == []
