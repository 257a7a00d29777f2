"""Split an epoch's time and energy by the rooflines of its mode, to see what holds a run back.

Of the time of computing, each kernel of a mini-batch has taken at least what the ceilings allow:

    max(operations / F, bytes / B)

after its launch. Where the CPU computes, launches and kernels take turns. A GPU works while the CPU
launches ahead; the last kernel ends after the longest way through launches, then kernels:

    max over k of  launch_1 + ... + launch_k + kernel_k + ... + kernel_n

What is on that way is time of launches, of arithmetic or of memory; what it hides has no share.
What remains lies *below the roof*: the kernels do not reach the ceilings. Waiting for the loader,
copying and overhead were measured.
Operations and bytes cost the energy that they cost micro-kernels, and constant power goes on:

    energy = operations e_flop + bytes e_byte + P0 epoch + rest

ASSUME: where these parts are more than what was measured, all are scaled to it, and it is said.

One knob of a mode, turned one step up, changes an epoch so: the time of computing shrinks as its
least time does, so what lies below the roof stays the same share of it. The loader's transforms go
with the CPU's clock, its reading does not. With workers the loader works ahead, so a mini-batch
takes what is longer of its loading and its computing: where the loader holds a run back, faster
computing only lengthens the wait. The rooflines of the new mode are those that were fitted to it;
where there are none, clock laws over all fitted modes give its ceilings (`roofline.laws`), and no
energy.

For `epochwatt explain` and results/tables/explanations.csv.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS
from epochwatt.counting.kernel_counts import KINDS, KernelCounts, load_kernel_counts
from epochwatt.epochs.bottleneck import (
    ARITHMETIC,
    BELOW_ROOF,
    COMPUTE,
    COMPUTE_PARTS,
    COPY,
    LAUNCHES,
    LOADER,
    MEMORY,
    OVERHEAD,
    TOO_SHORT,
    TOO_SHORT_S,
    Bottleneck,
    find_bottleneck,
    find_longest_part,
)
from epochwatt.epochs.bottleneck import PART_COLUMNS as PARTS
from epochwatt.epochs.table import EpochRow, read_rows
from epochwatt.errors import EpochwattError
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.laws import Clocks, fit_ceiling_laws
from epochwatt.roofline.model import Ceilings, EnergyCosts, Numbers
from epochwatt.roofline.points import RunInMode
from epochwatt.tables import write_frame
from epochwatt.text import aligned, answer_origin

RUNS = Path("results/runs")
TABLE = Path("results/roofline/fits_measured.csv")
TO_MEASURE = (
    "in a checkout, give its study the key `ceilings: true` in config/studies.yaml, then make run: "
    "its ceilings are measured within a minute"
)
SHARED = "(Its ceilings were measured while others used the machine, which can do more.)"
CONSTANT, REST = "constant power", "rest"
TIME_PARTS = (*COMPUTE_PARTS, BELOW_ROOF, LOADER, COPY, OVERHEAD)
ENERGY_PARTS = (ARITHMETIC, MEMORY, CONSTANT, REST)
GPU = "gpu"
FITTED, LAWS = "its ceilings", "clock laws over all modes"  # where new rooflines come from
KEEPS_UP = 0.8  # of an epoch without overhead; a loader that needs less keeps up with training
ALL = "all"
# of results/tables/explanations.csv: a run, or one class of operators of it
EXPLANATION_COLUMNS = (
    *("provenance", "run", "operators", "launches", "gflop", "mb"),  # work of one mini-batch
    # shares of the epoch's time, and of its energy; they add up to 100 for `all`
    *(f"{part.replace(' ', '_')}_pct" for part in TIME_PARTS),
    *(f"{part.replace(' ', '_')}_energy_pct" for part in ENERGY_PARTS),
    # least time of computing over the measured one; as of `Bottleneck`; sentences
    *("e2e_s", "energy_j", "roof_pct", "bound_by", "limit", "explanation", "next_mode"),
)
MEANS = ("e2e_s", "wait_s", "copy_s", "compute_s", "overhead_s", "n_minibatches")
KNOB_WORDS = {
    "cores": "{:g} cores",
    "cpu_mhz": "CPU at {:g} MHz",
    "gpu_mhz": "GPU at {:g} MHz",
    "emc_mhz": "memory at {:g} MHz",
}
FAR_BELOW = 0.5  # of the time of computing; where the ceilings allow less, they are not the limit
LITTLE = 0.005  # of an epoch; less is no change


# -- what holds it back ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Observed:
    """Means over epochs of a run."""

    n_minibatches: float
    batch_size: float  # the mean of an epoch, as its last mini-batch may be smaller
    num_workers: int
    e2e_s: float
    wait_s: float
    copy_s: float
    compute_s: float
    overhead_s: float
    fetch_s: float | None = None  # of an epoch, summed over the workers; None: not recorded
    preprocess_s: float | None = None
    energy_j: float | None = None  # of an epoch; None: not measured


@dataclass(frozen=True)
class Roof:
    """The rooflines of one mode; costs None: what work costs is not known."""

    processor: str
    ceilings: Ceilings
    costs: EnergyCosts | None = None

    @classmethod
    def fitted(cls, row: FitRow) -> "Roof":
        """Return the rooflines of a fitted mode."""
        return cls(row.processor, row.ceilings, row.costs)


class Group(NamedTuple):
    """Kernels of one class of operators."""

    launches: int  # of one mini-batch
    flops: float
    bytes: float
    time_s: Mapping[str, float]  # of an epoch, by part, the least that it takes
    # of an epoch, by part, without constant power and rest; empty: not known
    energy_j: Mapping[str, float]


@dataclass(frozen=True)
class Explanation:
    """Time and energy of an epoch, split."""

    time_s: Mapping[str, float]  # by part of `TIME_PARTS`; they add up to the epoch
    # by part of `ENERGY_PARTS`; they add up to its energy; empty: not known
    energy_j: Mapping[str, float]
    groups: Mapping[str, Group]  # by class of operators
    roof_share: float  # least time over measured time of computing; above 1: the parts were scaled
    energy_scale: float = 1.0  # what the parts of the energy were multiplied by; 1: nothing

    @property
    def bottleneck(self) -> Bottleneck:
        """The part that holds the run back, and the largest part of the least time of computing."""
        return find_bottleneck(self.time_s)


def least_s(work: KernelCounts, size: float, roof: Roof) -> dict[str, Numbers]:
    """Return part -> least time of each kernel, (n_kernels,), s: launches, arithmetic, memory.

    On a GPU only what is on the longest path counts; what that hides is 0.
    """
    flops, moved, ceilings = work.flops(size), work.bytes(size), roof.ceilings
    roof_s = ceilings.roof_s(flops, moved)
    launch_s = np.full(len(roof_s), ceilings.launch_s)
    if roof.processor == GPU:
        path_s = np.cumsum(launch_s) + np.cumsum(roof_s[::-1])[::-1]
        turn = int(path_s.argmax())  # the longest path: launches up to it, then kernels
        launch_s[turn + 1 :] = 0.0
        roof_s[:turn] = 0.0
    is_arithmetic = flops / ceilings.flops_per_s >= ceilings.roof_s(flops, moved)
    return {
        LAUNCHES: launch_s,
        ARITHMETIC: np.where(is_arithmetic, roof_s, 0.0),
        MEMORY: np.where(is_arithmetic, 0.0, roof_s),
    }


def least_compute_s(work: KernelCounts, size: float, roof: Roof) -> float:
    """Return the least time of computing one mini-batch, s."""
    return float(sum(part.sum() for part in least_s(work, size, roof).values()))


def explain(work: KernelCounts, seen: Observed, roof: Roof) -> Explanation:
    """Split the time and the energy of a run's mean epoch."""
    least = least_s(work, seen.batch_size, roof)
    least_epoch_s = seen.n_minibatches * sum(float(part.sum()) for part in least.values())
    roof_share = least_epoch_s / seen.compute_s if seen.compute_s > 0 else math.inf
    scale = seen.n_minibatches / max(roof_share, 1.0)
    time_s = {part: scale * float(spent_s.sum()) for part, spent_s in least.items()}
    time_s[BELOW_ROOF] = max(seen.compute_s - sum(time_s.values()), 0.0)
    time_s |= {LOADER: seen.wait_s, COPY: seen.copy_s, OVERHEAD: seen.overhead_s}
    every = np.ones(len(work.kind), bool)
    energy_j, energy_scale = _work_j(work, seen, roof.costs, every), 1.0
    if roof.costs is not None and seen.energy_j is not None:
        energy_j[CONSTANT] = roof.costs.constant_w * seen.e2e_s
        whole = sum(energy_j.values())
        energy_scale = min(1.0, seen.energy_j / whole) if whole > 0 else 1.0
        energy_j = {part: energy_scale * value for part, value in energy_j.items()}
        energy_j[REST] = max(seen.energy_j - sum(energy_j.values()), 0.0)
    groups = {
        kind: Group(
            int(chosen.sum()),
            float(work.flops(seen.batch_size)[chosen].sum()),
            float(work.bytes(seen.batch_size)[chosen].sum()),
            {part: scale * float(spent_s[chosen].sum()) for part, spent_s in least.items()},
            {p: energy_scale * j for p, j in _work_j(work, seen, roof.costs, chosen).items()},
        )
        for kind in KINDS
        if (chosen := work.kind == kind).any()
    }
    return Explanation(time_s, energy_j, groups, roof_share, energy_scale)


