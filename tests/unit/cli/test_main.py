"""The command line: exit status, what goes to stdout, what to stderr."""

import functools
import json
import sys
from pathlib import Path

import pytest

from benchmarks.synthetic import sampler_with
from epochwatt import cli
from epochwatt.board.device.locks import HolderLock, machine_lock
from epochwatt.board.telemetry.client import Sampler


@pytest.fixture
def run(capsys):
    """Return a function that runs a command; it gives status, stdout and stderr."""

    def call(*arguments):
        status = cli.main(arguments)
        return (status, *capsys.readouterr())

    return call


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: epochwatt"),
        (["discard"], "name a RUN, or give --shared"),
        (["plna"], "No such command 'plna'. Did you mean 'plan'?"),
        (["plan", "--explian", "x"], "No such option '--explian'. Did you mean '--explain'?"),
        (["doctor", "--seconds", "0"], "0.0 is not in the range x>0."),
        (["what-if", "--device", "agx", "--storage", "nvme"], "'ssd', 'hdd', 'sd', 'emmc'"),
        (["what-if", "--device", "agx", "--flops", "nan"], "nan is not a finite number."),
        (["what-if", "--device", "agx", "--samples", "1.5"], "1.5 is not a whole number"),
        (["discard", "run", "last"], "'last' is not a valid integer."),
        (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
    ],
)
def test_wrong_usage_ends_with_status_2_and_names_what_is_allowed(arguments, message, run):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("Usage: epochwatt")
    assert message in err


def test_known_error_goes_to_stderr_with_status_1(run, tmp_path, monkeypatch, golden):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("plan")
    assert (status, out) == (1, "")
    golden("plan", "epochwatt plan (outside of a checkout)", err)


def test_plan_prints_the_table_or_what_is_wrong(run, checkout):
    status, out, err = run("plan")
    assert (status, err) == (0, "")
    assert "4 runs, 12 epochs, 0 of them measured" in out
    assert all(f"\n{run_id} " in run("plan", "--runs")[1] for run_id in checkout.ids)
    for option in ("--explain", "--why"):
        status, _, err = run("plan", option, "host-x")
        assert status == 1
        assert "'host-x'" in err
        assert f"allowed: {', '.join(checkout.ids[:3])}, ..." in err
    checkout.edit("studies.yaml", "[0, 2]", "-1")
    assert run("plan") == (
        1,
        "",
        "error: config/studies.yaml: small.sweep[0].num_workers is -1\n  allowed: a number >= 0\n",
    )


def test_discard_says_where_it_went_and_gives_the_machine_back(run, checkout, measure, golden):
    wanted = checkout.runs[0]
    for epoch in (0, 1):
        measure(wanted, epoch)
    status, out, _ = run("discard", wanted.id, "1")
    assert status == 0
    moved = out.splitlines()[0].removeprefix("moved to ")
    assert Path(moved).is_dir()
    golden("discard", "epochwatt discard RUN 1", out.replace(moved, "FOLDER"))
    with machine_lock().acquire({"run": "next"}) as lock:  # would raise LockedError
        assert "run next" in lock.describe()


def test_discard_waits_for_a_measurement_and_names_it(run, checkout, measure, monkeypatch):
    measure(checkout.runs[0], 0)
    other = machine_lock().acquire({"run": "another"})

    def describe_and_end(self):
        other.release()
        return "run another"

    monkeypatch.setattr(HolderLock, "describe", describe_and_end)
    status, out, _ = run("discard", checkout.ids[0])
    assert status == 0
    assert out.splitlines()[0] == "waiting: run another is measuring"


@pytest.mark.parametrize(
    ("stop", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted by Ctrl-C"),
        (MemoryError("Unable to allocate 7 GiB"), 1, "error: Unable to allocate 7 GiB\n  do: "),
        (OSError(24, "Too many open files"), 1, "Too many open files\n  do: too many files"),
        (IsADirectoryError(21, "Is a directory", "results"), 1, "results: Is a directory\n  do: "),
        (OSError("no disk"), 1, "error: no disk\n"),
    ],
)
def test_interruption_and_lack_of_resources_are_messages(monkeypatch, run, stop, status, message):
    def end():
        raise stop

    monkeypatch.setattr("epochwatt.maintenance.report.make_report", end)
    ended, _, err = run("report")
    assert ended == status
    assert message in err


def test_a_command_is_measured_whole_and_its_status_is_ours(run, tmp_path, monkeypatch):
    program = sampler_with({"period_s": 0.01, "signal": [[0.004, 8.0], [0.007, 22.0]]})
    monkeypatch.setattr(Sampler, "start", functools.partial(Sampler.start, program=program))
    told = tmp_path / "told.json"
    code = "import time, sys; time.sleep(0.3); sys.exit(3)"
    status, out, err = run("run", "--json", str(told), "--", sys.executable, "-c", code)
    assert (status, out) == (3, "")
    window = json.loads(told.read_text("utf-8"))
    assert window["time"] > 0.3
    assert window["total_energy"] == pytest.approx(window["time"] * 16.9, rel=0.3)
    assert (window["status"], window["command"][-1]) == (3, code)
    assert "mWh +- " in err
