"""How long `epochwatt --help`, a command's help and jobs take to start, beside a bare Python."""

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.results import REPOSITORY, Result, Row, at_most
from epochwatt.errors import EpochwattError

BUDGET = at_most(100.0)
N_ROUNDS = 15
OURS = ("epochwatt --help", "epochwatt plan --help", "epochwatt.twin --help")
OURS += ("epochwatt.board.training --help",)


def run(quick: bool = False) -> Result:
    """Start each in turn, after a bare Python; `quick` only shows that it works."""
    with tempfile.TemporaryDirectory() as folder:
        for name in OURS:  # untimed: byte code
            start_ms(["-m", *name.split()], folder)
        bare: list[float] = []
        times: dict[str, list[float]] = {name: [] for name in OURS}
        ratios: dict[str, list[float]] = {name: [] for name in OURS}
        for _ in range(1 if quick else N_ROUNDS):
            for name in OURS:
                bare.append(start_ms(["-c", "pass"], folder))
                times[name].append(start_ms(["-m", *name.split()], folder))
                ratios[name].append(times[name][-1] / bare[-1])
    rows = [Row("a bare Python: -c pass", bare, "ms", 1)]
    for name in OURS:
        budget = BUDGET if name == OURS[0] else None
        rows += [Row(name, times[name], "ms", 1, budget), Row("  / bare", ratios[name], "", 2)]
    return Result(rows)


def start_ms(words: list[str], folder: str) -> float:
    """Return the wall time of a Python that starts, prints and ends, in ms."""
    paths = f"{REPOSITORY / 'src'}{os.pathsep}{folder}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONPYCACHEPREFIX": f"{folder}/bytes"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    wall_ms = 1e3 * (time.perf_counter() - start_s)
    if done.returncode:
        raise EpochwattError(f"python {' '.join(words)} failed", found=done.stderr)
    return wall_ms
