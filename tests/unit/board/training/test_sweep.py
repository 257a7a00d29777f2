"""The job of a sweep: what is measured, skipped, refused, and how the machine is left."""

import json
import os

import numpy as np
import pytest
from cpufreq_tree import BEFORE, clamping, limits, make_cpufreq, set_limits

from epochwatt.board.device import cpu_clocks
from epochwatt.board.device.cpu_clocks import CpuClocks
from epochwatt.board.device.machine import outcome
from epochwatt.board.records.mode_folder import SweepFolder, mode_name
from epochwatt.board.training.sweep import measure_modes
from epochwatt.board.training.sweep_session import SweepSession
from epochwatt.errors import (
    BoardError,
    RebootNeeded,
    TrainingError,
)

SWEEP = "sweep-host-local-lenet-p1-0123abcd"
MODES = [{"cores": 1}, {"cores": 2}]
BRIEF = {"warm_up_s": 0.05, "idle_s": 0.05, "patience_s": 0.05, "power_readings": 0}

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture
def brief(factors):
    """Factors of a sweep of a few mini-batches, on a host."""
    return {**factors, "power_mode": "sweep", "minibatches": 5, "procedure": BRIEF}


@pytest.fixture
def modes(tmp_path):
    """The folder of a sweep that has no mode yet."""
    return SweepFolder(str(tmp_path / "measured"), SWEEP)


@pytest.fixture
def receipt(tmp_path):
    return tmp_path / "results" / "chunk.json"


@pytest.fixture
def measure(modes, brief, data_root, receipt, machine):
    """Return a function that measures a chunk on a machine, by default all modes on the host."""

    def call(grid=MODES, first=0, last=None, on=machine, **changes):
        last = len(grid) - 1 if last is None else last
        chosen = {**brief, **changes}
        measure_modes(modes, chosen, grid, first, last, data_root, str(receipt), on)

    return call


def listed(receipt):
    return [entry["mode"] for entry in json.loads(receipt.read_text("utf-8"))["modes"]]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_host_is_measured_with_one_thread_and_with_two(measure, modes, receipt, num_workers):
    if os.cpu_count() < 2:
        pytest.skip("one CPU")
    measure(num_workers=num_workers)
    assert listed(receipt) == ["mode-c1-x-x-x", "mode-c2-x-x-x"]
    for mode in MODES:
        record = modes.verify(mode)
        assert record.meta["torch_threads_used"] == mode["cores"]
        assert record.minibatch_s.shape == (record.meta["n_minibatches"], 3)
        assert record.meta["n_minibatches"] >= 5
        assert (record.minibatch_s[:, 2] > 0).all()
        assert record.meta["task"] == "train"
        assert np.isfinite(record.meta["loss"])
        assert "board" not in record.meta


CLOCKS = [{"cores": 1, "cpu_mhz": 1200}, {"cores": 1, "cpu_mhz": 2400}, {"cores": 1}]


@pytest.fixture
def cpufreq(machine, tmp_path, monkeypatch):
    """The root of the files by which the clocks of the machine at hand are set."""
    monkeypatch.setattr(CpuClocks, "patience_s", 0.0)
    root = make_cpufreq(tmp_path / "root")
    machine.cpu_clocks = CpuClocks(root)
    return root


def test_clocks_of_a_host_are_set_recorded_and_put_back(measure, modes, cpufreq, monkeypatch):
    seen = []
    train = SweepSession._train_mode
    monkeypatch.setattr(
        SweepSession,
        "_train_mode",
        lambda *words: seen.append(limits(cpufreq)[0]) or train(*words),
    )
    measure(grid=CLOCKS)
    assert seen == [(1200000, 1200000), (2400000, 2400000), BEFORE]
    assert limits(cpufreq) == [BEFORE, BEFORE]
    records = [modes.verify(mode).meta for mode in CLOCKS]
    assert records[1]["clocks_set"]["resolved"] == {"cpu_mhz": 2400}
    assert "clocks_set" not in records[2]
    for meta in records:
        assert "board" not in meta
        assert not {"clock_below_request", "mode_not_met"} & set(meta["flags"])