def _work_j(
    work: KernelCounts, seen: Observed, costs: EnergyCosts | None, chosen: NDArray[np.bool_]
) -> dict[str, float]:
    """Return what operations and bytes of chosen kernels cost in an epoch, J; empty: not known."""
    if costs is None or seen.energy_j is None:
        return {}
    flops, moved = (
        float(count(seen.batch_size)[chosen].sum()) for count in (work.flops, work.bytes)
    )
    return {
        ARITHMETIC: seen.n_minibatches * costs.j_per_flop * flops,
        MEMORY: seen.n_minibatches * costs.j_per_byte * moved,
    }


# -- the next mode up ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One knob turned one step up."""

    knob: str  # of `CLOCKS`
    new: float  # its value
    basis: str  # where the new rooflines come from: `FITTED` or `LAWS`
    e2e_s: float  # predicted epoch
    energy_j: float | None  # predicted energy; None: not known


def next_steps(
    work: KernelCounts, seen: Observed, here: FitRow, fitted: Sequence[FitRow]
) -> list[Step]:
    """Predict time and energy of an epoch with each knob of the mode turned one step up.

    Knobs without a higher value among the fitted modes, or without rooflines there, are left out.

    `fitted`: those of all modes of the same device, processor and precision.
    """
    steps, roof = [], Roof.fitted(here)
    for knob in CLOCKS:
        old = getattr(here, knob)
        values = {getattr(row, knob) for row in fitted} - {None}
        higher = [value for value in values if old is not None and value > old]
        if not higher:
            continue
        next_value = min(higher)
        mode = tuple(next_value if name == knob else getattr(here, name) for name in CLOCKS)
        there = next((row for row in fitted if row.mode == mode), None)
        ceilings = there.ceilings if there else _by_laws(here, fitted, mode)
        if ceilings is None:  # nothing tells
            continue
        new = Roof(here.processor, ceilings, there.costs if there else None)
        cpu_factor = old / next_value if knob == "cpu_mhz" else 1.0
        e2e_s = epoch_s(work, seen, roof, new, cpu_factor)
        new_j = predicted_energy_j(work, seen, roof, new, e2e_s)
        steps.append(Step(knob, next_value, FITTED if there else LAWS, e2e_s, new_j))
    return steps


