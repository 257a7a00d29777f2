"""Judge solvers on many problems: how often they answer, keep budgets, and lose how much."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.predictor import Method
from epochwatt.schedule.learned import ALS, Learned
from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.solution import NONE, Answers
from epochwatt.schedule.solvers import exhaustive, gain, gmd, predicted, profiled
from epochwatt.schedule.space import Bools, Places, Problems, Space

Solver = Callable[[Space, Problems, int], Answers]  # space, problems, number of the draw
N_SAMPLED, SEED = 100, 0  # problems of each set of jobs, for a solver that thinks about each

COLUMNS = (
    *("provenance", "device", "jobs", "train", "infer", "power_rule", "solver", "draw"),
    *("n_problems", "n_solvable", "n_judged"),
    *("answered_pct", "kept_pct", "kept_power_pct", "kept_latency_pct"),
    *("loss_median_pct", "loss_mean_pct", "loss_p90_pct", "optimal_pct"),
    *("n_profiles", "board_minutes", "profiles_serve", "note", "assumed"),
)


class Named(NamedTuple):
    """A solver of the evaluation.

    Attributes
    ----------
    solve : the solver
    is_drawn : whether its profiles are drawn, so that several draws say more than one
    serves : `all`: its profiles are the same for all problems of these jobs, and stay; `each`: each
        problem needs its own, some or all
    n_draws : how often, where not as often as the others
    n_sampled : solvable problems that it is judged on, drawn; None: all
    """

    solve: Solver
    is_drawn: bool
    serves: str = "all"
    n_draws: int | None = None
    n_sampled: int | None = None


def solvers(
    methods: Mapping[str, Method], presets: Places, sizes: Sequence[int]
) -> dict[str, Named]:
    """Return the solvers by name, except the one that looks at everything.

    Parameters
    ----------
    methods : name -> method of the registry, which predict from random modes
    presets : places of the board's stock modes; none: they are not known
    """
    named = {
        "gmd": Named(lambda space, problems, _: gmd.solve(space, problems), False, "each"),
        "gain": Named(_by_gain, False, "each", n_sampled=N_SAMPLED),
        "maxn": Named(_of_modes(lambda space, _: profiled.strongest_mode(space)), False),
    }
    if len(presets):
        named["presets"] = Named(_of_modes(lambda *_: presets), False)
    for n in sizes:
        named[f"random_{n}"] = Named(_of_modes(_drawn(n)), True)
        for name, method in methods.items():
            named[f"{name}_{n}"] = Named(_predicting(method, n, False), True)
            named[f"{name}_{n}_verified"] = Named(_predicting(method, n, True), True, "each")
    return named


def _by_gain(space: Space, problems: Problems, draw: int) -> Answers:
    return gain.solve(space, problems)


def _drawn(n: int) -> Callable[[Space, int], Any]:
    return lambda space, draw: profiled.random_modes(space, n, draw)


def _of_modes(modes: Callable[[Space, int], Any]) -> Solver:
    return lambda space, problems, draw: profiled.solve(space, problems, modes(space, draw))


def _predicting(method: Method, n: int, verifies: bool) -> Solver:
    def solve(space: Space, problems: Problems, draw: int) -> Answers:
        modes = profiled.random_modes(space, n, draw)
        seen = predicted.predicted_space(space, method, modes)
        take = predicted.solve_verified if verifies else predicted.solve
        return take(space, problems, seen, modes)

    return solve


def learned_solvers(learned: Sequence[Mapping[str, Sequence[Learned]]]) -> dict[str, Named]:
    """Return the solvers with networks by name.

    Parameters
    ----------
    learned : of each job of the space, in the order of `Space.workloads`: what `learned.learn`
        returned
    """
    named = {}
    for solver, draws in learned[0].items() if learned else ():
        answers = _by_look if solver == ALS else _by_networks
        of_jobs = [one[solver] for one in learned]
        named[solver] = Named(partial(answers, of_jobs), True, n_draws=len(draws))
    return named


def _by_look(
    of_jobs: Sequence[Sequence[Learned]], space: Space, problems: Problems, draw: int
) -> Answers:
    """Answer with modes that were profiled: those of each job's front, for all jobs."""
    modes = np.unique(np.concatenate([draws[draw].modes for draws in of_jobs]))
    return profiled.solve(space, problems, modes)


