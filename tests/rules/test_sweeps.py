"""Rules of sweeps: the list of modes, records to a table, a simulated board in one call."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from epochwatt.sweeps.mode_table import read_mode_tables
from epochwatt.sweeps.table import load_sweeps

REPOSITORY = Path(__file__).resolve().parents[2]
MODES = [{"cores": 1}]


@pytest.fixture
def sweep(checkout):
    """Return a function that selects a sweep of a host, or one of a twin, and returns it."""

    def select(**keys):
        entry = {
            "title": "swept by a test",
            "backend": "host",
            "device": "host",
            "workload": {"model": "lenet", "num_workers": 0},
            "grid": {"modes": MODES},
            **keys,
        }
        checkout.write("sweeps.yaml", {"mine": entry})
        config = {"studies": ["small"], "sweeps": "mine"}
        checkout.write("config.yaml", config)
        return load_sweeps(config).sweeps["mine"]

    return select


def test_the_list_of_modes_is_written_once(sweep, run_rule):
    wanted = sweep()
    run_rule("list_modes", wanted.modes_file)
    assert json.loads(Path(wanted.modes_file).read_text("utf-8")) == MODES


def test_a_table_is_made_of_the_records(sweep, run_rule, measure_mode):
    wanted = sweep()
    measure_mode(wanted, MODES[0], flags=["cold_process"])
    (receipt,) = map(Path, wanted.receipts)
    receipt.parent.mkdir(parents=True)
    receipt.write_text("{}", "utf-8")
    run_rule("collect_sweep", wanted.table)
    with open(wanted.table, newline="", encoding="utf-8") as handle:
        (row,) = csv.DictReader(handle)
    assert (row["sweep"], row["provenance"], row["workload"]) == ("mine", "measured", "lenet")
    assert (row["cores"], row["cpu_mhz"], row["n_minibatches"]) == ("1", "", "5")
    assert (float(row["time_s"]), row["valid"], row["flags"]) == (0.8, "true", "cold_process")


def test_a_simulated_sweep_says_so_in_every_row(sweep, run_rule, checkout):
    for name in ("devices/orin.yaml", "twin/boards.yaml", "twin/parameters.yaml"):
        shutil.copy(REPOSITORY / "config" / name, checkout.path / "config" / name)
    shutil.copy(REPOSITORY / "config/twin/samples.yaml", checkout.path / "config/twin")
    wanted = sweep(backend="twin", device="orin", grid="fulcrum-orin")
    run_rule("count_workload", wanted.run.counts)
    run_rule("simulate_sweep", wanted.table)
    (table,) = read_mode_tables(Path(wanted.table))
    assert len(table.rows) == 441
    assert {row.provenance for row in table.rows} == {"simulated"}
    assert table.varied() == ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    assert table.power_scope == "module"
    fast, slow = max(table.modes.tolist()), min(table.modes.tolist())
    times = {tuple(row[:4]): s for row, s in zip(table.modes, table.column("time_s"), strict=True)}
    assert times[tuple(fast[:4])] < times[tuple(slow[:4])]


def test_a_wrong_name_ends_in_two_lines(sweep, run_rule, checkout):
    sweep()
    checkout.write("config.yaml", {"studies": ["small"], "sweeps": "yours"})
    output = run_rule("collect_sweep", "results/sweeps/yours.csv", status=1)
    assert "config/config.yaml: sweeps names 'yours'" in output
    assert "allowed: config/sweeps.yaml has: mine" in output
    assert "Traceback" not in output
