"""Fit the parameters of one paper's set-up to that paper alone.

HiPCW 2021 and the main paper contradict each other where NX has to read its files again: with one
worker it stalls for 173 s in the one and for 456 s in the other. One parameter tells them apart:
how much more memory the set-up leaves to the page cache (`{paper}_spare_mib`). All else is as the
main paper's fit left it, which none of these numbers has seen; so what the set-up prints beyond the
page cache is predicted.

`config/twin/setups.csv` has the values without each take-away of these papers, as
`cross_validation_fits.csv` has the shared ones: what a fold removes, its fit does not see.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.published.folds import Fold, Judged
from epochwatt.published.numbers import Fact, Published
from epochwatt.tables import write_table
from epochwatt.twin.calibration.calibrate import misfits_of_sets
from epochwatt.twin.calibration.fit_numbers import seen_by_setups
from epochwatt.twin.calibration.predicted import Batch, predict
from epochwatt.twin.inputs.parameters import Parameters, rounded
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.validation.cross_validation_fits import AGAIN, ALL, Fits, read_fits

FILE = "setups.csv"
SOURCE = "setup"  # of a parameter that is fitted to one paper's numbers alone
WIDTHS, N_LOOKED = 3.0, 121
_HEAD = ("takeaway", "n_facts")


def own_parameters(p: Parameters) -> list[str]:
    """Return the names of the parameters that belong to one paper's set-up."""
    return [name for name, parameter in p.described.items() if parameter.source == SOURCE]


def fit_setups(
    published: Published, rows: Mapping[str, Judged], folds: Mapping[str, Fold], twin: Twin
) -> tuple[Fits, dict[str, int]]:
    """Fit each set-up's own parameters, with all of its numbers and without each take-away.

    Returns
    -------
    The values without each take-away that has such numbers, and with all under `ALL`; how many
    numbers each saw.
    """
    facts = seen_by_setups(published, rows)
    predictions = predict(facts, twin, twin.parameters)
    facts = [fact for fact in facts if fact.id in predictions]
    kept = {ALL: facts}
    for name, fold in folds.items():
        left = [fact for fact in facts if fact.id not in fold.removed]
        if len(left) < len(facts):
            kept[name] = left
    names = own_parameters(twin.parameters)  # each fitted while all others stay as they are
    values = {
        takeaway: {
            name: _best(name, [f for f in left if name.startswith(f.paper)], twin) for name in names
        }
        for takeaway, left in kept.items()
    }
    return values, {name: len(left) for name, left in kept.items()}


def _best(name: str, facts: Sequence[Fact], twin: Twin) -> float:
    """Return the value of the least objective (`calibrate`) within three widths of the prior.

    All of it is looked through, since it has more than one minimum: beyond a page cache that holds
    everything nothing changes.
    """
    parameter, batch = twin.parameters.described[name], Batch(facts, twin)
    low, high = -WIDTHS, WIDTHS
    for _ in range(2):
        x = np.linspace(low, high, N_LOOKED)
        predictions = batch.predict(
            {**twin.parameters, name: parameter.prior * parameter.factor**x}
        )
        off = misfits_of_sets(facts, predictions, len(x))
        differences = np.column_stack([off, x])
        costs = np.sum(np.sqrt(1.0 + np.square(differences)) - 1.0, axis=1)  # soft l1
        best, step = float(x[int(np.argmin(costs))]), float(x[1] - x[0])
        low, high = best - step, best + step
    return rounded(parameter.prior * parameter.factor**best)


def write_setups(folder: Path, values: Fits, n_facts: Mapping[str, int]) -> None:
    """Write `setups.csv`, whole or not at all: a row per fit, a column per parameter."""
    rows = (
        [name, n_facts[name], *(f"{value:.12g}" for value in of_fold.values())]
        for name, of_fold in values.items()
    )
    columns = [*_HEAD, *values[ALL]]
    write_table(folder / FILE, "what set-ups have of their own", columns, rows)


def load_setups(folder: Path, p: Parameters) -> Fits:
    """Return the values by take-away held out, those of all numbers left out.

    Raises ConfigError: the file is missing, damaged, or of other parameters.
    """
    path = folder / FILE
    setups = read_fits(path, _HEAD)
    if setups.pop(ALL, None) != {name: p[name] for name in own_parameters(p)}:
        raise ConfigError(f"{path} is of other values than those of parameters.yaml", do=AGAIN)
    return setups