def _by_networks(
    of_jobs: Sequence[Sequence[Learned]], space: Space, problems: Problems, draw: int
) -> Answers:
    """Answer by prediction, whatever it does in truth; each job has modes of its own."""
    seen_by = [draws[draw] for draws in of_jobs]
    workloads = tuple(one.workload for one in seen_by)
    has_train = space.train is not None
    seen = Space(workloads[0] if has_train else None, workloads[1 if has_train else 0 :])
    n_profiles = sum(one.n_profiles for one in seen_by)
    pairs = zip(space.workloads, seen_by, strict=True)
    board_s = sum(workload.board_s(one.modes) for workload, one in pairs)
    p = len(problems)
    choice = exhaustive.solve(seen, problems).choice
    return Answers(choice, np.full(p, n_profiles), np.full(p, board_s))


def evaluate(
    space: Space, problems: Problems, named: Mapping[str, Named], n_draws: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each solver and draw; without what the rows of a table share.

    `loss` is how far an answer that keeps its budgets is from the best: throughput below the best,
    or latency above it, %. Problems whose best answer trains nothing have none.
    """
    best = exhaustive.solve(space, problems)
    solvable = best.choice != NONE
    problems = problems.only(np.flatnonzero(solvable))
    n = len(problems)
    counts = {"n_problems": len(solvable), "n_solvable": n, "n_judged": n}
    if not len(problems):
        yield counts | {"solver": "exhaustive", "draw": 0, "note": "no problem has an answer"}
        return
    least = _cost(space, problems, best.choice[solvable])
    everything = Answers(*(column[solvable] for column in best if column is not None))
    first = {"solver": "exhaustive", "draw": 0, "profiles_serve": "all"}
    yield counts | first | judge(space, problems, everything, least)
    for name, solver in named.items():
        which = _sampled(len(problems), solver.n_sampled)
        some, least_of_some = problems.only(which), least[which]
        counts["n_judged"] = len(some)
        for draw in range((solver.n_draws or n_draws) if solver.is_drawn else 1):
            row = counts | {"solver": name, "draw": draw, "profiles_serve": solver.serves}
            try:
                answers = solver.solve(space, some, draw)
            except PredictionError as error:
                yield row | {"note": str(error).partition("\n")[0]}
                continue
            yield row | judge(space, some, answers, least_of_some)


def _sampled(n: int, n_most: int | None) -> Places:
    """Return the places of some of n problems, the same at each call."""
    order = np.random.default_rng(SEED).permutation(n)
    return np.sort(order[:n_most])


def judge(space: Space, problems: Problems, answers: Answers, least: Numbers) -> dict[str, Any]:
    """Return the statistics of one solver's answers to solvable problems.

    `least`: (p,), cost of the best answer to each problem.
    """
    answered = answers.choice != NONE
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    kept = answered & judged.holds[:, 0]
    usable = kept & (least != 0)
    loss_pct = 100 * (judged.cost[usable, 0] - least[usable]) / np.abs(least[usable])
    n_answered = max(int(answered.sum()), 1)
    served = judged.keeps_latency & judged.is_stable
    row = {
        "answered_pct": 100 * float(answered.mean()),
        "kept_pct": _share_pct(kept, n_answered),
        "kept_power_pct": _share_pct(answered & judged.keeps_power[:, 0], n_answered),
        "kept_latency_pct": _share_pct(answered & served[:, 0], n_answered),
        "n_profiles": float(np.median(answers.n_profiles)),
    }
    if answers.board_s is not None:
        row["board_minutes"] = float(np.median(answers.board_s)) / 60
    if loss_pct.size:
        row |= {
            "loss_median_pct": float(np.median(loss_pct)),
            "loss_mean_pct": float(loss_pct.mean()),
            "loss_p90_pct": float(np.quantile(loss_pct, 0.9)),
            "optimal_pct": 100 * float((loss_pct < 1e-6).mean()),
        }
    return row


def _share_pct(which: Bools, n: int) -> float:
    return 100 * float(which.sum()) / n


def _cost(space: Space, problems: Problems, choice: Any) -> Numbers:
    return np.asarray(space.judge(problems, choice[:, None]).cost[:, 0])
