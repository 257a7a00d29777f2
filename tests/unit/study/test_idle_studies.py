"""Idle powers of the twin: those of the papers, and what is refused."""

from collections import Counter

import pytest

from epochwatt.errors import ConfigError
from epochwatt.study.idle import simulated_idles
from epochwatt.study.settings import load_settings

NUMBERS = {"cores": 8, "cpu_mhz": 2265, "gpu_mhz": 1377, "emc_mhz": 2133}
STUDY = {"title": "t", "power_scope": "socket", "seconds": 60}


@pytest.fixture
def shipped(pytestconfig):
    settings = load_settings({"studies": "simulated"}, pytestconfig.rootpath)
    return simulated_idles(settings.idle_studies, settings.devices)


@pytest.fixture
def idles(agx):
    """Return a function that gives the idle powers of one block."""
    agx.set_device(backends=["jetson", "twin"], power_modes={"g": NUMBERS, "half": {"cores": 4}})
    agx.checkout.write("config.yaml", "studies: simulated\n")

    def call(**block):
        study = {**STUDY, "sweep": [{"device": ["agx"], "state": ["i"], **block}]}
        agx.checkout.write("idle_simulated.yaml", {"plug": study})
        settings = agx.settings()
        return simulated_idles(settings.idle_studies, settings.devices)

    return call


def test_the_papers_have_15_at_the_plug_and_14_on_the_board(shipped):
    assert Counter(idle["power_scope"] for idle in shipped) == {"socket": 15, "module": 14}
    plug = [i["place"] for i in shipped if i["power_scope"] == "socket"]
    assert Counter(place["device"] for place in plug) == {"nano": 4, "nx": 4, "agx": 4, "orin": 3}
    assert {p["power_mode"] for p in plug} == {"MAXN", "15W", "g"}
    board = [i["place"] for i in shipped if i["power_scope"] == "module"]
    assert "".join(place["power_mode"] for place in board) == "abcdefghijklmn"
    assert {(p["device"], p["state"], p["dvfs"]) for p in board} == {("agx", "i", "off")}
    assert len({idle["id"] for idle in shipped}) == 29


@pytest.mark.parametrize(
    ("state", "dvfs"), [("i", "off"), ("ii", "off"), ("iii", "on"), ("iv", "")]
)
def test_a_state_says_who_chooses_the_clocks(state, dvfs, idles):
    (idle,) = idles(state=[state])
    assert (idle["place"]["dvfs"], idle["mode"]) == (dvfs, NUMBERS)


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
def test_what_cannot_be_is_refused(block, found, idles):
    with pytest.raises(ConfigError, match=found):
        idles(**block)
