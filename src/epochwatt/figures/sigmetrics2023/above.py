"""What stands above the field of a network: its name, what changes, the front; red what fails."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from matplotlib.axes import Axes

from epochwatt.claims.functions import spearman
from epochwatt.figures.common.failing import failing_sides, is_side, misplaced, red_of
from epochwatt.figures.common.job import Job
from epochwatt.figures.sigmetrics2023.clouds import Cloud
from epochwatt.figures.sigmetrics2023.printed_modes import (
    UNJUDGED,
    WORDS,
    change_text,
    contradictions,
    deviation,
    is_change_wrong,
    printed_changes,
    unjudged_note,
)

FIRST_PT, LINE_PT = 4.0, 9.2  # of the texts above the axes, and each of their lines
BELOW_PT = 2.0  # of the title, whose place is that of its base line
NEAR_PCT = 0.5  # modes on a front whose times differ by less are said to


@dataclass(frozen=True)
class Above:
    """What is written above the fields of a figure.

    Attributes
    ----------
    compared : two power modes that the paper's text compares, `f e`; empty: none
    metric : of which the paper prints how it changes between them
    fronts : what the paper says of each network's front, `lenet: ...; resnet: ...`
    trend : what it says of E2E against x; empty: nothing
    much_less : network and the one that it calls the change of E2E much less than; empty: none
    is_red : networks above whose fields something is red
    has_unjudged : the mark of a change that is off without being red, where there is one
    """

    job: Job
    compared: str
    metric: str
    fronts: str
    trend: str
    much_less: str
    is_red: set[str] = field(default_factory=set)
    has_unjudged: set[str] = field(default_factory=set)

    @property
    def change(self) -> list[str]:
        """The two power modes, or nothing."""
        return self.compared.split()

    @cached_property
    def _printed_fronts(self) -> dict[str, str]:
        parts = (part.strip().split(": ") for part in self.fronts.split(";") if part)
        return dict(parts)

    @cached_property
    def _wrong(self) -> list[tuple[Any, Any]]:
        return failing_sides(self.job, self.job.figure, self.job.epoch_table())

    @cached_property
    def _off_front(self) -> set[str]:
        return misplaced(self.job, self.job.figure, self.job.epoch_table())

    def write(self, cloud: Cloud, axes: Axes, marks: Iterable[Sequence[dict[str, Any]]]) -> None:
        """Write above a field what a reader compares; what a claim fails by is red.

        Parameters
        ----------
        marks : pairs of rows of which a number is published
        """
        is_wrong = is_change_wrong(cloud, self.change, self._wrong)
        changed = change_text(cloud, self.change, self.metric, self.job, is_wrong=is_wrong)
        self.has_unjudged.update({UNJUDGED} & set(changed))
        trend, is_trend_wrong = self._trend_text(cloud)
        parts = [
            (cloud.label, False),
            (changed, is_wrong),
            *((deviation(pair), False) for pair in marks),
            (trend, is_trend_wrong),
            (
                front_text(cloud, self._printed_fronts.get(cloud.model, "")),
                cloud.model in self._off_front,
            ),
        ]
        shown = [(text, is_wrong) for text, is_wrong in parts if text]
        if any(is_wrong for _, is_wrong in shown):
            self.is_red.add(cloud.model)
        black, red = self.job.palette["published"], red_of(self.job)
        at_pt = FIRST_PT
        for text, is_wrong in reversed(shown[1:]):
            line = axes.annotate(
                text, (0.5, 1.0), (0.0, at_pt), xycoords="axes fraction", ha="center", va="bottom",
                textcoords="offset points", fontsize="small", color=red if is_wrong else black,
            )  # fmt: skip
            line.set_in_layout(False)  # the title makes room for it, and is as wide as it likes
            at_pt += LINE_PT * (1 + text.count("\n"))
        axes.set_title(cloud.label, fontsize="small", color=black, pad=at_pt + BELOW_PT)

    def _trend_text(self, cloud: Cloud) -> tuple[str, bool]:
        """Return what is printed of E2E against x and what it is here, and whether that fails."""
        there = [p for n, p in enumerate(cloud.points) if p and cloud.is_compared(n)]
        if (
            not self.trend
            or min((len(set(values)) for values in zip(*there, strict=True)), default=0) < 2
        ):
            return "", False
        here = spearman(*zip(*there, strict=True))
        text = f"paper: E2E {self.trend} to {WORDS[cloud.x]}\nhere: rank correlation"
        return f"{text} {here:+.2f}", any(is_side(here, sides) for sides in self._wrong)

    def remarks(self, clouds: Sequence[Cloud]) -> str:
        """Return for the corner what the paper says of several networks, or against itself."""
        relations = self.job.relations
        of_clouds = (printed_changes(c, self.change, self.metric, relations) for c in clouds)
        doubtful = contradictions(self.job, (fact for facts in of_clouds for fact in facts))
        off = unjudged_note(self.job) if self.has_unjudged else ""
        return self._much_less(clouds) + off + doubtful

    def _much_less(self, clouds: Sequence[Cloud]) -> str:
        """Return what the paper calls much less, and both changes here; nothing without both."""
        of_model = {cloud.model: [cloud.point(mode) for mode in self.change] for cloud in clouds}
        ends = [of_model.get(model, [None]) for model in self.much_less.split()]
        if not ends or any(point is None for pair in ends for point in pair):
            return ""
        here = [f"{100.0 * (b[1] / a[1] - 1.0):.0f}" for a, b in ends if a and b]
        less, more = map(self.job.title, self.much_less.split())
        says = f"the paper calls the change of E2E much less for {less} than for {more}"
        return f"; {says}: here {here[0]} against {here[1]} %; no claim judges what is much"


def front_text(cloud: Cloud, printed: str) -> str:
    """Return which power modes are on the front, as printed and here; nothing where none is."""
    on = {cloud.runs[n].factors["power_mode"]: cloud.points[n] for n in cloud.front}
    times = {mode: point[1] for mode, point in on.items() if point}
    if not times:
        return ""
    near = [m for m, s in times.items() if s <= min(times.values()) * (1.0 + NEAR_PCT / 100.0)]
    here = " ".join(sorted(times))
    if printed and len(near) > 1:
        apart_pct = 100.0 * (max(times[m] for m in near) / min(times.values()) - 1.0)
        which = "" if len(near) == len(times) else f"{' '.join(sorted(near))} "
        here += f", {which}within {max(apart_pct, 0.1):.1f} % in time"
    return f"front, paper: {printed}\nhere: {here}" if printed else f"front here: {here}"
