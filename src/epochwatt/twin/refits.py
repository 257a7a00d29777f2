"""The folds of the cross-validation refitted, and their file `config/twin/refits.csv`.

For each take-away (`study/folds.py`) the fitted parameters are fitted anew, from their priors,
without the numbers that it removes. The spread of the values over the folds says how much hangs on
any one take-away. Two kinds of refits are none of these folds and count for nothing but what they
are made for: those of take-aways that claims alone judge, and one without any number of a power
mode or of DVFS, which is what the simulation knows of modes by its mechanisms.
"""

import csv
import io
import multiprocessing
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.records import files
from epochwatt.study.folds import POWER_MODES, Fold
from epochwatt.study.published import read_table
from epochwatt.twin.calibrate import Fit, calibrate
from epochwatt.twin.compare import Fact
from epochwatt.twin.load import Twin
from epochwatt.twin.observe import Modes
from epochwatt.twin.parameters import Parameters, rounded

FILE = "refits.csv"
ALL = "all"  # in place of a take-away: nothing held out
FOLD, CLAIMS, PRIOR = "fold", "claims", "prior"  # kinds of a refit; `ALL` is one, too
_HEAD = ("take_away", "kind", "n_facts", "objective")
_AGAIN = "  refit them with: make validate"

Refits = Mapping[str, Mapping[str, float]]  # take-away -> fitted values when it is held out


def refit(
    folds: Mapping[str, Fold],
    facts: Sequence[Fact],
    twin: Twin,
    modes: Modes,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Fit]:
    """Return the fit of each fold that takes a number away, in a process per core.

    Parameters
    ----------
    folds : by take-away
    facts : published numbers that the fit of all may see
    say : is told of each fold
    """
    left = {name: without(facts, fold) for name, fold in folds.items()}
    left = {name: kept for name, kept in left.items() if len(kept) < len(facts)}
    context, found = multiprocessing.get_context("spawn"), {}
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(left) or 1), context) as pool:
        jobs = {pool.submit(calibrate, kept, twin, modes): name for name, kept in left.items()}
        for job in as_completed(jobs):
            fit = found[jobs[job]] = job.result()
            told = f"without {jobs[job]:6s} {fit.n_facts:3d} numbers, objective {fit.cost:7.2f}"
            say(f"{told}  ({len(found)} of {len(jobs)})")
    return {name: found[name] for name in left}


def without(facts: Sequence[Fact], fold: Fold) -> list[Fact]:
    """Return the numbers that are left when a fold is held out."""
    return [fact for fact in facts if fact.id not in fold.removed]


def write_refits(folder: Path, fits: Mapping[str, Fit], kinds: Mapping[str, str]) -> None:
    """Write `refits.csv`, whole or not at all: a row per refit, a column per fitted parameter.

    Parameters
    ----------
    folder : config/twin
    fits : by take-away, and that of all numbers under `ALL`
    kinds : of those that are no fold: `CLAIMS`, `PRIOR`
    """
    names = fits[ALL].parameters.fitted
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_HEAD, *names])
    for take_away, fit in fits.items():
        kind = ALL if take_away == ALL else kinds.get(take_away, FOLD)
        values = [f"{fit.parameters[name]:.12g}" for name in names]
        writer.writerow([take_away, kind, fit.n_facts, f"{fit.cost:.2f}", *values])
    path = str(folder / FILE)
    with files.writing("the refits", path):
        files.write_bytes(path, text.getvalue().encode())


def load_refits(
    folder: Path, parameters: Parameters, kinds: Collection[str] = (FOLD,)
) -> dict[str, dict[str, float]]:
    """Return the fitted values by take-away held out, and those of all numbers under `ALL`.

    Parameters
    ----------
    folder : config/twin
    parameters : of the same folder
    kinds : of the refits

    Raises
    ------
    ConfigError : the file is missing, damaged, or of other parameters
    """
    path, found = folder / FILE, dict[str, dict[str, float]]()
    for line, row in read_table(path):
        names = [name for name in row if name not in _HEAD]
        try:
            if row["kind"] in (ALL, *kinds):
                found[row["take_away"]] = {name: float(row[name]) for name in names}
        except (KeyError, ValueError) as error:
            raise ConfigError(f"{path}, line {line}: {error}\n{_AGAIN}") from None
    if found.get(ALL) != {name: parameters[name] for name in parameters.fitted}:
        raise ConfigError(f"{path} is of other fitted values than those beside it\n{_AGAIN}")
    return found


def load_prior_parameters(folder: Path, p: Parameters) -> dict[str, float]:
    """Return all parameters, fitted without a number of modes or DVFS (`power_mode_fold`).

    Parameters and errors as of `load_refits`.
    """
    refits = load_refits(folder, p, (PRIOR,))
    if POWER_MODES not in refits:
        raise ConfigError(f"{folder / FILE} has no row {POWER_MODES!r}\n{_AGAIN}")
    return dict(held_out(p, refits, POWER_MODES))


def held_out(parameters: Parameters, refits: Refits, take_away: str) -> Parameters:
    """Return the parameters of a fit that did not see a take-away.

    Where a take-away removes no number that a fit sees, those are the parameters themselves.
    """
    return parameters.moved(refits.get(take_away, {}))


def spreads(refits: Refits) -> dict[str, float]:
    """Return the standard deviation of ln(value) over the folds, by parameter."""
    logs = _logs(refits, list(refits[ALL]))
    return {
        name: rounded(float(value))
        for name, value in zip(refits[ALL], logs.std(axis=0, ddof=1), strict=True)
    }


def parameter_draws(parameters: Parameters, refits: Refits, n: int, seed: int) -> list[Parameters]:
    """Return parameters drawn around the fitted ones as the folds spread, for judging claims.

    The logarithms are drawn from the normal distribution with the folds' covariance: two
    parameters that make up for each other in every fold do so in every draw.

    Parameters
    ----------
    n : how many
    seed : the same gives the same
    """
    names = list(refits[ALL])
    logs = _logs(refits, names)
    apart = (logs - logs.mean(axis=0)) / np.sqrt(len(logs) - 1)
    steps = np.random.default_rng(seed).standard_normal((n, len(logs))) @ apart
    centre = np.array([parameters[name] for name in names])
    return [parameters.moved(dict(zip(names, row, strict=True))) for row in centre * np.exp(steps)]


def _logs(refits: Refits, names: Sequence[str]) -> np.ndarray:
    """Return ln(value), shape (folds, parameters)."""
    return np.log([[of[n] for n in names] for fold, of in refits.items() if fold != ALL])
