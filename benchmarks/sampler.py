"""What the sampler costs and how far from its plan it samples.

The real process with four rails at 10 Hz (made up, so that no sensor's own time is in it) and the
host's counters at 1 Hz: alone, and beside as many busy processes as there are CPUs. Then in turn a
board's own sources on the files of a fake AGX Orin, rails from sysfs at 10 Hz or from tegrastats at
1 Hz, and a process that wakes as often as sysfs and reads nothing, alone and at the same time as
sysfs. What that one takes is the machine's and Python's; the second budget is of what sysfs takes
more at the same time (docs/decisions/0014-sampler-budget.md).
"""

import gc
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.results import Result, Row, at_most
from benchmarks.synthetic import sampler_with
from epochwatt.board.telemetry import process
from epochwatt.board.telemetry.channel import Schedule
from epochwatt.board.telemetry.client import Sampler
from epochwatt.errors import EpochwattError
from tests.fakeboard.board import make_board

CPU_BUDGET = at_most(0.12)
OWN_BUDGET = at_most(0.06)  # less the bare wake-ups at the same time
DEVIATION_BUDGET = at_most(4.0)
RAILS = {"rails": 4, "period_s": 0.1}
N_WINDOWS, WINDOW_S = 4, 20.0  # of each kind, in turn
N_ON_BOARD, ON_BOARD_S = 6, 15.0
N_HOGS = max(2, os.cpu_count() or 2)
BOARD = "agx_orin-jp5"  # four rails, as volts times amperes
KINDS = {"alone": 0, f"beside {N_HOGS} busy processes": N_HOGS}


@contextmanager
def hogs(n: int) -> Iterator[None]:
    """Keep `n` processes busy while the block runs."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        time.sleep(0.3 if n else 0.0)  # until they are past their start
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def cpu_s(pid: int) -> float:
    """Return a process's CPU time as the kernel shows it: in ticks, 10 ms as a rule."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def window(sampler: Sampler, seconds: float) -> dict[str, Any]:
    """Sample for some seconds; return the statistics, with the kernel's `stat_cpu_s`."""
    if sampler.pid is None:
        raise EpochwattError("the sampler does not run; its message stands above")
    before_s = cpu_s(sampler.pid)
    with tempfile.TemporaryDirectory() as folder:
        sampler.begin(folder)
        time.sleep(seconds)
        statistics = sampler.end()
    if statistics["lost"]:
        raise EpochwattError(f"the sampler was lost: {statistics['reason']}")
    statistics["stat_cpu_s"] = cpu_s(sampler.pid) - before_s
    return statistics


def rows(kind: str, windows: list[dict[str, Any]]) -> list[Row]:
    """Return CPU time and deviation from plan of the windows of one kind."""
    found = pd.DataFrame([{**w["sources"]["synthetic"], **w} for w in windows])
    told = 60 * found.stat_cpu_s.sum() / found.wall_s.sum()
    p50_ms, p99_ms = (1000 * found[f"deviation_{q}_s"] for q in ("p50", "p99"))
    per_min, n_gaps = 60 * found.cpu_s / found.wall_s, found.n_gaps.astype(float)
    what = f"sampler {kind}: "
    return [
        Row(f"{what}CPU time per minute, its own", per_min.tolist(), "s", 3, CPU_BUDGET),
        Row(f"{what}CPU time per minute, /proc/stat", [told], "s", 3, CPU_BUDGET),
        Row(f"{what}deviation from plan, p50", p50_ms.tolist(), "ms", 2),
        Row(f"{what}deviation from plan, p99", p99_ms.tolist(), "ms", 2, DEVIATION_BUDGET),
        Row(f"{what}instants missed", n_gaps.tolist(), "", 0),
    ]


