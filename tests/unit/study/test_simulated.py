"""Runs of backend twin in run table, plan and discard: they need no board and measure nothing."""

from pathlib import Path

import pytest

from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.study.discard import discard
from epochwatt.study.expand import load_table
from epochwatt.study.idle import idles
from epochwatt.study.place import is_board
from epochwatt.study.plan import plan_lines, start_lines
from epochwatt.study.settings import refuse_root

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


def test_they_are_never_left_to_another_machine(twin):
    assert [run.factors["backend"] for run in twin.runs] == ["twin", "twin"]
    assert len(twin.elsewhere) == 2
    assert {run.is_simulated for run in twin.runs} == {True}


def test_they_ask_for_no_idle_power_of_a_board_and_for_no_user(twin, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    settings = twin.settings()
    refuse_root(settings.table.runs.values())  # would raise ConfigError
    assert idles(settings) == {}


def test_a_study_may_be_the_twins_alone(twin):
    twin.sweep({}, backend="twin")
    for studies in ("small", "simulated"):
        twin.checkout.write("config.yaml", f"studies: {studies}\n")
        assert [run.id[:12] for run in twin.runs] == ["twin-agx-d1-"]


def test_a_mode_that_leaves_clocks_open_is_refused(twin, refused):
    twin.sweep({"power_mode": "f"}, twin="true")
    found, allowed = refused()
    assert found.endswith("small.sweep[0].power_mode is 'f'")
    assert allowed == "  allowed: on the twin: a mode with all of cores, cpu_mhz, gpu_mhz, emc_mhz"


def test_a_device_without_the_twin_is_refused(twin):
    twin.set_device(backends=["jetson"])
    with pytest.raises(ConfigError, match="backend is 'twin'\n  allowed: jetson"):
        load_table({"studies": "simulated"}, twin.path)


def test_exclusions_may_name_them(twin):
    where = {"backend": "twin", "num_workers": 0}
    twin.checkout.write("exclusions.yaml", [{"where": where, "reason": "too slow"}])
    table = twin.settings().table
    assert (len(table.runs), len(table.excluded), len(table.elsewhere)) == (1, 1, 2)


class TestPlan:
    """`epochwatt plan`."""

    def test_says_that_they_are_simulated_and_take_no_time(self, twin):
        lines = plan_lines(twin.settings())
        assert "simulated" in lines[1]
        assert "no time of a board" in lines[1]
        assert lines[-1] == "2 runs, 6 epochs, simulated: no time of a board"
        assert not [line for line in lines if "measured;" in line]

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

    def test_shows_which_are_done(self, twin):
        path = Path(twin.runs[0].epochs_csv)
        path.parent.mkdir(parents=True)
        path.touch()
        lines = plan_lines(twin.settings())
        assert lines[1].split()[-2:] == ["simulated", "-"]


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