def _by_laws(
    here: FitRow, fitted: Sequence[FitRow], mode: tuple[float | None, ...]
) -> Ceilings | None:
    """Scale the ceilings of `here` to another mode by clock laws over all; None: no laws."""
    modes = np.array([here.mode, mode, *(row.mode for row in fitted)], float)
    cores, cpu_mhz, gpu_mhz, emc_mhz = modes.T  # NaN where one is not known
    computes = np.where(np.isfinite(gpu_mhz), gpu_mhz, cores * cpu_mhz)
    clocks = np.stack([computes, cpu_mhz, emc_mhz])
    if len(fitted) < 2 or not np.isfinite(clocks[:, 2:]).all():
        return None
    laws = fit_ceiling_laws(Clocks(*clocks[:, 2:]), [row.ceilings for row in fitted])
    before, after = (laws.at(Clocks(*clocks[:, i])) for i in (0, 1))
    now = here.ceilings
    return Ceilings(
        flops_per_s=now.flops_per_s * after.flops_per_s / before.flops_per_s,
        bytes_per_s=now.bytes_per_s * after.bytes_per_s / before.bytes_per_s,
        launch_s=now.launch_s * (after.launch_s / before.launch_s if before.launch_s > 0 else 1.0),
        cache_bytes=now.cache_bytes,
        cached_bytes_per_s=now.cached_bytes_per_s * after.flops_per_s / before.flops_per_s,
    )


