"""Plan the selected runs: how much of them is measured, how long the rest may take."""

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import NamedTuple

from epochwatt.board.records.run_folder import RunFolder
from epochwatt.datasets.recipes import n_samples
from epochwatt.errors import ConfigError, EpochwattError, RecordError
from epochwatt.study.expand import ARITHMETIC, EXCLUSIONS
from epochwatt.study.place import MEASURED
from epochwatt.study.runs import TWIN, Run
from epochwatt.study.selection import SLOWER, STARTER
from epochwatt.study.settings import Settings
from epochwatt.text import aligned, counted, first_of

JOB_S = 4.2  # ASSUME: interpreter, torch and Snakemake around one job; `make bench` measures it
SIMULATED = "simulated"
GUESS = "a guess"  # where an estimate comes from when nothing like it was measured


class Estimate(NamedTuple):
    """A run with its epochs left to measure and how long they may take."""

    run: Run
    n_left: int  # epochs that are not measured yet; of a simulated run none ever is
    epoch_s: float
    basis: str  # where `epoch_s` comes from
    left_s: float  # with what jobs take besides


def plan_lines(settings: Settings, with_runs: bool = False) -> list[str]:
    """Return the plan as text: tables of studies and, on demand, of runs; notes and totals."""
    estimates = estimate_runs(settings)
    lines = _study_table(estimates)
    if with_runs:
        lines += ["", *_run_table(estimates), ""]
    return lines + _notes(settings) + _totals(settings, estimates)


def start_lines(settings: Settings) -> list[str]:
    """Return what is about to run, in a few lines: how long it may take, what is left alone."""
    return _notes(settings) + _totals(settings, estimate_runs(settings))


def estimate_runs(settings: Settings) -> list[Estimate]:
    """Return what is left of each run: measured runs, then simulated ones, which take 0 s."""
    runs = [run for run in settings.table.runs.values() if not run.is_simulated]
    measured_s = {run.id: measured_e2e_s(run) for run in runs}
    estimates = []
    for run in runs:
        folder = RunFolder(MEASURED, run.id)
        missing = {epoch for epoch in range(run.epochs) if not folder.has(epoch)}
        epoch_s, basis = epoch_estimate_s(run, measured_s, settings)
        n_left = len(missing)
        jobs = [(a, b) for a, b in run.parts if missing & set(range(a, b + 1))]
        left_s = n_left * epoch_s + len(jobs) * JOB_S
        estimates.append(Estimate(run, n_left, epoch_s, basis, left_s))
    simulated = settings.table.of_backend(TWIN)
    return estimates + [Estimate(run, run.epochs, 0.0, SIMULATED, 0.0) for run in simulated]


def _study_table(estimates: Sequence[Estimate]) -> list[str]:
    """Return a line for each study; a run of two studies counts in both."""
    by_study: dict[tuple[str, bool], list[Estimate]] = {}
    for estimate in estimates:
        for study in estimate.run.studies:
            by_study.setdefault((study, estimate.run.is_simulated), []).append(estimate)
    rows = [("study", "runs", "epochs", "measured", "time left")]
    for (study, is_simulated), runs in by_study.items():
        n_epochs = sum(e.run.epochs for e in runs)
        n_left, left_s = sum(e.n_left for e in runs), sum(e.left_s for e in runs)
        if is_simulated:
            measured, left = "-", SIMULATED
        else:
            measured, left = str(n_epochs - n_left), duration(left_s) if n_left else "-"
        rows.append((study, str(len(runs)), str(n_epochs), measured, left))
    return aligned(rows) if len(rows) > 1 else []


def _run_table(estimates: Sequence[Estimate]) -> list[str]:
    """Return a line for each run."""
    rows = [("run", "epochs", "done", "s per epoch", "time left")]
    for run, n_left, epoch_s, basis, left_s in estimates:
        if run.is_simulated:
            left = "-" if os.path.exists(run.epochs_csv) else "seconds"
            rows.append((run.id, str(run.epochs), "-", SIMULATED, left))
        else:
            left = duration(left_s) if n_left else "-"
            epoch = f"{epoch_s:.3g} ({basis})"
            rows.append((run.id, str(run.epochs), str(run.epochs - n_left), epoch, left))
    return aligned(rows)


def _notes(settings: Settings) -> list[str]:
    """Return lines on excluded runs, memory and incomplete figures, wrapped at 100 columns."""
    lines = [f"excluded: {run.id} ({why})" for run, why in settings.table.excluded]
    lines += [f"left alone: {line}" for line in left_alone(settings)]
    lines += [f"warning: {line}" for line in memory_warnings(settings)]
    lines += figures_in_want(settings)
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    ]


