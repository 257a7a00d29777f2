"""Runs that differ in their power mode only: their points and the Pareto front of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from epochwatt.analysis.pareto import pareto_front
from epochwatt.claims.tolerances import load_terms
from epochwatt.figures.common.bars import group_labels, of_epochs
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.runs import RunData
from epochwatt.figures.sigmetrics2023.letters import Place

PALE_NOTE = "; pale: not compared"


@dataclass(frozen=True)
class Cloud:
    """Runs that differ in their power mode only."""

    label: str  # whose they are
    model: str
    runs: Sequence[RunData]  # one per power mode
    x: str  # quantity on the x axis; E2E is on the other
    outside: frozenset[str] = frozenset()  # power modes that the front is not made of

    @cached_property
    def points(self) -> list[Place | None]:
        """Return x and E2E of each run, mean of epochs 1+; None: one of them is missing."""
        pairs = [(run.number(self.x).value, run.number("e2e_s").value) for run in self.runs]
        return [None if x is None or y is None else (x, y) for x, y in pairs]

    @cached_property
    def front(self) -> list[int]:
        """Return places of the runs on the Pareto front, from left to right."""
        there = [n for n, point in enumerate(self.points) if point and self.is_compared(n)]
        xy = np.array([self.points[n] for n in there], dtype=float).reshape(-1, 2)
        return [there[n] for n in pareto_front(xy[:, 0], xy[:, 1])]

    def is_compared(self, n: int) -> bool:
        """Say whether a run is one that the front is made of."""
        return self.runs[n].factors["power_mode"] not in self.outside

    def point(self, mode: str) -> Place | None:
        """Return the point of a power mode; None where it is not there."""
        modes = [run.factors["power_mode"] for run in self.runs]
        return self.points[modes.index(mode)] if mode in modes else None


def group_runs(job: Job, x: str) -> list[Cloud]:
    """Return the figure's runs, together what differs in the power mode only.

    A single run compares nothing and is left out.
    """
    labels = group_labels([run.factors for run in job.runs], job, ("power_mode",))
    groups: dict[str, list[RunData]] = {label: [] for label in labels}
    for run, label in zip(of_epochs(job.runs), labels, strict=True):
        groups[label].append(run)
    clouds = [
        Cloud(label.replace("\n", ", "), runs[0].factors["model"], runs, x, outside(job, runs))
        for label, runs in groups.items()
    ]
    return [cloud for cloud in clouds if len(cloud.runs) > 1]


def outside(job: Job, runs: Sequence[RunData]) -> frozenset[str]:
    """Return the power modes among runs of a network that the paper has of other networks alone."""
    factors = runs[0].factors
    compared = load_terms(Path(job.published).parents[1]).sets["MODES"]
    if factors["setup"] != job.paper or factors["model"] not in compared:
        return frozenset()
    modes = {run.factors["power_mode"] for run in runs}
    named = frozenset(mode for modes in compared.values() for mode in modes)
    return frozenset(modes & named) - frozenset(compared[factors["model"]])


def outside_label(modes: Iterable[str], job: Job) -> str:
    """Return a legend's entry of modes that are pale: which networks the paper has them of."""
    ordered = sorted(modes)
    compared = load_terms(Path(job.published).parents[1]).sets["MODES"]
    models = [job.title(model) for model, named in compared.items() if set(ordered) <= set(named)]
    which = f"{ordered[0]} to {ordered[-1]}" if len(ordered) > 1 else ordered[0]
    return f"{which}: {' and '.join(models) or 'others'} alone, our reading of 5.6.6"


def ranges(modes: Iterable[str]) -> str:
    """Return letters in words, as `a to f, k`."""
    spans: list[list[str]] = []
    for mode in sorted(modes):
        follows = spans and len(mode) == 1 and ord(mode) == ord(spans[-1][-1][-1]) + 1
        spans[-1].append(mode) if follows else spans.append([mode])
    return ", ".join(
        f"{span[0]} to {span[-1]}" if len(span) > 2 else ", ".join(span) for span in spans
    )
