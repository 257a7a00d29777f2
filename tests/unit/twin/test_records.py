"""Simulated epochs and idle powers as a measurement's files, the tables made of them, the jobs."""

import json
from pathlib import Path

import numpy as np
import pytest
from made_up import FACTORS, MODE, RUN, STEP_S, TIMES_S, epoch

from epochwatt import columns
from epochwatt.analysis.collect_idle import write_idle_table
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.samples import read_samples
from epochwatt.columns import FLAG_EFFECTS
from epochwatt.epochs.collect import collect_run
from epochwatt.errors import RecordError
from epochwatt.tables import read_cells
from epochwatt.twin import records
from epochwatt.twin.__main__ import main
from epochwatt.twin.records import simulate_idle, write_idles, write_run
from epochwatt.twin.twin import load_twin

ROOT = Path(__file__).resolve().parents[3]
N = 100


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that writes a run of these epochs; it gives the rows of its epochs."""
    monkeypatch.chdir(tmp_path)

    def call(*epochs, factors=FACTORS):
        write_run(
            RUN, f"results/simulated/{RUN}", factors, epochs, FLAG_EFFECTS, f"results/runs/{RUN}"
        )
        return read_cells(f"results/runs/{RUN}/epochs.csv")

    return call


@pytest.fixture
def folder():
    return RunFolder("results/simulated", RUN)


class TestTables:
    """epochs.csv and energy.csv."""

    def test_have_the_columns_of_a_measured_run_and_say_that_they_are_simulated(self, written):
        rows = written(epoch(0), epoch(1))
        assert tuple(rows[0]) == columns.names(columns.RUN_EPOCH_COLUMNS)
        energy = read_cells(f"results/runs/{RUN}/energy.csv")
        assert tuple(energy[0]) == columns.names(columns.RUN_ENERGY_COLUMNS)
        assert [row["epoch"] for row in energy] == ["0", "1"]
        for row in rows:
            assert (row["backend"], row["timing_method"], row["loss"]) == ("twin", "simulated", "")

    def test_split_the_epoch_and_have_its_energy(self, written):
        first, later = written(epoch(0), epoch(1))
        assert float(later["e2e_s"]) == pytest.approx(N * STEP_S)
        assert float(later["stall_s"]) == pytest.approx(N * sum(TIMES_S[:2]))
        assert float(later["compute_s"]) == pytest.approx(N * TIMES_S[2])
        assert float(later["overhead_s"]) == pytest.approx(N * (STEP_S - sum(TIMES_S)), abs=1e-5)
        assert (later["n_minibatches"], later["n_samples"]) == (str(N), str(16 * N))
        assert (later["fetch_s"], later["preprocess_s"]) == ("1.5", "2.5")
        assert (later["power_scope"], later["energy_method"]) == ("module", "trapezoid")
        assert float(later["power_mean_w"]) == pytest.approx(15.0, rel=0.05)
        assert float(later["gpu_util_pct"]) == pytest.approx(75.0)
        assert float(later["cpu_util_pct"]) == pytest.approx(40.0)
        assert (first["cached_pct"], later["cached_pct"]) == ("0.0", "100.0")
        assert (first["valid"], later["valid"]) == ("True", "True")
        assert (first["flags"], later["flags"]) == (
            "cold_process stall_power_unresolved",  # of 33 readings few are of stalls
            "stall_power_unresolved",
        )


class TestGates:
    """The flags of measured epochs hold for simulated ones."""

    @pytest.mark.parametrize(
        ("simulated", "factors", "flag", "is_set"),
        [
            (epoch(0, gpu_mhz=0.9 * MODE["gpu_mhz"]), FACTORS, "clock_below_request", True),
            (epoch(0, gpu_mhz=600.0), {**FACTORS, "dvfs": "on"}, "clock_below_request", False),
            (epoch(0)._replace(e2e_s=10.0), FACTORS, "overhead_negative", True),
            (epoch(0, n=200, power_w=lambda t: np.full(t.size, 7.0)), FACTORS, "power_stuck", True),
        ],
    )
    def test_are_those_of_measured_epochs(self, written, simulated, factors, flag, is_set):
        (row,) = written(simulated, factors=factors)
        assert (flag in row["flags"]) == is_set
        if is_set:
            assert row["valid"] == "False" or row["energy_wh"] == ""

    @pytest.mark.parametrize(
        "change", [{"fetch_s": float("nan")}, {"preprocess_s": -1.0}, {"times_s": np.ones((3, 2))}]
    )
    def test_refuse_what_is_no_record_and_leave_nothing(self, change, written, folder):
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
        assert (record.minibatch_s.dtype, record.minibatch_s.shape) == (np.float32, (N, 3))
        mode = record.meta["board"]["power_mode"]
        assert (mode["verified"], mode["dvfs"], mode["requested"]) == (True, "off", MODE)
        assert mode["read_back"]["cores_online"] == list(range(8))
        about = record.telemetry["sources"]["twin"]
        assert about["scope"] == "module"
        assert about["settings"]["sensor"]["reads"] == "instant"
        assert list(about["settings"]["sensor"]["step_w"]) == [about["total"]]
        assert (about["n_samples"], about["rows_dropped"], about["n_negative"]) == (22, 0, 0)
        assert about["step_mean_s"] == pytest.approx(20.0 / 21)
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
        for ours, theirs in zip(simulated, read_cells("again/epochs.csv"), strict=True):
            for name, cell in ours.items():
                try:
                    assert float(cell) == pytest.approx(float(theirs[name]), rel=1e-5), name
                except ValueError:
                    assert cell == theirs[name], name

    def test_are_replaced_by_the_next_simulation_with_the_same_bytes(self, written, folder):
        written(epoch(0), epoch(1))
        before = {p.name: p.read_bytes() for p in Path(folder.epoch_path(0)).iterdir()}
        written(epoch(0))
        assert folder.measured() == [0]
        assert sorted(path.name for path in Path("results/simulated").iterdir()) == [RUN]
        assert {p.name: p.read_bytes() for p in Path(folder.epoch_path(0)).iterdir()} == before


# -- jobs ------------------------------------------------------------------------------------------


def test_job_imports_what_it_needs_and_no_more(words, python, tmp_path):
    code = (
        "import sys; from epochwatt.twin.__main__ import main; status = main(sys.argv[1:]);"
        "print(status, *sorted(sys.modules))"
    )
    status, *loaded = python(code, *words()).split()
    assert status == "0"
    heavy = {"pandas", "torch", "scipy", "pydantic", "matplotlib", "sklearn", "snakemake", "click"}
    assert heavy & set(loaded) == set()
    rows = read_cells(tmp_path / "tables/epochs.csv")
    assert [(row["epoch"], row["n_minibatches"]) for row in rows] == [("0", "3750"), ("1", "3750")]


def test_board_that_the_twin_lacks_is_an_error_in_words(words, capsys):
    assert main([word.replace('"device":"agx"', '"device":"tx2"') for word in words()]) == 1
    assert "tx2" in capsys.readouterr().err


# -- idle powers -----------------------------------------------------------------------------------

PLACE = {
    **{"backend": "twin", "device": "agx", "instance": "d1", "power_mode": "g"},
    **{"dvfs": "off", "state": "i"},
}
SOCKET = {"id": "a", "place": PLACE, "mode": MODE, "power_scope": "socket", "seconds": 1800.0}
MODULE = {"id": "b", "place": PLACE, "mode": MODE, "power_scope": "module", "seconds": 60.0}


def test_idle_powers_become_rows_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "idle_power_w", lambda idle, _: {"a": 11.5, "b": 7.5}[idle["id"]])
    output = tmp_path / "simulated"
    simulate_idle(json.dumps([SOCKET]), ROOT / "config/twin", str(output))
    twin = load_twin(ROOT / "config/twin", [])
    write_idles([SOCKET, MODULE], twin, str(output))  # what was there is replaced
    table = tmp_path / "idle.csv"
    idles = [{**idle, "root": str(output)} for idle in (SOCKET, MODULE)]
    write_idle_table(idles, str(tmp_path / "none.csv"), str(table))
    socket, module = read_cells(table)
    assert (socket["backend"], socket["power_scope"], socket["state"]) == ("twin", "socket", "i")
    assert (float(socket["power_w"]), float(socket["duration_s"])) == (11.5, 1800.0)
    assert (float(module["power_w"]), module["power_scope"]) == (7.5, "module")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["simulated"]
    files = sorted(path.name for path in (output / "a/idle").iterdir())
    assert files == ["record.json", "samples-plug.csv", "telemetry.json"]
