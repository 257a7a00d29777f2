"""Jobs that fit all methods of the registry: epoch_time.json and epoch_energy.json of a backend.

Of each workload there is a fit for each method, target and training set: epochs 1 and 2 of chosen
modes, with energy as the papers count it; and, for `recommend`, all epochs of all modes, with
accurate energy. Models that cannot be fitted are left out, and `missing` says why.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import (
    BoardGroup,
    ProfiledWorkload,
    board_groups,
    read_workloads,
)
from epochwatt.prediction.models.model_store import SCHEMA_VERSION, read_models
from epochwatt.prediction.names import ALL, LEFT_OUT, SEARCHED
from epochwatt.prediction.predictor import Context, Method
from epochwatt.prediction.registry import load_methods
from epochwatt.prediction.selection.choose_power_modes import named_modes
from epochwatt.prediction.selection.paper_subset_search import N_EPOCHS
from epochwatt.records import files

LEAST_MODES = 2  # of a fit to all modes


def fit_models(
    epochs: Iterable[str],
    modes: Mapping[str, Sequence[float]],
    choices: str,
    targets: Sequence[str],
    path: str,
    root: Path = Path(),
) -> None:
    """Fit all methods to each workload."""
    methods = [m for m in load_methods(root).values() if not m.needs_prior]
    groups = board_groups(read_workloads(epochs, modes))
    workloads = [
        _fitted(workload, group, chosen, methods, targets)
        for group, chosen in zip(groups, read_models(Path(choices))["board_groups"], strict=True)
        for workload in group.workloads.values()
    ]
    files.write_json(path, {"schema_version": SCHEMA_VERSION, "workloads": workloads})


def _fitted(
    workload: ProfiledWorkload,
    group: BoardGroup,
    chosen: Mapping[str, Any],
    methods: Iterable[Method],
    targets: Sequence[str],
) -> dict[str, Any]:
    """Return the fits of a workload, as JSON data."""
    fits, missing = [], []
    networks = _searched_epochs(group, chosen)
    for method, target, learned_from in _combinations(methods, targets):
        try:
            observed = training_epochs(workload, chosen, learned_from)
            if observed is not None:
                predictor = method.fit(observed, Context(target, networks))
                fits.append(
                    {
                        "method": method.name,
                        "learned_from": learned_from,
                        "target": target,
                        "model": predictor.to_json(),
                    }
                )
        except PredictionError as error:
            missing.append(workload.no_energy or str(error).partition("\n")[0])
    return {
        "workload": workload.factors,
        "runs": list(workload.runs),
        "modes": {name: list(mode) for name, mode in workload.modes.items()},
        "fits": fits,
        "missing": "; ".join(dict.fromkeys(missing)),
    }


def _combinations(
    methods: Iterable[Method], targets: Sequence[str]
) -> Iterator[tuple[Method, str, str]]:
    for method in methods:
        for target in method.targets:
            if target in targets:
                yield from ((method, target, learned_from) for learned_from in method.learns_from)


def _searched_epochs(group: BoardGroup, chosen: Mapping[str, Any]) -> list[Observations]:
    """Return the training epochs of the networks of the search, in all searched modes."""
    modes = named_modes(chosen).values()
    return [
        group.workloads[name].observed.after_first(N_EPOCHS).only(modes)
        for name in chosen["networks"]
    ]


def training_epochs(
    workload: ProfiledWorkload, chosen: Mapping[str, Any], learned_from: str
) -> Observations | None:
    """Return the epochs of a training set; None: nobody chose such a set here.

    Raises PredictionError: some of its modes have no valid epochs.
    """
    if learned_from == ALL:
        observed = workload.metered.after_first()
        observed.need_modes(LEAST_MODES)
        return observed
    choices = chosen["choices"]
    if learned_from not in choices:
        return None
    choice = choices[learned_from]
    if learned_from == LEFT_OUT:
        choice = choice.get(workload.name, choices[SEARCHED])
    named = named_modes(chosen)
    observed = workload.observed.after_first(N_EPOCHS).only([named[n] for n in choice["modes"]])
    observed.need_modes(len(choice["modes"]))
    return observed
