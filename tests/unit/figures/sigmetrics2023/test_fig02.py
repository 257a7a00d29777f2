"""Figure 2: the numbers plotted, what is missing, the same bytes each time."""

import re

import pytest
from panels import INVALID, words

from epochwatt.figures.sigmetrics2023.fig02 import draw

HDD = {"storage": "hdd", "model": "mobilenet"}


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
