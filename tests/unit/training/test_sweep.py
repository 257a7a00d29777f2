"""The job of a sweep: what is measured, skipped, refused, and how the machine is left."""

import json
import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from epochwatt.device.locks import machine_lock
from epochwatt.device.machine import outcome
from epochwatt.epochs.placement import stall_times
from epochwatt.epochs.telemetry import energies, read_all, telemetry_flags
from epochwatt.errors import (
    BoardError,
    ConfigError,
    DamagedError,
    RebootNeeded,
    RecordError,
    TrainingError,
)
from epochwatt.records.mode_folder import RECORD, SweepFolder, mode_name
from epochwatt.training import sweep
from epochwatt.training.sweep import main, measure_modes, read_modes

SWEEP = "sweep-host-local-lenet-p1-0123abcd"
MODES = [{"cores": 1}, {"cores": 2}]
BRIEF = {"warm_up_s": 0.05, "idle_s": 0.05, "patience_s": 0.05, "power_readings": 0}
ALL_MEASURED = """
import json, sys
from epochwatt.training.sweep import main
status = main(sys.argv[1:])
print(json.dumps([status, sorted({name.partition(".")[0] for name in sys.modules})]))
"""

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


# -- on the machine at hand ----------------------------------------------------------------------


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


def test_record_has_what_the_layers_above_take_from_an_epoch(measure, modes):
    measure(grid=MODES[:1])
    record = modes.read(MODES[0])
    samples = read_all(record)
    assert "host" in samples
    assert energies(record, samples) == []  # no sensor was asked for
    assert telemetry_flags(record) == set()
    starts_s, ends_s = stall_times(record.meta, record.minibatch_s)
    assert starts_s[0] == record.meta["t_start_mono_s"]
    assert ends_s[-1] < record.meta["t_end_mono_s"]
    assert "transition_not_found" in record.meta["flags"]
    assert record.meta["procedure"]["minibatches"] == 5


def test_a_mode_that_is_measured_costs_nothing_and_stays_as_it_is(measure, modes, receipt):
    measure(grid=MODES[:1])
    before = modes.read(MODES[0]).meta
    written = receipt.read_bytes()
    receipt.unlink()
    measure(grid=MODES[:1])
    assert modes.read(MODES[0]).meta == before
    assert receipt.read_bytes() == written


def test_a_chunk_that_is_measured_imports_no_torch(
    measure, modes, brief, data_root, receipt, machine, tmp_path, python
):
    measure(grid=MODES[:1])
    words = _words(modes, brief, data_root, receipt, machine, tmp_path, MODES[:1])
    status, imported = json.loads(python(ALL_MEASURED, *words))
    assert status == 0
    assert "epochwatt" in imported
    assert not {"torch", "torchvision", "pandas"} & set(imported)


def test_a_damaged_mode_is_measured_again(measure, modes, caplog):
    measure(grid=MODES[:1])
    path = Path(modes.mode_path(MODES[0]), "samples-host.csv")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DamagedError):
        modes.verify(MODES[0])
    measure(grid=MODES[:1])
    assert "was altered" in caplog.text
    modes.verify(MODES[0])
    (moved,) = Path(modes.root, ".trash").glob(f"*/{SWEEP}/mode-c1-x-x-x")
    assert (moved / RECORD).exists()


def test_a_longer_grid_keeps_what_is_measured(measure, modes, receipt):
    measure(grid=MODES[1:] if os.cpu_count() > 1 else MODES[:1])
    kept = modes.measured()
    before = {name: os.stat(Path(modes.path, name)).st_mtime_ns for name in kept}
    measure(grid=MODES[: os.cpu_count()])
    assert {name: os.stat(Path(modes.path, name)).st_mtime_ns for name in kept} == before
    assert listed(receipt) == [mode_name(mode) for mode in MODES[: os.cpu_count()]]


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ([{"cores": 1}, {"cores": 10_000}], "does not have that many"),
        ([{"cores": 1}, {"cores": 1, "gpu_mhz": 1300.5}], "cannot be set: it is no Jetson board"),
    ],
)
def test_a_mode_that_this_machine_lacks_ends_the_job_before_the_first(
    measure, modes, grid, problem
):
    with pytest.raises(ConfigError, match=problem):
        measure(grid=grid, last=0)
    assert modes.measured() == []


def test_other_factors_than_a_sweep_can_have_are_refused(measure, modes):
    with pytest.raises(ConfigError, match="gpu_timing of a sweep is 'pooled'"):
        measure(gpu_timing="pooled")
    with pytest.raises(ConfigError, match="minibatches of a sweep is 0"):
        measure(minibatches=0)
    assert modes.measured() == []


@pytest.mark.parametrize(("first", "last"), [(0, 2), (-1, 0), (1, 0)])
def test_numbers_outside_the_list_are_refused(measure, first, last):
    with pytest.raises(ConfigError, match="no such modes") as caught:
        measure(first=first, last=last)
    assert caught.value.allowed == "0 to 1"


