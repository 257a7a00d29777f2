"""Figure 2: the numbers plotted, what is missing, the same bytes each time."""

import re

import matplotlib.pyplot as plt
import pytest
from panels import INVALID, words

from epochwatt.errors import ConfigError
from epochwatt.figures.common.job import Job
from epochwatt.figures.sigmetrics2023.fig02 import bars_of, draw

HDD = {"storage": "hdd", "model": "mobilenet"}
ALONE = {"num_workers": 0, "prefetch_factor": None}


@pytest.fixture
def job(job_of, made_up, gone):
    """Two numbers of workers; four cannot be had. No power but in one epoch."""
    slow, later = {"wait_s": 3.0, "e2e_s": 6.0}, {"copy_s": 0.25, "energy_paper_wh": 0.5}
    return job_of(
        "fig02",
        made_up(slow, {}, later, num_workers=0, **HDD),
        made_up({}, {}, INVALID, num_workers=1, **HDD),
        missing=[gone(num_workers=4, **HDD)],
    )


def test_numbers_are_means_of_the_later_valid_epochs_beside_the_first(job, numbers):
    draw(job)
    told = numbers("fig02a", "num_workers", "quantity", "value", "n_epochs", "missing")
    assert [row for row in told if row[0]] == [
        *(("0", "stall_s", "1.375", "2", ""), ("0", "compute_s", "2.25", "2", "")),
        *(("0", "overhead_s", "0.375", "2", ""), ("0", "e2e_s", "4.0", "2", "")),
        *(("1", "stall_s", "1.5", "1", ""), ("1", "compute_s", "2.25", "1", "")),
        *(("1", "overhead_s", "0.25", "1", ""), ("1", "e2e_s", "4.0", "1", "")),
        *(("4", f"{part}_s", "", "0", "out of memory") for part in ("stall", "compute")),
        *(("4", f"{part}_s", "", "0", "out of memory") for part in ("overhead", "e2e")),
    ]
    columns = ("epoch_set", "num_workers", "value", "missing")
    assert numbers("fig02b", *columns) == [
        *(("0", "4", "", "out of memory"), ("1+", "4", "", "out of memory"))
    ]
    assert numbers("fig02c", *columns) == [
        *(("0", "0", "", "not measured"), ("0", "4", "", "out of memory")),
        *(("1+", "0", "0.5", ""), ("1+", "4", "", "out of memory")),
    ]
    told = numbers("fig02b", "epoch_set", "num_workers", "published", "seen_by_fit")
    assert told == [("0", "4", "46.4", "True"), ("1+", "4", "12.9", "True")]
    assert "epoch time, epochs 1+ (s)" in words(job, "fig02a")


def test_a_network_without_the_papers_workers_has_every_number_of_workers(job_of, made_up, numbers):
    runs = [made_up(num_workers=w) for w in (0, 2, 4)]
    draw(job_of("fig02", *runs, *(made_up(model="mobilenet", num_workers=w) for w in (0, 2))))
    others = [("mobilenet", "0"), ("mobilenet", "2")]
    assert [*dict.fromkeys(numbers("fig02b", "model", "num_workers"))] == [("lenet", "4"), *others]
    assert [*dict.fromkeys(numbers("fig02c", "model", "num_workers"))] == [
        *(("lenet", "0"), ("lenet", "4")),
        *others,
    ]


def test_bars_that_differ_in_prefetch_factor_are_told_apart(job_of, made_up):
    paths = [made_up(num_workers=w, prefetch_factor=p) for w in (1, 2) for p in (1, 8)]
    bars, label = bars_of(job_of("fig02", *paths))
    assert [bar.tick for bar in bars] == ["1×1", "1×8", "2×1", "2×8"]
    assert label == "loader workers × prefetch factor"


