"""Job score_predictions: score all methods side by side, and count as the paper does.

predictions.csv, statistics.csv and scores.csv of a backend. In scores.csv every method learns from
every subset of four modes (of at most 210, drawn where there are more) and predicts the others, so
that no row rests on one lucky draw; and from the subsets that somebody chose. Methods that need a
prior have rows where the board and a network can be simulated (`twin_prior`). A network that lacks
a mode, its energy or a prior that the method needs is left out of a row, and `left_out` says why.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.workloads import (
    BoardGroup,
    ProfiledWorkload,
    board_groups,
    read_workloads,
)
from epochwatt.prediction.evaluation.cross_validation import (
    Priors,
    Trial,
    cross_validate,
    score,
)
from epochwatt.prediction.evaluation.paper_statistics import rows_of_group
from epochwatt.prediction.evaluation.predictions import load_stored, rows_of_workload
from epochwatt.prediction.evaluation.splits import Split, random_subsets, split
from epochwatt.prediction.models.model_store import read_models
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
    PLACE,
    named_modes,
    write_rows,
)
from epochwatt.prediction.selection.paper_subset_search import N_EPOCHS, N_MODES
from epochwatt.published.numbers import load_published
from epochwatt.study.runs import TWIN
from epochwatt.study.yaml_files import read_yaml
from epochwatt.twin.inputs.twin import load_twin
from epochwatt.twin.validation.cross_validation_fits import load_prior_parameters

N_SUBSETS = 210  # all subsets of four of ten modes
CHOSEN = {SEARCHED: "the search's choice", PUBLISHED: "e f i j", DESIGNED: "designed"}
TWIN_CONFIG = "config/twin"
CLAIMS, SLACK = "config/claims.yaml", "EPS_PP"  # of the take-aways: one tolerance

Row = dict[str, Any]
Medians = Mapping[tuple[str, tuple[Mode, ...]], float]  # workload, training modes -> error, %
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
    """Write predictions.csv, statistics.csv and scores.csv."""
    groups = board_groups(read_workloads(epochs, modes))
    stored, methods = load_stored(folder), load_methods(root)
    printed = load_published(Path(published)).measurements
    slack_pp = float(read_yaml(root / CLAIMS)["tolerances"][SLACK]["value"])
    papers = [method.name for method in methods.values() if method.is_paper]
    simulate = _simulation(list(counts), root)
    tables: dict[str, list[Row]] = {"predictions": [], "statistics": [], "scores": []}
    for place, (group, chosen) in enumerate(
        zip(groups, read_models(Path(choices))["board_groups"], strict=True)
    ):
        predictions = [
            row
            for workload in group.workloads.values()
            for row in rows_of_workload(workload, stored, methods)
        ]
        by_table = {
            "predictions": predictions,
            "statistics": rows_of_group(chosen, predictions, printed, slack_pp, papers),
            "scores": scores(group, chosen, methods.values(), simulate),
        }
        for name, rows in by_table.items():
            tables[name] += [{"board_group": place, **row} for row in rows]
    for name, rows in tables.items():
        write_rows(f"{folder}/{name}.csv", rows)


def _simulation(counts: Sequence[str], root: Path) -> Simulate | None:
    """Return what gives the priors of a workload; None: nothing can be simulated."""
    if not counts:
        return None
    twin = load_twin(root / TWIN_CONFIG, counts)
    p = load_prior_parameters(root / TWIN_CONFIG, twin.parameters)
    return lambda workload: priors(workload.factors, twin, p)


def _priors(
    workloads: Sequence[ProfiledWorkload], rows: Numbers, simulate: Simulate | None
) -> tuple[dict[str, Priors], dict[str, str]]:
    """Return the priors of networks, and of the others why there are none.

    Parameters
    ----------
    rows : (n, 6), all modes that methods will see: priors are worked out once
    """
    expected: dict[str, Priors] = {}
    missing: dict[str, str] = {}
    for workload in workloads:
        if simulate is None:
            missing[workload.name] = "nothing is simulated"
            continue
        try:
            simulated = simulate(workload)
            expected[workload.name] = {t: memoised(prior, rows) for t, prior in simulated.items()}
        except EpochwattError as error:  # of a board or network that is not simulated
            missing[workload.name] = str(error).splitlines()[0]
    return expected, missing


def scores(
    group: BoardGroup,
    chosen: Mapping[str, Any],
    methods: Iterable[Method],
    simulate: Simulate | None = None,
) -> list[Row]:
    """Return the rows of a board group; none where it has fewer modes than a test needs."""
    if len(chosen["modes"]) < LEAST_MODES:
        return []
    modes = named_modes(chosen)
    incomplete = {name: _incomplete(workload, modes) for name, workload in group.workloads.items()}
    workloads = [w for name, w in group.workloads.items() if not incomplete[name]]
    subsets = _subsets(modes, chosen["choices"])
    splits = list(dict.fromkeys(one for some in subsets.values() for one in some))
    expected, no_prior = _priors(workloads, as_rows(tuple(modes.values())), simulate)
    left_out: dict[tuple[str, str], str] = {}
    scored = [method for method in methods if method.is_scored]
    observed = [workload.observed.only(modes.values()) for workload in workloads]
    trials = cross_validate(scored, observed, splits, expected)
    for method in scored:
        for target in TARGETS:
            no_energy = {w.name: w.no_energy for w in workloads if target != TIME}
            reasons = incomplete | no_energy | (no_prior if method.needs_prior else {})
            shown = [f"{name}: {reason}" for name, reason in reasons.items() if reason]
            left_out[target, method.name] = "; ".join(shown)
    references = {target: _medians(trials.get(REFERENCE, {}).get(target, ())) for target in TARGETS}
    is_simulated = group.factors["backend"] == TWIN
    return [
        {
            **{name: group.factors[name] for name in PLACE},
            "target": target,
            "method": method.name,
            **row,
            "by_construction": is_simulated and method.needs_prior,
            "left_out": left_out[target, method.name],
        }
        for target in TARGETS
        for method in scored
        if target in trials[method.name]
        for row in _summaries(trials[method.name][target], references[target], subsets)
    ]


def _incomplete(workload: ProfiledWorkload, modes: Mapping[str, Mode]) -> str:
    """Return which modes a method could not learn from; empty: none."""
    present = set(workload.observed.after_first(N_EPOCHS).distinct())
    missing = [name for name, mode in modes.items() if mode not in present]
    return f"no valid epoch 1 or 2 in {', '.join(missing)}" if missing else ""


def _subsets(modes: Mapping[str, Mode], choices: Mapping[str, Any]) -> dict[str, list[Split]]:
    """Return the splits of each row, in words: those of every subset, and what somebody chose."""
    wanted = tuple(modes.values())
    subsets = {EVERY: random_subsets(wanted, N_MODES, N_SUBSETS, seed=0)}
    for choice, title in CHOSEN.items():
        if choice in choices:
            names = choices[choice]["modes"]
            train = [mode for name, mode in modes.items() if name in names]
            label = title if choice == PUBLISHED else f"{title}: {' '.join(names)}"
            subsets[label] = [split(wanted, train)]
    return subsets


def _medians(trials: Iterable[Trial]) -> Medians:
    return {(t.workload, t.train): float(np.median(t.errors_pct)) for t in trials}


def _summaries(
    trials: Sequence[Trial], references: Medians, subsets: Mapping[str, Sequence[Split]]
) -> list[Row]:
    """Return a row of each set of subsets."""
    medians, rows = _medians(trials), []
    for label, splits in subsets.items():
        train = {one.train for one in splits}
        some = [trial for trial in trials if trial.train in train]
        rows.append(_summary(label, some, medians, references))
    return rows


def _summary(label: str, trials: Sequence[Trial], medians: Medians, references: Medians) -> Row:
    errors = score(np.concatenate([trial.errors_pct for trial in trials]))
    minutes = [trial.board_minutes for trial in trials]
    keys = [(trial.workload, trial.train) for trial in trials]
    ratios = [medians[key] / references[key] for key in keys if references.get(key, 0.0) > 0]
    q25, q50, q75 = np.quantile(ratios, [0.25, 0.5, 0.75]) if ratios else (None,) * 3
    return {
        "learned_from": label,
        "networks": " ".join(dict.fromkeys(trial.workload for trial in trials)),
        "n_subsets": len({trial.train for trial in trials}),
        **errors._asdict(),
        "error_ratio_to_paper_q25": q25,
        "error_ratio_to_paper_q50": q50,
        "error_ratio_to_paper_q75": q75,
        "board_minutes_low": float(np.min(minutes)),
        "board_minutes_median": float(np.median(minutes)),
        "board_minutes_high": float(np.max(minutes)),
    }
