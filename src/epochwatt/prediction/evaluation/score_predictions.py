"""Job score_predictions: score all methods side by side, and count as the paper does.

predictions.csv, statistics.csv and scores.csv of a backend. In scores.csv every method learns from
every subset of four modes (of at most 210, drawn where there are more) and predicts the others, so
that no row rests on one lucky draw; and from the subsets that somebody chose. Methods that need a
prior have rows where the board and a network can be simulated (`twin_prior`). A network that lacks
a mode, its energy or a prior that the method needs is left out of a row, and `left_out` says why.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, as_rows
from epochwatt.prediction.data.workloads import (
    BoardGroup,
    ProfiledWorkload,
    board_groups,
    read_workloads,
)
from epochwatt.prediction.evaluation.paper_statistics import rows_of_group
from epochwatt.prediction.evaluation.predictions import load_stored, predict_workload
from epochwatt.prediction.harness import board_minutes, cross_validate, random_subsets, score, split
from epochwatt.prediction.models.model_store import read_models
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
from epochwatt.published.numbers import load_published
from epochwatt.study.runs import TWIN
from epochwatt.study.yaml_files import read_yaml
from epochwatt.tables import write_frame
from epochwatt.twin.refits import load_prior_parameters
from epochwatt.twin.twin import load_twin

N_SUBSETS = 210  # all subsets of four of ten modes
CHOSEN = {SEARCHED: "the search's choice", PUBLISHED: "e f i j", DESIGNED: "designed"}
TWIN_CONFIG = "config/twin"
CLAIMS, SLACK = "config/claims.yaml", "EPS_PP"  # of the take-aways: one tolerance

Medians = Mapping[Any, float]  # of each trial: one workload predicted from one subset
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
    """Write predictions.csv, statistics.csv and scores.csv.

    Parameters
    ----------
    epochs : path of the `epochs.csv` of each run
    modes : run -> numbers of its power mode
    choices : power_modes.json
    counts : paths of the counts of the networks, each named like its network; none: no priors
    folder : results/models/{backend}, with the fits
    """
    groups = board_groups(read_workloads(epochs, modes))
    stored, methods = load_stored(folder), load_methods(root)
    printed = load_published(Path(published)).measurements
    slack_pp = float(read_yaml(root / CLAIMS)["tolerances"][SLACK]["value"])
    papers = [method.name for method in methods.values() if method.is_paper]
    simulate = _simulation(list(counts), root)
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


def _simulation(counts: Sequence[str], root: Path) -> Simulate | None:
    """Return a function that gives the priors of a workload; None: nothing can be simulated."""
    if not counts:
        return None
    twin = load_twin(root / TWIN_CONFIG, counts)
    p = load_prior_parameters(root / TWIN_CONFIG, twin.parameters)
    return lambda workload: priors(workload.factors, twin, p)


class _Group(NamedTuple):
    """A board group as all methods see it."""

    workloads: list[ProfiledWorkload]  # that can be judged
    priors: dict[str, Priors]  # of their networks
    missing: dict[str, str]  # network -> why it is in no row; empty: it is
    no_prior: dict[str, str]  # network -> why it is in no row of methods that need a prior


def _prepared(group: BoardGroup, modes: Mapping[str, Mode], simulate: Simulate | None) -> _Group:
    missing = {name: _missing_modes(w, modes) for name, w in group.workloads.items()}
    workloads = [w for name, w in group.workloads.items() if not missing[name]]
    expected: dict[str, Priors] = {}
    no_prior: dict[str, str] = {}
    rows = as_rows(tuple(modes.values()))
    for workload in workloads:
        if simulate is None:
            no_prior[workload.name] = "nothing is simulated"
            continue
        try:
            simulated = simulate(workload)  # worked out once for all modes that methods will see
            expected[workload.name] = {t: memoised(prior, rows) for t, prior in simulated.items()}
        except EpochwattError as error:  # of a board or network that is not simulated
            no_prior[workload.name] = str(error).splitlines()[0]
    return _Group(workloads, expected, missing, no_prior)


def _missing_modes(workload: ProfiledWorkload, modes: Mapping[str, Mode]) -> str:
    """Return the modes that a method could not learn from, as a sentence; empty: none."""
    present = set(workload.observed.after_first(N_EPOCHS).distinct())
    missing = [name for name, mode in modes.items() if mode not in present]
    return f"no valid epoch 1 or 2 in {', '.join(missing)}" if missing else ""


def scores(
    group: BoardGroup, chosen: Chosen, methods: Iterable[Method], simulate: Simulate | None = None
) -> pd.DataFrame:
    """Return the scores of a board group; none where it has fewer modes than a test needs."""
    modes = chosen.named_modes
    if len(modes) < LEAST_MODES:
        return pd.DataFrame()
    own = _prepared(group, modes, simulate)
    every = random_subsets(tuple(modes.values()), N_MODES, N_SUBSETS, seed=0)
    subsets = {EVERY: every}
    for choice, title in CHOSEN.items():
        if choice in chosen.choices:
            names = chosen.choices[choice]["modes"]
            label = title if choice == PUBLISHED else f"{title}: {' '.join(names)}"
            train = [mode for name, mode in modes.items() if name in names]
            subsets[label] = [split(tuple(modes.values()), train)]
    splits = list(dict.fromkeys(one for some in subsets.values() for one in some))
    scored = [method for method in methods if method.is_scored]
    observed = [workload.observed.only(modes.values()) for workload in own.workloads]
    answers = cross_validate(scored, observed, splits, own.priors)
    by_method = dict(list(answers.groupby(["target", "method"], sort=False)))
    medians: dict[Hashable, Medians] = {
        key: part.groupby(["table", "draw"], sort=False)["error_pct"].median().to_dict()
        for key, part in by_method.items()
    }
    cost = {
        rows.workload: {mode: board_minutes(rows, [mode]) for mode in rows.distinct()}
        for rows in observed
    }
    minutes = {
        (name, draw): sum(by_mode[mode] for mode in one.train)
        for name, by_mode in cost.items()
        for draw, one in enumerate(splits)
    }
    rows = []
    for target in TARGETS:
        for method in scored:
            key = target, method.name
            if key not in by_method:
                continue
            no_energy = {w.name: w.no_energy for w in own.workloads if target != TIME}
            reasons = own.missing | no_energy | (own.no_prior if method.needs_prior else {})
            for label, some in subsets.items():
                numbers = [splits.index(one) for one in some]
                part = by_method[key][by_method[key]["draw"].isin(numbers)]
                reference = medians.get((target, REFERENCE), {})
                rows.append(
                    {
                        **{name: group.factors[name] for name in PLACE},
                        **{"target": target, "method": method.name, "learned_from": label},
                        **_summary(part, medians[key], reference, minutes),
                        "by_construction": group.factors["backend"] == TWIN and method.needs_prior,
                        "left_out": "; ".join(f"{k}: {why}" for k, why in reasons.items() if why),
                    }
                )
    return pd.DataFrame(rows, dtype=object)


def _summary(
    part: pd.DataFrame,
    medians: Medians,
    references: Medians,
    minutes: Mapping[tuple[str, int], float],
) -> dict[str, object]:
    """Return the numbers of one row: errors, their ratios to the paper's, what profiling costs."""
    trials = list(dict.fromkeys(zip(part["table"], part["draw"], strict=True)))
    ratios = [medians[key] / references[key] for key in trials if references.get(key, 0.0) > 0]
    quartiles = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist() if ratios else [None] * 3
    cost = [minutes[key] for key in trials]
    return {
        "networks": " ".join(dict.fromkeys(part["table"])),
        "n_subsets": part["draw"].nunique(),
        **score(part["error_pct"])._asdict(),
        **dict(zip([f"error_ratio_to_paper_q{q}" for q in (25, 50, 75)], quartiles, strict=True)),
        "board_minutes_low": float(np.min(cost)),
        "board_minutes_median": float(np.median(cost)),
        "board_minutes_high": float(np.max(cost)),
    }
