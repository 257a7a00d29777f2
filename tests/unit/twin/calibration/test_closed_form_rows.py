"""Rows of epochs.csv and idle.csv in closed form."""

import csv

import pytest
from made_up import RUN

from epochwatt import columns
from epochwatt.twin.calibration.closed_form_rows import COLUMNS, epoch_rows, idle_rows
from epochwatt.twin.model.power import idle_w
from epochwatt.twin.simulation.records import write_run
from epochwatt.twin.simulation.run import simulate

EFFECTS = dict.fromkeys(columns.FLAGS, "informs")
# of a short run: its pipeline starts; some forty readings of a power that jumps between two levels
NEAR = {"stall_s": 0.1, "energy_wh": 0.15, "power_mean_w": 0.15}


@pytest.fixture
def written(twin, factors_of, tmp_path):
    """Return a function that simulates a run event by event and gives its rows, as numbers."""

    def call(n_epochs=3, **changes):
        factors = factors_of(**changes)
        epochs = simulate(factors, n_epochs, twin)
        write_run(RUN, str(tmp_path / RUN), factors, epochs, EFFECTS, str(tmp_path))
        with open(tmp_path / "epochs.csv", newline="") as handle:
            return [_numbers(row) for row in csv.DictReader(handle)]

    return call


def _numbers(row):
    kinds = {field.name: field.kind for field in columns.RUN_EPOCH_COLUMNS}
    number = {"int": int, "float": float}
    return {k: number.get(kinds[k], str)(v) if v else v for k, v in row.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"device": "nano", "num_workers": 0, "mode": "MAXN", "storage": "sd"},
        {"device": "nx", "model": "mobilenet", "storage": "hdd", "num_workers": 2},
        {"model": "mobilenet", "storage": "hdd", "num_workers": 1},
        {"model": "mobilenet", "storage": "hdd", "cache_policy": "dropped"},
        {"model": "resnet", "dvfs": "on", "mode": "e"},
        {"model": "mobilenet", "device": "nx", "dataset_scale": 0.25},
    ],
)
def test_rows_are_those_of_the_event_simulation(written, twin, changes):
    simulated = written(**changes)
    found = epoch_rows([simulated], twin, twin.parameters)
    assert len(found) == len(simulated)
    for row, told in zip(found, simulated, strict=True):
        assert {k: row[k] for k in columns.FACTOR_NAMES} == {
            k: told[k] for k in columns.FACTOR_NAMES
        }
        for of in (row, told):
            mean_w = of["energy_wh"] * 3600 / of["e2e_s"]
            assert of["power_mean_w"] == pytest.approx(mean_w, rel=1e-15)
        assert row["energy_paper_wh"] == row["energy_wh"]  # nothing is read, so nothing missed
        for name in (*COLUMNS, "energy_wh"):
            if name in told:  # clocks are no columns of epochs.csv
                near = NEAR.get(name, 0.02)
                assert row[name] == pytest.approx(told[name], rel=near, abs=1e-6), name


def test_without_spread_later_epochs_are_alike_and_parts_add_up(written, twin, quiet):
    first, *later = epoch_rows([written(4, model="mobilenet", storage="hdd")], twin, quiet)
    assert {row["e2e_s"] for row in later} == {later[0]["e2e_s"]}
    assert first["e2e_s"] > later[0]["e2e_s"]
    assert (first["cached_pct"], later[0]["cached_pct"]) == (0.0, 100.0)
    for row in (first, *later):
        parts = row["stall_s"] + row["compute_s"] + row["overhead_s"]
        assert parts == pytest.approx(row["e2e_s"])


def test_units_of_a_board_differ_as_in_the_event_simulation(written, twin):
    simulated = written(instance="d4")
    (found, *_) = epoch_rows([simulated], twin, twin.parameters)
    (nominal, *_) = epoch_rows([written()], twin, twin.parameters)
    assert found["e2e_s"] == pytest.approx(simulated[0]["e2e_s"], rel=0.005)
    time, power = twin.boards["agx"].units["d4"]
    assert found["e2e_s"] / nominal["e2e_s"] == pytest.approx(time, abs=0.005)
    assert found["power_mean_w"] / nominal["power_mean_w"] == pytest.approx(power, abs=0.005)
    assert power > 1.01


def test_idle_powers_follow_the_parameters(twin, modes):
    row = {"device": "agx", "power_mode": "e", "state": "i", "power_scope": "module", "x": 1}
    (told,) = idle_rows([{**row, "power_w": 1.0}], twin, twin.parameters)
    wanted = idle_w(
        twin.boards["agx"], "logging_on_dvfs_off", modes["agx"]["e"], "module", twin.parameters
    )
    assert told == {**row, "power_w": pytest.approx(float(wanted))}
    more = twin.parameters.moved({"agx_soc_w": 2 * twin.parameters["agx_soc_w"]})
    (moved,) = idle_rows([row], twin, more)
    assert moved["power_w"] - told["power_w"] == pytest.approx(
        twin.parameters["agx_soc_w"] * twin.parameters["soc_factor"]
    )