def _totals(settings: Settings, estimates: Sequence[Estimate]) -> list[str]:
    """Return how many runs and epochs there are, and how long the rest takes."""
    measured = [e for e in estimates if not e.run.is_simulated]
    simulated = [e for e in estimates if e.run.is_simulated]
    lines = []
    if measured or not simulated:
        n_left = sum(e.n_left for e in measured)
        if n_left:
            rest = f"the rest takes about {duration(sum(e.left_s for e in measured))}"
        else:
            rest = "nothing is left to do" + (" here" if settings.table.elsewhere else "")
        n_done = sum(e.run.epochs for e in measured) - n_left
        lines.append(f"{_counts(measured)}, {n_done} of them measured; {rest}")
    if simulated:
        lines.append(f"{_counts(simulated)}, simulated: they take no time on a board")
    return lines


def _counts(estimates: Sequence[Estimate]) -> str:
    n_epochs = sum(estimate.run.epochs for estimate in estimates)
    return f"{counted(len(estimates), 'runs')}, {counted(n_epochs, 'epochs')}"


def left_alone(settings: Settings) -> list[str]:
    """Return a line for each reason why runs cannot be measured here: other boards, media."""
    runs_of: dict[str, list[str]] = {}
    for run, reason in settings.table.elsewhere:
        runs_of.setdefault(reason, []).append(run.id)
    return [
        f"{counted(len(runs), 'runs')}, {reason}: {first_of(runs, 1)}"
        for reason, runs in runs_of.items()
    ]


def figures_in_want(settings: Settings) -> list[str]:
    """Return which figures of the papers are drawn in part or not at all, and what they lack.

    Two lines at most for each backend that has runs of a paper's study.
    """
    lines = []
    for backend in dict.fromkeys(run.factors["backend"] for run in settings.table.runs.values()):
        studies = {study for run in settings.table.of_backend(backend) for study in run.studies}
        if not studies & settings.paper_studies:
            continue
        in_part: dict[str, list[str]] = {}
        undrawn: dict[str, list[str]] = {}
        for figure, figure_settings in settings.plotting.figures.items():
            wanted = [study for study in figure_settings.studies if study in settings.paper_studies]
            if lacking := settings.lacking(figure, backend):
                in_part.setdefault(", ".join(lacking), []).append(figure)
            elif wanted and not settings.figure_runs(figure, backend):
                undrawn.setdefault(", ".join(wanted), []).append(figure)
        for state, by_lack in (("drawn in part", in_part), ("not drawn", undrawn)):
            parts = [f"{' '.join(figures)} (no run of {lack})" for lack, figures in by_lack.items()]
            if parts:
                lines.append(f"{state}, {backend}: {'; '.join(parts)}")
    return lines


def memory_warnings(settings: Settings) -> list[str]:
    """Return a line for each model that ran out of memory on its device in the papers."""
    too_large = set()
    for run in settings.table.runs.values():
        device, model = settings.devices.of_run(run.factors), run.factors["model"]
        if device and model in device.out_of_memory:
            too_large.add((run.factors["device"], model))
    return [
        f"{model} ran out of memory on {device} in the papers"
        for device, model in sorted(too_large)
    ]


def measured_e2e_s(run: Run) -> float | None:
    """Return the mean E2E of a run's measured epochs, s; None: no record can be read."""
    folder = RunFolder(MEASURED, run.id)
    times = []
    for epoch in folder.measured():
        try:
            times.append(folder.read(epoch).meta["e2e_s"])
        except RecordError:
            continue
    return sum(times) / len(times) if times else None


def epoch_estimate_s(
    run: Run, measured_s: dict[str, float | None], settings: Settings
) -> tuple[float, str]:
    """Return seconds per epoch and their basis: this run, runs like it, or a guess.

    `measured_s`: run -> its mean E2E (`measured_e2e_s`)
    """
    own_s = measured_s[run.id]
    if own_s is not None:
        return own_s, "imported" if run.factors["imported"] else "measured"
    same = ("backend", "device", "instance", "model", "recipe", *ARITHMETIC)
    similar_s = [
        e2e_s
        for other in settings.table.runs.values()
        if (e2e_s := measured_s.get(other.id)) is not None
        and all(other.factors[k] == run.factors[k] for k in same)
    ]
    if similar_s:
        return sum(similar_s) / len(similar_s), "runs like it"
    f = run.factors
    samples = n_samples(f["dataset"], f["dataset_source"], f["dataset_scale"])
    samples_per_s = settings.workloads[f["model"]].guess_samples_per_s
    if device := settings.devices.of_run(f):
        samples_per_s = device.guess_samples_per_s.get(f["model"], samples_per_s)
    if STARTER in run.studies:
        samples_per_s /= SLOWER
    return samples / samples_per_s, GUESS


