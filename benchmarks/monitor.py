"""What `EpochMonitor` costs a training loop, and what other tools cost the same loop and report.

On one core the same network is trained with a tool and without. `EpochMonitor`'s loop trains a bare
mini-batch after each of its own; medians are compared, and the CPU time of its processes is told
beside; a loop without a tool, compared in the same way, says how exact that is. Other tools, whose
threads cannot be stopped alone, run beside a bare loop in a process of its own, in short turns: in
the bare ones all that runs for the tool is stopped (SIGSTOP), so the others hold all that it costs.
There the CPU time of all processes is compared, which a neighbour on the machine disturbs half as
much as the time that passes. What is done at the begin and at the end of an epoch is told apart.

Tools read the energy counter of a made-up processor (RAPL) of a known power; a mount namespace puts
it over /sys/class for them alone.
"""

import contextlib
import math
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from benchmarks.environments import environment
from benchmarks.results import REPOSITORY, Result, Row, at_most, median_interval
from benchmarks.synthetic import SyntheticSource, make_counter
from epochwatt.board.telemetry.process import die_with_parent
from epochwatt.errors import EpochwattError

BUDGET = at_most(1.005)
PAIRS_S, PEER_PAIRS_S, ENERGY_S = 120.0, 40.0, 12.0
TURN_S = (0.06, 0.1)
SETTLE_S = 0.005  # after a stop, what is overdue is done before the turn
BLOCK_PAIRS = 12  # of turns: together they hold a row or two of a sampler
MIN_BLOCKS = 5
BLOCK_MINIBATCHES = 20  # with a tool, and as many bare ones between them
WARM_MINIBATCHES = 3  # before them: the first after a stop finds cold caches, a third slower
START_S = 180.0
CORES = sorted(os.sched_getaffinity(0))  # the loops have the first, all else the others
LOCK = REPOSITORY / "requirements/peers.txt"
CHILD = REPOSITORY / "benchmarks/peers/loop.py"
PEERS = {  # what each reports of a loop on a machine without a GPU
    "bare": "nothing: how exact this comparison is",
    "epochwatt": "epochs: time, waiting, copy, compute; energy with bound and flags",
    "zeus": "windows: time and energy",
    "codecarbon": "the run: time, energy, CO2",
    "perun": "the run and its regions: time, energy, load, memory",
    "carbontracker": "epochs: time, energy, CO2; a forecast of the run",
    "traceml": "steps: waiting, forward, backward, optimiser; load, memory",
}
UNDER = 'mount --bind "$0" /sys/class && exec "$@"'  # $0: a folder


