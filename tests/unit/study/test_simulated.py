"""Runs of backend twin in run table, plan and discard: they need no board and measure nothing."""

from pathlib import Path

import pytest

from epochwatt.errors import EpochwattError
from epochwatt.study.discard import discard
from epochwatt.study.place import is_board
from epochwatt.study.plan import plan_lines, start_lines

NUMBERS = {"cores": 8, "cpu_mhz": 2265, "gpu_mhz": 1377, "emc_mhz": 2133}


@pytest.fixture
def twin(agx):
    """A checkout whose study runs on a board that is not here, and on the twin."""
    agx.set_device(
        **{"backends": ["jetson", "twin"], "sysroot": "/", "power_modes": {"g": NUMBERS, "f": {}}},
        storage={"ssd": {"title": "t", "root": "/mnt/ssd", "mount": "/mnt/ssd"}},
    )
    agx.sweep({"num_workers": [0, 4]}, twin="true")
    agx.checkout.write("config.yaml", "studies: [small, simulated]\n")
    assert not is_board("agx_xavier", "/")
    return agx


def test_a_mode_that_leaves_clocks_open_is_refused(twin, refused):
    twin.sweep({"power_mode": "f"}, twin="true")
    found, allowed = refused()
    assert found.endswith("small.sweep[0].power_mode is 'f'")
    assert allowed == "  allowed: on the twin: a mode with all of cores, cpu_mhz, gpu_mhz, emc_mhz"


class TestPlan:
    """`epochwatt plan`."""

    def test_says_that_they_are_simulated_and_take_no_time(self, twin, golden):
        lines = plan_lines(twin.settings(), with_runs=True)
        golden("plan", "epochwatt plan --runs (simulated)", "\n".join(lines))

    def test_counts_them_apart_from_measured_ones(self, twin):
        twin.checkout.write("devices/host.yaml", HOST)
        study = {"title": "t", "epochs": 2, "sweep": [{"model": "lenet"}]}
        both = {
            "small": {**study, "backend": "host", "device": "host"},
            "theirs": {**study, "backend": "twin", "device": "agx"},
        }
        twin.checkout.write("studies.yaml", both)
        twin.checkout.write("config.yaml", "studies: [small, theirs]\n")
        measured, simulated = start_lines(twin.settings())
        assert measured.startswith("1 run, 2 epochs, 0 of them measured; the rest takes about")
        assert simulated.startswith("1 run, 2 epochs, simulated")


@pytest.mark.parametrize("folder", ["", "idle/"])
def test_discard_says_that_there_is_nothing_to_take_back(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(f"results/simulated/{folder}twin-x").mkdir(parents=True)
    with pytest.raises(EpochwattError, match="twin-x is simulated: nothing is measured of it"):
        discard("measured", "twin-x", None)


HOST = {
    **{"title": "t", "backends": ["host"], "instances": ["local"], "dvfs": ["on"]},
    **{"storage": {"disk": {"title": "t", "root": "data"}}, "power_modes": {"asis": {}}},
}
