"""An NVIDIA GPU through a stand-in for pynvml."""

import math
import sys

import pytest

from epochwatt.board.telemetry.nvml import NvmlSource, open_gpu, open_load


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


def test_answers_become_watt_joule_and_the_rest(fake_nvml):
    assert row(NvmlSource(fake_nvml(), "GPU-1")) == {
        "power_gpu_w": 61.5,
        "energy_gpu_j": 7.25,
        "gpu_util_pct": 83.0,
        "gpu_mhz": 1980.0,
        "mem_mhz": 3201.0,
        "gpu_temp_c": 47.0,
        "throttle_reasons": 4.0,
    }


class Card:
    """Power and counter that are renewed now and then, in simulated time."""

    def __init__(self, nvml, power_every_s, counter_every_s):
        self.now_s = 100.0
        self.every_s = {"power": power_every_s, "counter": counter_every_s}
        nvml.nvmlDeviceGetPowerUsage = lambda handle: 50000 + self.turn("power") % 7
        nvml.nvmlDeviceGetTotalEnergyConsumption = lambda handle: 1000 * self.turn("counter")

    def turn(self, what):
        return int(self.now_s / self.every_s[what])

    def clock(self):
        self.now_s += 2e-5
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds


@pytest.mark.parametrize(("power_s", "counter_s"), [(0.1, 0.02), (0.02, 0.1), (0.1, 0.1)])
def test_refresh_of_power_and_counter_is_seen_when_the_source_is_opened(
    fake_nvml, power_s, counter_s
):
    nvml = fake_nvml()
    card = Card(nvml, power_s, counter_s)
    source = NvmlSource(nvml, "GPU-1")
    source.watch(card.clock, card.sleep)
    sensor = source.settings()["sensor"]
    assert sensor["update_s"] == pytest.approx(power_s, abs=0.003)
    assert sensor["counter_update_s"] == pytest.approx(counter_s, abs=0.003)


# Source: arXiv 2312.02741; NVML: the mean over 1 s from Ampere on, but for GA100.
@pytest.mark.parametrize(
    ("name", "architecture", "instant_mw", "reads", "averaging_s", "share"),
    [
        ("NVIDIA A100-SXM4-40GB", 7, 0, "held", 0.025, 0.25),
        ("NVIDIA H100 80GB HBM3", 9, 80250, "held", 0.025, 0.25),
        ("NVIDIA H100 80GB HBM3", 9, 0, "mean", 1.0, None),
        ("NVIDIA GH200 480GB", 9, 80250, "held", 0.020, 0.20),
        ("NVIDIA GeForce RTX 3090", 7, 80250, "held", 0.100, 1.0),
        ("NVIDIA GeForce RTX 3090", 7, 0, "mean", 1.0, None),
        ("NVIDIA RTX A3000", 7, 80250, "held", 0.100, 1.0),
        ("Tesla V100-SXM2-16GB", 5, 0, "held", 0.010, 0.5),
        ("NVIDIA GeForce RTX 4090", 8, 80250, "held", None, None),
        ("NVIDIA of the future", None, 80250, "held", None, None),
    ],
)
def test_what_is_known_of_a_cards_sensor(
    fake_nvml, name, architecture, instant_mw, reads, averaging_s, share
):
    nvml = fake_nvml(instant_mw=instant_mw)
    told = {"nvmlDeviceGetName": name, "nvmlDeviceGetArchitecture": architecture}
    nvml.ANSWERS = {**nvml.ANSWERS, **told}
    sensor = NvmlSource(nvml, "GPU-1").settings()["sensor"]
    assert (sensor["reads"], sensor["averaging_s"]) == (reads, averaging_s)
    assert sensor["seen_share"] == share


@pytest.fixture
def module(monkeypatch, fake_nvml):
    """The stand-in, installed as pynvml."""
    nvml = fake_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("epochwatt.board.telemetry.nvml.REFRESH_S", 0.0)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return nvml


def test_gpu_that_trains_is_opened_by_its_uuid(module):
    module.uuids = ["GPU-aa", "GPU-bb"]
    source = open_gpu("bb")
    assert source.settings()["uuid"] == "GPU-bb"
    source.close()
    assert not module.is_open


def test_gpu_that_is_not_certain_is_refused_and_the_library_let_go(module):
    with pytest.raises(ValueError, match="NVML knows GPU-1"):
        open_gpu("bb")
    assert not module.is_open


def test_load_of_a_gpu_that_tells_nothing_else(module):
    read_pct = open_load()
    assert read_pct() == 83.0
    module.broken["nvmlDeviceGetUtilizationRates"] = module.NVMLError(3)
    assert math.isnan(read_pct())
    assert open_load() is None
