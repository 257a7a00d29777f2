"""All peers and our sampler on the same signal, one after the other, in turn."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.peers import adapters, meter
from benchmarks.peers.meter import Found
from benchmarks.results import REPOSITORY, Result, Row
from benchmarks.synthetic import SyntheticSource, sampler_with
from epochwatt.epochs.energy import trapezoid
from epochwatt.errors import EpochwattError
from epochwatt.records.samples import read_samples
from epochwatt.telemetry.client import Sampler

ENVIRONMENTS = REPOSITORY / ".venv-peers"
# Versions that the adapters fit: they reach into what a peer does not promise to keep.
PACKAGES = {
    "perun": "perun==1.0.0",
    "wattameter": "wattameter==0.9.3",
    "carbontracker": "carbontracker==2.4.7",
    "zeus": "zeus==0.16.0",
    "codecarbon": "codecarbon==3.3.2",
}
NEEDED_TOO = {"carbontracker": ["setuptools"], "wattameter": ["numpy"], "zeus": ["numpy"]}
SECONDS = 40.0
PATIENCE_S = 60.0  # for a peer to start and to end
OURS = "epochwatt"


@dataclass
class Measured:
    """All rounds of one peer."""

    error_pct: list[float] = field(default_factory=list)
    interval_ms: list[list[float]] = field(default_factory=list)  # by round
    cpu_s_per_min: list[float] = field(default_factory=list)
    deviation_ms: list[float] = field(default_factory=list)  # p99 by round, where there is a plan
    problem: str = ""  # why there is nothing

    def add(self, found: Found, stamps_s: list[float], signal: SyntheticSource) -> None:
        """Add a round."""
        inside = [t for t in stamps_s if found.start_s <= t <= found.end_s]
        truth_j = signal.energy_j(found.start_s, found.end_s)
        self.error_pct.append(100 * (found.energy_j / truth_j - 1))
        self.interval_ms.append((1000 * np.diff(inside)).tolist())
        self.cpu_s_per_min.append(60 * found.cpu_s / (found.end_s - found.start_s))


def package_of(name: str) -> str:
    """Return the package that an adapter is for."""
    return name.split("_")[0]


def install(package: str) -> Path:
    """Return the interpreter of the package's own environment, made when it is missing."""
    python = ENVIRONMENTS / package / "bin/python"
    if python.exists():
        return python
    ENVIRONMENTS.mkdir(exist_ok=True)
    (ENVIRONMENTS / ".gitignore").write_text("*\n", encoding="utf-8")
    uv = [sys.executable, "-m", "uv"]
    place = str(python.parents[1])
    words = [PACKAGES[package], *NEEDED_TOO.get(package, [])]
    try:
        _call([*uv, "venv", "--quiet", "--python", sys.executable, place])
        _call([*uv, "pip", "install", "--quiet", "--python", str(python), *words])
    except EpochwattError:
        if python.exists():
            python.unlink()  # so that the next call tries again
        raise
    return python