def test_a_clock_of_a_host_that_the_driver_clamps_is_flagged(measure, modes, cpufreq, monkeypatch):
    monkeypatch.setattr(cpu_clocks, "write", clamping(3000000 - 900000))
    set_limits(cpufreq, 0, 1200000, 2000000)
    set_limits(cpufreq, 1, 1200000, 2000000)
    measure(grid=CLOCKS)
    flagged = [modes.read(mode).meta["flags"].count("clock_below_request") for mode in CLOCKS]
    assert flagged == [0, 1, 0]
    assert modes.read(CLOCKS[1]).meta["clocks_set"]["unmet"] == {"cpu_mhz": 2100}
    assert limits(cpufreq) == [(1200000, 2000000)] * 2


def test_a_host_is_put_back_after_an_error_and_first_of_all_after_a_kill(
    measure, modes, cpufreq, machine, monkeypatch, caplog
):
    def fail(*_):
        raise TrainingError("a loader worker died")

    with monkeypatch.context() as patch:
        patch.setattr(SweepSession, "_train_mode", fail)
        with pytest.raises(TrainingError):
            measure(grid=CLOCKS)
    assert limits(cpufreq) == [BEFORE, BEFORE]
    machine.change(CLOCKS[1], "on")  # and nothing after it, as after kill -9
    measure(grid=CLOCKS[2:])
    assert "its settings are put back first" in caplog.text
    assert limits(cpufreq) == [BEFORE, BEFORE]
    assert modes.measured() == [mode_name(CLOCKS[2])]


@pytest.fixture
def asked(board, data_root, monkeypatch):
    """A board that takes every mode; its sensors are those of this machine."""
    board.root = board.settings["root"] = "/"
    board.settings["power_source"] = "none"
    monkeypatch.setattr(board, "check_medium", lambda path: None)

    def change(mode, dvfs):
        board.say(mode_name(mode))
        return outcome(mode, dvfs, resolved=dict(mode), unmet={})

    monkeypatch.setattr(board, "change", change)
    monkeypatch.setattr(board, "check_modes", lambda grid, dvfs: board.say("check-modes"))
    return board


GRID = [{"cores": 1, "gpu_mhz": 114.75}, {"cores": 1, "gpu_mhz": 318.75}]
NAMES = list(map(mode_name, GRID))


def without_events(board):
    return [word for word in board.calls if word != "events"]


def test_modes_are_set_one_after_the_other_and_the_board_is_put_back_once(measure, asked, modes):
    measure(grid=GRID, on=asked, dvfs="off")
    assert without_events(asked) == ["check", "check-modes", "busy", *NAMES, "restore"]
    record = modes.read(GRID[1]).meta
    assert record["board"]["power_mode"]["requested"] == GRID[1]
    assert record["board"]["busy_pct"] == 2.5
    assert record["events"]["before"].keys() == {"throttle"}


@pytest.mark.parametrize("error", [RebootNeeded("restart it"), BoardError("the helper failed")])
def test_a_mode_that_fails_to_be_set_keeps_the_others_and_puts_back(measure, asked, modes, error):
    asked.fails[NAMES[1]] = error
    with pytest.raises(type(error)):
        measure(grid=GRID, on=asked, dvfs="off")
    assert modes.measured() == NAMES[:1]
    assert asked.calls[-1] == "restore"
    del asked.fails[NAMES[1]]
    measure(grid=GRID, on=asked, dvfs="off")
    assert modes.measured() == NAMES
    assert asked.calls.count(NAMES[0]) == 1


@pytest.mark.parametrize(
    ("unmet", "flag"),
    [
        ({"gpu_mhz": 204.0}, "clock_below_request"),
        ({"gpu_mhz": 1300.5}, "mode_not_met"),
        ({"cores": 12}, "mode_not_met"),
    ],
)
def test_what_is_not_met_is_flagged_whether_at_once_or_at_the_end(
    measure, asked, modes, monkeypatch, unmet, flag
):
    monkeypatch.setattr(asked, "unmet", lambda applied: unmet)
    grid = [{"cores": 1, "gpu_mhz": 318.75}]
    measure(grid=grid, on=asked, dvfs="off")
    meta = modes.read(grid[0]).meta
    assert {"clock_below_request", "mode_not_met"} & set(meta["flags"]) == {flag}
    assert meta["board"]["power_mode"]["unmet"] == unmet
