"""Refit without each take-away: `cross_validation_fits.csv` and `setups.csv` of `config/twin/`.

For each take-away (`published/folds.py`) the parameters are fitted anew, from their priors, without
the numbers that it removes; which ones are fitted at all is decided on the numbers that are left.
The spread of the values over the folds says how much hangs on any one take-away. Other kinds of
refits count for nothing but what they are made for: the other groupings (`published/folds.py`,
`near`), those of take-aways that claims alone judge, and one without any number of a power mode or
of DVFS, which is what the simulation knows of modes by its mechanisms.

HiPCW 2021 and the main paper contradict each other where NX has to read its files again: with one
worker it stalls for 173 s in the one and for 456 s in the other. One parameter tells them apart:
how much more memory the set-up leaves to the page cache (`{paper}_spare_mib`). All else is as the
main paper's fit left it, which none of these numbers has seen; so what the set-up prints beyond the
page cache is predicted. `setups.csv` has the values without each take-away of these papers: what a
fold removes, its fit does not see.
"""

import multiprocessing
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.published.folds import POWER_MODES, Fold, Judged, Leak
from epochwatt.published.numbers import Fact, Published
from epochwatt.tables import read_table, write_table
from epochwatt.twin.calibration import (
    MOST,
    N_RANDOM,
    POWER,
    Calibration,
    Say,
    be_silent,
    fit_with_evidence,
    misfits_of_sets,
)
from epochwatt.twin.parameters import Parameters, rounded
from epochwatt.twin.predicted import Batch, predict, seen_by_setups
from epochwatt.twin.twin import Twin

FILE, SETUPS = "cross_validation_fits.csv", "setups.csv"
ALL = "all"  # in place of a take-away: nothing held out
FOLD, CLAIMS, PRIOR = "fold", "claims", "prior"  # kinds of a refit; `ALL` is one, too
HEAD = ("takeaway", "kind", "n_facts", "n_parameters", "objective", "other_starts")
SETUPS_HEAD = ("takeaway", "n_facts")
SETUP = "setup"  # source of a parameter that is fitted to one paper's numbers alone
N_LOOKED = 121  # values of a set-up's parameter that are compared at once
AGAIN = "refit them with: make validate"

Fits = dict[str, dict[str, float]]  # take-away held out, or `ALL` -> parameter -> value
Refits = Mapping[str, Mapping[str, float]]  # take-away -> fitted values when it is held out


def refit(
    folds: Mapping[str, Fold],
    facts: Sequence[Fact],
    leaks: Sequence[Leak],
    twin: Twin,
    say: Say = be_silent,
    n_random: int = N_RANDOM,
    before: Refits | None = None,
) -> dict[str, Calibration]:
    """Fit anew without each fold that removes a number, in a process per core; report by `say`.

    Returns fold -> fit. Folds that leave the same numbers share a fit. `before`: fits of which only
    the parameters of power are fitted anew, all others as they were without the same fold.
    """
    group = POWER if before else ""
    kept = {name: without(facts, fold) for name, fold in folds.items()}
    names_by_ids: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, facts_left in kept.items():
        if len(facts_left) < len(facts):
            names_by_ids[tuple(fact.id for fact in facts_left)].append(name)
    context, fits = multiprocessing.get_context("spawn"), dict[str, Calibration]()
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(names_by_ids) or 1), context) as pool:
        jobs = {
            pool.submit(
                fit_with_evidence,
                kept[alike[0]],
                leaks,
                replace(twin, parameters=held_out(twin.parameters, before or {}, alike[0])),
                be_silent,
                n_random,
                group,
            ): alike
            for alike in names_by_ids.values()
        }
        for n, job in enumerate(as_completed(jobs), 1):
            fit, alike = job.result(), jobs[job]
            fits |= dict.fromkeys(alike, fit)
            costs = " ".join(f"{cost:.2f}" for cost in fit.costs)
            summary = f"{fit.n_facts:3d} numbers, {len(fit.parameters.fitted)} parameters"
            say(
                f"without {', '.join(alike):28s} {summary}, objectives {costs}  "
                f"({n} of {len(jobs)})"
            )
    return {name: fits[name] for name in kept if name in fits}


