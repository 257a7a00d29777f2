"""What earlier versions wrote and knew, as docs/explanation/guarantees.md promises of it.

* tests/data/configurations/VERSION: its config/, and the ids of the runs that it made of that
* tests/data/records-VERSION: two epochs that it measured (`benchmarks.template`), and its tables of
  them; those of schema 1 have a test of their own (epochs/test_schema_1.py)
* tests/data/interface-VERSION.txt: its commands and options, its public names and parameters
"""

import csv
import inspect
import shutil
from pathlib import Path

import click
import pytest
import yaml

import epochwatt
from epochwatt import cli, columns
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.epochs.collect import collect_run
from epochwatt.prediction.transfer.study import load_study
from epochwatt.schedule.config import load_schedule
from epochwatt.study.expand import load_table
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.table import load_sweeps, sweep_names
from epochwatt.tables import read_cells

DATA = Path(__file__).parents[1] / "data"
CONFIGURATIONS = sorted((DATA / "configurations").iterdir())
RECORDS = sorted(DATA.glob("records-*"))
INTERFACES = sorted(DATA.glob("interface-*.txt"))
# of energies: may become tighter or wider, and CHANGELOG.md says so
BOUNDS = {"energy_error_pct", "stall_energy_error_pct"}


def selecting_all(folder):
    """Return config.yaml of an earlier version, with all of its studies selected."""
    config = yaml.safe_load((folder / "config/config.yaml").read_text("utf-8"))
    config["studies"] = [*yaml.safe_load((folder / "config/studies.yaml").read_text("utf-8"))]
    if folder.name != "0.1.0":  # which simulated nothing
        config["studies"].append("simulated")
    return config


@pytest.mark.parametrize("folder", CONFIGURATIONS, ids=lambda folder: folder.name)
def test_an_old_configuration_selects_the_same_runs_under_the_same_ids(folder):
    table = load_table(selecting_all(folder), folder)
    assert sorted(table.runs) == (folder / "runs.txt").read_text().split()


@pytest.mark.parametrize("version", ["0.5.0", "0.8.0"])  # before, figures named no function
def test_an_old_configuration_is_read_whole(version):
    folder = DATA / "configurations" / version
    config = selecting_all(folder)
    load_settings(config, folder)
    assert load_sweeps(config | {"sweeps": sweep_names(folder)}, folder).sweeps
    assert load_study(folder) is not None
    assert load_schedule(folder) is not None


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_old_records_give_the_same_numbers(folder, tmp_path):
    shutil.copytree(folder / "measured", tmp_path / "measured")
    (run,) = (path.name for path in (folder / "measured").iterdir())
    runs = RunFolder(str(tmp_path / "measured"), run)
    assert runs.measured() == [0, 1]
    for epoch in runs.measured():
        runs.verify(epoch)
    tables = ("epochs.csv", "energy.csv")
    collect_run(
        str(tmp_path / "measured"),
        run,
        2,
        columns.FLAG_EFFECTS,
        *(str(tmp_path / t) for t in tables),
    )
    for table in tables:
        with (folder / "tables" / table).open(newline="", encoding="utf-8") as file:
            before = list(csv.DictReader(file))
        for was, row in zip(before, read_cells(str(tmp_path / table)), strict=True):
            for column in was.keys() - BOUNDS - {"schema_version"}:
                cell = row[column]
                assert cell == was[column] or float(cell) == pytest.approx(
                    float(was[column]), rel=1e-12
                )


def interface():
    """Return a line for each command, option, public name and parameter of it."""
    lines = set()
    context = click.Context(cli.epochwatt)
    for name in cli.epochwatt.list_commands(context):
        command = cli.epochwatt.get_command(context, name)
        options = [option for parameter in command.params for option in parameter.opts]
        lines |= {f"epochwatt {name}", *(f"epochwatt {name} {option}" for option in options)}
    for name in set(epochwatt.__all__) - {"__version__"}:
        public = getattr(epochwatt, name)
        members = [n for n in vars(public) if not n.startswith("_")]
        lines |= {f"{name}.{member}" for member in members}
        lines |= {f"{name}({each})" for each in inspect.signature(public).parameters}
    return lines


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.name)
def test_commands_options_and_public_names_are_still_there(path):
    gone = {*path.read_text("utf-8").splitlines()} - interface()
    assert not gone, (
        "before 1.0.0: say so in CHANGELOG.md, and delete these lines; later: keep them"
    )
