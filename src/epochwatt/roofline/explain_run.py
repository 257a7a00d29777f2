"""Explain a run by the rooflines of its mode, and say what holds it back.

For `epochwatt explain` and results/tables/explanations.csv.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochwatt.columns import CLOCKS
from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.epochs.bottleneck import (
    BELOW_ROOF,
    COMPUTE,
    COMPUTE_PARTS,
    TOO_SHORT,
    TOO_SHORT_S,
)
from epochwatt.epochs.table import read_rows
from epochwatt.errors import EpochwattError
from epochwatt.roofline.explain import ENERGY_PARTS, TIME_PARTS, Explanation, Observed, explain
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.next_mode import FITTED, Step, next_steps, roof_of
from epochwatt.roofline.points import RunInMode
from epochwatt.tables import write_entries
from epochwatt.text import aligned

ALL = "all"
EpochRow = Mapping[str, Any]  # of epochs.csv, by column
TABLE = Path("results/roofline/fits_measured.csv")
TO_MEASURE = (
    "give its study the key `ceilings: true` in config/studies.yaml, then make run: its ceilings "
    "are measured within a minute"
)
SHARED = "(Its ceilings were measured while others used the machine, which can do more.)"
MEANS = ("e2e_s", "wait_s", "copy_s", "compute_s", "overhead_s", "n_minibatches")
KNOB_WORDS = {
    "cores": "{:g} cores",
    "cpu_mhz": "CPU at {:g} MHz",
    "gpu_mhz": "GPU at {:g} MHz",
    "emc_mhz": "memory at {:g} MHz",
}
FAR_BELOW = 0.5  # of the time of computing; where the ceilings allow less, they are not the limit
LITTLE = 0.005  # of an epoch; less is no change
ORIGINS = {
    "measured": "measured on this device by micro-kernels",
    "fake": "not measured, from a fake board",
    "simulated": "the simulated board's own constants",
    "public": "measured by others",
}


@dataclass(frozen=True)
class Explained:
    """A run with its explanation; `fit`: the rooflines of its mode."""

    run: RunInMode
    seen: Observed
    explanation: Explanation
    steps: Sequence[Step]
    fit: FitRow


@dataclass(frozen=True, kw_only=True)
class ExplanationRow:
    """A row of results/tables/explanations.csv: a run, or one class of operators of it.

    Attributes
    ----------
    operators : `all`, or a class
    launches, gflop, mb : of one mini-batch
    *_pct : shares of the epoch's time, and of its energy; they add up to 100 for `all`
    roof_pct : least time of computing over the measured one
    bound_by, limit : as of `Bottleneck`
    explanation, next_mode : sentences; of `all`
    """

    provenance: str
    run: str
    operators: str
    launches: int
    gflop: float
    mb: float
    launches_pct: float
    arithmetic_pct: float
    memory_pct: float
    below_the_roof_pct: float | None = None
    loader_pct: float | None = None
    copy_pct: float | None = None
    overhead_pct: float | None = None
    arithmetic_energy_pct: float | None = None
    memory_energy_pct: float | None = None
    constant_power_energy_pct: float | None = None
    rest_energy_pct: float | None = None
    e2e_s: float | None = None
    energy_j: float | None = None
    roof_pct: float | None = None
    bound_by: str = ""
    limit: str = ""
    explanation: str = ""
    next_mode: str = ""


def fits_of(run: RunInMode, processor: str, fits: Iterable[FitRow]) -> tuple[FitRow, list[FitRow]]:
    """Return the rooflines of a run's mode, and those of all modes of its device.

    Raises EpochwattError: its ceilings were never measured; what to type.
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


# -- explain it ------------------------------------------------------------------------------------


def explain_run(
    run: RunInMode,
    epochs: Sequence[EpochRow],
    work: KernelCounts,
    fits: Iterable[FitRow],
) -> Explained:
    """Explain a run by the rooflines of its mode.

    Parameters
    ----------
    epochs : rows of its epochs.csv
    fits : fitted rooflines, others among them

    Raises EpochwattError: no epoch is valid, or the ceilings of its mode were never measured.
    """
    if not epochs:
        raise EpochwattError(f"{run.run} has no epoch")
    is_gpu = "cuda" in (epochs[0]["timing_method"] or "") or run.provenance == "simulated"
    here, fitted = fits_of(run, "gpu" if is_gpu else "cpu", fits)
    seen = observed(epochs, here.power_scope)
    if seen is None or not seen.compute_s > 0:
        raise EpochwattError(f"{run.run} has no valid epoch, so there is nothing to explain")
    explanation = explain(work, seen, roof_of(here))
    return Explained(run, seen, explanation, next_steps(work, seen, here, fitted), here)