def load_times(folder: Path, p: Parameters) -> Fits:
    """Return the fitted values of all refits, without those of power: what `refit` keeps."""
    fits = _read_fits(folder / FILE, HEAD)
    is_kept = {name for name, q in p.described.items() if q.group != POWER}
    return {k: {n: v for n, v in own.items() if n in is_kept} for k, own in fits.items()}


def without(facts: Sequence[Fact], fold: Fold) -> list[Fact]:
    """Return the numbers that remain when a fold is held out."""
    return [fact for fact in facts if fact.id not in fold.removed]


def write_refits(folder: Path, fits: Mapping[str, Calibration], kinds: Mapping[str, str]) -> None:
    """Write the refits, whole or not at all: a row per refit, a column per parameter.

    A parameter has a column if any of the refits fits it; others leave it at its prior.

    `fits`: by take-away, and that of all numbers under `ALL`; `kinds`: of those that are not a fold
    of a take-away
    """
    moved = {name for fit in fits.values() for name in fit.parameters.fitted}
    names = [name for name in fits[ALL].parameters if name in moved]
    rows = []
    for takeaway, fit in fits.items():
        kind = ALL if takeaway == ALL else kinds.get(takeaway, FOLD)
        costs = [f"{cost:.2f}" for cost in fit.costs]
        values = [f"{fit.parameters[name]:.12g}" for name in names]
        head = (fit.n_facts, len(fit.parameters.fitted), f"{fit.cost:.2f}", " ".join(costs[1:]))
        rows.append([takeaway, kind, *head, *values])
    write_table(folder / FILE, "the refits", [*HEAD, *names], rows)


def load_refits(folder: Path, parameters: Parameters, kinds: Collection[str] = (FOLD,)) -> Fits:
    """Return the fitted values by take-away held out, and those of all numbers under `ALL`.

    Raises ConfigError: the file is missing, damaged, or of other parameters.
    """
    path = folder / FILE
    refits = _read_fits(path, HEAD, (ALL, *kinds))
    fitted = refits.get(ALL, {})
    has_all = fitted.keys() >= {*parameters.fitted}
    if not has_all or fitted != {name: parameters.get(name) for name in fitted}:
        raise ConfigError(f"{path} is of other fitted values than those beside it", do=AGAIN)
    return refits


def _read_fits(path: Path, head: Collection[str], kinds: Collection[str] = ()) -> Fits:
    """Read take-away held out -> parameter -> fitted value from a table of refits.

    `head`: columns that are no parameters; `kinds`: of the lines that count, empty: all lines

    Raises ConfigError: a cell is missing or no number.
    """
    fits: Fits = {}
    for line, row in read_table(path):
        try:
            if not kinds or row["kind"] in kinds:
                fits[row["takeaway"]] = {n: float(row[n]) for n in row if n not in head}
        except (KeyError, ValueError) as error:
            raise ConfigError(f"{path}, line {line}: {error}", do=AGAIN) from None
    return fits


def load_prior_parameters(folder: Path, p: Parameters) -> dict[str, float]:
    """Return the parameters of the refit that saw no published number of a power mode or of DVFS.

    They are what simulation knows of modes before any is measured. Errors as of `load_refits`.
    """
    refits = load_refits(folder, p, (PRIOR,))
    if POWER_MODES not in refits:
        raise ConfigError(f"{folder / FILE} has no row {POWER_MODES!r}", do=AGAIN)
    return dict(held_out(p, refits, POWER_MODES))


def held_out(parameters: Parameters, refits: Refits, takeaway: str) -> Parameters:
    """Return the parameters of a fit that did not see a take-away.

    Where a take-away removes no number that a fit sees, those are the parameters themselves.
    """
    return parameters.moved(refits.get(takeaway, {}))


def spreads(refits: Refits, fitted: Iterable[str]) -> dict[str, float]:
    """Return the standard deviation of ln(value) over the folds, by fitted parameter."""
    logs = _logs(refits, list(refits[ALL]))
    spread = dict(zip(refits[ALL], logs.std(axis=0, ddof=1), strict=True))
    return {name: rounded(float(spread[name])) for name in fitted}