def wake_only(seconds: float) -> None:
    """Wake at a power source's instants, read nothing and print the CPU time a minute, s."""
    process.wake_exactly()
    gc.disable()  # as the sampler does
    start_s = time.monotonic()
    schedule = Schedule(RAILS["period_s"], 0, start_s)
    n = round(seconds / schedule.period_s)
    plan = [schedule.take(start_s) for _ in range(n)][::-1]
    before_s = time.process_time()
    while plan:
        select.select([sys.stdin], [], [], max(0.0, plan.pop() - time.monotonic()))
    print(60 * (time.process_time() - before_s) / seconds)


@contextmanager
def floor(seconds: float, per_min: list[float]) -> Iterator[None]:
    """Run `wake_only` beside the block in a process of its own; add its CPU time a minute, s."""
    code = f"from benchmarks.sampler import wake_only; wake_only({seconds})"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,  # open and silent, as the sampler's commands are
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
    ) as waker:
        yield
        per_min.append(float(waker.stdout.read()))  # type: ignore[union-attr]


def board_windows(quick: bool) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[float]]]:
    """Return windows on a fake board and CPU times a minute of `wake_only`, of all kinds in turn.

    `sysfs` and `tegrastats` sample alone, `beside` is sysfs with `wake_only` at the same time. The
    board's files stand still.
    """
    seconds = 0.3 if quick else ON_BOARD_S
    found: dict[str, list[dict[str, Any]]] = {"sysfs": [], "beside": [], "tegrastats": []}
    floors: dict[str, list[float]] = {"alone": [], "beside": []}
    with tempfile.TemporaryDirectory() as folder:
        root = str(make_board(Path(folder) / "board", BOARD).root)

        def sampler(power: str) -> Sampler:
            return Sampler.start(os.getpid(), ".", 0, root=root, power=power)

        for _ in range(1 if quick else N_ON_BOARD):
            for power in ("sysfs", "tegrastats"):
                with sampler(power) as alone:
                    found[power].append(window(alone, seconds))
            with floor(seconds, floors["alone"]):
                pass
            with sampler("sysfs") as both, floor(seconds, floors["beside"]):
                found["beside"].append(window(both, seconds))
    return found, floors


def board_rows(found: dict[str, list[dict[str, Any]]], floors: dict[str, list[float]]) -> list[Row]:
    """Return the CPU time a minute of a board's sources; of tegrastats with that of its child."""
    settings = [w["sources"].get("tegrastats", {}).get("settings", {}) for w in found["tegrastats"]]
    child_s = [about.get("child_cpu_s", 0.0) for about in settings]  # each has one of its own
    sysfs, beside, tegrastats = (
        [60 * w["cpu_s"] / w["wall_s"] for w in found[kind]]
        for kind in ("sysfs", "beside", "tegrastats")
    )
    seconds = [w["wall_s"] for w in found["tegrastats"]]
    tegrastats = [t + 60 * c / s for t, c, s in zip(tegrastats, child_s, seconds, strict=True)]
    own = [whole - wake for whole, wake in zip(beside, floors["beside"], strict=True)]
    what = "sampler on a fake board, {}: CPU time per minute"
    return [
        Row(what.format("sysfs"), sysfs, "s", 3, CPU_BUDGET),
        Row("  bare wake-ups, alone", floors["alone"], "s", 3),
        Row("  bare wake-ups, beside sysfs", floors["beside"], "s", 3),
        Row("  sysfs at that time, less these", own, "s", 3, OWN_BUDGET),
        Row(what.format("tegrastats") + ", the stand-in's included", tegrastats, "s", 3),
    ]


def run(quick: bool = False) -> Result:
    """Measure windows with and without load in turn; `quick` only shows that it works."""
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    with Sampler.start(os.getpid(), ".", seed=0, program=sampler_with(RAILS)) as sampler:
        for _ in range(1 if quick else N_WINDOWS):
            for kind, n in KINDS.items():
                with hogs(n):
                    found[kind].append(window(sampler, 0.3 if quick else WINDOW_S))
    told = [row for kind in KINDS for row in rows(kind, found[kind])]
    on_board, floors = board_windows(quick)
    told += board_rows(on_board, floors)
    return Result(told, {"windows": {**found, **on_board}, "floor_s_per_min": floors})
