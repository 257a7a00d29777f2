"""Which GPU trains, as CUDA's driver tells it, or torch."""

import ctypes
import uuid
from types import SimpleNamespace

import pytest

from epochwatt.board.telemetry.which_gpu import gpu_of

CARD = uuid.UUID("1a2b3c4d-0000-0000-0000-00000000000f")
PART = uuid.UUID("5e5e5e5e-0000-0000-0000-000000000001")


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


@pytest.mark.parametrize(("index", "told"), [(None, CARD), (0, CARD), (1, PART)])
def test_driver_tells_the_uuid_whatever_torch_can(index, told):
    assert gpu_of(device(index), torch_with(), FakeDriver([CARD, PART])) == str(told)


@pytest.mark.parametrize("driver", [FakeDriver([]), FakeDriver([CARD], status=3), object()])
def test_torch_is_asked_where_the_driver_does_not_answer(driver):
    assert gpu_of(device(), torch_with(uuid=CARD), driver) == str(CARD)
    assert gpu_of(device(), torch_with(), driver) == "unknown"
