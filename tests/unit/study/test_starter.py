"""The starter study: what it asks of a board that nobody has configured."""

import pytest

from epochwatt.board.device.board_files import Tables, cpus, tables
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.study.selection import BATCH_SIZES, EPOCHS, WORKERS, power_modes, starter

KHZ, HZ = (400_000, 900_000, 1_100_000, 2_000_000), (100_000_000, 600_000_000, 1_000_000_000)
EMC = (204_000_000, 800_000_000, 1_600_000_000)


def told(modes):
    """Return each mode's settings as plain values."""
    return {name: mode.model_dump(exclude_none=True) for name, mode in modes.items()}


class TestPowerModes:
    """One thing at a time, then all of them."""

    def test_are_the_highest_one_and_halves_of_it(self):
        full = {"cores": 6, "cpu_mhz": 2000.0, "gpu_mhz": 1000.0, "emc_mhz": 1600.0}
        half = {"cores": 3, "cpu_mhz": 900.0, "gpu_mhz": 600.0, "emc_mhz": 800.0}
        assert told(power_modes(Tables(KHZ, HZ, EMC), 6)) == {
            "max": full,
            "halfcores": {**full, "cores": 3},
            "halfcpu": {**full, "cpu_mhz": 900.0},
            "halfgpu": {**full, "gpu_mhz": 600.0},
            "halfemc": {**full, "emc_mhz": 800.0},
            "half": half,
        }

    def test_are_taken_by_a_board(self, agx):
        settings = {"root": str(agx.board.root), "kind": "agx_xavier", "backend": "fake"}
        board = JetsonBoard(settings)
        before = agx.board.snapshot()
        n_cores = len(cpus(str(agx.board.root)))
        modes = told(power_modes(tables(str(agx.board.root)), n_cores))
        for name, mode in [(name, modes[name]) for name in ("max", "half")]:
            found = board.apply(mode, "off")
            assert found["resolved"].items() >= mode.items(), name
            assert found["verified"], name
        board.restore()
        assert agx.board.snapshot() == before


@pytest.fixture
def make(agx):
    """Return a function that gives the study of the board with changed keys, and its modes."""

    def call(**keys):
        agx.set_device(**keys)
        return starter("agx", agx.settings().devices.get("agx", "the test"))

    return call


class TestStudy:
    """What is swept."""

    def test_is_of_this_device_and_of_nobodys_paper(self, make):
        study, _ = make()
        assert (study.device, study.backend, study.setup) == ("agx", "jetson", "own")
        assert study.epochs == EPOCHS == 3
        assert study.title == "First look at a Jetson AGX Xavier"

    def test_asks_for_workers_and_batch_sizes_on_each_medium_that_is_there(self, make):
        storage = {
            "ssd": {"title": "t", "root": "data"},
            "hdd": {"title": "t", "root": "/mnt/x", "mount": "/no/such/mount"},
            "sd": {"title": "t", "root": "/data", "mount": "/"},
        }
        pipeline, modes = make(storage=storage)[0].sweep
        assert pipeline["num_workers"] == WORKERS == [0, 1, 4]
        assert pipeline["batch_size"] == BATCH_SIZES
        assert len(BATCH_SIZES) == 2
        assert pipeline["storage"] == ["ssd", "sd"]
        assert pipeline["power_mode"] == "max"
        assert modes["storage"] == "ssd"
