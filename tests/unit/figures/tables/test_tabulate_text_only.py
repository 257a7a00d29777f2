"""What only the text tells: which runs, their numbers, and what is printed of them."""

import csv

import pytest

from epochwatt.figures.tables.tabulate_text_only import HEADS, write
from epochwatt.figures.tables.text_runs import experiment_of

PAPER = {"setup": "sigmetrics2023"}
DROPPED = {"storage": "hdd", "cache_policy": "dropped", "model": "mobilenet", **PAPER}


@pytest.fixture
def table(tmp_path, pytestconfig):
    """Return a function that makes the table of these runs; gives rows of the CSV, and the page."""

    def make(*epochs, missing=(), backend="twin"):
        root, stem = pytestconfig.rootpath / "config", tmp_path / "tables/text_only"
        write(epochs, missing, backend, str(root / "published"), str(root / "twin"), str(stem))
        with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
            return list(csv.DictReader(handle)), stem.with_suffix(".html").read_text("utf-8")

    return make


def one(rows, **cells):
    (row,) = [r for r in rows if cells.items() <= r.items()]
    return row


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"num_workers": 8}, "8 workers"),
        ({"cache_policy": "dropped"}, "page cache dropped"),
        ({"device": "orin", "power_mode": "MAXN"}, "AGX Orin"),
        ({"power_mode": "gpu114"}, "GPU at 114.75 MHz"),
        ({"power_mode": "f", "num_workers": 0}, "modes e and f without workers"),
        ({"power_mode": "f"}, ""),
        ({"num_workers": 0}, ""),
    ],
)
def test_runs_of_the_text(changes, expected):
    run = {"num_workers": 4, "cache_policy": "kept", "device": "agx", "power_mode": "g"}
    assert experiment_of({**run, **changes}) == expected


def test_numbers_of_a_run_stand_beside_what_is_printed(made_up, table):
    rows, page = table(made_up({}, {"wait_s": 1.5}, **DROPPED))
    assert {r["quantity"]: (r["value"], r["published"], r["missing"]) for r in rows} == {
        "e2e_s": ("4.0", "", ""),
        "stall_s": ("2.0", "49.91", ""),
        "compute_s": ("2.25", "", ""),
        "energy_paper_wh": ("", "", "not measured"),
        "power_mean_w": ("", "", "not measured"),
    }
    assert {r["about"] for r in rows} == {"page cache dropped"}
    assert one(rows, quantity="stall_s")["seen_by_fit"] == "True"
    assert ">2 (49.91)<" in page
    assert "simulated, not measured: agx; 1 run of mobilenet, 2 epochs" in page
    rows, _ = table(made_up(backend="jetson", **DROPPED), backend="jetson")
    assert one(rows, quantity="stall_s")["seen_by_fit"] == "False"  # nothing was fitted to it


def test_ratios_and_changes_are_made_as_the_paper_makes_them(made_up, table):
    slow = {"e2e_s": 40.0, "energy_paper_wh": 8.0, "power_mean_w": 8.0}
    fast = {"e2e_s": 4.0, "energy_paper_wh": 3.0, "power_mean_w": 32.0}
    e, f = ({"model": "lenet", "power_mode": mode, "num_workers": 0} for mode in "ef")
    rows, page = table(
        made_up({}, slow, model="resnet", power_mode="gpu114", **PAPER),
        made_up({}, fast, model="resnet", **PAPER),
        made_up({}, {"compute_s": 2.0}, **e, **PAPER),
        made_up({}, {"compute_s": 2.5}, **f, **PAPER),
    )
    assert {r["published_id"]: (float(r["value"]), r["quantity"]) for r in rows if r["a"]} == {
        "RS5.6-01": (10.0, "e2e_s, A/B"),
        "RS5.6-02": (4.0, "power_mean_w, B/A"),
        "RS5.6-03": (0.375, "energy_paper_wh, B/A"),
        "RS5.6.6-07": (pytest.approx(25.0), "compute_s, 100*(B-A)/A"),
    }
    ratio = one(rows, published_id="RS5.6-01")
    assert (ratio["a"], ratio["b"]) == ("power_mode gpu114", "power_mode g")
    assert "10 (10.3)" in page


def test_what_is_missing_keeps_its_rows_with_the_reason(made_up, gone, table):
    rows, page = table(made_up({}, {}, device="orin", power_mode="MAXN", model="resnet", **PAPER))
    ratio = one(rows, published_id="RS5.1.7-06")
    assert (ratio["value"], ratio["missing"]) == ("", "the run it is compared with is not there")
    assert [ratio[n] for n in ("published", "published_hi", "seen_by_fit")] == [
        *("1.8", "3.9", "False")
    ]
    assert "missing: the run it is compared with is not there (1.8 to 3.9)" in page
    rows, _ = table(missing=[gone(num_workers=8, model="resnet", storage="hdd", **PAPER)])
    assert {(r["quantity"], r["missing"]) for r in rows} == {(q, "out of memory") for q in HEADS}