def test_an_interpreter_without_torch_is_named(measure, modes, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("session", "sweep_session"):
        monkeypatch.delitem(sys.modules, f"epochwatt.training.{name}", raising=False)
    with pytest.raises(TrainingError, match="cannot import what training needs"):
        measure()
    assert modes.measured() == []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("[{", "cannot read"),
        ('{"cores": 1}', "needed: a list"),
        ('[{"cores": "one"}]', "is 'one', needed"),
        ('[{"cores": 1}, {"cores": 1}]', "is there twice"),
        ('[{"cpus": 1}]', "has cpus"),
    ],
)
def test_a_list_of_modes_that_cannot_be_right_is_refused(tmp_path, content, fault):
    path = tmp_path / "modes.json"
    path.write_text(content, "utf-8")
    with pytest.raises((RecordError, ConfigError), match=fault) as caught:
        read_modes(str(path))
    assert str(path) in str(caught.value)


# -- on a board that writes down what is asked of it -----------------------------------------------


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


def test_the_board_settles_before_the_first_mode_only(measure, asked, modes, monkeypatch):
    asked.settings["settle"] = {"max_s": 5.0}
    monkeypatch.setattr(
        sweep, "settle", lambda root, limits: asked.say("settle") or {"steady": True}
    )
    measure(grid=GRID, on=asked, dvfs="off")
    assert asked.calls.count("settle") == 1
    settled = [modes.read(mode).meta["board"]["settled"] for mode in GRID]
    assert settled == [{"steady": True}, None]


def test_what_a_killed_job_left_behind_is_put_back_before_modes_are_set(measure, asked):
    asked.left = True
    measure(grid=GRID, on=asked, dvfs="off")
    assert without_events(asked)[:3] == ["check", "restore", "check-modes"]
    assert asked.calls[-1] == "restore"


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


def test_torch_has_a_thread_for_each_core_of_a_board_unless_a_number_is_asked_for(
    measure, asked, modes
):
    grid = [{"cores": 3}, {"cores": 1}]
    measure(grid=grid, on=asked, dvfs="off", torch_threads=0)
    assert [modes.read(mode).meta["torch_threads_used"] for mode in grid] == [3, 1]
    others = [{"cores": 4}]
    measure(grid=others, on=asked, dvfs="off", torch_threads=2)
    assert modes.read(others[0]).meta["torch_threads_used"] == 2


def test_a_mode_has_its_seed_wherever_it_stands(measure, asked, modes):
    measure(grid=GRID, on=asked, dvfs="off")
    seeds = [modes.read(mode).meta["epoch_seed"] for mode in GRID]
    assert len(set(seeds)) == 2
    for mode in GRID:
        modes.discard(mode)
    measure(grid=GRID[::-1], on=asked, dvfs="off")
    assert [modes.read(mode).meta["epoch_seed"] for mode in GRID] == seeds


def test_job_waits_for_the_machine(measure, asked, modes, monkeypatch):
    other = machine_lock().acquire({"run": "run-b"})
    heard = []

    def end_the_other(holder):
        heard.append(holder)
        other.release()

    monkeypatch.setattr(sweep, "log_waiting", end_the_other)
    measure(grid=GRID[:1], on=asked, dvfs="off")
    assert "run-b" in heard[0]
    assert modes.measured() == NAMES[:1]
    assert multiprocessing.active_children() == []


# -- the command ---------------------------------------------------------------------------------


def _words(modes, brief, data_root, receipt, machine, tmp_path, grid):
    path = tmp_path / "modes.json"
    path.write_text(json.dumps(grid), "utf-8")
    return [
        *("--sweep", SWEEP, "--factors", json.dumps(brief), "--modes", str(path)),
        *("--first", "0", "--last", str(len(grid) - 1), "--measured", modes.root),
        *("--data-root", data_root, "--receipt", str(receipt)),
        *("--machine", json.dumps(machine.settings)),
    ]


def test_command_says_a_line_for_each_mode(
    modes, brief, data_root, receipt, machine, tmp_path, caplog
):
    words = _words(modes, brief, data_root, receipt, machine, tmp_path, MODES[:1])
    with caplog.at_level("INFO"):
        assert main(words) == 0
    assert "mode 1 of 1: mode-c1-x-x-x: " in caplog.text
    assert " ms a mini-batch (" in caplog.text
    assert listed(receipt) == ["mode-c1-x-x-x"]


def test_command_explains_an_error_in_a_line(
    modes, brief, data_root, receipt, machine, tmp_path, capsys
):
    words = _words(modes, brief, data_root, receipt, machine, tmp_path, [{"cores": 10_000}])
    assert main(words) == 1
    assert f"error: {SWEEP}: cores: this machine does not have that many" in capsys.readouterr().err
    assert not receipt.exists()
