"""Figure 2: the numbers plotted, what is missing, the same bytes each time."""

import re

import matplotlib.pyplot as plt
import pytest
from panels import INVALID

from epochwatt.errors import ConfigError
from epochwatt.figures.common.job import Job
from epochwatt.figures.sigmetrics2023.fig02 import bars_of, draw

HDD = {"storage": "hdd", "model": "mobilenet"}


WORKERS = {0: {"num_workers": 0, "prefetch_factor": None}, 1: {"num_workers": 1}}


@pytest.fixture
def job(job_of, made_up, gone):
    """Two numbers of workers; four cannot be had. No power but in one epoch."""
    return job_of(
        "fig02",
        made_up(
            {"wait_s": 3.0, "e2e_s": 6.0},
            {},
            {"copy_s": 0.25, "energy_paper_wh": 0.5},
            num_workers=0,
            **HDD,
        ),
        made_up({}, {}, INVALID, num_workers=1, **HDD),
        missing=[gone(num_workers=4, **HDD)],
    )


@pytest.fixture
def files(job, tmp_path):
    """Return a function that draws; it gives name -> bytes of the files."""

    def call(of=job):
        draw(of)
        return {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}

    return call


def test_split_is_the_mean_of_the_later_valid_epochs(files, numbers):
    files()
    told = numbers("fig02a", "num_workers", "quantity", "value", "n_epochs", "missing")
    assert [row for row in told if row[0]] == [
        *(("0", "stall_s", "1.375", "2", ""), ("0", "compute_s", "2.25", "2", "")),
        *(("0", "overhead_s", "0.375", "2", ""), ("0", "e2e_s", "4.0", "2", "")),
        *(("1", "stall_s", "1.5", "1", ""), ("1", "compute_s", "2.25", "1", "")),
        *(("1", "overhead_s", "0.25", "1", ""), ("1", "e2e_s", "4.0", "1", "")),
        *(("4", f"{part}_s", "", "0", "out of memory") for part in ("stall", "compute")),
        *(("4", f"{part}_s", "", "0", "out of memory") for part in ("overhead", "e2e")),
    ]


def test_stall_and_energy_of_the_first_epoch_stand_beside_the_later_ones(files, numbers):
    files()
    columns = ("epoch_set", "num_workers", "value", "missing")
    assert numbers("fig02b", *columns) == [
        *(("0", "4", "", "out of memory"), ("1+", "4", "", "out of memory")),
    ]
    assert numbers("fig02c", *columns) == [
        *(("0", "0", "", "not measured"), ("0", "4", "", "out of memory")),
        *(("1+", "0", "0.5", ""), ("1+", "4", "", "out of memory")),
    ]


def test_every_number_of_workers_is_there_where_no_run_has_the_papers(job_of, made_up, numbers):
    draw(job_of("fig02", *(made_up({"wait_s": 3.0}, {}, num_workers=w) for w in (0, 1))))
    assert numbers("fig02b", "epoch_set", "num_workers", "value") == [
        *(("0", "0", "3.5"), ("0", "1", "3.5"), ("1+", "0", "1.5"), ("1+", "1", "1.5")),
    ]


def test_network_without_the_papers_workers_stands_beside_one_that_has_them(
    job_of, made_up, numbers
):
    runs = [made_up(num_workers=w) for w in (0, 2, 4)]
    draw(job_of("fig02", *runs, *(made_up(model="mobilenet", num_workers=w) for w in (0, 2))))
    columns = ("model", "num_workers")
    assert list(dict.fromkeys(numbers("fig02b", *columns))) == [
        *(("lenet", "4"), ("mobilenet", "0"), ("mobilenet", "2"))
    ]
    assert list(dict.fromkeys(numbers("fig02c", *columns))) == [
        *(("lenet", "0"), ("lenet", "4"), ("mobilenet", "0"), ("mobilenet", "2"))
    ]


def test_published_numbers_stand_beside_ours(files, numbers):
    files()
    told = numbers("fig02b", "epoch_set", "num_workers", "published", "seen_by_fit")
    assert ("0", "4", "46.4", "True") in told
    assert ("1+", "4", "12.9", "True") in told
    assert {row[0] for row in numbers("fig02b", "backend")} == {"twin"}


def test_bars_that_differ_in_prefetch_factor_are_told_apart(job_of, made_up):
    paths = [made_up(num_workers=w, prefetch_factor=p) for w in (1, 2) for p in (1, 8)]
    bars, label = bars_of(job_of("fig02", *paths))
    assert [bar.tick for bar in bars] == ["1×1", "1×8", "2×1", "2×8"]
    assert label == "loader workers × prefetch factor"


