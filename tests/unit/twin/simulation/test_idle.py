"""Idle powers of the twin, in the form of measured ones."""

import csv

import pytest
from made_up import MODE

from epochwatt.analysis.collect_idle import write_idle_table
from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.twin import load_twin
from epochwatt.twin.simulation import idle
from epochwatt.twin.simulation.idle import idle_power_w, write_idles

PLACE = {
    **{"backend": "twin", "device": "agx", "instance": "d1", "power_mode": "g", "dvfs": "off"},
    "state": "i",
}
SOCKET = {"id": "a", "place": PLACE, "mode": MODE, "power_scope": "socket", "seconds": 1800.0}
MODULE = {"id": "b", "place": PLACE, "mode": MODE, "power_scope": "module", "seconds": 60.0}


@pytest.fixture(scope="module")
def twin(request):
    return load_twin(request.config.rootpath / "config/twin", [])


def test_files_become_rows_of_the_table(twin, tmp_path, monkeypatch):
    monkeypatch.setattr(idle, "idle_power_w", lambda each, _: {"a": 11.5, "b": 7.5}[each["id"]])
    folder = tmp_path / "simulated"
    write_idles([SOCKET], twin, str(folder))
    write_idles([SOCKET, MODULE], twin, str(folder))  # what was there is replaced
    table = tmp_path / "idle.csv"
    idles = [{**each, "root": str(folder)} for each in (SOCKET, MODULE)]
    write_idle_table(idles, str(tmp_path / "none.csv"), str(table))
    with table.open(newline="", encoding="utf-8") as handle:
        socket, module = csv.DictReader(handle)
    assert (socket["backend"], socket["power_scope"], socket["state"]) == ("twin", "socket", "i")
    assert (float(socket["power_w"]), float(socket["duration_s"])) == (11.5, 1800.0)
    assert (float(module["power_w"]), module["power_scope"]) == (7.5, "module")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["simulated"]


def test_a_board_that_is_not_known_is_named(twin):
    with pytest.raises(EpochwattError, match=r"'tx2'.*\n  allowed: "):
        idle_power_w({**MODULE, "place": {**PLACE, "device": "tx2"}}, twin)