def run(quick: bool = False) -> Result:
    """Compare `EpochMonitor` with a bare loop, for each network."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, counter(Path(folder)) as planted:
        for network in ("LeNet", "ResNet-18"):
            for tool in ("bare", "epochwatt"):
                with Child(tool, network, planted) as loops:
                    loops.begin()
                    ratios, sampler_pct = alternating(loops, 1.0 if quick else PAIRS_S)
                if tool == "bare":
                    rows.append(Row(f"{network}, bare / bare", ratios, "", 4))
            rows.append(Row(f"{network}, EpochMonitor / bare", ratios, "", 4, BUDGET))
            rows.append(Row(f"{network}, sampler, share of a core", [sampler_pct], "%", 2))
        found, bare_found = (
            epochs(tool, planted, 1.0 if quick else ENERGY_S) for tool in ("epochwatt", "bare")
        )
    edges_ms = np.array(found["edges_ms"]) - np.median(bare_found["edges_ms"])
    rows += [
        Row("LeNet, begin and end of an epoch, with its record", edges_ms.tolist(), "ms", 1),
        Row("LeNet, error of an epoch's energy", found["errors_pct"], "%", 3),
    ]
    return Result(rows)


def peers(quick: bool = False) -> Result:
    """Compare all tools on LeNet: cost, error of the energy, begin and end of an epoch."""
    python = environment("peers")
    tools: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        counter(Path(folder)) as planted,
        Child("bare", "LeNet", planted, python=python) as bare,
    ):
        bare.begin()
        for tool in PEERS:
            print(f"peers: {tool}", file=sys.stderr, flush=True)
            try:
                with Child(tool, "LeNet", planted, python=python) as with_tool:
                    with_tool.begin()
                    ratios = pairs(with_tool.turn, bare.turn, 0.0 if quick else PEER_PAIRS_S)
                found = epochs(tool, planted, 1.0 if quick else ENERGY_S, python)
                tools[tool] = {"ratios": ratios, **found}
            except EpochwattError as error:
                print(error, file=sys.stderr, flush=True)
    rows = [Row(f"{tool} / bare", found["ratios"], "", 4) for tool, found in tools.items()]
    return Result(rows, {"tools": tools})


def peer_table(tools: dict[str, Any]) -> pd.DataFrame:
    """Return the table of the documentation: a row for each tool."""
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", LOCK.read_text("utf-8"), re.M))
    rows = []
    for tool, found in tools.items():
        cost = Row("", [100 * (ratio - 1) for ratio in found["ratios"]], "", 2)
        low, high = median_interval(cost.values) or (math.nan, math.nan)
        errors_pct = found["errors_pct"]
        rows.append(
            {
                "tool": " ".join([tool, locked.get(tool, locked.get(f"{tool}-ai", ""))]).strip(),
                "cost of the loop, %": f"{cost.median:.2f} [{low:.2f}, {high:.2f}]",
                "begin and end of an epoch, ms": f"{np.median(found['edges_ms']):.1f}",
                "error of the energy, %": " to ".join(
                    f"{pick(errors_pct):+.2f}" for pick in (min, max) if errors_pct
                ),
                "reports": PEERS[tool],
            }
        )
    return pd.DataFrame(rows)


# -- power ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def counter(folder: Path) -> Iterator[Path]:
    """Give a folder in the place of /sys/class whose counter is driven while the block runs."""
    energy_uj = make_counter(folder)
    writer = multiprocessing.get_context("fork").Process(
        target=_count, args=(energy_uj,), daemon=True
    )
    os.sched_setaffinity(0, CORES[1:] or CORES)
    writer.start()
    try:
        yield folder
    finally:
        os.sched_setaffinity(0, CORES)
        writer.kill()
        writer.join()


def _count(path: Path) -> None:
    """Renew a counter each millisecond, as a processor does; it always has twelve digits."""
    energy_j = SyntheticSource().energy_j
    start_s = time.monotonic()
    with path.open("r+b", buffering=0) as file:
        while True:
            os.pwrite(
                file.fileno(), b"%d\n" % (1e11 + 1e6 * energy_j(start_s, time.monotonic())), 0
            )
            time.sleep(0.001)


# -- loops ----------------------------------------------------------------------------------------


class Child:
    """A process that trains with a tool, on one core."""

    def __init__(
        self,
        tool: str,
        network: str,
        planted: Path,
        python: Path | None = None,
        seconds: float = 0.0,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        address = os.path.join(self._folder.name, "turns")
        python = python or Path(sys.executable)
        words = [str(CHILD), tool, network, address, str(seconds)]
        if tool == "traceml":
            launch = [str(python.with_name("traceml")), "run", words[0], "--args", *words[1:]]
        else:
            launch = [str(python), *words]
        namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        with Listener(address) as listener, self._log() as log:
            self._process = subprocess.Popen(
                ["taskset", "-c", str(CORES[0]), *namespace, "sh", "-c", UNDER, planted, *launch],
                cwd=self._folder.name,
                env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
            listener._listener._socket.settimeout(1.0)
            until_s = time.monotonic() + START_S
            while True:
                try:
                    self._other: Connection = listener.accept()
                    break
                except TimeoutError:
                    if self._process.poll() is not None or time.monotonic() > until_s:
                        raise EpochwattError(f"{tool} does not start: {self.said()}") from None

    def _log(self) -> Any:
        return open(os.path.join(self._folder.name, "log"), "wb")

    def said(self) -> str:
        """Return the last of what it wrote."""
        return Path(self._folder.name, "log").read_text("utf-8", "replace")[-2000:]

    def turn(self, n_minibatches: int) -> float:
        """Let it train so many mini-batches; return the CPU time of all its processes, s."""
        self._signal(signal.SIGCONT)
        time.sleep(SETTLE_S)
        before_s = self._cpu_s()
        self._other.send((n_minibatches, False))
        self._receive()
        self._signal(signal.SIGSTOP)
        return self._cpu_s() - before_s

    def alternate(self, n_pairs: int) -> tuple[np.ndarray, float]:
        """Let it train so many mini-batches with the tool, a bare one after each.

        Return their times with the tool and bare, s, (n, 2), and the CPU time of the tool's
        processes meanwhile, in % of the time that passed.
        """
        self._signal(signal.SIGCONT)
        began_s, before_s = time.monotonic(), self._cpu_s(1)
        self._other.send((WARM_MINIBATCHES + n_pairs, True))
        pairs_s = np.array(self._receive())[WARM_MINIBATCHES:]
        used_s = self._cpu_s(1) - before_s
        self._signal(signal.SIGSTOP)
        return pairs_s, 100 * used_s / (time.monotonic() - began_s)

    def _receive(self) -> Any:
        try:
            return self._other.recv()
        except EOFError as error:
            raise EpochwattError(f"a loop ended early: {self.said()}") from error

    def _processes(self) -> list[psutil.Process]:
        top = psutil.Process(self._process.pid)
        return [top, *top.children(recursive=True)]

    def _signal(self, number: int) -> None:
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _cpu_s(self, first: int = 0) -> float:
        """Return the CPU time of its processes until now, from their POSIX CPU-time clocks.

        `first`: 0 counts the loop itself as well, 1 what runs beside it.
        """
        return sum(time.clock_gettime((~each.pid << 3) | 2) for each in self._processes()[first:])

    def begin(self) -> None:
        """Wait for its first mini-batch, and for the start of all that runs beside; stop it."""
        self._receive()
        until_s, before_s = time.monotonic() + START_S, 0.0
        while (now_s := self._cpu_s()) - before_s > 0.05 and time.monotonic() < until_s:
            before_s = now_s
            time.sleep(1.0)
        self._signal(signal.SIGSTOP)

    def result(self) -> dict[str, Any]:
        """Wait for its end; return what it found."""
        told, edges_ms = self._receive()
        truth_j = SyntheticSource().energy_j
        errors_pct = [100 * (energy_j / truth_j(*bounds_s) - 1) for energy_j, bounds_s in told]
        return {"errors_pct": errors_pct, "edges_ms": edges_ms}

    def end(self) -> None:
        """End it with all its processes."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._signal(signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


