"""An NVIDIA GPU through a stand-in for pynvml."""

import math
import sys

import pytest

from epochwatt.telemetry.nvml import NvmlSource, open_gpu


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


def test_answers_become_watt_joule_and_the_rest(fake_nvml):
    assert row(NvmlSource(fake_nvml(), "gpu")) == {
        "power_gpu_w": 61.5,
        "energy_gpu_j": 7.25,
        "gpu_util_pct": 83.0,
        "gpu_mhz": 1980.0,
        "mem_mhz": 3201.0,
        "gpu_temp_c": 47.0,
        "throttle_reasons": 4.0,
    }


def test_power_of_this_moment_is_preferred_to_the_drivers_mean(fake_nvml):
    source = NvmlSource(fake_nvml(instant_mw=80250), "gpu")
    assert row(source)["power_gpu_w"] == 80.25
    assert source.settings()["power"] == "instant"
    assert "over 1 s" in NvmlSource(fake_nvml(), "gpu").settings()["power"]


def test_question_that_is_not_supported_is_nan_and_not_asked_again(fake_nvml):
    nvml = fake_nvml(broken={"nvmlDeviceGetTemperature": 3})
    source = NvmlSource(nvml, "gpu")
    assert math.isnan(row(source)["gpu_temp_c"])
    assert math.isnan(row(source)["gpu_temp_c"])
    assert nvml.asked.count("nvmlDeviceGetTemperature") == 1
    assert source.settings()["not_supported"] == ["gpu_temp_c"]


def test_question_that_fails_for_now_is_asked_again(fake_nvml):
    nvml = fake_nvml(broken={"nvmlDeviceGetPowerUsage": 999})
    source = NvmlSource(nvml, "gpu")
    assert math.isnan(row(source)["power_gpu_w"])
    nvml.broken = {}
    assert row(source)["power_gpu_w"] == 61.5


def test_instant_power_that_fails_later_is_nan(fake_nvml):
    nvml = fake_nvml(instant_mw=80250)
    source = NvmlSource(nvml, "gpu")
    nvml.instant_mw = 0
    assert math.isnan(row(source)["power_gpu_w"])


def test_settings_name_the_gpu(fake_nvml):
    nvml = fake_nvml(broken={"nvmlDeviceGetEnforcedPowerLimit": 3})
    about = NvmlSource(nvml, "gpu").settings()
    assert (about["gpu"], about["uuid"], about["power_limit_mw"]) == ("NVIDIA Test", "GPU-1", None)


@pytest.fixture
def module(monkeypatch, fake_nvml):
    """The stand-in, installed as pynvml."""
    nvml = fake_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


@pytest.mark.parametrize(("visible", "opened"), [("0", 0), ("0,1", 0), ("GPU-7,GPU-8", "GPU-7")])
def test_gpu_is_the_first_that_cuda_sees(module, visible, opened):
    source = open_gpu(visible)
    assert module.opened == opened
    source.close()
    assert not module.is_open


@pytest.mark.parametrize("visible", ["", "-1", "3"])
def test_gpu_that_cuda_does_not_see_is_no_source(module, visible):
    assert open_gpu(visible) is None


def test_environment_says_what_cuda_sees(module, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert open_gpu() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert open_gpu() is not None


# Source: HazyResearch/intelligence-per-watt issue 40: NVML on JetPack 6 and 7.
def test_gpu_that_answers_nothing_is_no_source(module):
    module.broken = dict.fromkeys(module.ANSWERS, 3)
    assert open_gpu("0") is None
    assert not module.is_open


def test_machine_without_pynvml_has_no_source(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert open_gpu("0") is None


def test_machine_without_a_driver_has_no_source(module, monkeypatch):
    def fail():
        raise module.NVMLError(12)

    monkeypatch.setattr(module, "nvmlInit", fail, raising=False)
    assert open_gpu("0") is None