def test_files_have_the_same_bytes_each_time_and_say_where_they_are_from(job, tmp_path):
    def files():
        draw(job)
        return {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}

    first = files()
    assert sorted(first) == [f"fig02{p}.{form}" for p in "abc" for form in ("csv", "png", "svg")]
    assert files() == first
    svg = first["fig02a.svg"]
    assert svg.startswith(b"<?xml")
    assert first["fig02a.png"].startswith(b"\x89PNG")
    assert b"<dc:date>" not in svg
    assert b"Matplotlib" not in svg + first["fig02a.png"]
    text = " ".join(re.sub(r"<[^>]*>", " ", svg.decode("utf-8")).split())
    assert "by number of loader workers" in text
    assert "2 runs of mobilenet, 4 epochs, 1 not valid and left out" in text
    assert "published numbers" in text


def test_colours_and_panels_that_are_missing_are_named_and_no_figure_stays_open(job):
    for lost in ("stall", "compute", "overhead", "missing", "published", "epoch_0", "epoch_1_plus"):
        short = {key: colour for key, colour in job.palette.items() if key != lost}
        with pytest.raises(ConfigError, match=rf"no colour for {lost}\n"):
            draw(type(job)(**{**job.__dict__, "palette": short}))
    assert plt.get_fignums() == []
    with pytest.raises(ConfigError, match=r"figures\.fig02\.panels\.fig02a is missing"):
        draw(type(job)(**{**job.__dict__, "panels": {}}))


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


def test_panel_a_has_neither_eight_workers_of_the_paper_nor_a_lone_bar_beside_a_group(
    job_of, made_up, numbers
):
    runs = [made_up(num_workers=w, setup="sigmetrics2023") for w in (0, 4, 8)]
    lone = made_up(batch_size=32, **ALONE)
    draw(job_of("fig02", *runs, lone, made_up(num_workers=8, model="resnet")))
    told = dict.fromkeys(numbers("fig02a", "model", "batch_size", "num_workers"))
    assert list(told) == [("lenet", "16", "0"), ("lenet", "16", "4"), ("resnet", "16", "8")]
    assert {row[0] for row in numbers("fig02b", "batch_size")} == {"16", "32"}


def test_titles_say_what_bars_have_in_common_and_which_data_measured_ones_are_of(job_of, made_up):
    job = job_of("fig02", *(made_up(num_workers=w, **HDD) for w in (0, 4)))
    draw(job)
    for panel, end in (("fig02a", "by number of loader workers, data on hard disk"),
                       ("fig02b", "4 loader workers, data on hard disk")):  # fmt: skip
        assert any(text.endswith(end) for text in words(job, panel))
    host = {"backend": "host", "device": "host", "setup": "own", "dataset_source": "synthetic"}
    runs = [made_up(*[{"n_samples": 46}] * 2, **host, num_workers=w) for w in (0, 2)]
    job = job_of("fig02", *runs)
    draw(job)
    for panel in ("fig02a", "fig02b"):
        assert "LeNet-5 mnist synthetic, 46 samples" in words(job, panel)


def test_boards_with_one_network_share_a_scale_but_a_half_empty_one(made_up, job_of, monkeypatch):
    times = (("agx", "lenet", 25.0), ("nx", "lenet", 40.0), ("agx", "resnet", 90.0),
             ("nx", "resnet", 300.0))  # fmt: skip
    paths = [
        made_up({}, {"e2e_s": e2e_s}, device=device, model=model, **workers)
        for device, model, e2e_s in times
        for workers in (ALONE, {"num_workers": 1})
    ]
    tops = {}

    def keep(job, figure, name, *others):
        tops[name] = [axes.get_ylim()[1] for axes in figure.axes]

    monkeypatch.setattr(Job, "save", keep)
    draw(job_of("fig02", *paths))
    agx, nx, *resnet = tops["fig02a"]
    assert agx == nx >= 40.0
    assert 90.0 <= resnet[0] < 100.0 < 300.0 <= resnet[1]
