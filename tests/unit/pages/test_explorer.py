"""The explorer's data: cells of runs.csv, what an interval needs, epochs packed for the browser."""

import json
import math

import numpy as np
import pytest

from epochwatt.analysis.collect_study import export_tables, read_epochs
from epochwatt.analysis.compare import find_runs, interval
from epochwatt.columns import with_defaults
from epochwatt.pages.explorer import MEANS, explorer
from epochwatt.tables import read_cells, read_frame

FACTORS = {
    **{"backend": "twin", "device": "agx", "instance": "d1", "model": "lenet", "dataset": "mnist"},
    **{"dataset_source": "official", "storage": "ssd", "power_mode": "g"},
}
POWER = {"power_scope": "module", "power_mean_w": 11.1, "energy_wh": 0.0123}
EPOCHS = (
    {"e2e_s": 9.0, **POWER},
    {"e2e_s": 4.1, **POWER},
    {"e2e_s": 1000.0, "valid": False, **POWER},
    {"e2e_s": 4.3, **POWER, "energy_wh": 0.0131},
    {"e2e_s": 4.7, **POWER, "energy_wh": 0.0125},
)


@pytest.fixture
def explored(tmp_path, monkeypatch, write_epochs):
    """Return a function that gives the explorer's data of runs: id -> factors and epochs."""
    monkeypatch.chdir(tmp_path)

    def make(records=None, specs=(), **runs):
        paths = [
            write_epochs(run, with_defaults({**FACTORS, **factors}), *epochs)
            for run, (factors, epochs) in runs.items()
        ]
        table = read_epochs(paths)
        export_tables(paths, {}, "epochs.csv", "runs.csv")
        runs_table, titles = read_frame("runs.csv"), {"agx": "AGX Xavier"}
        return explorer(table, runs_table, records or {}, titles, {"lenet": "#111111"}, specs)

    return make


def test_every_mean_is_the_cell_of_runs_csv(explored):
    runs = explored(a=({}, EPOCHS), b=({"num_workers": 0}, [{}, {"e2e_s": 1 / 3}]))["runs"]
    rows = [
        row
        for row in read_cells("runs.csv")
        if (row["epoch_set"], row["statistic"]) == ("1+", "mean")
    ]
    assert [row["run"] for row in rows] == runs["run"] == ["a", "b"]
    for n, row in enumerate(rows):
        cells = {name: float(row[name]) if row[name] else None for name in MEANS}
        assert {name: runs[name][n] for name in MEANS} == cells
        assert [runs["n_epochs"][n], runs["n_invalid"][n]] == [
            int(row["n_epochs"]), int(row["n_invalid"])
        ]  # fmt: skip


def test_a_run_without_a_valid_later_epoch_or_without_records_has_no_numbers(explored):
    shown = explored(records={"a": "measured/gone"}, a=({}, [{}]), b=({"num_workers": 0}, EPOCHS))
    assert shown["runs"]["e2e_s"][0] is None
    assert shown["runs"]["n_epochs"] == [0, 3]
    assert shown["runs"]["gpu_mhz"] == [None, None]
    assert shown["compared"]["e2e"]["n"] == [0, 3]
    assert shown["epochs"] == {}
    json.dumps(shown, allow_nan=False)


def test_the_kind_of_data_is_told_apart(explored):
    kinds = {"host": "measured", "jetson": "measured", "twin": "simulated", "fake": "fake"}
    runs = {backend: ({"backend": backend}, EPOCHS) for backend in kinds}
    runs["old"] = ({"backend": "jetson", "imported": "the scripts of 2023"}, EPOCHS)
    shown = explored(**runs)["runs"]
    assert dict(zip(shown["run"], shown["kind"], strict=True)) == kinds | {"old": "imported"}


def test_number_mean_and_variance_are_all_that_an_interval_needs(explored):
    other = [{}, {"e2e_s": 5.0}, {"e2e_s": 5.5}, {"e2e_s": 6.5}]
    shown = explored(a=({}, EPOCHS), b=({"num_workers": 0}, other))["compared"]["e2e"]
    a, b = (find_runs(run).query("valid and epoch > 0").e2e_s.to_numpy(float) for run in "ab")
    relative = [v / (n * m**2) for n, m, v in zip(*shown.values(), strict=True)]
    low, high = interval(a, b)
    assert shown["n"] == [3, 3]
    assert math.log(high / low) > 0
    assert relative == pytest.approx([np.var(v, ddof=1) / (v.size * v.mean() ** 2) for v in (a, b)])
    assert shown["mean"] == pytest.approx([a.mean(), b.mean()])
