"""Job score_predictions: predict with the stored models, count as the paper does, score methods.

predictions.csv has predicted and observed values of each mode of each workload. `in_training_set`
says whether epochs of this workload in this mode went into the prediction. Bounds are those of
90 %, where the method has intervals. Observed values, and a row's MAPE, are means over valid epochs
1 to 5, those that the papers' runs have (`published.MEANT_EPOCHS`). statistics.csv is of
`paper_statistics`.

In scores.csv every method learns from every subset of four modes (of at most 210, drawn where there
are more) and predicts the others, so that no row rests on one lucky draw; and from the subsets that
somebody chose. Methods that need a prior have rows where the board and a network can be simulated
(`twin_prior`). A network that lacks a mode, its energy or a prior that the method needs is left out
of a row, and `left_out` says why.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path

import numpy as np
import pandas as pd

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Numbers, as_rows
from epochwatt.prediction.data.workloads import (
    BoardGroup,
    ProfiledWorkload,
    board_groups,
    read_workloads,
)
from epochwatt.prediction.evaluation.paper_procedure import by_named_mode
from epochwatt.prediction.evaluation.paper_statistics import rows_of_group
from epochwatt.prediction.harness import board_minutes, cross_validate, random_subsets, score, split
from epochwatt.prediction.models.model_store import ENERGY_FILE, TIME_FILE, read_models
from epochwatt.prediction.models.times_power import Priors, with_energy
from epochwatt.prediction.models.twin_prior import memoised, priors
from epochwatt.prediction.names import (
    ALL,
    DESIGNED,
    ENERGY,
    EVERY,
    PUBLISHED,
    REFERENCE,
    SEARCHED,
    TARGETS,
    TIME,
)
from epochwatt.prediction.predictor import Json, Method
from epochwatt.prediction.registry import load_methods
from epochwatt.prediction.selection.choose_power_modes import (
    LEAST_MODES,
    N_EPOCHS,
    N_MODES,
    PLACE,
    Chosen,
)
from epochwatt.published.numbers import MEANT_EPOCHS, load_published
from epochwatt.study.runs import TWIN
from epochwatt.study.yaml_files import read_yaml
from epochwatt.tables import write_frame
from epochwatt.twin.refits import load_prior_parameters
from epochwatt.twin.twin import load_twin

N_SUBSETS = 210  # all subsets of four of ten modes
CHOSEN = {SEARCHED: "the search's choice", PUBLISHED: "e f i j", DESIGNED: "designed"}
TWIN_CONFIG = "config/twin"
CLAIMS, SLACK = "config/claims.yaml", "EPS_PP"  # of the take-aways: one tolerance
_ABOUT = ("backend", "setup", "device", "instance", "model", "storage", "num_workers", "batch_size")

# runs of a workload -> (method, training set) -> target -> JSON data of a predictor
Stored = dict[tuple[str, ...], dict[tuple[str, str], Json]]
Simulate = Callable[[ProfiledWorkload], Priors]  # EpochwattError where nothing is simulated


def score_predictions(
    epochs: Iterable[str],
    modes: Mapping[str, Sequence[float]],
    choices: str,
    published: str,
    counts: Iterable[str],
    folder: str,
    root: Path = Path(),
) -> None:
    """Write predictions.csv, statistics.csv and scores.csv to the folder with the fits.

    `epochs` and `choices` are paths of each run's `epochs.csv` and of power_modes.json, `modes` has
    the numbers of each run's power mode, `published` is the folder of published numbers. `counts`
    are paths of the counts of the networks, each named like its network; without any there are no
    priors.
    """
    groups = board_groups(read_workloads(epochs, modes))
    stored, methods = load_stored(folder), load_methods(root)
    printed = load_published(Path(published)).measurements
    slack_pp = float(read_yaml(root / CLAIMS)["tolerances"][SLACK]["value"])
    papers = [method.name for method in methods.values() if method.is_paper]
    simulate: Simulate | None = None
    if counts := list(counts):
        twin = load_twin(root / TWIN_CONFIG, counts)
        p = load_prior_parameters(root / TWIN_CONFIG, twin.parameters)

        def simulate(workload: ProfiledWorkload) -> Priors:
            return priors(workload.factors, twin, p)

    tables: dict[str, list[pd.DataFrame]] = {"predictions": [], "statistics": [], "scores": []}
    for number, (group, choice) in enumerate(
        zip(groups, read_models(Path(choices))["board_groups"], strict=True)
    ):
        chosen = Chosen(**choice)
        predicted = pd.concat(
            predict_workload(workload, stored, methods) for workload in group.workloads.values()
        )
        frames = {
            "predictions": predicted,
            "statistics": rows_of_group(chosen, predicted, printed, slack_pp, papers),
            "scores": scores(group, chosen, methods.values(), simulate),
        }
        for name, frame in frames.items():
            frame.insert(0, "board_group", number)
            tables[name].append(frame)
    for name, parts in tables.items():
        whole = pd.concat([part for part in parts if len(part)] or [pd.DataFrame()])
        write_frame(f"{folder}/{name}.csv", name, whole)


def load_stored(folder: str) -> Stored:
    """Read the fits of each workload from epoch_time.json and epoch_energy.json of a folder.

    Raises as `model_store.read_models`.
    """
    stored: Stored = {}
    for name in (TIME_FILE, ENERGY_FILE):
        for row in read_models(Path(folder) / name)["workloads"]:
            fits = stored.setdefault(tuple(row["runs"]), {})
            for fit in row["fits"]:
                key = (fit["method"], fit["learned_from"])
                fits.setdefault(key, {})[fit["target"]] = fit["model"]
    return stored


def predict_workload(
    workload: ProfiledWorkload, stored: Stored, methods: Mapping[str, Method]
) -> pd.DataFrame:
    """Return a workload's rows of predictions.csv, by target, method, training set and mode.

    Fits to all modes are left out: they have seen what they would predict.
    """
    observed = workload.observed.after_first(MEANT_EPOCHS)
    runs = dict(zip(workload.modes, workload.runs, strict=True))
    about = {name: workload.factors[name] for name in _ABOUT}
    fits = {
        key: with_energy({t: methods[key[0]].load(data) for t, data in models.items()})
        for key, models in stored[workload.runs].items()
        if key[1] != ALL and key[0] in methods
    }
    rows = []
    for target in (TIME,) if workload.no_energy else (TIME, ENERGY):
        for (method, learned_from), predictors in fits.items():
            if target not in predictors:
                continue
            trained_on = set(map(tuple, predictors[target].trained_on.tolist()))
            for name, predicted in by_named_mode(predictors[target], workload.modes, observed):
                columns = predicted._asdict()
                mode = columns.pop("mode")
                row = {**about, "run": runs[name], "power_mode": name, **mode._asdict()}
                row |= {"target": target, "method": method, "learned_from": learned_from}
                rows.append({**row, "in_training_set": tuple(mode) in trained_on, **columns})
    return pd.DataFrame(rows, dtype=object)


def scores(
    group: BoardGroup, chosen: Chosen, methods: Iterable[Method], simulate: Simulate | None = None
) -> pd.DataFrame:
    """Return a board group's rows of scores.csv; none where it has too few modes for a test."""
    modes = chosen.named_modes
    if len(modes) < LEAST_MODES:
        return pd.DataFrame()
    all_modes = tuple(modes.values())
    splits_of = {EVERY: random_subsets(all_modes, N_MODES, N_SUBSETS, seed=0)}  # by training set
    for choice, title in CHOSEN.items():
        if choice in chosen.choices:
            names = chosen.choices[choice]["modes"]
            label = title if choice == PUBLISHED else f"{title}: {' '.join(names)}"
            train = [mode for name, mode in modes.items() if name in names]
            splits_of[label] = [split(all_modes, train)]
    splits = list(dict.fromkeys(chain.from_iterable(splits_of.values())))  # each once
    scored = [method for method in methods if method.is_scored]
    reasons = _missing_networks(group, modes)
    workloads = [w for name, w in group.workloads.items() if not reasons[name]]
    simulated, no_prior = _simulated(workloads, as_rows(all_modes), simulate)
    observed = [workload.observed.only(all_modes) for workload in workloads]
    answers = cross_validate(scored, observed, splits, simulated)
    trial = ["table", "draw"]
    by_method = dict(list(answers.groupby(["target", "method"], sort=False)))
    medians = {key: part.groupby(trial)["error_pct"].median() for key, part in by_method.items()}
    costs = {
        rows.workload: {mode: board_minutes(rows, [mode]) for mode in rows.distinct()}
        for rows in observed
    }
    minutes = pd.Series(
        {
            (network, draw): sum(cost[mode] for mode in train)
            for network, cost in costs.items()
            for draw, (train, _) in enumerate(splits)
        }
    )
    rows = []
    for target, method, label in product(TARGETS, scored, splits_of):
        key = target, method.name
        if key not in by_method:
            continue
        part = by_method[key]
        part = part[part["draw"].isin([splits.index(fold) for fold in splits_of[label]])]
        trials = pd.MultiIndex.from_frame(part[trial].drop_duplicates())
        quartiles: list[float | None] = [None] * 3
        if (target, REFERENCE) in medians:
            papers = medians[target, REFERENCE].reindex(trials)
            ratios = (medians[key].reindex(trials) / papers)[papers > 0]
            if len(ratios):
                quartiles = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
        no_energy = {w.name: w.no_energy for w in workloads if target != TIME}
        left_out = reasons | no_energy | (no_prior if method.needs_prior else {})
        rows.append(
            {
                **{name: group.factors[name] for name in PLACE},
                "target": target,
                "method": method.name,
                "learned_from": label,
                "networks": " ".join(part["table"].unique()),
                "n_subsets": part["draw"].nunique(),
                **score(part["error_pct"])._asdict(),
                "error_ratio_to_paper_q25": quartiles[0],
                "error_ratio_to_paper_q50": quartiles[1],
                "error_ratio_to_paper_q75": quartiles[2],
                "board_minutes_low": minutes[trials].min(),
                "board_minutes_median": minutes[trials].median(),
                "board_minutes_high": minutes[trials].max(),
                "by_construction": group.factors["backend"] == TWIN and method.needs_prior,
                "left_out": "; ".join(f"{k}: {why}" for k, why in left_out.items() if why),
            }
        )
    return pd.DataFrame(rows, dtype=object)


def _missing_networks(group: BoardGroup, modes: Mapping[str, object]) -> dict[str, str]:
    """Say by network which modes have no epochs to learn from; empty where all have."""
    reasons = {}
    for network, workload in group.workloads.items():
        present = set(workload.observed.after_first(N_EPOCHS).distinct())
        missing = [name for name, mode in modes.items() if mode not in present]
        reasons[network] = f"no valid epoch 1 or 2 in {', '.join(missing)}" if missing else ""
    return reasons


def _simulated(
    workloads: Iterable[ProfiledWorkload], rows: Numbers, simulate: Simulate | None
) -> tuple[dict[str, Priors], dict[str, str]]:
    """Simulate networks in the modes (n, 6): priors by network, and why others have none."""
    simulated: dict[str, Priors] = {}
    missing: dict[str, str] = {}
    for workload in workloads:
        if simulate is None:
            missing[workload.name] = "nothing is simulated"
            continue
        try:
            own = simulate(workload)
            simulated[workload.name] = {t: memoised(prior, rows) for t, prior in own.items()}
        except EpochwattError as error:  # of a board or network that is not simulated
            missing[workload.name] = str(error).splitlines()[0]
    return simulated, missing