def alternating(loops: Child, seconds: float) -> tuple[list[float], float]:
    """Return ratios of median times of mini-batches with a tool to bare ones, and the tool's CPU.

    Each ratio is of `BLOCK_MINIBATCHES` neighbours. Most mini-batches are not disturbed, so medians
    tell small costs where sums drown in noise; the CPU time of the tool's processes is in %.
    """
    ratios, shares_pct = [], []
    until_s = time.monotonic() + seconds
    while not ratios or time.monotonic() < until_s:
        pairs_s, share_pct = loops.alternate(BLOCK_MINIBATCHES)
        with_tool_s, bare_s = np.median(pairs_s, axis=0)
        ratios.append(float(with_tool_s / bare_s))
        shares_pct.append(share_pct)
    return ratios, float(np.median(shares_pct))


def pairs(
    with_tool: Callable[[int], float], bare: Callable[[int], float], seconds: float
) -> list[float]:
    """Return ratios of times with a tool to bare ones, each of a block of pairs of turns."""
    random_s = random.Random(0).uniform
    turns = [with_tool, bare]
    found: list[list[float]] = []
    minibatch_s = min(turn(5) for turn in turns * 2) / 5
    until_s = time.monotonic() + seconds
    while len(found) < MIN_BLOCKS * BLOCK_PAIRS or time.monotonic() < until_s:
        n = max(1, round(random_s(*TURN_S) / minibatch_s))
        order = 1 if len(found) % 2 else -1
        found.append([turn(n) for turn in turns[::order]][::order])
    whole = len(found) // BLOCK_PAIRS * BLOCK_PAIRS
    blocks_s = np.array(found[:whole]).reshape(-1, BLOCK_PAIRS, 2).sum(axis=1)
    return list(map(float, blocks_s[:, 0] / blocks_s[:, 1]))


def epochs(tool: str, planted: Path, seconds: float, python: Path | None = None) -> dict[str, Any]:
    """Return what a tool finds of undisturbed epochs of LeNet."""
    with Child(tool, "LeNet", planted, python, seconds) as child:
        return child.result()
