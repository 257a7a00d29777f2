"""Answer among choices that are profiled for all problems alike: chance, presets, top mode."""

import numpy as np

from epochwatt.schedule.problem import Answers
from epochwatt.schedule.solvers.exhaustive import best_among
from epochwatt.schedule.space import Places, Problems, Space


def solve(space: Space, problems: Problems, modes: Places) -> Answers:
    """Return the best choice in profiled modes, at any mini-batch size.

    `modes`: places of the modes that are profiled, at every mini-batch size.
    """
    choices = np.flatnonzero(np.isin(space.choices[:, 0], modes))
    modes = np.unique(modes)
    n_profiles = np.full(len(problems), profiles_of(space, len(modes)))
    board_s = np.full(len(problems), sum(one.board_s(modes) for one in space.workloads))
    return Answers(best_among(space, problems, choices), n_profiles, board_s)


def profiles_of(space: Space, n_modes: int) -> int:
    """Return how many mini-batches are measured where modes are run at every mini-batch size."""
    return n_modes * sum(len(one.batch_sizes) for one in space.workloads)


def random_modes(space: Space, n_modes: int, seed: int) -> Places:
    """Return the places of some modes, drawn."""
    n = len(space.modes)
    return np.random.default_rng(seed).choice(n, min(n_modes, n), replace=False)


def strongest_mode(space: Space) -> Places:
    """Return the place of the mode with the most of everything, as MAXN; the one nearest to it."""
    steps = space.knobs[:, : space.n_mode_knobs]
    nearest = np.abs(steps - steps.max(0)).sum(1).argmin()
    return space.choices[[nearest], 0]