def epoch_s(
    work: KernelCounts, seen: Observed, old: Roof, new: Roof, cpu_factor: float = 1.0
) -> float:
    """Return the epoch's time under other rooflines, s.

    `old`, `new`: rooflines of its mode and of the other; `cpu_factor`: time of the loader's
    transforms there over here
    """
    before = least_compute_s(work, seen.batch_size, old)
    ratio = least_compute_s(work, seen.batch_size, new) / before if before > 0 else 1.0
    compute_s = seen.compute_s * ratio
    wait_s = _wait_s(seen, compute_s, cpu_factor)
    return wait_s + compute_s + seen.copy_s + seen.overhead_s


def _wait_s(seen: Observed, compute_s: float, cpu_factor: float) -> float:
    """Return how long an epoch waits for the loader where computing takes `compute_s`, s."""
    fetch_s, transform_s = seen.fetch_s or 0.0, seen.preprocess_s or 0.0
    loading_s = fetch_s + transform_s
    factor = (fetch_s + cpu_factor * transform_s) / loading_s if loading_s > 0 else 1.0
    if seen.num_workers == 0:
        return factor * seen.wait_s
    period_s, loader_s = seen.wait_s + seen.copy_s + seen.compute_s, loading_s / seen.num_workers
    work_s = seen.copy_s + compute_s
    if loader_s < KEEPS_UP * period_s:  # the wait is not for loading: handing over, a late start
        return max(seen.wait_s, factor * loader_s - work_s)
    return max(0.0, factor * period_s - work_s)


def predicted_energy_j(
    work: KernelCounts, seen: Observed, old: Roof, new: Roof, e2e_s: float
) -> float | None:
    """Return the epoch's energy under the rooflines `new`, J; None: energy or costs are not known.

    It is that of work and constant power by `new`, and the rest, which these do not explain, at its
    mean power of before. Where work and constant power asked for more than was measured under
    `old`, they are scaled down here by the same `energy_scale`.

    `seen`: the epoch as measured under `old`; `e2e_s`: its time as predicted under `new`
    """
    if seen.energy_j is None or old.costs is None or new.costs is None:
        return None
    here = explain(work, seen, old)
    size, n = seen.batch_size, seen.n_minibatches
    flops, moved_bytes = n * float(work.flops(size).sum()), n * float(work.bytes(size).sum())
    rest_j = here.energy_j[REST] / seen.e2e_s * e2e_s
    return here.energy_scale * float(new.costs.energy_j(flops, moved_bytes, e2e_s)) + rest_j


# -- a run -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explained:
    """A run with its explanation; `fit`: the rooflines of its mode."""

    run: RunInMode
    seen: Observed
    explanation: Explanation
    steps: Sequence[Step]
    fit: FitRow


def fits_of(run: RunInMode, processor: str, fits: Iterable[FitRow]) -> tuple[FitRow, list[FitRow]]:
    """Return the rooflines of a run's mode, and those of all modes of its device.

    Raises EpochwattError: its ceilings were never measured; it says how to.
    """
    place = (run.provenance, run.device, run.precision, processor)
    fitted = [
        row
        for row in fits
        if (row.provenance, row.device, row.precision, row.processor) == place
        and row.instance in ("", run.instance)
    ]
    for row in fitted:
        if row.mode == run.mode:
            return row, fitted
    mode = zip(CLOCKS, run.mode, strict=True)
    words = ", ".join(f"{knob} {value:g}" for knob, value in mode if value is not None)
    raise EpochwattError(
        f"the ceilings of {run.device}/{run.instance} in this mode ({words or 'as it is'}) were "
        f"never measured, on the {processor.upper()}, in {run.precision}",
        where=str(TABLE),
        do=TO_MEASURE,
    )


