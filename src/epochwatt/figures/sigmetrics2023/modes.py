"""Runs that differ in their power mode only: groups of them, and modes that are not compared."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from epochwatt.claims.tolerances import load_terms
from epochwatt.figures.common.bars import Bar, grouped, of_epochs, split
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.runs import RunData

STRONGEST = ("max", "MAXN")
PALE_NOTE = "; g: MAXN; pale: of LeNet-5 alone, not in the front"

Modes = dict[str, Sequence[str]]  # network -> power modes that the paper compares


def groups_of(job: Job, *, by_name: bool = True) -> list[list[Bar]]:
    """Group the figure's runs that differ in the power mode only; single runs are left out.

    With `by_name` bars are sorted: the paper's letters, the strongest mode, the others.
    """

    def mode(run: RunData) -> str:
        return str(run.factors["power_mode"])

    def order(run: RunData) -> tuple[bool, bool, str]:
        name = mode(run) if by_name else ""
        return len(name) > 1, name not in STRONGEST, name

    bars = grouped(of_epochs(job.runs), job, ("power_mode",), mode, order)
    return [group for group in split(bars, lambda bar: bar.group) if len(group) > 1]


def outside(job: Job, bars: Sequence[Bar]) -> frozenset[str]:
    """Return the bars' modes that the paper compares for other networks only; empty elsewhere."""
    factors = bars[0].run.factors
    compared: Modes = load_terms(Path(job.published).parents[1]).sets["MODES"]
    if factors["setup"] != job.paper or factors["model"] not in compared:
        return frozenset()
    named = {mode for modes in compared.values() for mode in modes}
    return frozenset({bar.tick for bar in bars} & named) - frozenset(compared[factors["model"]])


def outside_label(modes: Iterable[str], job: Job) -> str:
    """Describe pale modes: first to last, and the networks that the paper compares them for."""
    ordered = sorted(modes)
    compared: Modes = load_terms(Path(job.published).parents[1]).sets["MODES"]
    models = [job.title(model) for model, named in compared.items() if set(ordered) <= set(named)]
    which = f"{ordered[0]} to {ordered[-1]}" if len(ordered) > 1 else ordered[0]
    return f"{which}: {' and '.join(models) or 'others'} alone, our reading of 5.6.6"


def ranges(modes: Iterable[str]) -> str:
    """Shorten mode letters to ranges: `a to f, k`."""
    spans: list[list[str]] = []
    for mode in sorted(modes):
        if spans and len(mode) == 1 and ord(mode) == ord(spans[-1][-1][-1]) + 1:
            spans[-1].append(mode)
        else:
            spans.append([mode])
    return ", ".join(
        f"{span[0]} to {span[-1]}" if len(span) > 2 else ", ".join(span) for span in spans
    )
