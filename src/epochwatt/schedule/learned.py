"""What solvers with networks know of one workload: profiles and predictions, for any problem.

Networks take minutes, and what they learn of a workload serves all its problems, alone or beside
another job. So it is worked out once and kept in a file, an array of each part:
`{solver}/{draw}/{part}`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epochwatt.prediction.predictor import Method, Reference
from epochwatt.prediction.registry import load_method
from epochwatt.schedule.profiles import Workload
from epochwatt.schedule.solvers.als import profiled_modes
from epochwatt.schedule.solvers.predicted import observed, predicted_workload
from epochwatt.schedule.space import Places

NETWORK, TRANSFERRED = "powertrain_scratch_best", "powertrain"  # methods of the registry
ALS, NEURAL, POWERTRAIN = "als", "neural", "powertrain"
N_TRAIN, N_INFER = 250, 50  # random modes of the baseline of Fulcrum, at every mini-batch size
N_TRANSFERRED = 50  # of PowerTrain


@dataclass(frozen=True, eq=False)
class Learned:
    """What a solver knows of one workload.

    Attributes
    ----------
    modes : places of the modes that were profiled, at every mini-batch size
    workload : observed in these modes, predicted in all others
    """

    modes: Places
    workload: Workload

    @property
    def n_profiles(self) -> int:
        """Pairs of mode and mini-batch size that were run."""
        return len(self.modes) * len(self.workload.batch_sizes)


def learn(
    workload: Workload,
    reference: Workload | None,
    n_draws: int,
    is_training: bool,
    cache: Path | None = None,
) -> dict[str, list[Learned]]:
    """Return what each solver knows after its profiles, a list over draws.

    Parameters
    ----------
    reference : another training job in all modes, which PowerTrain transfers from; None: without it
    n_draws : seeds of the modes that are drawn
    is_training : whether the workload trains: the baseline then draws more modes
    cache : folder where the networks of the reference are kept; None: nowhere
    """
    network, every = load_method(NETWORK), np.arange(len(workload.modes))
    n_random = min(N_TRAIN if is_training else N_INFER, len(every))
    learned: dict[str, list[Learned]] = {ALS: [], NEURAL: []}
    for draw in range(n_draws):
        # answers of ALS are looked up in its profiles: nothing is predicted at the end
        learned[ALS].append(Learned(profiled_modes(workload, network, draw), workload))
        learned[NEURAL].append(_predicted(workload, network, _drawn(every, n_random, draw)))
    if reference is not None:
        taught = Reference(observed(reference, every, 0))
        transferred, n_few = load_method(TRANSFERRED), min(N_TRANSFERRED, len(every))
        learned[POWERTRAIN] = [
            _predicted(workload, transferred, _drawn(every, n_few, draw), taught, cache)
            for draw in range(n_draws)
        ]
    return learned


def _drawn(every: Places, n_modes: int, seed: int) -> Places:
    return np.random.default_rng(seed).choice(every, n_modes, replace=False)


def _predicted(
    workload: Workload,
    method: Method,
    modes: Places,
    reference: Reference | None = None,
    cache: Path | None = None,
) -> Learned:
    return Learned(modes, predicted_workload(workload, method, modes, reference, cache))


def write_learned(learned: Mapping[str, list[Learned]], path: Path) -> None:
    """Write what `learn` returned as an .npz file."""
    parts: dict[str, Callable[[Learned], np.ndarray]] = {
        "modes": lambda one: one.modes,
        "time_s": lambda one: one.workload.time_s,
        "power_w": lambda one: one.workload.power_w,
    }
    arrays = {
        f"{solver}/{draw}/{name}": part(one)
        for solver, some in learned.items()
        for draw, one in enumerate(some)
        for name, part in parts.items()
    }
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def read_learned(path: Path, workload: Workload) -> dict[str, list[Learned]]:
    """Return what `write_learned` wrote of a workload."""
    learned: dict[str, list[Learned]] = {}
    with np.load(path) as arrays:
        for name in arrays:
            solver, draw, part = name.split("/")
            if part == "modes":
                columns = {key: arrays[f"{solver}/{draw}/{key}"] for key in ("time_s", "power_w")}
                seen = Learned(arrays[name], replace(workload, **columns))
                learned.setdefault(solver, []).append(seen)
    return learned
