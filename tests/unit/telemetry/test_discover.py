"""Which sources a machine has."""

import logging
import shutil
import sys

from epochwatt.telemetry.discover import sources


def names(found):
    for source in found:
        source.close()
    return [source.name for source in found]


def test_machine_with_everything_has_all_sources(root, tmp_path, monkeypatch, fake_nvml):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    zone = "sys/class/powercap/intel-rapl:0"
    root.write(f"{zone}/name", "package-0")
    root.write(f"{zone}/energy_uj", "1")
    root.write(f"{zone}/max_energy_range_uj", "1000")
    assert names(sources(100, str(tmp_path), str(root))) == ["host", "nvml", "rapl"]


def test_plain_machine_has_host_counters(root, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert names(sources(100, str(tmp_path), str(root))) == ["host"]


def test_source_that_cannot_be_opened_is_told_and_left_out(root, tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    shutil.rmtree(root.path / "proc")
    with caplog.at_level(logging.WARNING):
        assert sources(100, str(tmp_path), str(root)) == []
    assert "cannot be used" in caplog.text
