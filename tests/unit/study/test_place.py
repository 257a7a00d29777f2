"""What can be measured here, and what is said of the rest."""

import platform

import pytest

from epochwatt.study.place import absence


@pytest.fixture
def device(agx):
    """Return a function that gives the board's device with changed keys, and a run on it."""

    def with_(**keys):
        agx.set_device(**keys)
        device = agx.settings().devices.get("agx", "the test")
        table = agx.settings().table
        runs = [*table.runs.values(), *(run for run, _ in table.elsewhere)]
        return runs[0], device

    return with_


class TestUnit:
    """The one machine that a row is bound to."""

    def test_is_known_by_its_serial_number(self, device, agx):
        assert absence(*device(units={"d1": agx.board.kind.serial})) is None

    def test_that_is_another_is_named_with_the_one_that_is_here(self, device, agx):
        reason = absence(*device(units={"d1": "42"}))
        here = f"{platform.node()} or {agx.board.kind.serial}"
        assert reason == f"unit d1 is 42: this one is {here}"

    def test_of_a_further_instance_has_to_be_bound(self, device, agx):
        """Else one board would be measured as several."""
        agx.sweep({"instance": "d2"})
        assert absence(*device()) == (
            "unit d2 is not bound to a board: name it under units in config/devices/"
        )
        assert absence(*device(units={"d2": agx.board.kind.serial})) is None


class TestMedium:
    """Where the data set lies."""

    def test_that_is_not_mounted_is_named(self, device, tmp_path):
        told = {"title": "a disk", "root": f"{tmp_path}/sets", "mount": str(tmp_path)}
        reason = absence(*device(storage={"hdd": told}))
        assert reason == f"medium hdd: nothing is mounted at {tmp_path}"