def parameter_draws(parameters: Parameters, refits: Refits, n: int, seed: int) -> list[Parameters]:
    """Return parameters drawn around the fitted ones as the folds spread, for judging claims.

    The logarithms are drawn from the normal distribution with the folds' covariance: two
    parameters that make up for each other in every fold do so in every draw.
    """
    names = [name for name in refits[ALL] if name in parameters.fitted]
    logs = _logs(refits, names)
    deviations = (logs - logs.mean(axis=0)) / np.sqrt(len(logs) - 1)
    steps = np.random.default_rng(seed).standard_normal((n, len(logs))) @ deviations
    centre = np.array([parameters[name] for name in names])
    return [parameters.moved(dict(zip(names, row, strict=True))) for row in centre * np.exp(steps)]


def _logs(refits: Refits, names: Sequence[str]) -> np.ndarray:
    """Return ln(value) of these parameters in each fold, shape (folds, parameters)."""
    return np.log([[values[n] for n in names] for fold, values in refits.items() if fold != ALL])


def own_parameters(p: Parameters) -> list[str]:
    """Return the names of the parameters that belong to one paper's set-up."""
    return [name for name, parameter in p.described.items() if parameter.source == SETUP]


def fit_setups(
    published: Published, rows: Mapping[str, Judged], folds: Mapping[str, Fold], twin: Twin
) -> tuple[Fits, dict[str, int]]:
    """Fit each set-up's own parameters, with all of its numbers and without each take-away.

    Returns take-away -> parameter -> value, that of all numbers under `ALL`; and take-away -> how
    many numbers the fit saw.
    """
    facts = seen_by_setups(published, rows)
    predictions = predict(facts, twin, twin.parameters)
    facts = [fact for fact in facts if fact.id in predictions]
    kept = {ALL: facts}
    for name, fold in folds.items():
        facts_left = without(facts, fold)
        if len(facts_left) < len(facts):
            kept[name] = facts_left
    names = own_parameters(twin.parameters)  # each fitted while all others stay as they are
    values = {
        takeaway: {
            name: _best_value(name, [f for f in members if name.startswith(f.paper)], twin)
            for name in names
        }
        for takeaway, members in kept.items()
    }
    return values, {name: len(members) for name, members in kept.items()}


def _best_value(name: str, facts: Sequence[Fact], twin: Twin) -> float:
    """Search a parameter's value of the least objective (`calibration`) within `MOST` widths.

    On a grid, then on a finer one about its best: the objective has more than one minimum, since
    beyond a page cache that holds everything nothing changes.
    """
    parameter, batch = twin.parameters.described[name], Batch(facts, twin)
    low, high = -MOST, MOST
    for _ in range(2):
        x = np.linspace(low, high, N_LOOKED)
        values = parameter.prior * parameter.factor**x
        predictions = batch.predict({**twin.parameters, name: values})
        differences = np.column_stack([misfits_of_sets(facts, predictions, len(x)), x])
        costs = np.sum(np.sqrt(1.0 + np.square(differences)) - 1.0, axis=1)  # soft l1
        best, step = float(x[int(np.argmin(costs))]), float(x[1] - x[0])
        low, high = best - step, best + step
    return rounded(parameter.prior * parameter.factor**best)


def write_setups(folder: Path, values: Fits, n_facts: Mapping[str, int]) -> None:
    """Write `setups.csv`, whole or not at all: a row per fit, a column per parameter."""
    rows = (
        [name, n_facts[name], *(f"{value:.12g}" for value in fitted.values())]
        for name, fitted in values.items()
    )
    columns = [*SETUPS_HEAD, *values[ALL]]
    write_table(folder / SETUPS, "what set-ups have of their own", columns, rows)


def load_setups(folder: Path, p: Parameters) -> Fits:
    """Return the set-ups' values by take-away held out, without those of all numbers.

    Raises ConfigError: the file is missing, damaged, or of other parameters.
    """
    path = folder / SETUPS
    setups = _read_fits(path, SETUPS_HEAD)
    if setups.pop(ALL, None) != {name: p[name] for name in own_parameters(p)}:
        raise ConfigError(f"{path} is of other values than those of parameters.yaml", do=AGAIN)
    return setups
