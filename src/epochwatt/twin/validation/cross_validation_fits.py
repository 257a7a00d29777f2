"""Refit without each take-away, into `config/twin/cross_validation_fits.csv`.

For each take-away (`published/folds.py`) the parameters are fitted anew, from their priors, without
the numbers that it removes; which ones are fitted at all is decided on the numbers that are left.
The spread of the values over the folds says how much hangs on any one take-away. Other kinds of
refits count for nothing but what they are made for: the other groupings (`published/folds.py`,
`near`), those of take-aways that claims alone judge, and one without any number of a power mode or
of DVFS, which is what the simulation knows of modes by its mechanisms.
"""

import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.published.folds import POWER_MODES, Fold, Leak
from epochwatt.published.numbers import Fact
from epochwatt.tables import read_table, write_table
from epochwatt.twin.calibration.calibrate import N_RANDOM, Calibration
from epochwatt.twin.calibration.evidence import fit_with_evidence
from epochwatt.twin.inputs.parameters import Parameters, rounded
from epochwatt.twin.inputs.twin import Twin

FILE = "cross_validation_fits.csv"
ALL = "all"  # in place of a take-away: nothing held out
FOLD, CLAIMS, PRIOR = "fold", "claims", "prior"  # kinds of a refit; `ALL` is one, too
_HEAD = ("takeaway", "kind", "n_facts", "n_parameters", "objective", "other_starts")
AGAIN = "refit them with: make validate"

Fits = dict[str, dict[str, float]]  # take-away held out, or `ALL` -> parameter -> value
Refits = Mapping[str, Mapping[str, float]]  # take-away -> fitted values when it is held out


def refit(
    folds: Mapping[str, Fold],
    facts: Sequence[Fact],
    leaks: Sequence[Leak],
    twin: Twin,
    say: Callable[[str], None] = lambda line: None,
    n_random: int = N_RANDOM,
) -> dict[str, Calibration]:
    """Return the fit of each fold that takes a number away, in a process per core.

    Folds that leave the same numbers share a fit.
    """
    left = {name: without(facts, fold) for name, fold in folds.items()}
    names: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, kept in left.items():
        if len(kept) < len(facts):
            names[tuple(fact.id for fact in kept)].append(name)
    context, fits = multiprocessing.get_context("spawn"), dict[str, Calibration]()
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(names) or 1), context) as pool:
        jobs = {
            pool.submit(
                fit_with_evidence, left[left_out[0]], leaks, twin, _silent, n_random
            ): left_out
            for left_out in names.values()
        }
        for n, job in enumerate(as_completed(jobs), 1):
            fit, left_out = job.result(), jobs[job]
            fits |= dict.fromkeys(left_out, fit)
            costs = " ".join(f"{cost:.2f}" for cost in fit.costs)
            summary = f"{fit.n_facts:3d} numbers, {len(fit.parameters.fitted)} parameters"
            say(
                f"without {', '.join(left_out):28s} {summary}, objectives {costs}  "
                f"({n} of {len(jobs)})"
            )
    return {name: fits[name] for name in left if name in fits}


def _silent(line: str) -> None:
    """Print nothing: this runs in a separate process."""


def without(facts: Sequence[Fact], fold: Fold) -> list[Fact]:
    """Return the numbers that are left when a fold is held out."""
    return [fact for fact in facts if fact.id not in fold.removed]


def write_refits(folder: Path, fits: Mapping[str, Calibration], kinds: Mapping[str, str]) -> None:
    """Write the file, whole or not at all: a row per refit, a column per parameter.

    A parameter has a column if any of the refits fits it; others leave it at its prior.

    Parameters
    ----------
    fits : by take-away, and that of all numbers under `ALL`
    kinds : of those that are not a fold of a take-away
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
    write_table(folder / FILE, "the refits", [*_HEAD, *names], rows)


def load_refits(folder: Path, parameters: Parameters, kinds: Collection[str] = (FOLD,)) -> Fits:
    """Return the fitted values by take-away held out, and those of all numbers under `ALL`.

    Raises ConfigError: the file is missing, damaged, or of other parameters.
    """
    path = folder / FILE
    refits = read_fits(path, _HEAD, (ALL, *kinds))
    fitted = refits.get(ALL, {})
    if fitted != {n: parameters.get(n) for n in fitted} or not fitted.keys() >= {
        *parameters.fitted
    }:
        raise ConfigError(f"{path} is of other fitted values than those beside it", do=AGAIN)
    return refits


def read_fits(path: Path, head: Collection[str], kinds: Collection[str] = ()) -> Fits:
    """Return the fitted values of each line, by the take-away that is held out.

    Parameters
    ----------
    head : columns that are no parameter
    kinds : of the lines that count; empty: all do
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
    """Return all parameters, fitted without a number of modes or DVFS (`power_mode_fold`).

    Parameters and errors as of `load_refits`.
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
    apart = (logs - logs.mean(axis=0)) / np.sqrt(len(logs) - 1)
    steps = np.random.default_rng(seed).standard_normal((n, len(logs))) @ apart
    centre = np.array([parameters[name] for name in names])
    return [parameters.moved(dict(zip(names, row, strict=True))) for row in centre * np.exp(steps)]


def _logs(refits: Refits, names: Sequence[str]) -> np.ndarray:
    """Return ln(value), shape (folds, parameters)."""
    return np.log([[values[n] for n in names] for fold, values in refits.items() if fold != ALL])