def duration(seconds: float) -> str:
    """Return "42 s", "5 min 58 s" or "2 h 05 min"."""
    minutes, s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {s:02d} s" if minutes else f"{s} s"


def find_run(settings: Settings, run_id: str) -> Run:
    """Return a run to measure here; ConfigError: it is unknown, excluded or of other machines."""
    for run, reason in settings.table.excluded:
        if run.id == run_id:
            raise ConfigError(f"run {run_id!r} is excluded: {reason}", where=EXCLUSIONS)
    for run, reason in settings.table.elsewhere:
        if run.id == run_id:
            raise ConfigError(f"run {run_id!r} cannot be measured here: {reason}")
    if run_id not in settings.table.runs:
        raise ConfigError(
            f"no run {run_id!r} in the selected studies",
            allowed=first_of(list(settings.table.runs)) or "none",
            do="`epochwatt plan --runs` lists the runs",
        )
    return settings.table[run_id]


def why_lines(settings: Settings, run_id: str, studies: Sequence[str] = ()) -> list[str]:
    """Return lines on each epoch of a run and the jobs that a dry run of Snakemake lists for it.

    `studies`: as of `epochwatt plan`; empty: those of config.yaml. Raises ConfigError: no such run;
    EpochwattError: the dry run fails.
    """
    run = find_run(settings, run_id)
    if imported := run.factors["imported"]:
        n_epochs = counted(run.epochs, "epochs")
        return [f"{run.id}: {n_epochs}, imported ({imported}); none is ever measured here"]
    lines = [f"{run.id}: {counted(run.epochs, 'epochs')} asked for by {', '.join(run.studies)}"]
    if run.is_simulated:
        lines.append("  simulated on the twin, all at once: no epoch is ever measured")
    else:
        lines += [f"  {_epoch_state(run, epoch)}" for epoch in range(run.epochs)]
    jobs = _jobs_about(run.id, _dry_run(studies))
    if not jobs:
        return [*lines, "nothing would run: all that depends on it is there and up to date"]
    return [*lines, "would run, in this order at the latest:", *(f"  {job}" for job in jobs)]


def _epoch_state(run: Run, epoch: int) -> str:
    """Return a line that says when an epoch was measured, or that it will be."""
    folder = RunFolder(MEASURED, run.id)
    if folder.has(epoch):
        start = time.localtime(folder.read(epoch).meta["t_start_unix_s"])
        when = time.strftime("%Y-%m-%d %H:%M:%S", start)
        return f"epoch {epoch}: measured {when}, will not be measured again"
    return f"epoch {epoch}: not in {folder.path}, will be measured"


def _dry_run(studies: Sequence[str]) -> str:
    """Return what Snakemake prints in a dry run; EpochwattError: it fails."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "all"]
    if studies:
        command += ["--config", f"studies={json.dumps(list(studies))}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise EpochwattError(f"snakemake --dry-run failed:\n{result.stderr or result.stdout}")
    return result.stdout + result.stderr


def _jobs_about(run_id: str, output: str) -> list[str]:
    """Return "rule first-last: reason" of the jobs in a dry run's output that name the run."""
    jobs = []
    for block in re.split(r"\n(?=(?:local)?rule \w+:\n)", output):
        rule = re.match(r"(?:local)?rule (\w+):\n", block)
        reason = re.search(r"^    reason: (.*)$", block, re.M)
        if not rule or not reason or run_id not in block.split("Job stats:")[0]:
            continue
        part = re.search(r"first=(\d+), last=(\d+)", block)
        name = f"{rule[1]} {part[1]}-{part[2]}" if part else rule[1]
        clauses = reason[1].split("; ")
        clauses = [clause for clause in clauses if run_id in clause] or clauses
        jobs.append(f"{name}: " + "; ".join(_shortened(clause, run_id) for clause in clauses))
    return jobs


def _shortened(clause: str, run_id: str) -> str:
    """Keep the files of the run in a clause "title: file, file"; without any, keep all."""
    title, colon, files = clause.partition(": ")
    files_of_run = [file for file in files.split(", ") if run_id in file]
    return f"{title}{colon}{', '.join(files_of_run)}" if files_of_run else clause