def explain_run(
    run: RunInMode,
    epochs: Sequence[EpochRow],
    work: KernelCounts,
    fits: Iterable[FitRow],
) -> Explained:
    """Explain a run by the rooflines of its mode.

    `epochs`: rows of its epochs.csv; `fits`: fitted rooflines, others among them

    Raises EpochwattError: no epoch is valid, or the ceilings of its mode were never measured.
    """
    if not epochs:
        raise EpochwattError(f"{run.run} has no epoch")
    is_gpu = "cuda" in (epochs[0]["timing_method"] or "") or run.provenance == "simulated"
    here, fitted = fits_of(run, "gpu" if is_gpu else "cpu", fits)
    seen = observed(epochs, here.power_scope)
    if seen is None or not seen.compute_s > 0:
        raise EpochwattError(f"{run.run} has no valid epoch, so there is nothing to explain")
    explanation = explain(work, seen, Roof.fitted(here))
    return Explained(run, seen, explanation, next_steps(work, seen, here, fitted), here)


def observed(epochs: Sequence[EpochRow], power_scope: str = "") -> Observed | None:
    """Return the means over the valid epochs after the first, or over all; None: none is valid.

    `epochs`: rows of a run's epochs.csv; `power_scope`: what the energy has to be of
    """
    valid = [row for row in epochs if row["valid"]]
    chosen = [row for row in valid if row["epoch"] > 0] or valid
    if not chosen:
        return None

    def mean(name: str) -> float | None:
        numbers = [float(row[name]) for row in chosen if row.get(name) is not None]
        return sum(numbers) / len(numbers) if len(numbers) == len(chosen) else None

    energy_wh, n_samples = mean("energy_wh"), mean("n_samples")
    size = chosen[0].get("batch_size") or 0  # of a loop of one's own, whose samples nobody counts
    is_comparable = power_scope and {row["power_scope"] for row in chosen} == {power_scope}
    return Observed(
        **{name: mean(name) or 0.0 for name in MEANS},
        batch_size=n_samples / (mean("n_minibatches") or 1.0) if n_samples else float(size),
        num_workers=chosen[0]["num_workers"] or 0,
        fetch_s=mean("fetch_s"),
        preprocess_s=mean("preprocess_s"),
        energy_j=3600.0 * energy_wh if energy_wh is not None and is_comparable else None,
    )


def sentence(e: Explanation) -> str:
    """Return the explanation as a sentence: what holds a run back, and the shares of its parts."""
    bottleneck, whole = e.bottleneck, sum(e.time_s[part] for part in TIME_PARTS)
    bound = bottleneck.bound_by
    if whole < TOO_SHORT_S:
        return TOO_SHORT
    if bound != COMPUTE:
        return f"{bottleneck}: {_pct(e.time_s[bound] / whole)} of the epoch."
    if e.roof_share < FAR_BELOW:
        return (
            f"Bound by {bound}, far below the roof: kernels take {1.0 / e.roof_share:.1f} times "
            f"what the ceilings allow, which is mostly {bottleneck.limit}."
        )
    parts = sorted(COMPUTE_PARTS, key=lambda part: -e.time_s[part])
    shares = ", ".join(f"{part} {_pct(e.time_s[part] / whole)}" for part in parts)
    below_s = e.time_s[BELOW_ROOF]
    below = f"; {_pct(below_s / whole)} {BELOW_ROOF}" if below_s > 0 else ""
    return f"{bottleneck}: {shares} of the epoch{below}."


def step_words(step: Step, seen: Observed) -> str:
    """Return what one knob would change: `GPU at 900 MHz: 12 % less time, 3 % more energy`."""
    words = _change(step.e2e_s / seen.e2e_s, "time")
    if step.energy_j is not None and seen.energy_j:
        words += f", {_change(step.energy_j / seen.energy_j, 'energy')}"
    return f"{KNOB_WORDS[step.knob].format(step.new)}: {words}"


