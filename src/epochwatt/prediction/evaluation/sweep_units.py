"""What of mode tables is judged together, and which modes methods learn from.

A table of many modes stands alone. Tables that are too small for more than four profiled modes, as
a network at one batch size under eight power limits, and tables of a sweep that has many of them,
are judged together: errors are pooled, and the spread is that over the workloads.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.mode_tables import name_of, observations_of
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.splits import Split, random_subsets, split
from epochwatt.prediction.evaluation.sweep_names import DESIGNED, N_PROFILED
from epochwatt.prediction.predictor import Reference
from epochwatt.prediction.selection.optimal_design import choose_modes, design_of_modes
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.text import by_reason, counted

LEAST_MODES = 6  # of a table, so that two are left to predict
TINY = 2 * N_PROFILED[1]  # fewer modes are enough for the least number of profiled modes alone
MOST_ALONE = 8  # tables of one sweep and device that are judged one by one
N_DRAWS = 10
N_DESIGNED = N_PROFILED[0]


@dataclass(frozen=True, eq=False)
class Unit:
    """Workloads of one sweep and device that are judged together; one where it stands alone."""

    # sweep, provenance, device: as in the tables
    sweep: str
    provenance: str
    device: str
    workload: str  # its name; how many there are where they are several
    knobs: tuple[str, ...]  # parts of a `Mode` that differ among the modes
    power_scope: str  # what the power is that of; empty: there is none
    tables: tuple[Observations, ...]  # a row per mode
    # what methods that need one transfer from; none: there is none. Several workloads have two:
    # where the first is one of them, the second is for that one
    references: tuple[Reference, ...] = ()
    no_reference: str = ""  # why there is none; empty: nobody looked for one
    cache: Path | None = None  # folder where methods keep what they learn of it; None: nowhere

    @property
    def is_pooled(self) -> bool:
        """Whether several workloads are judged together."""
        return len(self.tables) > 1

    def reference_of(self, table: Observations) -> Reference | None:
        """Return what methods transfer from to a workload: never itself."""
        others = (one for one in self.references if one.rows.workload != table.workload)
        return next(others, None)

    @property
    def n_modes(self) -> int:
        """Modes of the workload that has most."""
        return max(len(table.modes) for table in self.tables)

    def sizes(self) -> list[int]:
        """Return how many modes are profiled: of `N_PROFILED`, up to half of the modes."""
        if self.is_pooled:
            return [N_PROFILED[0]]
        return [n for n in N_PROFILED if n <= self.n_modes / 2] or [N_PROFILED[0]]


@dataclass(frozen=True, eq=False)
class Draw:
    """Modes of one table to learn from, and all others of it to predict."""

    table: int  # its place in the unit
    number: int
    modes: Split


def units_of(tables: Iterable[ModeTable]) -> tuple[list[Unit], list[str]]:
    """Return what is judged together, and why some tables are not judged."""
    grouped: dict[tuple[str, str, str], list[ModeTable]] = defaultdict(list)
    left_out: list[tuple[str, str]] = []  # name of a table, and why
    units: list[Unit] = []
    for table in tables:
        grouped[table.key.sweep, table.key.provenance, table.key.device].append(table)
    for place, some in grouped.items():
        usable: dict[ModeTable, Observations] = {}
        for table in some:
            try:
                rows = observations_of(table)
            except EpochwattError as error:
                reason = str(error).replace("\n ", ";").removeprefix(f"{name_of(table)}: ")
                left_out.append((name_of(table), reason))
                continue
            if len(rows.modes) >= LEAST_MODES:
                usable[table] = rows
            else:
                n_modes = counted(len(rows.modes), "modes")
                left_out.append((name_of(table), f"{n_modes}, {LEAST_MODES} or more are needed"))
        large = [table for table, rows in usable.items() if len(rows.modes) >= TINY]
        alone = large if len(large) <= MOST_ALONE else []
        units += [_unit(place, [table], usable) for table in alone]
        if pooled := [table for table in usable if table not in alone]:
            units.append(_unit(place, pooled, usable))
    return units, by_reason(left_out)


def with_reference(unit: Unit, tables: Iterable[ModeTable], cache: Path | None = None) -> Unit:
    """Return the unit with references: the first tables of other workloads that will do.

    Tables of the same device come first. One will do that has as many modes as the smallest number
    that is profiled, twice, and power where the unit has power. Where none will do, the unit says
    why.
    """
    ours = {table.workload for table in unit.tables}
    needs_power = not any(np.isnan(table.power_w).any() for table in unit.tables)
    reasons: list[tuple[str, str]] = []
    references: list[Reference] = []
    for table in sorted(tables, key=lambda table: table.key.device != unit.device):
        try:
            others = observations_of(table)
        except EpochwattError as error:
            reasons.append((name_of(table), error.problem))
            continue
        if reason := _unfit(others, ours, needs_power):
            reasons.append((others.workload, reason))
            continue
        references.append(Reference(others, is_other_board=table.key.device != unit.device))
        if {one.rows.workload for one in references} - ours or len(references) == 2:
            return replace(unit, references=tuple(references), cache=cache)
    if references:
        reasons = [(references[0].rows.workload, "it is judged, and no other one will do for it")]
    why = "; ".join(by_reason(dict.fromkeys(reasons))) or "no other workload was given"
    return replace(unit, no_reference=f"no reference: {why}")


def _unfit(others: Observations, ours: set[str], needs_power: bool) -> str:
    """Return why a table cannot be the reference of these workloads; empty: it can."""
    if ours == {others.workload}:
        return "the workload itself"
    if len(others.modes) < TINY:
        return f"{len(others.modes)} modes, {TINY} or more are needed"
    return "no power in some modes" if needs_power and np.isnan(others.power_w).any() else ""


def _unit(
    place: tuple[str, str, str], tables: Sequence[ModeTable], usable: dict[ModeTable, Observations]
) -> Unit:
    name = name_of(tables[0]).removeprefix(f"{place[0]}: ")
    knobs = [part for part in Mode._fields if any(part in table.varied() for table in tables)]
    return Unit(
        *place,
        workload=name if len(tables) == 1 else f"{len(tables)} workloads",
        knobs=tuple(knobs),
        power_scope=next((table.power_scope for table in tables if table.power_scope), ""),
        tables=tuple(usable[table] for table in tables),
    )


def draws_of(unit: Unit, n_profiled: int, how: str, n_draws: int = N_DRAWS) -> list[Draw]:
    """Return what every method learns from and predicts: the same for all of them.

    Raises EpochwattError: no design is possible.

    Parameters
    ----------
    how : `RANDOM`, or `DESIGNED`: one set of modes, chosen before any run
    """
    if how == DESIGNED:
        return [Draw(place, 0, _designed(unit, table)) for place, table in enumerate(unit.tables)]
    return [
        Draw(place, number, one)
        for place, table in enumerate(unit.tables)
        for number, one in enumerate(
            random_subsets(table.distinct(), n_profiled, n_draws, seed=place)
        )
    ]


def _designed(unit: Unit, table: Observations) -> Split:
    design = design_of_modes(unit.device, table.modes, table.processes)
    chosen = choose_modes(design, N_DESIGNED).modes
    return split(table.distinct(), [_nearest(table, mode) for mode in chosen])


def _nearest(table: Observations, mode: Mode) -> Mode:
    """Return the mode of a table that a chosen one is: candidates are its modes as they are."""
    place = int(np.abs(table.modes - np.array(mode)).sum(1).argmin())
    return table.mode_of_row[place]
