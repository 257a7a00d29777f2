"""The job score_predictions: what the models are worth beside each other, and as the paper counts.

predictions.csv, statistics.csv and scores.csv of a backend. In scores.csv every model learns from
every subset of four modes (of at most 210, drawn where there are more) and predicts the others, so
that no row rests on one lucky draw; beside it the subsets that somebody chose. Where the board and
one of its networks or more can be simulated, models on a prior stand among them (`twin_prior`). A
network that lacks a mode, its energy or, there, its prior is left out of a row, and `left_out` says
why.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.workloads import Bench, Workload, benches, read_workloads
from epochwatt.prediction.evaluation.cross_validation import (
    ENERGY_FITS,
    POWER_FITS,
    TIME_FITS,
    Fit,
    Priors,
    Trial,
    fits_with_priors,
    known_at,
    score,
    try_splits,
)
from epochwatt.prediction.evaluation.paper_statistics import PLACE, rows_of_bench
from epochwatt.prediction.evaluation.predictions import load_models, rows_of
from epochwatt.prediction.evaluation.splits import Split, random_subsets, split
from epochwatt.prediction.models.model_store import read_models
from epochwatt.prediction.models.twin_prior import priors
from epochwatt.prediction.selection.choose_power_modes import (
    AS_PUBLISHED,
    DESIGNED,
    LEAST_MODES,
    RAW,
    named_modes,
    write_rows,
)
from epochwatt.prediction.selection.paper_subset_search import N_EPOCHS, N_MODES
from epochwatt.published.numbers import load_published
from epochwatt.study.runs import TWIN
from epochwatt.twin.inputs.twin import load_twin
from epochwatt.twin.validation.refits import load_prior_parameters

N_SUBSETS = 210  # all subsets of four of ten modes
EVERY = "every subset of four"
PAPER = {"time_s": "paper", "energy_wh": "paper, trained on predicted time"}  # none of power
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
    expect = _simulated(list(counts), root)
    tables: dict[str, list[Row]] = {"predictions": [], "statistics": [], "scores": []}
    for n, (bench, chosen) in enumerate(zip(benches(workloads), found, strict=True)):
        predictions = [row for of in bench.workloads.values() for row in rows_of(of, models, n)]
        told = (
            predictions,
            rows_of_bench(chosen, predictions, printed),
            scores(bench, chosen, expect),
        )
        for rows, own in zip(tables.values(), told, strict=True):
            rows += [{"bench": n, **row} for row in own]
    for name, rows in tables.items():
        write_rows(f"{folder}/{name}.csv", rows)


def _simulated(counts: Sequence[str], root: Path) -> Expect | None:
    """Return what the simulation expects of a workload; None: nothing can be simulated."""
    if not counts:
        return None
    twin = load_twin(root / TWIN_CONFIG, {Path(path).stem: path for path in counts})
    p = load_prior_parameters(root / TWIN_CONFIG, twin.parameters)
    return lambda workload: priors(workload.factors, twin, p)


def _expected(
    own: Sequence[Workload], rows: Numbers, expect: Expect | None
) -> tuple[dict[str, Priors], dict[str, str]]:
    """Return what is expected of the networks of a bench, and of the others why nothing is.

    Parameters
    ----------
    rows : (n, 5), all modes that models will be asked for: the prior is worked out once
    """
    known, unknown = {}, {}
    if expect is not None:
        for of in own:
            try:
                known[of.name] = known_at(expect(of), rows)
            except EpochwattError as error:  # of a board or network that is not simulated
                unknown[of.name] = str(error).splitlines()[0]
    return known, unknown


def scores(bench: Bench, chosen: Mapping[str, Any], expect: Expect | None = None) -> list[Row]:
    """Return the rows of a bench; none where it has fewer modes than a test needs.

    Parameters
    ----------
    chosen : the bench as in power_modes.json
    expect : what the simulation expects of a workload, where there is one
    """
    if len(chosen["modes"]) < LEAST_MODES:
        return []
    modes = named_modes(chosen)
    wanted = tuple(modes.values())
    lacks = {name: _lacks(of, modes) for name, of in bench.workloads.items()}
    own = [of for of in bench.workloads.values() if not lacks[of.name]]
    if not own:
        return []
    subsets = _subsets(modes, chosen["choices"])
    splits = list(dict.fromkeys(one for of in subsets.values() for one in of))
    place = {name: bench.about[name] for name in PLACE}
    known, unknown = _expected(own, as_rows(wanted), expect)
    by_target = fits_with_priors(known, own[0].factors["backend"] == TWIN) if known else PLAIN_FITS
    rows = []
    for target, fits in by_target.items():
        no_energy = {of.name: of.no_energy for of in own} if target != "time_s" else {}
        tried, left_out = {}, {}
        for fit_name, fit in fits.items():
            no_prior = unknown if fit_name not in PLAIN_FITS[target] else {}
            why = {name: why for name, why in (lacks | no_energy | no_prior).items() if why}
            left_out[fit_name] = "; ".join(f"{name}: {said}" for name, said in why.items())
            if observed := [of.observed.only(wanted) for of in own if of.name not in why]:
                tried[fit_name] = try_splits(fit, observed, splits, target)
        papers = tried.get(PAPER.get(target, ""), [])
        for fit_name, trials in tried.items():
            about = {**place, "target": target, "fit": fit_name}
            told = {"left_out": left_out[fit_name]}
            rows += [{**about, **row, **told} for row in _summaries(trials, papers, subsets)]
    return rows


def _lacks(of: Workload, modes: Mapping[str, Mode]) -> str:
    """Return which modes a model could not learn from; empty: none."""
    there = set(of.observed.after_first(N_EPOCHS).distinct())
    lacking = [name for name, mode in modes.items() if mode not in there]
    return f"no valid epoch 1 or 2 in {', '.join(lacking)}" if lacking else ""


def _subsets(modes: Mapping[str, Mode], choices: Mapping[str, Any]) -> dict[str, list[Split]]:
    """Return the splits of each row, in words: those of every subset, and what somebody chose."""
    wanted = tuple(modes.values())
    subsets = {EVERY: random_subsets(wanted, N_MODES, N_SUBSETS, seed=0)}
    for choice, said in CHOSEN.items():
        if choice in choices:
            names = choices[choice]["modes"]
            train = [mode for name, mode in modes.items() if name in names]
            told = f"{said}: {' '.join(names)}" if choice != AS_PUBLISHED else said
            subsets[told] = [split(wanted, train)]
    return subsets


def _summaries(
    trials: Sequence[Trial], papers: Sequence[Trial], subsets: Mapping[str, Sequence[Split]]
) -> list[Row]:
    """Return a row of each set of subsets."""
    trained = {said: {one.train for one in of} for said, of in subsets.items()}
    medians = {(of.workload, of.train): float(np.median(of.errors_pct)) for of in papers}
    return [
        _summary(said, [trial for trial in trials if trial.train in of], medians)
        for said, of in trained.items()
    ]


def _summary(
    said: str, trials: Sequence[Trial], papers: Mapping[tuple[str, tuple[Mode, ...]], float]
) -> Row:
    found = score(np.concatenate([trial.errors_pct for trial in trials]))
    minutes = [trial.board_minutes for trial in trials]
    beside = [(trial, papers.get((trial.workload, trial.train), 0.0)) for trial in trials]
    ratios = [float(np.median(trial.errors_pct)) / paper for trial, paper in beside if paper > 0]
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75]) if ratios else (None,) * 3
    return {
        "learned_from": said,
        "networks": " ".join(dict.fromkeys(trial.workload for trial in trials)),
        "n_subsets": len({trial.train for trial in trials}),
        **found._asdict(),
        **{"times_paper_low": low, "times_paper_median": middle, "times_paper_high": high},
        "board_minutes_low": float(np.min(minutes)),
        "board_minutes_median": float(np.median(minutes)),
        "board_minutes_high": float(np.max(minutes)),
    }
