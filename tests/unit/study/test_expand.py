"""Names that stand for studies, devices of boards, and rows that are left to other machines."""

import json

import pytest

from epochwatt.board.device.identity import Identity
from epochwatt.study.devices import Devices
from epochwatt.study.selection import HOST_STUDIES, STARTER, asked_names, selected

NANO = Identity("nano", "NVIDIA Jetson Nano Developer Kit", "1421019000001", "32.6.1", "4.6")
ROW = {"model": "lenet"}
STUDY = {"title": "t", "backend": "jetson", "device": "agx", "epochs": 2, "sweep": [ROW]}
STUDIES = {
    "host-pipeline": {**STUDY, "backend": "host", "device": "host"},
    "sig": {**STUDY, "setup": "sigmetrics2023", "twin": "true"},
    "mine": STUDY,
    "hip": {**STUDY, "setup": "hipcw2021"},
    "host-photographs": {**STUDY, "backend": "host", "device": "host"},
}


@pytest.fixture
def names(agx):
    """Return a function that gives the names of the studies that are selected, in order."""
    agx.checkout.write("studies.yaml", STUDIES)

    def call(*asked):
        config = {"studies": list(asked)}
        return [name for name, _ in selected(asked_names(config), Devices(agx.path))]

    return call


class TestSelected:
    """Names in config.yaml."""

    def test_auto_is_the_hosts_studies_where_there_is_no_board(self, names, at_hand):
        at_hand(None)
        assert names("auto") == [*HOST_STUDIES, "sig"]  # which the twin may run

    def test_auto_is_a_starter_on_a_board(self, names, at_hand):
        at_hand(NANO)
        assert names("auto") == [STARTER]  # of the board of files, the only one with a file


class TestDevices:
    """Files of config/devices/."""

    @pytest.mark.parametrize("key", ["board", "units"])
    def test_of_boards_say_which(self, key, agx, refused):
        agx.set_device(**{"board": None} if key == "board" else {"units": {"d9": "42"}})
        found, allowed = refused()
        if key == "board":
            assert found == "config/devices/agx.yaml: board is missing"
        else:
            assert found == "config/devices/agx.yaml: units names 'd9'"
            assert allowed == "  allowed: d1, d2"


class TestBlock:
    """A block names its own device."""

    def test_and_sweeps_it_with_each_ones_defaults(self, agx):
        keys = agx.settings().devices.get("agx", "t").model_dump()
        modes = {"power_modes": {"MAXN": {"cores": 6}}, "dvfs": ["on"]}
        agx.checkout.write("devices/nx.yaml", {**keys, **modes})
        agx.sweep({"device": ["agx", "nx"], "num_workers": [0, 1]}, device="")
        told = [tuple(r.factors[k] for k in ("device", "power_mode", "dvfs")) for r in agx.runs]
        assert told == [("agx", "g", "off")] * 2 + [("nx", "MAXN", "on")] * 2

    def test_of_a_device_that_cannot_run_the_backend_is_refused(self, agx, refused):
        agx.sweep({"device": "host"})
        found, allowed = refused()
        assert found == "config/studies.yaml: small.backend is 'jetson'"
        assert allowed == "  allowed: host"


class TestBackend:
    """What is measured and what is not is known when the id is made."""

    def test_of_a_board_of_files_is_fake(self, agx):
        (run,) = agx.runs
        assert run.factors["backend"] == "fake"
        assert run.id.startswith("fake-agx-d1-lenet-")
        assert agx.settings().table.of_backend("jetson") == []

    def test_of_a_real_board_is_jetson(self, agx, at_hand):
        at_hand(NANO._replace(kind="agx_xavier"))
        agx.set_device(sysroot="/")
        (run,) = agx.runs
        assert run.factors["backend"] == "jetson"
        assert run.id.startswith("jetson-agx-d1-lenet-")


class TestFactors:
    """What of a board's device stands in the factors, and therefore in the id."""

    def test_are_the_settings_of_the_mode_as_they_are_written(self, agx):
        assert agx.only().factors["power_mode_settings"] == {"cores": 8, "cpu_mhz": 2265}
        assert "power_mode_settings" not in agx.only(power_mode="asis").factors

    def test_are_power_source_and_settling(self, agx):
        assert agx.only().factors["board_settings"] == {"power_source": "sysfs"}
        agx.set_device(settle={"max_s": 90})
        assert agx.only().factors["board_settings"] == {
            "power_source": "sysfs",
            "settle": {"max_s": 90},  # what has its default would change ids when a key is added
        }

    @pytest.mark.parametrize(
        "keys",
        [
            {"power_source": "jtop"},
            {"settle": {"max_s": 90}},
            {"power_modes": {"g": {"nvpmodel": "MAXN"}}},
        ],
    )
    def test_that_change_make_another_run(self, keys, agx):
        before = agx.only().id
        agx.set_device(**keys)
        assert agx.only().id != before

    @pytest.mark.parametrize(
        "keys",
        [
            {"title": "another name"},
            {"python": ["docker", "run"]},
            {"storage": {"ssd": {"title": "t", "root": "/x"}}},
        ],
    )
    def test_that_do_not_matter_leave_the_id_alone(self, keys, agx):
        before = agx.only().id
        agx.set_device(**keys)
        assert agx.only().id == before


class TestMachine:
    """What the measuring side is told beside the factors."""

    def test_of_a_board_is_all_that_it_has_to_know(self, agx):
        disk = {"title": "t", "root": "data/", "mount": "/", "block_device": "vd"}
        settle = {"max_s": 90, "window_s": 5, "temp_c": 1.0, "power_w": 0.5}
        agx.set_device(storage={"ssd": disk}, settle=settle, units={"d1": agx.board.kind.serial})
        (run,) = agx.runs
        assert json.loads(run.machine) == {
            "backend": "fake",
            "root": str(agx.board.root),
            "kind": "agx_xavier",
            "unit": agx.board.kind.serial,
            "storage": {"root": "data/", "mount": "/", "block_device": "vd"},
            "power_source": "sysfs",
            "settle": settle,
            "check_memory": True,
        }
        assert run.python == ("/usr/bin/python3",)
        assert run.data_root == "data"


class TestElsewhere:
    """Rows that this machine cannot measure."""

    @pytest.fixture
    def away(self, agx):
        """Two rows of another board beside one of this."""
        keys = agx.settings().devices.get("agx", "t").model_dump()
        agx.checkout.write("devices/nano.yaml", {**keys, "board": "nano", "title": "Jetson Nano"})
        agx.sweep({"device": "nano", "seed": [0, 1]}, {})
        return agx

    def test_are_left_alone_with_the_reason(self, away):
        assert [run.factors["device"] for run in away.runs] == ["agx"]
        reasons = {reason for _, reason in away.elsewhere}
        assert reasons == {"it wants a Jetson Nano: here is a Jetson-AGX"}
        assert len(away.elsewhere) == 2

    def test_that_are_measured_are_of_the_table_but_no_longer_of_this_machine(self, away, measure):
        wanted = away.elsewhere[0][0]
        (run,) = [run for run, _ in away.settings().table.elsewhere if run.id == wanted]
        for epoch in range(run.epochs):
            measure(run, epoch)
        there = {run.id: run for run in away.runs}
        assert list(there) == [wanted, away.runs[-1].id]
        assert (there[wanted].here, there[wanted].python) == (False, ())
        assert away.runs[-1].here
        assert [run_id for run_id, _ in away.elsewhere] != [wanted]
