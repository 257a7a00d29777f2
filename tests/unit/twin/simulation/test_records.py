"""Simulated epochs written as a measurement's files, and the tables made of them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import FACTORS, MODE, RUN, STEP_S, TIMES_S, epoch

from epochwatt import columns
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.samples import read_samples
from epochwatt.columns import FLAG_EFFECTS
from epochwatt.epochs.collect import collect_run
from epochwatt.errors import RecordError, RecordWriteError
from epochwatt.twin.simulation import records as write
from epochwatt.twin.simulation.records import KEPT_EPOCHS, stuck_s, write_run

N = 100


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that writes a run of these epochs; it gives the rows of its epochs."""
    monkeypatch.chdir(tmp_path)

    def call(*epochs, factors=FACTORS):
        write_run(
            RUN, f"results/simulated/{RUN}", factors, epochs, FLAG_EFFECTS, f"results/runs/{RUN}"
        )
        return read(f"results/runs/{RUN}/epochs.csv")

    return call


@pytest.fixture
def folder():
    return RunFolder("results/simulated", RUN)


class TestTables:
    """epochs.csv and energy.csv."""

    def test_have_the_columns_of_a_measured_run(self, written):
        rows = written(epoch(0), epoch(1))
        assert tuple(rows[0]) == columns.names(columns.RUN_EPOCH_COLUMNS)
        energy = read(f"results/runs/{RUN}/energy.csv")
        assert tuple(energy[0]) == columns.names(columns.RUN_ENERGY_COLUMNS)
        assert [row["epoch"] for row in energy] == ["0", "1"]

    def test_say_in_every_row_that_they_are_simulated(self, written):
        for row in written(epoch(0), epoch(1)):
            assert (row["backend"], row["timing_method"], row["loss"]) == ("twin", "simulated", "")

    def test_split_the_epoch(self, written):
        row = written(epoch(0), epoch(1))[1]
        assert float(row["e2e_s"]) == pytest.approx(N * STEP_S)
        assert float(row["stall_s"]) == pytest.approx(N * sum(TIMES_S[:2]))
        assert float(row["compute_s"]) == pytest.approx(N * TIMES_S[2])
        assert float(row["overhead_s"]) == pytest.approx(N * (STEP_S - sum(TIMES_S)), abs=1e-5)
        assert (row["n_minibatches"], row["n_samples"]) == (str(N), str(16 * N))
        assert (row["fetch_s"], row["preprocess_s"]) == ("1.5", "2.5")

    def test_have_energy_utilisation_and_cache(self, written):
        first, later = written(epoch(0), epoch(1))
        assert (later["power_scope"], later["energy_method"]) == ("module", "trapezoid")
        assert float(later["power_mean_w"]) == pytest.approx(15.0, rel=0.05)
        assert float(later["gpu_util_pct"]) == pytest.approx(75.0)
        assert float(later["cpu_util_pct"]) == pytest.approx(40.0)
        assert (first["cached_pct"], later["cached_pct"]) == ("0.0", "100.0")

    def test_are_valid_without_a_flag_that_is_a_mistake_of_ours(self, written):
        first, later = written(epoch(0), epoch(1))
        assert (first["valid"], later["valid"]) == ("True", "True")
        assert (first["flags"], later["flags"]) == (
            "cold_process stall_power_unresolved",  # of 33 readings few are of stalls
            "stall_power_unresolved",
        )


class TestGates:
    """The flags of measured epochs hold for simulated ones."""

    def test_clock_below_the_modes_invalidates(self, written):
        (row,) = written(epoch(0, gpu_mhz=0.9 * MODE["gpu_mhz"]))
        assert "clock_below_request" in row["flags"]
        assert row["valid"] == "False"

    def test_clocks_that_the_governors_choose_are_no_fault(self, written):
        (row,) = written(epoch(0, gpu_mhz=600.0), factors={**FACTORS, "dvfs": "on"})
        assert "clock_below_request" not in row["flags"]

    def test_power_that_does_not_move_is_no_energy(self, written):
        (row,) = written(epoch(0, n=200, power_w=lambda t_s: np.full(t_s.size, 7.0)))
        assert "power_stuck" in row["flags"]
        assert row["energy_wh"] == ""

    def test_parts_longer_than_the_epoch_invalidate(self, written):
        (row,) = written(epoch(0)._replace(e2e_s=10.0))
        assert "overhead_negative" in row["flags"]

    @pytest.mark.parametrize(
        "change", [{"fetch_s": float("nan")}, {"preprocess_s": -1.0}, {"times_s": np.ones((3, 2))}]
    )
    def test_what_is_no_record_is_refused_and_leaves_nothing(self, change, written, folder):
        with pytest.raises((RecordError, ValueError)):
            written(epoch(0)._replace(**change))
        assert not Path(folder.path).exists()
        assert not Path("results/runs").exists()


