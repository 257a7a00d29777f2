"""The job score_predictions: what the models are worth beside each other, and as the paper counts.

predictions.csv, statistics.csv and scores.csv of a backend. In scores.csv every model learns from
every subset of four modes (of at most 210, drawn where there are more) and predicts the others, so
that no row rests on one lucky draw; beside it the subsets that somebody chose. Where the board and
its networks can be simulated, models on a prior stand among them (`twin_prior`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.choices import AS_PUBLISHED, DESIGNED, LEAST_MODES, RAW, write_rows
from epochwatt.prediction.fits import read_models
from epochwatt.prediction.model import Prior
from epochwatt.prediction.modes import Mode, Numbers, as_rows
from epochwatt.prediction.predictions import load_models, rows_of
from epochwatt.prediction.scoring import (
    ENERGY_FITS,
    POWER_FITS,
    TIME_FITS,
    Fit,
    Priors,
    Trial,
    fits_with_priors,
    score,
    try_splits,
)
from epochwatt.prediction.splits import random_subsets
from epochwatt.prediction.statistics import PLACE, rows_of_bench
from epochwatt.prediction.subsets import N_MODES
from epochwatt.prediction.twin_prior import priors
from epochwatt.prediction.workloads import Bench, Workload, benches, read_workloads
from epochwatt.study.published import load_published
from epochwatt.study.runs import TWIN
from epochwatt.twin.load import load_twin
from epochwatt.twin.refits import load_prior_parameters

N_SUBSETS = 210  # all subsets of four of ten modes
EVERY = "every subset of four"
CHOSEN = {RAW: "the search's choice", AS_PUBLISHED: "e f i j", DESIGNED: "designed"}
TARGETS = ("time_s", "power_w", "energy_wh")
PLAIN_FITS: dict[str, dict[str, Fit]] = dict(
    zip(TARGETS, (TIME_FITS, POWER_FITS, ENERGY_FITS), strict=True)
)
TWIN_CONFIG = "config/twin"

Row = dict[str, Any]
Expect = Callable[[Workload], Priors]  # raises EpochwattError where nothing is simulated


def score_predictions(
    epochs: Iterable[str],
    modes: Mapping[str, Sequence[float]],
    choices: str,
    published: str,
    counts: Iterable[str],
    folder: str,
    root: Path = Path(),
) -> None:
    """Write predictions.csv, statistics.csv and scores.csv.

    Parameters
    ----------
    epochs : path of the `epochs.csv` of each run
    modes : run -> numbers of its power mode
    choices : power_modes.json
    published : folder config/published
    counts : paths of the counts of the networks, each named like its network; none: no priors
    folder : results/models/{backend}, with the fits
    root : the checkout
    """
    workloads = read_workloads(epochs, modes)
    models, found = load_models(folder), read_models(Path(choices))["benches"]
    printed = load_published(Path(published)).measurements
    predictions = [row for of in workloads for row in rows_of(of, models)]
    write_rows(f"{folder}/predictions.csv", predictions)
    statistics = [row for bench in found for row in rows_of_bench(bench, predictions, printed)]
    write_rows(f"{folder}/statistics.csv", statistics)
    expect = _simulated(list(counts), root)
    both = zip(benches(workloads), found, strict=True)
    write_rows(f"{folder}/scores.csv", [row for pair in both for row in scores(*pair, expect)])


def _simulated(counts: Sequence[str], root: Path) -> Expect | None:
    """Return what the simulation expects of a workload; None: nothing can be simulated."""
    if not counts:
        return None
    twin = load_twin(root / TWIN_CONFIG, {Path(path).stem: path for path in counts})
    p = load_prior_parameters(root / TWIN_CONFIG, twin.parameters)
    return lambda workload: priors(workload.factors, twin, p)


def fits_of(own: Sequence[Workload], rows: Numbers, expect: Expect | None) -> dict[str, Any]:
    """Return the models of a bench by target, those on a prior among them where there is one.

    Parameters
    ----------
    rows : (n, 4), all modes that they will be asked for: the prior is worked out once
    """
    if expect is None:
        return PLAIN_FITS
    try:
        known = {of.name: _known(expect(of), rows) for of in own}
    except EpochwattError:  # of a board or network that is not simulated
        return PLAIN_FITS
    return fits_with_priors(known, own[0].factors["backend"] == TWIN)


def _known(of: Priors, rows: Numbers) -> Priors:
    return Priors(None if of.time is None else _at(of.time, rows), _at(of.power, rows))


def _at(prior: Prior, rows: Numbers) -> Prior:
    values = dict(zip(map(tuple, rows.tolist()), prior(rows).tolist(), strict=True))
    return lambda modes: np.array([values[tuple(row)] for row in as_rows(modes).tolist()])


def scores(bench: Bench, chosen: Mapping[str, Any], expect: Expect | None = None) -> list[Row]:
    """Return the rows of a bench; none where it has fewer modes than a test needs.

    Parameters
    ----------
    chosen : the bench as in power_modes.json
    expect : what the simulation expects of a workload, where there is one
    """
    if len(chosen["modes"]) < LEAST_MODES:
        return []
    modes = {name: Mode(int(n), *clocks) for name, (n, *clocks) in chosen["modes"].items()}
    wanted = tuple(modes.values())
    own = [of for of in bench.workloads.values() if set(wanted) <= set(of.observed.distinct())]
    splits = random_subsets(wanted, N_MODES, N_SUBSETS, seed=0)
    place = {name: bench.about[name] for name in PLACE}
    if not own:
        return []
    rows = []
    for target, fits in fits_of(own, as_rows(wanted), expect).items():
        there = [of for of in own if target == "time_s" or not of.no_energy]
        observed = [of.observed.only(wanted) for of in there]
        for name, fit in fits.items() if there else ():
            trials = try_splits(fit, observed, splits, target)
            about = {**place, "target": target, "fit": name}
            rows += [about | row for row in _summaries(trials, modes, chosen["choices"])]
    return rows


def _summaries(
    trials: Sequence[Trial], modes: Mapping[str, Mode], choices: Mapping[str, Any]
) -> list[Row]:
    """Return a row of all trials, and one of each choice that was tried."""
    kept = {EVERY: list(trials)}
    for choice, said in CHOSEN.items():
        if choice in choices:
            names = choices[choice]["modes"]
            train = {modes[name] for name in names}
            told = f"{said}: {' '.join(names)}" if choice != AS_PUBLISHED else said
            kept[told] = [trial for trial in trials if set(trial.train) == train]
    return [_summary(said, of) for said, of in kept.items() if of]


def _summary(said: str, trials: Sequence[Trial]) -> Row:
    found = score(np.concatenate([trial.errors_pct for trial in trials]))
    minutes = [trial.board_minutes for trial in trials]
    return {
        "learned_from": said,
        "networks": " ".join(dict.fromkeys(trial.workload for trial in trials)),
        "n_subsets": len({trial.train for trial in trials}),
        **found._asdict(),
        "board_minutes_low": float(np.min(minutes)),
        "board_minutes_median": float(np.median(minutes)),
        "board_minutes_high": float(np.max(minutes)),
    }
