"""Runs that differ in their power mode only: groups of them, and modes that are not compared."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from epochwatt import columns
from epochwatt.claims.tolerances import load_terms
from epochwatt.figures.common.bars import Bar, grouped, of_epochs, split
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.runs import RunData

STRONGEST = ("max", "MAXN")

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


def remark_pale(job: Job, panel: str, modes: Iterable[str]) -> None:
    """Say below a panel and in its caption why modes are pale; nothing where none is."""
    if pale := ranges(modes):
        job.remark(panel, f"Pale {pale}: in no front, section 5.6.6 has them of LeNet-5 alone.")
        job.drawn[panel].note += "; pale: paper's for LeNet-5 alone, in no front"


def letters_of(modes: Iterable[str]) -> str:
    """Say what the paper's letters of power modes are; empty where no mode has one."""
    letters = {mode for mode in modes if len(mode) == 1}
    return f"{ranges(letters)}: power modes (paper's Table 3; g strongest)" if letters else ""


def mode_axis(groups: Iterable[Sequence[Bar]]) -> str:
    """Return the title of an axis of power modes."""
    letters = letters_of(bar.tick for group in groups for bar in group)
    return letters or columns.label("power_mode")


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
