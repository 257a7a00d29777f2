"""A run that does not fit is refused before it is measured; what cannot be told is let through."""

import pytest

from epochwatt.board.device import host
from epochwatt.board.training import memory_check
from epochwatt.board.training.memory_check import check_memory
from epochwatt.board.training.resident import MIB
from epochwatt.board.training.session import Session
from epochwatt.board.training.workloads import WORKLOADS
from epochwatt.errors import TrainingError


def with_free(monkeypatch, mib):
    monkeypatch.setattr(host, "free_memory", lambda: mib * MIB)


def test_a_session_refuses_a_run_and_names_the_batch_size_that_fits(
    folder, factors, data_root, machine, monkeypatch
):
    with_free(monkeypatch, 40)
    monkeypatch.setattr(memory_check, "libraries_mib", lambda *_: 0.0)  # other tests load them
    factors = {**factors, "batch_size": 4096, "num_workers": 0, "prefetch_factor": None}
    with pytest.raises(TrainingError, match="does not fit into memory") as caught:
        Session(folder, factors, data_root, machine, {})
    allowed = int(caught.value.allowed.split()[-1])
    assert 8 < allowed < 4096
    assert "check_memory: false" in caught.value.do
    check_memory({**factors, "batch_size": allowed}, WORKLOADS["lenet"], machine, on_gpu=False)
    machine.settings["check_memory"] = False
    check_memory(factors, WORKLOADS["lenet"], machine, on_gpu=False)


def test_what_cannot_be_forecast_is_measured(factors, machine, monkeypatch, caplog):
    def fail(*_):
        raise TrainingError("it looks at numbers")

    with_free(monkeypatch, 1)
    monkeypatch.setattr(memory_check, "forecast", fail)
    with caplog.at_level("INFO"):
        check_memory(factors, WORKLOADS["lenet"], machine, on_gpu=False)
    assert "was not forecast: it looks at numbers" in caplog.text
    check_memory(factors, WORKLOADS["lenet"], machine, on_gpu=True)  # of its own memory
