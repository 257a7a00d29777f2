"""What a record says of the machine."""

import pytest

from epochwatt.board.device import host


@pytest.fixture
def proc(monkeypatch):
    """The files of /proc, as the machine shows them; empty: it shows none."""
    texts = {}
    monkeypatch.setattr(host, "_read", lambda path: texts.get(path, ""))
    return texts


def test_variables_that_change_speed_are_named_and_no_others(monkeypatch):
    faster = {"CUDA_MODULE_LOADING": "LAZY", "LD_PRELOAD": "tcmalloc.so", "MALLOC_ARENA_MAX": "1"}
    others = {"SECRET": "x", "CUDA_HOME": "/usr/local/cuda", "PYTORCH_VERSION": "2.1"}
    monkeypatch.setattr(host.os, "environ", {**faster, **others})
    assert host.describe()["environment"] == faster


@pytest.mark.parametrize(
    ("maker", "part", "model"),
    [
        ("0x41", "0xd07", "Cortex-A57"),  # Nano
        ("0x4e", "0x004", "NVIDIA Carmel"),  # Xavier
        ("0x41", "0xd42", "Cortex-A78AE"),  # Orin
        ("0x41", "0xfff", "ARM core, maker 0x41, part 0xfff"),
    ],
)
def test_a_cpu_of_which_the_kernel_prints_only_numbers_is_named(proc, maker, part, model):
    rows = f"processor\t: 0\nCPU implementer\t: {maker}\nCPU part\t: {part}\n"
    proc["/proc/cpuinfo"] = rows + rows.replace("0\n", "1\n", 1)
    assert host.describe()["machine"]["cpu_model"] == model
