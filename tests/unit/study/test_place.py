"""What can be measured here, and what is said of the rest."""

import platform

import pytest
from fake_board import make_board

from epochwatt.device.identity import Identity
from epochwatt.study.config import Storage
from epochwatt.study.place import (
    absence,
    board_at_hand,
    is_board,
    is_measured,
    medium_is_here,
)

NANO = Identity("nano", "NVIDIA Jetson Nano Developer Kit", "1421019000001", "32.6.1", "4.6")


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


class TestBoard:
    """The kind of board."""

    def test_that_is_here_is_no_obstacle(self, device):
        assert absence(*device()) is None

    def test_of_another_kind_is_named_with_the_one_that_is_here(self, device):
        reason = absence(*device(board="nano", title="Jetson Nano"))
        assert reason == "it wants a Jetson Nano: here is a Jetson-AGX"

    def test_that_is_not_there_is_named_with_its_folder(self, device, tmp_path):
        reason = absence(*device(sysroot=str(tmp_path)))
        assert reason == f"it wants a Jetson AGX Xavier: {tmp_path} is no Jetson board"

    def test_is_not_a_machine_without_one(self, device, at_hand):
        at_hand(None)
        reason = absence(*device(sysroot="/"))
        assert reason == "it wants a Jetson AGX Xavier: this machine is no Jetson board"

    def test_is_nothing_to_a_remote_device(self, device, at_hand):
        """It checks by itself that it is the right one."""
        at_hand(None)
        storage = {"hdd": {"title": "t", "root": "/mnt/x", "mount": "/no/such/mount"}}
        units = {"d1": "0"}
        assert absence(*device(sysroot="/", remote=True, storage=storage, units=units)) is None

    def test_is_nothing_to_a_node_of_a_fleet(self, device, at_hand):
        at_hand(None)
        assert absence(*device(sysroot="/", constraint="agx_xavier")) is None

    def test_is_nothing_to_a_host(self, checkout):
        settings = checkout.settings()
        run = next(iter(settings.table.runs.values()))
        assert absence(run, settings.devices.get("host", "the test")) is None


class TestUnit:
    """The one machine that a row is bound to."""

    def test_is_known_by_its_serial_number(self, device, agx):
        assert absence(*device(units={"d1": agx.board.kind.serial})) is None

    def test_is_known_by_its_host_name(self, device):
        assert absence(*device(units={"d1": platform.node()})) is None

    def test_that_is_another_is_named_with_the_one_that_is_here(self, device, agx):
        reason = absence(*device(units={"d1": "42"}))
        here = f"{platform.node()} or {agx.board.kind.serial}"
        assert reason == f"unit d1 is 42: this one is {here}"

    def test_of_another_instance_is_not_asked_for(self, device):
        assert absence(*device(units={"d2": "42"})) is None

    def test_of_a_further_instance_has_to_be_bound(self, device, agx):
        """Else one board would be measured as several."""
        agx.sweep({"instance": "d2"})
        assert absence(*device()) == (
            "unit d2 is not bound to a board: name it under units in config/devices/"
        )
        assert absence(*device(units={"d2": agx.board.kind.serial})) is None

    def test_of_a_host_is_its_name(self, checkout):
        settings = checkout.settings()
        run = next(iter(settings.table.runs.values()))
        host = settings.devices.get("host", "the test")

        def bound_to(unit):
            return absence(run, host.model_copy(update={"units": {"local": unit}}))

        assert bound_to(platform.node()) is None
        assert bound_to("elsewhere") == f"unit local is elsewhere: this one is {platform.node()}"

    def test_comes_after_the_board_and_before_the_medium(self, device):
        storage = {"hdd": {"title": "t", "root": "/mnt/x", "mount": "/no/such/mount"}}
        wrong = {"storage": storage, "units": {"d1": "42"}}
        assert absence(*device(**wrong)).startswith("unit d1")
        assert absence(*device(**wrong, board="nano")).startswith("it wants")


class TestMedium:
    """Where the data set lies."""

    def test_that_is_not_mounted_is_named(self, device, tmp_path):
        told = {"title": "a disk", "root": f"{tmp_path}/sets", "mount": str(tmp_path)}
        reason = absence(*device(storage={"hdd": told}))
        assert reason == f"medium hdd: nothing is mounted at {tmp_path}"

    @pytest.mark.parametrize(("mount", "here"), [("", True), ("/", True), ("/no/such", False)])
    def test_without_a_mount_point_is_always_here(self, mount, here):
        assert medium_is_here(Storage(title="t", root="data", mount=mount)) is here

    def test_of_another_row_is_not_looked_at(self, device):
        told = {"ssd": {"title": "t", "root": "data"}}
        told["hdd"] = {"title": "t", "root": "/mnt/x", "mount": "/no/such/mount"}
        assert absence(*device(storage=told)) is None


def test_a_board_is_of_one_kind(agx, tmp_path):
    root = str(agx.board.root)
    assert is_board("agx_xavier", root)
    assert not is_board("nano", root)
    assert not is_board("agx_xavier", str(tmp_path))
    assert not is_board("", str(tmp_path))


def test_two_boards_are_told_apart(agx, tmp_path):
    nano = make_board(tmp_path / "nano", "nano")
    assert is_board("nano", str(nano.root))
    assert is_board("agx_xavier", str(agx.board.root))


def test_the_machine_at_hand_is_told_in_words(at_hand):
    at_hand(NANO)
    assert board_at_hand() == "this machine is a NVIDIA Jetson Nano Developer Kit (nano)"
    at_hand(None)
    assert board_at_hand() == "this machine is no Jetson board"


@pytest.mark.parametrize(
    ("epochs", "whole"), [((), False), ((0, 1), False), ((0, 2), False), ((0, 1, 2), True)]
)
def test_a_run_is_measured_when_every_epoch_is(epochs, whole, agx, measure):
    (run,) = agx.runs
    for epoch in epochs:
        measure(run, epoch)
    assert is_measured(run, agx.path) is whole
