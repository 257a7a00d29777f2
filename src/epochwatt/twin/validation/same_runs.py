"""Find published runs that are one run to the simulation.

Two media that are both hidden behind the workers, or DVFS that leaves the clocks where they are,
give the same epoch. A number of the one then gives away the same number of the other, whatever the
paper prints. So times, powers and energies of one board and network that agree within `SAME`, with
whatever parameters, are one point for the folds (`published/folds.py`).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from epochwatt.published.folds import (
    BY_HAND,
    LEAKS,
    SAME_AS,
    Point,
    derived_leaks,
    load_leaks,
    point,
)
from epochwatt.published.numbers import SPREADS, Fact, Measurement, Published
from epochwatt.tables import write_table
from epochwatt.twin.calibration.predicted import Batch
from epochwatt.twin.inputs.numbers import Array
from epochwatt.twin.inputs.parameters import Parameters
from epochwatt.twin.inputs.twin import Twin

SAME = 1e-3  # of a value
METRICS = ("e2e_s", "stall_s", "compute_s", "power_w", "energy_wh")
N_DRAWS, SEED = 16, 0


def write_leaks(folder: Path, published: Published, twin: Twin) -> None:
    """Write `overlapping_numbers.csv`: derived sets anew, those found by hand kept.

    Raises
    ------
    ConfigError : the file that is there is missing or wrong
    RecordWriteError : it cannot be written
    """
    order = list(published.facts())
    by_hand = [leak for leak in load_leaks(folder, order) if leak.rule == BY_HAND]
    leaks = derived_leaks(published, one_run(published, twin))
    rows = (
        (" ".join(sorted(leak.ids, key=order.index)), leak.rule, leak.why)
        for leak in [*leaks, *by_hand]
    )
    columns = ("published_ids", "rule", "why")
    write_table(folder / LEAKS, "what gives numbers away", columns, rows)


def one_run(published: Published, twin: Twin) -> dict[Point, Point]:
    """Return of each point that has an equal the first of those which are equal to it."""
    measurements: dict[Point, Measurement] = {}
    for fact in published.facts().values():
        for this, alone in _points(fact):
            measurements.setdefault(this, alone)
    predictions = Batch(measurements.values(), twin).predict(
        drawn(twin.parameters.candidates(), N_DRAWS, SEED)
    )
    values = {
        at: predictions[alone.id][0]
        for at, alone in measurements.items()
        if alone.id in predictions
    }
    same: dict[Point, Point] = {}
    for at in values:
        first = next(other for other in values if _is_same(at, other, values))
        if first != at:
            same[at] = same.get(first, first)
    return same


def drawn(parameters: Parameters, n: int, seed: int) -> dict[str, Array]:
    """Return sets of parameters: those with a prior lie anywhere within its width.

    So what is found does not depend on what was fitted before.

    Parameters
    ----------
    n : how many sets
    seed : the same gives the same
    """
    described, rng = parameters.described, np.random.default_rng(seed)
    others = [
        name for name in described if described[name].factor and name not in parameters.fitted
    ]
    steps = {name: rng.uniform(-1.0, 1.0, n) for name in [*parameters.fitted, *others]}
    return {
        **parameters,
        **{name: described[name].prior * described[name].factor ** x for name, x in steps.items()},
    }


def _is_same(a: Point, b: Point, values: Mapping[Point, Array]) -> bool:
    """Say whether two points are of one paper, board, network and metric, and always agree."""
    alike = (a[0], a[1], a[3], a[-1]) == (b[0], b[1], b[3], b[-1])
    return alike and bool(np.all(np.abs(np.log(values[a] / values[b])) < SAME))


def _points(fact: Fact) -> Iterable[tuple[Point, Measurement]]:
    """Yield the points of a number, and each as if a number of it alone were printed."""
    metric = SAME_AS.get(fact.metric, fact.metric)
    if metric not in METRICS or fact.kind != "run" or fact.formula in SPREADS:
        return
    for run in fact.runs:
        at = point(fact.paper, run, metric)
        alone = Measurement(
            id=repr(at),
            paper=fact.paper,
            section=fact.section,
            metric=metric,
            value=1.0,
            unit="s",
            qualifier="exact",
            config=run,
        )
        yield at, alone