class TestFiles:
    """SVG, PNG and CSV of each panel."""

    def test_have_the_same_bytes_each_time(self, files):
        first = files()
        assert sorted(first) == [
            f"fig02{panel}.{form}" for panel in "abc" for form in ("csv", "png", "svg")
        ]
        assert [name for name, content in files().items() if content != first[name]] == []

    def test_name_no_time_and_no_version(self, files):
        found = files()
        assert found["fig02a.svg"].startswith(b"<?xml")
        assert found["fig02a.png"].startswith(b"\x89PNG")
        assert b"<dc:date>" not in found["fig02a.svg"]
        assert b"Matplotlib" not in found["fig02a.svg"] + found["fig02a.png"]

    def test_show_title_and_corner_note(self, files):
        svg = re.sub(r"<[^>]*>", " ", files()["fig02a.svg"].decode("utf-8"))
        svg = " ".join(svg.split())
        assert "by number of loader workers" in svg
        assert "simulated, not measured: agx/d1; 2 runs, 4 epochs, 1 not valid and left out" in svg
        assert "filled: used in the fit" in svg

    def test_leave_no_figure_open_after_an_error(self, job_of, made_up):
        with pytest.raises(ConfigError, match="no colour for stall"):
            draw(job_of("fig02", made_up(), palette={}))
        assert plt.get_fignums() == []


def test_every_colour_comes_from_the_palette(job):
    for lost in ("stall", "compute", "overhead", "missing", "published", "epoch_0", "epoch_1_plus"):
        short = {key: colour for key, colour in job.palette.items() if key != lost}
        with pytest.raises(ConfigError, match=rf"no colour for {lost}\n"):
            draw(type(job)(**{**job.__dict__, "palette": short}))


def test_panel_without_settings_is_named(job_of, made_up):
    with pytest.raises(ConfigError, match=r"figures\.fig02\.panels\.fig02a is missing"):
        draw(job_of("fig02", made_up(), panels={}))


def words(job, panel):
    return [" ".join(text.get_text().split()) for text, _, _ in job.saved[panel]]


def test_published_changes_stand_beside_ours(job_of, made_up, numbers):
    lenet = {"storage": "hdd", "device": "agx"}
    alone = made_up({}, {"energy_paper_wh": 2.0}, num_workers=0, **lenet)
    job = job_of("fig02", alone, made_up({}, {"energy_paper_wh": 1.8}, num_workers=4, **lenet))
    draw(job)
    assert "-5.4 %, here -10.0 %" in words(job, "fig02c")
    told = numbers("fig02c", "published_id", "published", "value", "is_relation")
    assert [(*row[:2], float(row[2])) for row in told if row[3]] == [
        ("RS5.1.7-01", "-5.4", pytest.approx(-10.0))
    ]


def test_eight_workers_of_the_paper_are_not_in_panel_a(job_of, made_up, numbers):
    runs = [made_up(num_workers=w, setup="sigmetrics2023") for w in (0, 4, 8)]
    draw(job_of("fig02", *runs, made_up(num_workers=8, model="resnet")))
    told = dict.fromkeys(numbers("fig02a", "model", "num_workers"))
    assert list(told) == [("lenet", "0"), ("lenet", "4"), ("resnet", "8")]


def test_title_says_what_all_bars_have_in_common(job_of, made_up):
    job = job_of("fig02", *(made_up(num_workers=w, **HDD) for w in (0, 4)))
    draw(job)
    titles = {panel: words(job, panel) for panel in ("fig02a", "fig02b")}
    assert any(title.endswith("by number of loader workers, data on hard disk")
               for title in titles["fig02a"])  # fmt: skip
    assert any(title.endswith("4 loader workers, data on hard disk") for title in titles["fig02b"])


def test_boards_with_one_network_share_a_scale_but_a_half_empty_one(made_up, job_of, monkeypatch):
    times = (("agx", "lenet", 25.0), ("nx", "lenet", 40.0), ("agx", "resnet", 90.0),
             ("nx", "resnet", 300.0))  # fmt: skip
    paths = [
        made_up({}, {"e2e_s": e2e_s}, device=device, model=model, **workers)
        for device, model, e2e_s in times
        for workers in WORKERS.values()
    ]
    tops = {}

    def keep(job, figure, name, *others):
        tops[name] = [axes.get_ylim()[1] for axes in figure.axes]

    monkeypatch.setattr(Job, "save", keep)
    draw(job_of("fig02", *paths))
    agx, nx, *resnet = tops["fig02a"]
    assert agx == nx >= 40.0
    assert 90.0 <= resnet[0] < 100.0 < 300.0 <= resnet[1]


def test_a_number_of_workers_alone_is_left_out_of_panel_a(made_up, job_of, numbers):
    pair = [made_up({}, {}, batch_size=32, **workers) for workers in WORKERS.values()]
    alone = made_up({}, {}, batch_size=16, **WORKERS[0])
    draw(job_of("fig02", *pair, alone))
    assert {row[0] for row in numbers("fig02a", "batch_size")} == {"32"}
    assert {row[0] for row in numbers("fig02b", "batch_size")} == {"16", "32"}


def test_titles_say_which_data_a_measured_bar_is_of_and_how_much(job_of, made_up):
    """46 images in 3 s are no epoch of the paper."""
    host = {"backend": "host", "device": "host", "setup": "own", "dataset_source": "synthetic"}
    runs = [made_up(*[{"n_samples": 46}] * 2, **host, num_workers=w) for w in (0, 2)]
    job = job_of("fig02", *runs)
    draw(job)
    assert "LeNet-5 mnist synthetic, 46 samples" in words(job, "fig02a")
    assert "LeNet-5 mnist synthetic, 46 samples" in words(job, "fig02b")


def test_times_are_said_to_be_of_the_epochs_after_the_first(job, files):
    files()
    assert "time per epoch, epochs 1+ (s)" in words(job, "fig02a")