def _change(ratio: float, what: str) -> str:
    if abs(ratio - 1.0) < LITTLE:
        return f"the same {what}"
    return f"{_pct(abs(ratio - 1.0))} {'less' if ratio < 1.0 else 'more'} {what}"


def _pct(share: float) -> str:
    return f"{100.0 * share:.0f} %"


# -- results/tables/explanations.csv ---------------------------------------------------------------


def write_explanations(runs: Iterable[Document], fits: str, path: str) -> None:
    """Write results/tables/explanations.csv; a run that cannot be explained has no row.

    `runs`: `RunInMode` as plain values.
    """
    fitted, frames = read_fits(fits), []
    for run in (RunInMode(**values) for values in runs):
        try:
            work = load_kernel_counts(run.counts)
            frames.append(table_rows(explain_run(run, read_rows(run.epochs), work, fitted)))
        except EpochwattError:
            continue  # of another precision or mode, or without a valid epoch
    table = pd.concat(frames or [pd.DataFrame(columns=EXPLANATION_COLUMNS)])
    write_frame(path, "explanations of runs", table, "%.6g")


def table_rows(explained: Explained) -> pd.DataFrame:
    """Return `EXPLANATION_COLUMNS` of a run: a row for all, then one per class of operators."""
    e, seen, run = explained.explanation, explained.seen, explained.run
    groups = e.groups.values()
    names = ("launches", "flops", "bytes")
    launches, flops, moved = (sum(getattr(group, name) for group in groups) for name in names)
    whole = {ALL: Group(launches, flops, moved, e.time_s, e.energy_j), **e.groups}
    rows = [
        {
            "provenance": run.provenance,
            "run": run.run,
            "operators": name,
            "launches": group.launches,
            "gflop": group.flops / 1e9,
            "mb": group.bytes / 1e6,
            **_shares(group.time_s, sum(e.time_s.values()), "pct"),
            **_shares(group.energy_j, seen.energy_j, "energy_pct"),
        }
        for name, group in whole.items()
    ]
    rows[0] |= {
        "e2e_s": seen.e2e_s,
        "energy_j": seen.energy_j,
        "roof_pct": 100.0 * e.roof_share,
        "bound_by": e.bottleneck.bound_by,
        "limit": e.bottleneck.limit,
        "explanation": sentence(e) + (f" {SHARED}" if explained.fit.is_shared else ""),
        "next_mode": "; ".join(step_words(step, seen) for step in explained.steps),
    }
    return pd.DataFrame(rows, columns=EXPLANATION_COLUMNS)


def _shares(parts: Mapping[str, float], whole: float | None, ending: str) -> dict[str, float]:
    """Return column -> share, %."""
    return {
        f"{part.replace(' ', '_')}_{ending}": 100.0 * value / whole
        for part, value in parts.items()
        if whole
    }


# -- the terminal ----------------------------------------------------------------------------------


def explanation_lines(explained: Explained) -> list[str]:
    """Return the explanation of a run as lines for the terminal, with tables and next modes."""
    run, e, fit = explained.run, explained.explanation, explained.fit
    origin = f"{answer_origin(run.provenance)}: " if run.provenance == "simulated" else ""
    verb = {"train": "training", "infer": "inference"}[run.task]
    steps = ["next mode up: no knob has a higher value among the modes with ceilings"]
    if explained.steps:
        steps = ["next mode up, one knob at a time"]
    for step in explained.steps:
        steps.append(f"  {step_words(step, explained.seen)} (from {step.basis})")
    lines = [
        f"{origin}{run.run}",
        f"{run.workload}, {verb}, mini-batches of {run.batch_size}, {run.precision}, on "
        f"{run.device}/{run.instance}",
        "",
        sentence(e),
        "",
        *_part_table(explained),
        "",
        *_operator_table(explained),
        "",
        *steps,
        "",
        f"ceilings: {fit.flops_per_s / 1e9:.4g} GFLOP/s, {fit.bytes_per_s / 1e9:.4g} GB/s, "
        f"{1e6 * fit.launch_s:.3g} \u00b5s for a launch; arithmetic is the limit from "
        f"{fit.ceilings.ridge_flop_per_byte:.3g} FLOP per byte on "
        f"({answer_origin(fit.provenance)})",
    ]
    if fit.is_shared:
        lines.append(SHARED)
    if e.roof_share > 1.0:
        lines.append(
            f"the ceilings ask for {e.roof_share:.2f} times the time of computing: launches "
            "overlap, or caches serve it; the parts were scaled to it"
        )
    if not e.energy_j:
        lines.append("no energy: the run or the ceilings have none of the same sensor")
    elif e.energy_scale < 1.0:
        lines.append(
            f"constant power and work ask for {1.0 / e.energy_scale:.2f} times the energy; the "
            "parts were scaled to it"
        )
    return lines


