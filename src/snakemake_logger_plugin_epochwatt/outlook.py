"""What the workflow knows before it starts: the runs to measure, and how long their jobs may take.

`onstart` of the workflow hands it to whatever logger there is, as an extra of one log record.
"""

import time
from pathlib import Path
from typing import Any, TypedDict

from epochwatt.analysis.summary import SETTING
from epochwatt.records.mode_folder import SweepFolder
from epochwatt.records.run_folder import RunFolder
from epochwatt.study import plan
from epochwatt.study.place import MEASURED
from epochwatt.study.runs import Run, receipt_path
from epochwatt.study.settings import Settings
from epochwatt.sweeps import plan as sweep_plan
from epochwatt.sweeps.table import Sweep, SweepTable
from epochwatt.text import counted
from snakemake_logger_plugin_epochwatt.stages import OUTLOOK

_RECEIPT_S = 0.2  # ASSUME: a job that finds its epochs measured and writes their receipt
_PROBE_S = 0.011  # ASSUME: what `slowness` measures on the machine that the defaults come from


class RunOutlook(TypedDict):
    """One run that is measured here."""

    title: str  # for people: "LeNet-5, 2 workers"
    model: str
    epochs: int  # in all
    kept: int  # measured before
    parts: dict[tuple[int, int], float]  # jobs that are left: first and last epoch -> seconds


class SweepOutlook(TypedDict):
    """One sweep that is measured here."""

    title: str  # its name in the configuration
    modes: list[str]  # folders of its modes, in order
    parts: dict[tuple[int, int], float]  # jobs that are left: first and last mode -> seconds


class Outlook(TypedDict):
    """All that is measured here, by id, and how much slower the machine is than ours.

    The id of a sweep's modes is that of the sweep and the digest of its list of modes.
    """

    runs: dict[str, RunOutlook]
    sweeps: dict[str, SweepOutlook]
    slowness: float


def outlook(settings: Settings, sweeps: SweepTable | None = None) -> Outlook:
    """Return what is left to measure, with an estimate for each job."""
    runs = [run for run in settings.table.runs.values() if run.parts and run.here]
    measured_s = {run.id: plan.measured_e2e_s(run) for run in runs}
    slower = slowness()
    result: dict[str, RunOutlook] = {}
    titles = _titles(runs, settings.titles)
    for run in runs:
        epoch_s, basis = plan.epoch_estimate_s(run, measured_s, settings)
        scale = slower if basis == plan.GUESS and run.factors["backend"] == "host" else 1.0
        missing = [k for k in range(run.epochs) if not RunFolder(MEASURED, run.id).has(k)]
        parts = {}
        for first, last in run.parts:
            if left := sum(first <= k <= last for k in missing):
                parts[first, last] = left * epoch_s * scale + plan.JOB_S * slower
            elif not Path(receipt_path(run.id, first, last)).exists():
                parts[first, last] = _RECEIPT_S * slower
        result[run.id] = {
            "title": titles[run.id],
            "model": run.factors["model"],
            "epochs": run.epochs,
            "kept": run.epochs - len(missing),
            "parts": parts,
        }
    swept = {
        f"{sweep.id}/{sweep.digest}": _of_sweep(sweep, settings, slower)
        for sweep in (sweeps.sweeps.values() if sweeps else ())
        if sweep.chunks
    }
    return {"runs": result, "sweeps": swept, "slowness": slower}


def _of_sweep(sweep: Sweep, settings: Settings, slower: float) -> SweepOutlook:
    seconds, basis = sweep_plan.chunk_estimates_s(sweep, settings)
    scale = slower if basis == plan.GUESS and sweep.run.factors["backend"] == "host" else 1.0
    parts = {
        part: chunk_s * scale + plan.JOB_S * slower if chunk_s else _RECEIPT_S * slower
        for part, chunk_s, receipt in zip(sweep.chunks, seconds, sweep.receipts, strict=True)
        if chunk_s or not Path(receipt).exists()
    }
    folder = SweepFolder(MEASURED, sweep.id)
    modes = [folder.mode_path(mode) for mode in sweep.settings]
    return {"title": sweep.name, "modes": modes, "parts": parts}


def outlook_extra(settings: Settings, sweeps: SweepTable) -> dict[str, Outlook]:
    """Return the same as the extra of a log record."""
    return {OUTLOOK: outlook(settings, sweeps)}


def slowness() -> float:
    """Return how much slower this CPU is than the one that the default times come from.

    The least CPU time of a few tries, so that what runs beside it counts little.
    """
    least_s = float("inf")
    for _ in range(8):
        start_s, total = time.thread_time(), 0
        for i in range(200_000):
            total += i * i % 7
        least_s = min(least_s, time.thread_time() - start_s)
    return min(20.0, max(0.2, least_s / _PROBE_S))


def _titles(runs: list[Run], names: dict[str, str]) -> dict[str, str]:
    """Return a name of each run: its network, and in what it differs from its other runs."""
    titles = {}
    for run in runs:
        f = run.factors
        alike = [other.factors for other in runs if other.factors["model"] == f["model"]]
        words = [names.get(f["model"], f["model"])]
        places = [k for k in ("device", "instance") if len(_values(alike, k)) > 1]
        words += [names.get(f[k], f[k]) for k in places]
        for factor, form in SETTING.items():
            if f[factor] is not None and len(_values(alike, factor)) > 1:
                noun = form.removeprefix("{} ")
                words.append(
                    counted(f[factor], noun) if noun.endswith("s") else form.format(f[factor])
                )
        titles[run.id] = ", ".join(words)
    return titles


def _values(alike: list[dict[str, Any]], factor: str) -> set[str]:
    return {str(f[factor]) for f in alike if f[factor] is not None}
