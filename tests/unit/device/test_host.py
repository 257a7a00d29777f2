"""What a record says of the machine."""

import json
import sys

import pytest

from epochwatt.device import host

# SOURCE: /proc/cpuinfo of a Jetson AGX Xavier: the name stands once per core, no "Model".
XAVIER = "processor\t: 0\nmodel name\t: ARMv8 Processor rev 0 (v8l)\nBogoMIPS\t: 62.50\n"


@pytest.fixture
def proc(monkeypatch):
    """The files of /proc, as the machine shows them; empty: it shows none."""
    texts = {}
    monkeypatch.setattr(host, "_read", lambda path: texts.get(path, ""))
    return texts


def test_description_can_be_written_as_json_and_names_this_python():
    about = json.loads(json.dumps(host.describe(), allow_nan=False))
    assert about["software"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert about["machine"]["n_cpus"] >= 1
    assert about["machine"]["ram_gib"] >= 1


def test_description_stays_the_same_where_a_change_would_invalidate():
    first, second = host.describe(), host.describe()
    assert first["machine"] == second["machine"]
    assert first["software"] == second["software"]


def test_only_imported_libraries_are_named_and_none_is_imported_for_it(python):
    out = python(
        "import json, sys, types\n"
        "from epochwatt.device import host\n"
        "sys.modules['PIL'] = types.SimpleNamespace(__version__='9.9')\n"
        "print(json.dumps([host.describe()['software'], 'torch' in sys.modules]))"
    )
    software, torch_imported = json.loads(out)
    assert software["PIL"] == "9.9"
    assert "torch" not in software
    assert not torch_imported


def test_variables_that_change_speed_are_named_and_no_others(monkeypatch):
    faster = {"CUDA_MODULE_LOADING": "LAZY", "LD_PRELOAD": "tcmalloc.so", "MALLOC_ARENA_MAX": "1"}
    others = {"SECRET": "x", "CUDA_HOME": "/usr/local/cuda", "PYTORCH_VERSION": "2.1"}
    monkeypatch.setattr(host.os, "environ", {**faster, **others})
    assert host.describe()["environment"] == faster


def test_cpu_and_memory_are_read_from_proc(proc):
    proc["/proc/cpuinfo"] = XAVIER
    proc["/proc/meminfo"] = "MemTotal:       32692820 kB\nMemAvailable:   20480 kB\n"
    about = host.describe()
    assert about["machine"]["cpu_model"] == "ARMv8 Processor rev 0 (v8l)"
    assert about["machine"]["ram_gib"] == 31
    assert about["host_state"]["ram_available_mib"] == 20


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


def test_machine_without_proc_is_described_all_the_same(proc):
    about = host.describe()
    assert about["machine"]["ram_gib"] == 0
    assert about["machine"]["cpu_model"]
    assert host.boot_id() == ""


def test_boot_id_is_the_kernels():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
        assert host.boot_id() == handle.read().strip()
