"""Small made-up tables of the study, and all of its figures drawn of them once."""

import csv
from pathlib import Path

import pytest

from epochwatt.figures.powertrain.draw import draw_powertrain
from epochwatt.prediction.transfer.names import TABLES

ROOT = Path(__file__).resolve().parents[4]
RESNET, MOBILENET = "pt-resnet-imagenet", "pt-mobilenet-gld"
BASE = {
    "simulated": {"reference": RESNET, "workload": MOBILENET, "device": "orin"},
    "public": {"reference": "translucence-tx2-5000", "workload": "translucence-tx2-20000"},
}
MODE = {"cores": "12", "cpu_mhz": "2201.6", "gpu_mhz": "1300.5", "emc_mhz": "3199"}


def trial(method, provenance="simulated", **cells):
    """Return the shared cells of a row; only the transferred network has a reference."""
    row = {"provenance": provenance, "group": "learning-curve", "n_profiled": "50", "draw": "0"}
    row |= {"device": "tx2", **BASE[provenance], "method": method}
    if method != "powertrain":
        row["reference"] = ""
    return row | cells


def error_rows():
    """Transfer: 10 % from ten modes, 6 % from fifty; from scratch twice that; three draws."""
    rows = []
    for provenance in BASE:
        for method, times in (("powertrain", 1), ("powertrain_scratch", 2)):
            for n, mape in (("10", 10), ("50", 6)):
                for draw, off in enumerate((-1, 0, 1)):
                    for target, part in (("time_s", 1.0), ("power_w", 0.5)):
                        value = (mape + off) * times * part
                        cells = {"n_profiled": n, "draw": str(draw), "target": target}
                        cells |= {"mape_pct": f"{value:g}", "median_pct": "1"}
                        rows.append(trial(method, provenance, **cells))
        everything = {"n_profiled": "4368", "target": "time_s", "mape_pct": "3"}
        rows.append(trial("powertrain_all", provenance, group="all-modes", **everything))
    return rows


def choice_rows():
    """Limits of 20 and 30 W: transfer 1 and 3 % slower; MAXN breaks both; one has no answer."""
    rows = []
    for provenance in BASE:
        for method, penalties in (
            ("powertrain", ("1", "3")),
            ("powertrain_scratch", ("-70", "-60")),
            ("random_front", ("", "14")),
        ):
            for limit, penalty in zip(("20", "30"), penalties, strict=True):
                cells = {"limit_w": limit, "penalty_pct": penalty}
                rows.append(trial(method, provenance, **cells))
    return rows


def penalty_rows():
    rows = []
    for provenance in BASE:
        for method, answered, over, over_1w in (
            ("powertrain", "2", "50", "0"),
            ("powertrain_scratch", "2", "100", "100"),
            ("random_front", "1", "0", "0"),
        ):
            cells = {"n_limits": "2", "n_answered": answered, "over_pct": over}
            cells |= {"over_1w_pct": over_1w, "excess_area_pct": "2", "penalty_pct": "2"}
            rows.append(trial(method, provenance, **cells))
    return rows


def front_rows():
    """The observed front, and one that a method expects, in seconds of a mini-batch."""
    points = (("20", "0.2"), ("30", "0.1"))
    observed = [trial("observed", power_w=w, time_s=s, n_profiled="", draw="") for w, s in points]
    expected = [
        trial("powertrain", predicted_power_w=w, predicted_time_s=s, power_w="31", time_s="0.1")
        for w, s in points
    ]
    return observed + expected


def example_rows():
    shared = {"limit_w": "30", "minibatches": "1000", **MODE}
    rows = [
        trial("observed", **shared, epoch_s="100", power_w="29.5", penalty_pct="0", over_w="-0.5"),
        trial("maxn", **shared, epoch_s="80", power_w="45", penalty_pct="-20", over_w="15"),
    ]
    cells = {"predicted_epoch_s": "95", "predicted_power_w": "29.9", "epoch_s": "97"}
    cells |= {"power_w": "31.5", "penalty_pct": "-3", "over_w": "1.5"}
    return [*rows, trial("powertrain", **shared, **cells)]


def transfer_rows():
    rows = []
    for reference, workload, method, mape in (
        (RESNET, MOBILENET, "powertrain", "11"),
        (MOBILENET, MOBILENET, "powertrain_all", "7"),
    ):
        for target in ("time_s", "power_w"):
            row = trial(method, reference=reference, workload=workload, target=target)
            rows.append(row | {"mape_pct": mape, "low_pct": "10", "high_pct": "12", "n_draws": "3"})
    return rows


MADE = {
    "errors": error_rows,
    "choices": choice_rows,
    "penalties": penalty_rows,
    "fronts": front_rows,
    "example": example_rows,
    "transfer": transfer_rows,
}


def write(folder, rows_of):
    """Write tables with the columns of the study; return name -> path."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, columns in TABLES.items():
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, columns, restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows_of(name))
        paths[name] = str(path)
    return paths


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """Name -> path of the made-up tables."""
    return write(tmp_path_factory.mktemp("tables"), lambda name: MADE[name]())


def draw(tables, folder):
    modes = folder / "modes.csv"
    modes.write_text("power_w,time_s\n29,0.2\n30,0.15\n,0.3\n")
    numbers = ROOT / "config/published/powertrain/numbers.csv"
    style = ROOT / "config/paper.mplstyle"
    draw_powertrain(tables.values(), str(numbers), str(modes), str(style), f"{folder}/figures")
    return folder / "figures"


@pytest.fixture(scope="session")
def drawn(tables, tmp_path_factory):
    """Folder of all figures of the made-up tables."""
    return draw(tables, tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="session")
def drawn_empty(tmp_path_factory):
    """Folder of all figures of tables without a row."""
    folder = tmp_path_factory.mktemp("empty")
    return draw(write(folder / "tables", lambda _: []), folder)
