"""Explain runs from their tables: which rooflines are theirs, what was seen, what to say of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.epochs.table import read_rows
from epochwatt.errors import EpochwattError
from epochwatt.roofline import explain_text
from epochwatt.roofline.explain import ENERGY_PARTS, TIME_PARTS, Explanation, Observed, explain
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.next_mode import KNOBS, Step, next_steps, roof_of
from epochwatt.tables import write_entries

ALL = "all"
TABLE = Path("results/roofline/fits_measured.csv")
TO_MEASURE = (
    "give its study the key `ceilings: true` in config/studies.yaml, then make run: its ceilings "
    "are measured within a minute"
)
SHARED = "(Its ceilings were measured while others used the machine, which can do more.)"
MEANS = ("e2e_s", "wait_s", "copy_s", "compute_s", "overhead_s", "n_minibatches")


@dataclass(frozen=True)
class Explained:
    """A run with its explanation.

    Attributes
    ----------
    run : its id
    columns : provenance, device, instance, parts of its mode, precision, workload, task, batch_size
    seen : what was measured of it
    explanation : where time and energy go
    steps : what one knob of its mode would change
    fit : the rooflines of its mode
    """

    run: str
    columns: Mapping[str, Any]
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


def observed(epochs: Sequence[Mapping[str, Any]], power_scope: str = "") -> Observed | None:
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
    mean = {name: _mean(chosen, name) for name in (*MEANS, "n_samples")}
    energy_wh = _mean(chosen, "energy_wh")
    is_comparable = power_scope and {row["power_scope"] for row in chosen} == {power_scope}
    return Observed(
        **{name: mean[name] or 0.0 for name in MEANS},
        batch_size=(mean["n_samples"] or 0.0) / (mean["n_minibatches"] or 1.0),
        num_workers=chosen[0]["num_workers"],
        fetch_s=_mean(chosen, "fetch_s"),
        preprocess_s=_mean(chosen, "preprocess_s"),
        energy_j=3600.0 * energy_wh if energy_wh is not None and is_comparable else None,
    )


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [row.get(name) for row in rows]
    numbers = [float(value) for value in values if value is not None]
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None


def fits_of(
    columns: Mapping[str, Any], processor: str, fits: Iterable[FitRow]
) -> tuple[FitRow, list[FitRow]]:
    """Return the rooflines of a run's mode, and those of all modes of its device.

    Raises EpochwattError: its ceilings were never measured; what to type.
    """
    names = ("provenance", "device", "precision")
    fitted = [
        row
        for row in fits
        if all(getattr(row, name) == columns[name] for name in names)
        and row.instance in ("", columns["instance"])
        and row.processor == processor
    ]
    mode = tuple(columns.get(knob) for knob in KNOBS)
    for row in fitted:
        if row.mode == mode:
            return row, fitted
    place = f"{columns['device']}/{columns['instance']}"
    words = ", ".join(f"{k} {v:g}" for k, v in zip(KNOBS, mode, strict=True) if v is not None)
    raise EpochwattError(
        f"the ceilings of {place} in this mode ({words or 'as it is'}) were never measured, on the "
        f"{processor.upper()}, in {columns['precision']}",
        where=str(TABLE),
        do=TO_MEASURE,
    )


def processor_of(epochs: Sequence[Mapping[str, Any]], provenance: str) -> str:
    """Return what computed: `cpu` or `gpu`; simulated boards have a GPU."""
    method = epochs[0]["timing_method"] or ""
    return "gpu" if "cuda" in method or provenance == "simulated" else "cpu"


def explain_run(
    run: str,
    columns: Mapping[str, Any],
    epochs: Sequence[Mapping[str, Any]],
    work: KernelCounts,
    fits: Iterable[FitRow],
) -> Explained:
    """Return the explanation of a run.

    Parameters
    ----------
    run : its id
    columns : as of `Explained`
    epochs : rows of its epochs.csv
    work : counted kernels of its network, task and precision
    fits : fitted rooflines, others among them

    Raises
    ------
    EpochwattError : no epoch is valid, or the ceilings of its mode were never measured
    """
    if not epochs:
        raise EpochwattError(f"{run} has no epoch")
    here, fitted = fits_of(columns, processor_of(epochs, columns["provenance"]), fits)
    seen = observed(epochs, here.power_scope)
    if seen is None or not seen.compute_s > 0:
        raise EpochwattError(f"{run} has no valid epoch, so there is nothing to explain")
    explanation = explain(work, seen, roof_of(here))
    return Explained(run, columns, seen, explanation, next_steps(work, seen, here, fitted), here)


def table_rows(explained: Explained) -> list[ExplanationRow]:
    """Return the rows of a run: of all of it, and of each class of operators."""
    e, seen = explained.explanation, explained.seen
    groups = e.groups.values()
    whole = ExplanationRow(
        provenance=explained.columns["provenance"],
        run=explained.run,
        operators=ALL,
        launches=sum(group.launches for group in groups),
        gflop=sum(group.flops for group in groups) / 1e9,
        mb=sum(group.bytes for group in groups) / 1e6,
        **_shares(e.time_s, sum(e.time_s[part] for part in TIME_PARTS), "pct"),
        **_shares(e.energy_j, seen.energy_j, "energy_pct"),
        e2e_s=seen.e2e_s,
        energy_j=seen.energy_j,
        roof_pct=100.0 * e.roof_share,
        bound_by=e.bottleneck.bound_by,
        limit=e.bottleneck.limit,
        explanation=" ".join([explain_text.sentence(e), *[SHARED] * explained.fit.is_shared]),
        next_mode=explain_text.steps_sentence(explained.steps, seen),
    )
    return [whole] + [
        ExplanationRow(
            provenance=whole.provenance,
            run=whole.run,
            operators=kind,
            launches=group.launches,
            gflop=group.flops / 1e9,
            mb=group.bytes / 1e6,
            **_shares(group.time_s, sum(e.time_s[part] for part in TIME_PARTS), "pct"),
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


def write_explanations(runs: Iterable[Mapping[str, Any]], fits: str, path: str) -> None:
    """Write results/tables/explanations.csv; a run that cannot be explained has no row.

    Parameters
    ----------
    runs : as `wanted.point_run` gives them
    fits : path of the fitted rooflines
    path : where to write
    """
    fitted, rows = read_fits(fits), []
    for run in runs:
        epochs, work = read_rows(run["epochs"]), load_kernel_counts(run["counts"])
        try:
            rows += table_rows(explain_run(run["run"], run["columns"], epochs, work, fitted))
        except EpochwattError:
            continue  # of another precision or mode, or without a valid epoch
    write_entries(Path(path), "explanations of runs", ExplanationRow, rows, ".6g")