def _call(
    words: list[str], environment: dict[str, str] | None = None, timeout_s: float = 600.0
) -> str:
    """Run a command in the repository; return what it prints, raise with what it complains of.

    It is the leader of a session, so that whatever it leaves behind can be ended by its number.
    """
    with subprocess.Popen(
        words,
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, complaint = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise EpochwattError(f"no end after {timeout_s:g} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        told = (complaint.strip() or output.strip()).splitlines()
        raise EpochwattError(told[-1] if told else f"exit status {process.returncode}")
    return output


def measure_peer(
    name: str, python: Path, seconds: float, phase_s: float, measured: Measured
) -> None:
    """Run one adapter once and add what it found; raises EpochwattError when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "readings")
        log.touch()
        environment = {
            **os.environ,
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}",
            "PEER": name,
            meter.LOG: str(log),
            meter.PHASE: str(phase_s),
        }
        words = [str(python), "-m", "benchmarks.peers.one", name, str(seconds)]
        output = _call(words, environment, seconds + PATIENCE_S)
        found = Found(**json.loads(output.splitlines()[-1]))
        measured.add(found, meter.read_log(log), SyntheticSource(phase_s=phase_s))


def measure_ours(seconds: float, phase_s: float, measured: Measured) -> None:
    """Run the sampler once, with what else it reads on this machine, and add what was found."""
    with tempfile.TemporaryDirectory() as folder:
        program = sampler_with({"phase_s": phase_s})
        seed = random.randrange(2**31)
        with Sampler.start(os.getpid(), folder, seed, program=program) as sampler:
            if sampler.pid is None:
                raise EpochwattError("the sampler does not start")
            sampler.begin(folder)
            cpu_s, start_s = meter.process_cpu_s(sampler.pid), time.monotonic()
            time.sleep(seconds)
            end_s, pid = time.monotonic(), sampler.pid
            cpu_s = meter.process_cpu_s(pid) - cpu_s
            statistics = sampler.end()
        samples = read_samples(folder, "synthetic")
        t_s = samples["t_mono_s"]
        energy = trapezoid(t_s, samples["power_total_w"], start_s, end_s)
        found = Found(energy.energy_j, start_s, end_s, cpu_s)
        measured.add(found, t_s.tolist(), SyntheticSource(phase_s=phase_s))
        about = statistics["sources"]["synthetic"]
        measured.deviation_ms.append(1000 * about["deviation_p99_s"])


def compare(seconds: float, n_rounds: int, may_install: bool) -> dict[str, Measured]:
    """Measure all in turn, `n_rounds` times, each time at another phase of the signal."""
    all_measured = {name: Measured() for name in (OURS, *adapters.ADAPTERS)}
    pythons: dict[str, Path] = {}
    for name in adapters.ADAPTERS:
        package = package_of(name)
        try:
            if may_install or (ENVIRONMENTS / package).exists():
                pythons[name] = install(package)
            else:
                all_measured[name].problem = "is not installed"
        except EpochwattError as error:
            all_measured[name].problem = f"does not install: {error}"
    for _ in range(n_rounds):
        measure_ours(seconds, random.uniform(0, 0.35), all_measured[OURS])
        for name, python in pythons.items():
            measured = all_measured[name]
            if measured.problem:
                continue
            try:
                measure_peer(name, python, seconds, random.uniform(0, 0.35), measured)
            except EpochwattError as error:
                measured.problem = f"does not run: {error}"
    return all_measured


def rows_of(name: str, measured: Measured) -> list[Row]:
    """Return the lines of the table of one peer."""
    intervals = measured.interval_ms
    statistics: tuple[tuple[str, list[float], str, int], ...] = (
        ("energy error", measured.error_pct, "%", 2),
        ("interval, mean", [float(np.mean(i)) for i in intervals], "ms", 2),
        ("interval, sd", [float(np.std(i)) for i in intervals], "ms", 2),
        ("interval, p99", [float(np.percentile(i, 99)) for i in intervals], "ms", 1),
        ("deviation from its own plan, p99", measured.deviation_ms, "ms", 1),
        ("CPU time per minute", measured.cpu_s_per_min, "s", 3),
    )
    return [Row(f"{name}: {what}", v, unit, n) for what, v, unit, n in statistics if v]


def markdown(found: dict[str, Measured]) -> list[str]:
    """Return the lines of the table for README.md: one value per round where they differ much."""
    head = ("", "energy error %", "interval mean / sd / p99 ms", "CPU s/min")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for name, m in found.items():
        shown = PACKAGES.get(package_of(name), "this checkout").replace("==", " ")
        if m.problem:
            lines.append(f"| {name} ({shown}) | {m.problem} | | |")
            continue
        errors = ", ".join(f"{e:+.2f}" for e in m.error_pct)
        interval_ms = np.concatenate(m.interval_ms)
        p99_ms = np.percentile(interval_ms, 99)
        intervals = f"{interval_ms.mean():.2f} / {interval_ms.std():.2f} / {p99_ms:.1f}"
        used = f"{np.mean(m.cpu_s_per_min):.3f}"
        lines.append(f"| {name} ({shown}) | {errors} | {intervals} | {used} |")
    return lines


def run(quick: bool = False) -> Result:
    """Measure all that install (5 minutes); `quick` only what is installed, for 2 s each."""
    seconds = 2.0 if quick else SECONDS
    found = compare(seconds, 1, may_install=not quick)
    problems = {name: m.problem for name, m in found.items() if m.problem}
    for name, problem in problems.items():
        print(f"{name} {problem}", file=sys.stderr, flush=True)
    rows = [row for name, m in found.items() if not m.problem for row in rows_of(name, m)]
    return Result(rows, {"packages": PACKAGES, "seconds": seconds, "problems": problems})
