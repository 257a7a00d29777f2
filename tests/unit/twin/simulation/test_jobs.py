"""The jobs: from the shipped parameters to a run's files, with what a job must not import."""

import csv
import json
from pathlib import Path

from epochwatt.study.yaml_files import read_yaml
from epochwatt.twin.__main__ import main
from epochwatt.twin.simulation.idle import simulate_idle

ROOT = Path(__file__).resolve().parents[4]


def test_a_run_of_the_table_becomes_files(words, tmp_path):
    assert main(words()) == 0
    with (tmp_path / "tables/epochs.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["epoch"] for row in rows] == ["0", "1"]
    assert {(row["backend"], row["model"], row["valid"]) for row in rows} == {
        ("twin", "lenet", "True")
    }
    assert rows[0]["n_minibatches"] == "3750"


def test_a_job_imports_what_it_needs_and_no_more(words, python):
    code = (
        "import sys; from epochwatt.twin.__main__ import main; status = main(sys.argv[1:]);"
        "print(status, *sorted(sys.modules))"
    )
    status, *loaded = python(code, *words()).split()
    assert status == "0"
    heavy = {"pandas", "torch", "scipy", "pydantic", "matplotlib", "sklearn", "snakemake", "click"}
    assert heavy & set(loaded) == set()


def test_a_board_that_the_twin_lacks_is_an_error_in_words(words, capsys):
    command = words()
    place = command.index("--factors") + 1
    command[place] = command[place].replace('"device":"agx"', '"device":"tx2"')
    assert main(command) == 1
    assert "tx2" in capsys.readouterr().err


def test_idle_powers_are_written(tmp_path):
    assert read_yaml(ROOT / "config/idle_simulated.yaml")
    mode = {"cores": 8, "cpu_mhz": 2265.0, "gpu_mhz": 1377.0, "emc_mhz": 2133.0}
    idle = {"id": "idle-twin-x", "place": {"device": "agx", "state": "ii"}, "mode": mode}
    idles = json.dumps([{**idle, "power_scope": "socket", "seconds": 60.0}])
    output = tmp_path / "idle"
    simulate_idle(idles, ROOT / "config/twin", str(output))
    assert sorted(path.name for path in (output / "idle-twin-x/idle").iterdir()) == [
        *("record.json", "samples-plug.csv", "telemetry.json")
    ]
