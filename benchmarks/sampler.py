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

import numpy as np
import pandas as pd
import psutil

from benchmarks.results import REPOSITORY, Result, Row, at_most
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

Window = dict[str, Any]  # statistics of the sampler, with the kernel's `stat_cpu_s`


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


def window(sampler: Sampler, seconds: float) -> Window:
    """Sample for some seconds."""
    if sampler.pid is None:
        raise EpochwattError("the sampler does not run; its message stands above")
    before_s = sum(psutil.Process(sampler.pid).cpu_times()[:2])
    with tempfile.TemporaryDirectory() as folder:
        sampler.begin(folder)
        time.sleep(seconds)
        statistics = sampler.end()
    if statistics["lost"]:
        raise EpochwattError(f"the sampler was lost: {statistics['reason']}")
    statistics["stat_cpu_s"] = sum(psutil.Process(sampler.pid).cpu_times()[:2]) - before_s
    return statistics


def rows(kind: str, windows: list[Window]) -> list[Row]:
    """Return CPU time and deviation from plan of the windows of one kind."""
    found = pd.DataFrame([{**w["sources"]["synthetic"], **w} for w in windows])
    told = 60 * found.stat_cpu_s.sum() / found.wall_s.sum()
    p50_ms, p99_ms = (1000 * found[f"deviation_{q}_s"] for q in ("p50", "p99"))
    n_gaps = found.n_gaps.astype(float).tolist()
    what = f"sampler {kind}: "
    return [
        Row(f"{what}CPU time per minute, its own", per_minute(windows), "s", 3, CPU_BUDGET),
        Row(f"{what}CPU time per minute, /proc/stat", [told], "s", 3, CPU_BUDGET),
        Row(f"{what}deviation from plan, p50", p50_ms.tolist(), "ms", 2),
        Row(f"{what}deviation from plan, p99", p99_ms.tolist(), "ms", 2, DEVIATION_BUDGET),
        Row(f"{what}instants missed", n_gaps, "", 0),
    ]


def per_minute(windows: list[Window]) -> list[float]:
    """Return the CPU times of a minute, s; of tegrastats with that of its child."""
    return [
        60 * (w["cpu_s"] + settings.get("child_cpu_s", 0.0)) / w["wall_s"]
        for w in windows
        for settings in [w["sources"].get("tegrastats", {}).get("settings", {})]
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
        cwd=REPOSITORY,
        start_new_session=True,
    ) as waker:
        yield
        per_min.append(float(waker.stdout.read()))  # type: ignore[union-attr]


def run(quick: bool = False) -> Result:
    """Measure windows of all kinds in turn; `quick` only shows that it works."""
    found: dict[str, list[Window]] = {kind: [] for kind in KINDS}
    with Sampler.start(os.getpid(), ".", seed=0, program=sampler_with(RAILS)) as sampler:
        for _ in range(1 if quick else N_WINDOWS):
            for kind, n in KINDS.items():
                with hogs(n):
                    found[kind].append(window(sampler, 0.3 if quick else WINDOW_S))
    told = [row for kind in KINDS for row in rows(kind, found[kind])]
    # `sysfs` and `tegrastats` sample alone, `beside` is sysfs with `wake_only` at the same time;
    # the board's files stand still
    on_board: dict[str, list[Window]] = {"sysfs": [], "beside": [], "tegrastats": []}
    floors: dict[str, list[float]] = {"alone": [], "beside": []}
    seconds = 0.3 if quick else ON_BOARD_S
    with tempfile.TemporaryDirectory() as folder:
        root = str(make_board(Path(folder) / "board", BOARD).root)

        def sampler_of(power: str) -> Sampler:
            return Sampler.start(os.getpid(), ".", 0, root=root, power=power)

        for _ in range(1 if quick else N_ON_BOARD):
            for power in ("sysfs", "tegrastats"):
                with sampler_of(power) as alone:
                    on_board[power].append(window(alone, seconds))
            with floor(seconds, floors["alone"]):
                pass
            with sampler_of("sysfs") as both, floor(seconds, floors["beside"]):
                on_board["beside"].append(window(both, seconds))
    sysfs, beside, tegrastats = map(per_minute, on_board.values())
    own = np.subtract(beside, floors["beside"]).tolist()
    what = "sampler on a fake board, {}: CPU time per minute"
    told += [
        Row(what.format("sysfs"), sysfs, "s", 3, CPU_BUDGET),
        Row("  bare wake-ups, alone", floors["alone"], "s", 3),
        Row("  bare wake-ups, beside sysfs", floors["beside"], "s", 3),
        Row("  sysfs at that time, less these", own, "s", 3, OWN_BUDGET),
        Row(what.format("tegrastats") + ", the stand-in's included", tegrastats, "s", 3),
    ]
    return Result(told, {"windows": {**found, **on_board}, "floor_s_per_min": floors})