def split_lines(run: RunInMode, epochs: Sequence[EpochRow], why: EpochwattError) -> list[str]:
    """Return lines on where a run's time goes without rooflines, and why there are none (`why`)."""
    valid = [row for row in epochs if row["valid"]]
    chosen = [row for row in valid if row["epoch"] > 0] or valid
    if not chosen:
        raise EpochwattError(f"{run.run} has no valid epoch, so there is nothing to explain")
    names = (*PARTS.values(), "e2e_s", "energy_wh")
    means = {
        name: sum(row[name] for row in chosen) / len(chosen)
        for name in names
        if all(row[name] is not None for row in chosen)
    }
    whole_s = means["e2e_s"]
    bottleneck = find_longest_part({name: means.get(name) for name in PARTS.values()})
    rows = [("an epoch", "s", "share")]
    rows += [
        (f"  {columns.label(name)}", f"{means[name]:.4g}", _pct(means[name] / whole_s))
        for name in PARTS.values()
        if name in means
    ]
    energy = f"{3600.0 * means['energy_wh']:.4g} J an epoch" if "energy_wh" in means else "none"
    says = (
        f"{bottleneck}." if bottleneck.bound_by else "Only start and end of its epochs are known."
    )
    return [
        run.run,
        "",
        TOO_SHORT if whole_s < TOO_SHORT_S else says,
        "",
        *aligned([*rows, ("  all", f"{whole_s:.4g}", "100 %")]),
        "",
        f"energy: {energy}",
        "not split further:",
        *(f"  {line}" for line in str(why).splitlines()),
    ]


def _part_table(explained: Explained) -> list[str]:
    """Return the parts of an epoch's time and energy as a table."""
    e, seen = explained.explanation, explained.seen
    rows: list[tuple[str, ...]] = [("an epoch", "s", "share", "J", "share")]
    for part in dict.fromkeys((*TIME_PARTS, *ENERGY_PARTS)):
        time = _cells(e.time_s, part, seen.e2e_s)
        name = columns.label(PARTS[part]) if part in PARTS else part
        rows.append((f"  {name}", *time, *_cells(e.energy_j, part, seen.energy_j)))
    energy = "" if seen.energy_j is None else f"{seen.energy_j:.4g}"
    rows.append(("  all", f"{seen.e2e_s:.4g}", "100 %", energy, "100 %" if energy else ""))
    if not e.energy_j:
        rows = [row[:3] for row in rows if any(row[1:3])]
    return aligned(rows)


def _cells(parts: Mapping[str, float], part: str, whole: float | None) -> tuple[str, str]:
    if part not in parts or not whole:
        return "", ""
    return f"{parts[part]:.4g}", f"{100.0 * parts[part] / whole:.1f} %"


def _operator_table(explained: Explained) -> list[str]:
    """Return the classes of operators as a table: kernels, intensity, shares."""
    e, whole = explained.explanation, explained.seen.e2e_s
    rows: list[tuple[str, ...]] = [
        ("operators", "kernels", "FLOP/byte", *COMPUTE_PARTS, "of the epoch")
    ]
    for kind, group in e.groups.items():
        shares = [f"{100.0 * group.time_s[part] / whole:.1f} %" for part in COMPUTE_PARTS]
        intensity = f"{group.flops / group.bytes:.3g}" if group.bytes else ""
        total = f"{100.0 * sum(group.time_s.values()) / whole:.1f} %"
        rows.append((kind, str(group.launches), intensity, *shares, total))
    return aligned(rows)
