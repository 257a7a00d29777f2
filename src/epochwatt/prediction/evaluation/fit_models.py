"""Jobs that fit all methods of the registry: epoch_time.json and epoch_energy.json of a backend.

Of each workload there is a fit for each method, target and training set: epochs 1 and 2 of chosen
modes, with energy as the papers count it; and, for `recommend`, all epochs of all modes, with
accurate energy. Models that cannot be fitted are left out, and `missing` says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

from epochwatt.board.records import files
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import ProfiledWorkload, board_groups, read_workloads
from epochwatt.prediction.models.model_store import SCHEMA_VERSION, read_models
from epochwatt.prediction.names import ALL, LEFT_OUT, SEARCHED
from epochwatt.prediction.predictor import Context, Json, Method
from epochwatt.prediction.registry import load_methods
from epochwatt.prediction.selection.choose_power_modes import N_EPOCHS, Chosen

LEAST_MODES = 2  # of a fit to all modes


def fit_models(
    epochs: Iterable[str],
    modes: Mapping[str, Sequence[float]],
    choices: str,
    targets: Sequence[str],
    path: str,
    root: Path = Path(),
) -> None:
    """Fit all methods to each workload and write epoch_time.json or epoch_energy.json to `path`.

    `epochs` and `choices` are paths of each run's `epochs.csv` and of power_modes.json, `modes` has
    the numbers of each run's power mode.
    """
    methods = [m for m in load_methods(root).values() if not m.needs_prior]
    groups = board_groups(read_workloads(epochs, modes))
    workloads = []
    for group, choice in zip(groups, read_models(Path(choices))["board_groups"], strict=True):
        chosen = Chosen(**choice)
        modes_searched = chosen.named_modes.values()
        searched = [
            group.workloads[name].observed.after_first(N_EPOCHS).only(modes_searched)
            for name in chosen.networks
        ]
        own = group.workloads.values()
        workloads += [_fitted(workload, chosen, searched, methods, targets) for workload in own]
    files.write_json(path, {"schema_version": SCHEMA_VERSION, "workloads": workloads})


def _fitted(
    workload: ProfiledWorkload,
    chosen: Chosen,
    searched: Sequence[Observations],
    methods: Iterable[Method],
    targets: Sequence[str],
) -> Json:
    """Fit the methods to a workload: its entry in the file. `searched`: epochs of all networks."""
    fits, missing = [], []
    for method in methods:
        wanted = [target for target in method.targets if target in targets]
        for target, learned_from in product(wanted, method.learns_from):
            key = {"method": method.name, "learned_from": learned_from, "target": target}
            try:
                observed = training_epochs(workload, chosen, learned_from)
                if observed is not None:
                    model = method.fit(observed, Context(target, searched)).to_json()
                    fits.append({**key, "model": model})
            except PredictionError as error:
                missing.append(workload.no_energy or str(error).partition("\n")[0])
    return {
        "workload": workload.factors,
        "runs": list(workload.runs),
        "modes": {name: list(mode) for name, mode in workload.modes.items()},
        "fits": fits,
        "missing": "; ".join(dict.fromkeys(missing)),
    }


def training_epochs(
    workload: ProfiledWorkload, chosen: Chosen, learned_from: str
) -> Observations | None:
    """Return a workload's epochs of a training set; None: the board group has no such set.

    Raises PredictionError: some of its modes have no valid epochs.
    """
    if learned_from == ALL:
        observed = workload.metered.after_first()
        observed.need_modes(LEAST_MODES)
        return observed
    if learned_from not in chosen.choices:
        return None
    choice = chosen.choices[learned_from]
    if learned_from == LEFT_OUT:
        choice = choice.get(workload.name, chosen.choices[SEARCHED])
    named = chosen.named_modes
    observed = workload.observed.after_first(N_EPOCHS).only([named[n] for n in choice["modes"]])
    observed.need_modes(len(choice["modes"]))
    return observed