class TestRecords:
    """results/simulated/{run}/: the files that a board leaves."""

    def test_read_as_those_of_a_measurement(self, written, folder):
        written(epoch(0), epoch(1))
        assert folder.measured() == [0, 1]
        record = folder.read(1)
        assert (record.meta["backend"], record.meta["factors"]) == ("twin", FACTORS)
        assert record.minibatch_s.dtype == np.float32
        assert record.minibatch_s.shape == (N, 3)
        about = record.telemetry["sources"]["twin"]
        assert about["scope"] == "module"
        assert about["settings"]["sensor"]["reads"] == "instant"
        assert list(about["settings"]["sensor"]["step_w"]) == [about["total"]]
        table = read_samples(record.folder, "twin")
        assert list(table) == ["t_mono_s", "t_unix_s", "rail_gpu_w", "power_module_w"]
        window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
        assert (table["t_mono_s"][0], table["t_mono_s"][-1]) == window

    def test_collect_to_the_same_rows(self, written):
        """What the tables say is what the files hold, up to the digits of a sample file."""
        simulated = written(*(epoch(k, n=150, start_s=k * 33.333333333) for k in range(3)))
        collect_run(
            "results/simulated", RUN, 3, FLAG_EFFECTS, "again/epochs.csv", "again/energy.csv"
        )
        for ours, theirs in zip(simulated, read("again/epochs.csv"), strict=True):
            for name, cell in ours.items():
                try:
                    assert float(cell) == pytest.approx(float(theirs[name]), rel=1e-5), name
                except ValueError:
                    assert cell == theirs[name], name

    def test_of_a_long_run_are_those_of_its_first_epochs(self, written, folder):
        rows = written(*(epoch(k, n=10) for k in range(KEPT_EPOCHS + 5)))
        assert len(rows) == KEPT_EPOCHS + 5
        assert folder.measured() == list(range(KEPT_EPOCHS))

    def test_are_replaced_by_the_next_simulation(self, written, folder):
        written(epoch(0), epoch(1))
        written(epoch(0))
        assert folder.measured() == [0]
        assert sorted(path.name for path in Path("results/simulated").iterdir()) == [RUN]

    def test_are_the_same_each_time(self, written, folder):
        written(epoch(0))
        before = {p.name: p.read_bytes() for p in Path(folder.epoch_path(0)).iterdir()}
        written(epoch(0))
        assert {p.name: p.read_bytes() for p in Path(folder.epoch_path(0)).iterdir()} == before

    def test_that_cannot_be_written_are_a_clear_error(self, written):
        Path("results").touch()
        with pytest.raises(RecordWriteError, match="a simulated run"):
            written(epoch(0))

    def test_hold_the_mode_that_was_asked_for(self, written, folder):
        written(epoch(0))
        mode = folder.read(0).meta["board"]["power_mode"]
        assert (mode["verified"], mode["dvfs"], mode["requested"]) == (True, "off", MODE)
        assert mode["read_back"]["cores_online"] == list(range(8))

    def test_say_when_the_page_cache_was_dropped(self, written, folder):
        written(epoch(0), epoch(1))
        assert [folder.read(k).meta["cache"]["action"] for k in (0, 1)] == ["dropped", None]
        written(epoch(0), epoch(1), factors={**FACTORS, "cache_policy": "dropped"})
        assert folder.read(1).meta["cache"]["action"] == "dropped"


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=40))
def test_stuck_time_is_the_longest_of_one_value(steps):
    """As telemetry.channel counts it, row by row."""
    t_s = np.cumsum([step for step, _ in steps]).astype(float)
    values = np.array([value for _, value in steps], dtype=float)
    longest, since = 0.0, t_s[0]
    for n in range(1, t_s.size):
        if values[n] != values[n - 1]:
            since = t_s[n]
        longest = max(longest, t_s[n] - since)
    assert stuck_s(t_s, values) == longest


def test_statistics_are_readable_json(written, folder):
    written(epoch(0))
    told = json.loads(Path(folder.epoch_path(0), "telemetry.json").read_text("utf-8"))
    about = told["sources"]["twin"]
    assert (about["n_samples"], about["rows_dropped"], about["n_negative"]) == (22, 0, 0)
    assert about["step_mean_s"] == pytest.approx(20.0 / 21)


def test_writing_needs_neither_pandas_nor_torch(python):
    code = f"import sys, {write.__name__}; print(*sorted(sys.modules))"
    loaded = set(python(code).split())
    assert not loaded & {"pandas", "torch", "scipy", "pydantic", "yaml", "matplotlib", "snakemake"}
