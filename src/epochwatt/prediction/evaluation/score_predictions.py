"""Job score_predictions: score methods side by side at the same profiling cost.

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
from epochwatt.prediction.data.workloads import BoardGroup, ProfiledWorkload
from epochwatt.prediction.evaluation.predict_modes import groups_with_choices, write_by_group
from epochwatt.prediction.harness import board_minutes, cross_validate, random_subsets, score, split
from epochwatt.prediction.models.times_power import Priors
from epochwatt.prediction.models.twin_prior import memoised, priors
from epochwatt.prediction.names import (
    DESIGNED,
    EVERY,
    PUBLISHED,
    REFERENCE,
    SEARCHED,
    TARGETS,
    TIME,
)
from epochwatt.prediction.predictor import Method
from epochwatt.prediction.registry import load_methods
from epochwatt.prediction.selection.choose_power_modes import (
    LEAST_MODES,
    N_EPOCHS,
    N_MODES,
    PLACE,
    Chosen,
)
from epochwatt.study.runs import TWIN
from epochwatt.twin.refits import load_prior_parameters
from epochwatt.twin.twin import load_twin

N_SUBSETS = 210  # all subsets of four of ten modes
CHOSEN = {SEARCHED: "the search's choice", PUBLISHED: "e f i j", DESIGNED: "designed"}
TWIN_CONFIG = "config/twin"

Simulate = Callable[[ProfiledWorkload], Priors]  # EpochwattError where nothing is simulated


def score_predictions(
    epochs: Iterable[str],
    modes: Mapping[str, Sequence[float]],
    choices: str,
    counts: Iterable[str],
    folder: str,
    root: Path = Path(),
) -> None:
    """Write scores.csv to the folder with the fits.

    `epochs` and `choices` are paths of each run's `epochs.csv` and of power_modes.json, `modes` has
    the numbers of each run's power mode. `counts` are paths of the counts of the networks, each
    named like its network; without any there are no priors.
    """
    methods = load_methods(root).values()
    simulate: Simulate | None = None
    if counts := list(counts):
        twin = load_twin(root / TWIN_CONFIG, counts)
        p = load_prior_parameters(root / TWIN_CONFIG, twin.parameters)

        def simulate(workload: ProfiledWorkload) -> Priors:
            return priors(workload.factors, twin, p)

    frames = [
        scores(group, chosen, methods, simulate)
        for group, chosen in groups_with_choices(epochs, modes, choices)
    ]
    write_by_group(f"{folder}/scores.csv", "scores", frames)


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
