"""Idle powers: one for each board and power mode of a selected run; those of the twin."""

import json
import re

import pytest

from epochwatt.errors import ConfigError
from epochwatt.study.idle import idles, simulated_idles


def wanted_of(agx):
    settings = agx.settings()
    return idles(settings.table, settings.devices)


@pytest.fixture
def wanted(agx):
    """Return a function that gives the idle powers of the board's study."""
    return lambda: list(wanted_of(agx).values())


def test_each_mode_is_measured_once_whatever_runs_in_it(agx, wanted):
    agx.sweep({"num_workers": [0, 1], "batch_size": [16, 32], "power_mode": ["g", "f"]})
    assert [idle.place["power_mode"] for idle in wanted()] == ["g", "f"]


def test_dvfs_and_units_are_places_of_their_own(agx, wanted):
    agx.set_device(units={"d2": agx.board.kind.serial})
    agx.sweep({"instance": ["d1", "d2"], "dvfs": ["off", "on"]})
    assert {(i.place["instance"], i.place["dvfs"]) for i in wanted()} == {
        *(("d1", "off"), ("d1", "on"), ("d2", "off"), ("d2", "on"))
    }


def test_it_tells_all_that_the_measurement_needs(agx, wanted):
    agx.set_device(settle={"max_s": 30}, idle_s=45)
    agx.sweep({"power_mode": "f"})
    (idle,) = wanted()
    (run,) = agx.runs
    place = {"backend": "fake", "device": "agx", "instance": "d1", "power_mode": "f"}
    assert idle.place == {**place, "dvfs": "off"}
    assert json.loads(idle.settings) == {
        "power_mode_settings": {"cores": 2},
        "dvfs": "off",
        "board_settings": run.factors["board_settings"],
    }
    assert run.factors["board_settings"]["settle"]["max_s"] == 30
    assert (idle.seconds, idle.python, idle.machine) == (45, run.python, run.machine)
    assert idle.receipt == f"results/idle/{idle.id}.json"


class TestId:
    """What makes it another measurement."""

    def test_shows_the_place_and_fits_into_the_workflows_constraint(self, agx, wanted):
        (idle,) = wanted()
        assert re.fullmatch(r"idle-fake-agx-d1-g-dvfsoff-p1-[0-9a-f]{8}", idle.id)
        agx.set_device(power_modes={"MAXN.10W": {"cores": 2}})
        (idle,) = wanted()
        assert re.fullmatch(r"idle-[a-z0-9.-]+", idle.id)
        assert list(wanted_of(agx)) == [idle.id]

    @pytest.mark.parametrize(
        "keys", [{"idle_s": 61}, {"power_source": "jtop"}, {"power_modes": {"g": {"cores": 7}}}]
    )
    def test_changes_with_what_is_measured(self, keys, agx, wanted):
        before = wanted()[0].id
        agx.set_device(**keys)
        assert wanted()[0].id != before

    @pytest.mark.parametrize(
        "keys", [{"python": ["docker"]}, {"storage": {"ssd": {"title": "t", "root": "elsewhere"}}}]
    )
    def test_does_not_change_with_the_rest(self, keys, agx, wanted):
        before = wanted()[0].id
        agx.set_device(**keys)
        assert wanted()[0].id == before


def test_a_board_that_is_not_here_has_the_one_that_was_measured_there(agx, measure):
    (run,) = agx.runs
    for epoch in range(run.epochs):
        measure(run, epoch)
    (idle,) = wanted_of(agx).values()
    agx.set_device(units={"d1": "42"})
    assert not agx.runs[0].here
    (agx.path / "measured" / idle.id / "idle").mkdir(parents=True)
    assert list(wanted_of(agx)) == [idle.id]


NUMBERS = {"cores": 8, "cpu_mhz": 2265, "gpu_mhz": 1377, "emc_mhz": 2133}
STUDY = {"title": "t", "power_scope": "socket", "seconds": 60}


@pytest.fixture
def simulated(agx):
    """Return a function that gives the idle powers of one block."""
    agx.set_device(backends=["jetson", "twin"], power_modes={"g": NUMBERS, "half": {"cores": 4}})
    agx.checkout.write("config.yaml", "studies: simulated\n")

    def call(**block):
        study = {**STUDY, "sweep": [{"device": ["agx"], "state": ["i"], **block}]}
        agx.checkout.write("idle_simulated.yaml", {"plug": study})
        settings = agx.settings()
        return simulated_idles(settings.idle_studies, settings.devices)

    return call


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ({"device": ["host"]}, r"sweep\[0\].device is 'host'\n  allowed: a device with twin"),
        ({"device": ["tx2"]}, r"sweep\[0\].device is 'tx2'"),
        ({"power_mode": ["z"]}, r"power_mode is 'z'\n  allowed: a mode of the device with all"),
        ({"power_mode": ["half"]}, r"power_mode is 'half'\n  allowed: .*: g, half"),
        ({"state": ["v"]}, "state.0 is 'v'"),
    ],
)
def test_what_cannot_be_is_refused(block, found, simulated):
    with pytest.raises(ConfigError, match=found):
        simulated(**block)