def observed(epochs: Sequence[EpochRow], power_scope: str = "") -> Observed | None:
    """Return the means over the valid epochs after the first, or over all; None: none is valid.

    Parameters
    ----------
    epochs : rows of a run's epochs.csv
    power_scope : what the energy has to be of
    """
    valid = [row for row in epochs if row["valid"]]
    chosen = [row for row in valid if row["epoch"] > 0] or valid
    if not chosen:
        return None

    def mean(name: str) -> float | None:
        numbers = [float(row[name]) for row in chosen if row.get(name) is not None]
        return sum(numbers) / len(numbers) if len(numbers) == len(chosen) else None

    energy_wh = mean("energy_wh")
    is_comparable = power_scope and {row["power_scope"] for row in chosen} == {power_scope}
    return Observed(
        **{name: mean(name) or 0.0 for name in MEANS},
        batch_size=(mean("n_samples") or 0.0) / (mean("n_minibatches") or 1.0),
        num_workers=chosen[0]["num_workers"],
        fetch_s=mean("fetch_s"),
        preprocess_s=mean("preprocess_s"),
        energy_j=3600.0 * energy_wh if energy_wh is not None and is_comparable else None,
    )


def sentence(e: Explanation) -> str:
    """Return what holds a run back."""
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


def write_explanations(runs: Iterable[Mapping[str, Any]], fits: str, path: str) -> None:
    """Write results/tables/explanations.csv; a run that cannot be explained has no row.

    `runs`: `RunInMode` as plain values.
    """
    fitted, rows = read_fits(fits), []
    for run in (RunInMode(**values) for values in runs):
        try:
            work = load_kernel_counts(run.counts)
            rows += table_rows(explain_run(run, read_rows(run.epochs), work, fitted))
        except EpochwattError:
            continue  # of another precision or mode, or without a valid epoch
    write_entries(Path(path), "explanations of runs", ExplanationRow, rows, ".6g")


def table_rows(explained: Explained) -> list[ExplanationRow]:
    """Return the rows of a run: of all of it, and of each class of operators."""
    e, seen, run = explained.explanation, explained.seen, explained.run
    epoch_s = sum(e.time_s[part] for part in TIME_PARTS)
    shared = f" {SHARED}" if explained.fit.is_shared else ""
    whole = ExplanationRow(
        provenance=run.provenance,
        run=run.run,
        operators=ALL,
        launches=sum(group.launches for group in e.groups.values()),
        gflop=sum(group.flops for group in e.groups.values()) / 1e9,
        mb=sum(group.bytes for group in e.groups.values()) / 1e6,
        **_shares(e.time_s, epoch_s, "pct"),
        **_shares(e.energy_j, seen.energy_j, "energy_pct"),
        e2e_s=seen.e2e_s,
        energy_j=seen.energy_j,
        roof_pct=100.0 * e.roof_share,
        bound_by=e.bottleneck.bound_by,
        limit=e.bottleneck.limit,
        explanation=sentence(e) + shared,
        next_mode="; ".join(step_words(step, seen) for step in explained.steps),
    )
    return [whole] + [
        ExplanationRow(
            provenance=run.provenance,
            run=run.run,
            operators=kind,
            launches=group.launches,
            gflop=group.flops / 1e9,
            mb=group.bytes / 1e6,
            **_shares(group.time_s, epoch_s, "pct"),
            **_shares(group.energy_j, seen.energy_j, "energy_pct"),
        )
        for kind, group in e.groups.items()
    ]


def _shares(parts: Mapping[str, float], whole: float | None, ending: str) -> dict[str, Any]:
    """Return column -> share, %."""
    return {
        f"{part.replace(' ', '_')}_{ending}": 100.0 * parts[part] / whole
        for part in (*TIME_PARTS, *ENERGY_PARTS)
        if part in parts and whole
    }


# -- the terminal ----------------------------------------------------------------------------------


def explanation_lines(explained: Explained) -> list[str]:
    """Return all that is known of why a run takes what it takes, for the terminal."""
    run, e, fit = explained.run, explained.explanation, explained.fit
    origin = "SIMULATED, not measured: " if run.provenance == "simulated" else ""
    verb = {"train": "training", "infer": "inference"}[run.task]
    steps = ["next mode up: no knob has a higher value among the modes with ceilings"]
    if explained.steps:
        steps = ["next mode up, one knob at a time"]
    for step in explained.steps:
        basis = "its ceilings" if step.basis == FITTED else "clock laws over all modes"
        steps.append(f"  {step_words(step, explained.seen)} (from {basis})")
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
        f"{fit.ceilings.ridge_flop_per_byte:.3g} FLOP per byte on ({ORIGINS[fit.provenance]})",
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


def _part_table(explained: Explained) -> list[str]:
    e, seen = explained.explanation, explained.seen
    rows: list[tuple[str, ...]] = [("an epoch", "s", "share", "J", "share")]
    for part in dict.fromkeys((*TIME_PARTS, *ENERGY_PARTS)):
        time = _cells(e.time_s, part, seen.e2e_s)
        rows.append((f"  {part}", *time, *_cells(e.energy_j, part, seen.energy_j)))
    energy = "" if seen.energy_j is None else f"{seen.energy_j:.4g}"
    rows.append(("  all", f"{seen.e2e_s:.4g}", "100 %", energy, "100 %" if energy else ""))
    if not e.energy_j:
        rows = [row[:3] for row in rows if row[0].strip() in (*TIME_PARTS, "all", "an epoch")]
    return aligned(rows)


def _cells(parts: Mapping[str, float], part: str, whole: float | None) -> tuple[str, str]:
    if part not in parts or not whole:
        return "", ""
    return f"{parts[part]:.4g}", f"{100.0 * parts[part] / whole:.1f} %"


def _operator_table(explained: Explained) -> list[str]:
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
