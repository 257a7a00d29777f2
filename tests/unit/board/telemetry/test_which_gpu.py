"""Which GPU trains: as CUDA's driver or torch tells it, and which of NVML's that is."""

import ctypes
import uuid
from types import SimpleNamespace

import pytest

from epochwatt.board.telemetry.which_gpu import choose, gpu_of

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


CARD, OTHER = uuid.UUID(FAST[4:]), uuid.UUID(PART)


class FakeDriver:
    """Stands for libcuda: one card for each number, in CUDA's order."""

    def __init__(self, cards, parts=None, status=0):
        self.cards, self.status = cards, status
        if parts is not None:
            self.cuDeviceGetUuid_v2 = lambda answer, number: self.tell(parts, answer, number)

    def cuInit(self, flags):
        return self.status

    def cuDeviceGet(self, number, index):
        number._obj.value = 100 + index
        return 0 if index < len(self.cards) else 101

    def cuDeviceGetUuid(self, answer, number):
        return self.tell(self.cards, answer, number)

    @staticmethod
    def tell(uuids, answer, number):
        ctypes.memmove(answer, uuids[number.value - 100].bytes, 16)
        return 0


def torch_with(**properties):
    told = SimpleNamespace(name="NVIDIA Test", **properties)
    return SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda index: told))


def device(index=None, kind="cuda"):
    return SimpleNamespace(type=kind, index=index)


@pytest.mark.parametrize(("index", "told"), [(None, CARD), (0, CARD), (1, OTHER)])
def test_driver_tells_the_uuid_whatever_torch_can(index, told):
    assert gpu_of(device(index), torch_with(), FakeDriver([CARD, OTHER])) == str(told)
    of_a_part = FakeDriver([CARD, CARD], parts=[OTHER, OTHER])  # MIG: the card's UUID is not it
    assert gpu_of(device(index), torch_with(), of_a_part) == str(OTHER)


@pytest.mark.parametrize("driver", [FakeDriver([]), FakeDriver([CARD], status=3), object()])
def test_torch_is_asked_where_the_driver_does_not_answer(driver):
    assert gpu_of(device(), torch_with(uuid=CARD), driver) == str(CARD)
    assert gpu_of(device(), torch_with(), driver) == "unknown"
