"""What a mode asks for, and whether the clocks that were read back are so."""

import pytest

from epochwatt.board.device import clocks
from epochwatt.board.device.board_files import Mode
from epochwatt.errors import ConfigError

STEPS = {
    "cpu_mhz": [115.2, 1190.4, 2265.6],
    "gpu_mhz": [114.75, 675.75, 1377.0],
    "emc_mhz": [204.0, 1331.2, 2133.0],
}


def mode(*rows):
    return Mode(2, "MODE", [tuple(row.split()) for row in rows])


def read(**changes):
    """What `read_clocks` says of two CPUs, pinned at what the tests ask for."""
    return {
        **{"cores_online": [0, 1], "cpu_khz": {"0": 1190400, "1": 1190400}},
        **{"cpu_min_khz": {"0": 1190400, "1": 1190400}},
        **{"cpu_max_khz": {"0": 1190400, "1": 1190400}},
        **{"gpu_hz": 675750000, "gpu_min_hz": 675750000, "gpu_max_hz": 675750000},
        **{"emc_hz": 1331200000, "emc_cap_hz": 1331200000},
        **changes,
    }


WANTED = {"cores": 2, "cpu_mhz": 1190.4, "gpu_mhz": 675.75, "emc_mhz": 1331.2}


def test_limits_of_a_mode_are_in_mhz():
    rows = ["CPU_ONLINE CORE_0 1", "CPU_ONLINE CORE_1 1", "CPU_ONLINE CORE_2 0"]
    rows += ["CPU_DENVER_0 MIN_FREQ 1200000", "CPU_DENVER_0 MAX_FREQ 1200000"]
    rows += ["GPU MIN_FREQ 318750000", "GPU MAX_FREQ 670000000", "EMC MAX_FREQ 1331200000"]
    rows += ["GPU_POWER_CONTROL_ENABLE GPU_PWR_CNTL_EN on", "TPC_POWER_GATING TPC_PG_MASK 0"]
    expected = {"cores": 2, "cpu_mhz": 1200.0, "gpu_mhz": 670.0, "emc_mhz": 1331.2}
    assert clocks.limits(mode(*rows), STEPS) == expected


NAMED = {"nvpmodel": "MODE_10W", "cores": 2, "cpu_mhz": 1200, "gpu_mhz": 520, "emc_mhz": 1065}
FOUND = {"cores": 2, "cpu_mhz": 1200.0, "gpu_mhz": 522.75, "emc_mhz": 1065.6, "gpu_share": 0.5}


@pytest.mark.parametrize(
    ("numbers", "key", "number"),
    [
        ({}, "gpu_share", "1"),
        ({"gpu_share": 0.5, "cores": 3}, "cores", "3"),
        ({"gpu_mhz": 670}, "gpu_mhz", "670"),
    ],
)
def test_numbers_that_are_not_those_of_the_board_are_refused(numbers, key, number):
    """A missing share of the GPU is 1: a model would take half a GPU for a whole."""
    with pytest.raises(ConfigError, match=f"MODE_10W: {key}") as caught:
        clocks.need_same({**NAMED, **numbers}, FOUND)
    assert caught.value.found == number


@pytest.mark.parametrize("khz", [1130000, 1251000, 2265600])
def test_more_than_five_per_cent_off_are_not_met_above_as_below(khz):
    found, _ = clocks.compare(read(cpu_khz={"0": khz, "1": 1190400}), WANTED, "off", 2133.0)
    assert found == {"cpu_mhz": khz / 1e3}
    assert clocks.complaints(found, WANTED) == f"cpu_mhz is {khz / 1e3:g}, wanted 1190.4"


def test_with_dvfs_on_the_limits_are_compared_and_not_the_clocks():
    idle = read(cpu_khz={"0": 115200, "1": 115200}, gpu_hz=114750000, emc_hz=204000000)
    assert clocks.compare(idle, WANTED, "on", 2133.0) == ({}, [])
    higher = read(cpu_max_khz={"0": 2265600, "1": 2265600}, gpu_max_hz=1377000000)
    found, _ = clocks.compare(higher, WANTED, "on", 2133.0)
    assert found == {"cpu_mhz": 2265.6, "gpu_mhz": 1377}
    wanted = "cpu_mhz is 2265.6, wanted 1190.4; gpu_mhz is 1377, wanted 675.75"
    assert clocks.complaints(found, WANTED) == wanted


@pytest.mark.parametrize(
    ("measured", "before", "after", "held_back"),
    [
        (649000, 2601000, 2601000, True),  # NVIDIA forum topic 361188: an AGX Thor
        (242000, 972000, 972000, True),  # there, idle
        (2599000, 2601000, 2601000, False),
        (972000, 972000, 2601000, False),  # the governor went up meanwhile
        (2601000, None, None, False),  # cpufreq shows nothing
    ],
)
def test_cpus_that_run_far_below_what_cpufreq_shows_are_held_back(
    measured, before, after, held_back
):
    shown = {"cpu_shown_khz": {"0": before}, "cpu_shown_after_khz": {"0": after}}
    found = clocks.summary(read(cpu_khz={"0": measured}, **shown))
    assert found["held_back"] == held_back
    assert not clocks.summary(read(cpu_khz={"0": measured}))["held_back"]  # an older helper


def test_a_gpu_that_is_off_will_run_at_its_lower_limit_at_least():
    asleep = read(gpu_hz=0)
    assert clocks.compare(asleep, WANTED, "off", 2133.0) == ({}, [])
    lower = {**asleep, "gpu_min_hz": 114750000}
    assert clocks.compare(lower, WANTED, "off", 2133.0)[0] == {"gpu_mhz": 114.75}
