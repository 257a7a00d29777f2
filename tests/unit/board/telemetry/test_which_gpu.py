"""Which of NVML's GPUs trains: by UUID, and never another one."""

import pytest

from epochwatt.board.telemetry.which_gpu import choose

FAST = "GPU-1a2b3c4d-0000-0000-0000-00000000000f"
SLOW = "GPU-1a99aaaa-0000-0000-0000-00000000000e"  # first on the bus: NVML's 0, CUDA's 1
PART = "5e5e5e5e-0000-0000-0000-000000000001"  # of a divided card; NVML lists no such GPU


@pytest.fixture
def two(fake_nvml):
    return fake_nvml(uuids=[SLOW, FAST])


@pytest.mark.parametrize("told", [FAST, FAST[4:], FAST[4:].upper()])
def test_uuid_that_cuda_tells_finds_the_card_wherever_it_is(two, told):
    assert choose(two, told) == FAST


# CUDA tells the part's UUID, an older one that of the card
@pytest.mark.parametrize("told", [PART, "MIG-" + PART, FAST])
def test_part_of_a_divided_card_has_no_power_of_its_own(fake_nvml, told):
    nvml = fake_nvml(uuids=[FAST], divided=[FAST])
    with pytest.raises(ValueError, match="MIG"):
        choose(nvml, told)


# -- nobody trains: the idle power, a look by the doctor ------------------------------------------


@pytest.mark.parametrize(
    ("visible", "order", "chosen"),
    [
        (FAST, None, FAST),
        ("GPU-1a2b", None, FAST),  # CUDA takes a beginning that is enough
        ("gpu-1A99", None, SLOW),
        ("GPU-1a2b,GPU-1a99", None, FAST),
        ("GPU-1a", None, None),  # not enough: CUDA sees no GPU
        ("GPU-77", None, None),
        ("", None, None),
        ("-1", None, None),
        ("NoDevFiles", None, None),
        ("5", None, None),
        ("1", "PCI_BUS_ID", FAST),
        ("0,1", "PCI_BUS_ID", SLOW),
        (None, "PCI_BUS_ID", SLOW),
    ],
)
def test_first_gpu_that_cuda_would_see(two, visible, order, chosen):
    told = {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": order}
    environment = {name: value for name, value in told.items() if value is not None}
    assert choose(two, "any", environment) == chosen


@pytest.mark.parametrize("visible", ["MIG-" + PART, f"MIG-{FAST}/1/0", None])
def test_divided_card_is_not_read_as_a_whole(fake_nvml, visible):
    nvml = fake_nvml(uuids=[FAST], divided=[FAST])
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    with pytest.raises(ValueError, match="MIG"):
        choose(nvml, "any", environment)
