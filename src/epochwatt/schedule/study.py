"""Judge solvers on the study's problems: how often they answer, keep budgets, and lose how much.

Solvers with networks take minutes to learn a job, and what they learn serves all its problems,
alone or beside another job. So it is worked out once and kept in a file, an array of each part:
`{solver}/{draw}/{part}`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.evaluation.workers import workers
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import preset_places
from epochwatt.schedule.config import Jobs, ScheduleStudy, required_schedule
from epochwatt.schedule.problem import (
    NONE,
    Answers,
    Indices,
    Numbers,
    PowerRule,
    Problems,
    Space,
    Workload,
)
from epochwatt.schedule.sampler import MEAN_POWER, ONE_STREAM, TWO_STREAMS, Size, problems_of
from epochwatt.schedule.solvers import exhaustive, gain, gmd, predicted
from epochwatt.schedule.solvers.als import profiled_modes
from epochwatt.schedule.solvers.exhaustive import random_modes, solve_in_modes
from epochwatt.schedule.solvers.predicted import observed, predicted_space, predicted_workload
from epochwatt.schedule.tables import ASSUMED, public_tables, tables_of_job, workload_of
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables
from epochwatt.tables import write_frame

NETWORK, TRANSFERRED = "powertrain_scratch_best", "powertrain"  # methods of the registry
ALS, NEURAL, POWERTRAIN = "als", "neural", "powertrain"
N_TRAIN, N_INFER = 250, 50  # random modes of the baseline of Fulcrum, at every mini-batch size
N_TRANSFERRED = 50  # of PowerTrain
N_SAMPLED, SEED = 100, 0  # problems of each set of jobs, for a solver that thinks about each
SIZES: dict[PowerRule, Size] = {"highest": ONE_STREAM, "mean": MEAN_POWER}
# columns of all tables of results/fulcrum/
SET_COLUMNS = ("provenance", "device", "jobs", "train", "infer")
STATISTICS = (
    *("answered_pct", "kept_pct", "kept_power_pct", "kept_latency_pct"),
    # how far an answer that keeps its budgets is from the best: throughput below the best, or
    # latency above it. Problems whose best answer trains nothing have none
    *("loss_median_pct", "loss_mean_pct", "loss_p90_pct", "optimal_pct"),
    *("n_profiles", "board_minutes"),
)
SCORE_COLUMNS = (
    *(*SET_COLUMNS, "power_rule", "solver", "draw", "n_problems", "n_solvable", "n_judged"),
    *(*STATISTICS, "profiles_serve", "note", "assumed"),
)

Solve = Callable[[Space, Problems, int], Answers]  # space, problems, number of the draw


# -- sets of jobs ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Set:
    """One set of jobs that is judged, with the mode tables that it is judged on."""

    jobs: str  # train, infer, train_and_infer or two_infer
    train: str  # the network that trains; empty: none
    infer: tuple[str, ...]  # the networks that serve
    tables: list[list[ModeTable]]  # of each job, training first, at each mini-batch size
    study: Jobs  # what it is of
    assumed: str = ""  # of the tables; empty: nothing

    @property
    def names(self) -> list[str]:
        """The jobs, training first: `train-lenet`, `infer-resnet50`."""
        training = [f"train-{self.train}"] if self.train else []
        return training + [f"infer-{name}" for name in self.infer]

    @cached_property
    def space(self) -> Space:
        """All that can be chosen."""
        first, *others = map(workload_of, self.tables)
        return Space(first, tuple(others)) if self.train else Space(None, (first, *others))

    def labelled(self, rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
        """Return rows with the columns that name the set added, in the order of `columns`."""
        key = self.tables[0][0].key
        label = (key.provenance, key.device, self.jobs, self.train, " and ".join(self.infer))
        shared = dict(zip(SET_COLUMNS, label, strict=True))
        return rows.assign(**shared, assumed=self.assumed)[list(columns)]


def sets_of(study: ScheduleStudy, tables: Path, root: Path = Path()) -> list[Set]:
    """List all sets of jobs of a study with their tables, the simulated ones first.

    Raises ConfigError: the tables, or a public sweep, lack a network of the study.
    """
    sources: list[tuple[Jobs, list[ModeTable], str]] = [(study, read_mode_tables(tables), "")]
    sources += [(jobs, public_tables(jobs, root), ASSUMED) for jobs in study.public]
    sets = []
    for jobs, all_tables, assumed in sources:
        for kind, train, infer in (
            *(("train", model, ()) for model in jobs.train),
            *(("infer", "", (model,)) for model in jobs.infer),
            *(("train_and_infer", train, (infer,)) for train, infer in jobs.together),
            *(("two_infer", "", tuple(pair)) for pair in jobs.streams),
        ):
            works = [(train, "train")] if train else []
            works += [(name, "infer") for name in infer]
            tables_of_set = [tables_of_job(name, task, all_tables) for name, task in works]
            sets.append(Set(kind, train, infer, tables_of_set, jobs, assumed))
    return sets


# -- what solvers with networks know ---------------------------------------------------------------


class Learned(NamedTuple):
    """Profiles and predictions of one workload."""

    modes: Indices  # places of the modes that were profiled, at every mini-batch size
    workload: Workload  # observed in these modes, predicted in all others


def learn(
    workload: Workload,
    reference: Workload | None,
    n_draws: int,
    is_training: bool,
    cache: Path | None = None,
) -> dict[str, list[Learned]]:
    """Let the solvers with networks profile and learn a workload; solver -> what it knows by draw.

    `reference`: another training job in all modes, which PowerTrain transfers from; None: without
    it
    `n_draws`: seeds of the modes that are drawn
    `is_training`: whether the workload trains: the baseline then draws more modes
    `cache`: folder where the networks of the reference are kept; None: nowhere
    """
    network, n_modes = load_method(NETWORK), len(workload.modes)

    def from_drawn(
        method: Method, n_drawn: int, seed: int, teacher: Reference | None = None
    ) -> Learned:
        """Profile random modes, and predict all others."""
        modes = np.random.default_rng(seed).choice(n_modes, min(n_drawn, n_modes), replace=False)
        kept = cache if teacher else None
        return Learned(modes, predicted_workload(workload, method, modes, teacher, kept))

    draws = range(n_draws)
    n_drawn = N_TRAIN if is_training else N_INFER
    learned = {
        # answers of ALS are looked up in its profiles: nothing is predicted at the end
        ALS: [Learned(profiled_modes(workload, network, draw), workload) for draw in draws],
        NEURAL: [from_drawn(network, n_drawn, draw) for draw in draws],
    }
    if reference is not None:
        teacher = Reference(observed(reference, np.arange(len(reference.modes)), 0))
        method = load_method(TRANSFERRED)
        learned[POWERTRAIN] = [from_drawn(method, N_TRANSFERRED, draw, teacher) for draw in draws]
    return learned


def write_learned_job(tables: Path, job: str, path: Path, cache: Path | None = None) -> None:
    """Let the solvers with networks profile one job of the study, and write what they know then.

    `job`: one of `ScheduleStudy.jobs`
    `path`: .npz file
    `cache`: folder where the networks that PowerTrain transfers from are kept; None: nowhere

    Raises ConfigError: the tables lack a network of the study.
    """
    study, all_tables = required_schedule(), read_mode_tables(tables)
    task, _, network = job.partition("-")
    others = [name for name in study.train if job != f"train-{name}"]
    teacher = workload_of(tables_of_job(others[0], "train", all_tables)) if others else None
    workload = workload_of(tables_of_job(network, task, all_tables))
    write_learned(learn(workload, teacher, study.neural_draws, task == "train", cache), path)


def write_learned(learned: Mapping[str, list[Learned]], path: Path) -> None:
    """Write what `learn` returned as an .npz file, an array by `{solver}/{draw}/{part}`."""
    arrays = {
        f"{solver}/{draw}/{part}": array
        for solver, draws in learned.items()
        for draw, (modes, work) in enumerate(draws)
        for part, array in (("modes", modes), ("time_s", work.time_s), ("power_w", work.power_w))
    }
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def read_learned(path: Path, workload: Workload) -> dict[str, list[Learned]]:
    """Read what `write_learned` wrote of a workload: solver -> what it knows by draw."""
    learned: dict[str, list[Learned]] = {}
    with np.load(path) as arrays:
        for name in arrays:
            draw, _, part = name.rpartition("/")
            if part == "modes":
                seen = {key: arrays[f"{draw}/{key}"] for key in ("time_s", "power_w")}
                draws = learned.setdefault(name.partition("/")[0], [])
                draws.append(Learned(arrays[name], replace(workload, **seen)))
    return learned


# -- the solvers -----------------------------------------------------------------------------------


class Solver(NamedTuple):
    """A solver of the evaluation."""

    solve: Solve
    n_draws: int | None = 1  # of its profiles, where they are drawn; None: as often as configured
    # `all`: its profiles are the same for all problems of these jobs, and stay; `each`: each
    # problem needs its own, some or all
    serves: str = "all"
    n_sampled: int | None = None  # solvable problems that it is judged on, drawn; None: all


def solvers_of(
    jobs: Set, root: Path = Path(), learned: Mapping[str, str] | None = None
) -> tuple[dict[str, Solver], str]:
    """Build the solvers of a set by name, and the reason, if any, why it has no preset modes.

    `learned`: job -> file of `write_learned_job`; of a set without them no solver has networks
    """
    workloads, table = jobs.space.workloads, jobs.tables[0][0]
    presets, without_presets = np.zeros(0, np.intp), ""
    try:
        rows, modes = observations_of(table), workloads[0].modes.tolist()
        preset_rows = preset_places(rows, table.key.device).values()
        presets = np.array([modes.index(rows.modes[row].tolist()) for row in preset_rows], np.intp)
    except PredictionError as error:
        without_presets = str(error).partition("\n")[0]
    methods = {name: load_method(name, root) for name in jobs.study.methods}
    found = plain_solvers(methods, presets, jobs.study.n_profiled)
    if learned and learned.keys() >= set(jobs.names):
        pairs = zip(jobs.names, workloads, strict=True)
        found |= learned_solvers([read_learned(Path(learned[job]), work) for job, work in pairs])
    return found, without_presets


def plain_solvers(
    methods: Mapping[str, Method], presets: Indices, sizes: Sequence[int]
) -> dict[str, Solver]:
    """Build the solvers without networks by name, except the exhaustive one.

    `methods`: name -> method of the registry, which predict from random modes
    `presets`: indices of the board's stock modes; none: they are not known
    `sizes`: numbers of random modes
    """

    def in_modes(modes: Callable[[Space, int], Indices]) -> Solve:
        return lambda space, problems, draw: solve_in_modes(space, problems, modes(space, draw))

    def by_prediction(method: Method, n: int, verifies: bool) -> Solve:
        def solve(space: Space, problems: Problems, draw: int) -> Answers:
            modes = random_modes(space, n, draw)
            seen = predicted_space(space, method, modes)
            solver = predicted.solve_verified if verifies else predicted.solve
            return solver(space, problems, seen, modes)

        return solve

    found = {
        "gmd": Solver(gmd.solve, serves="each"),
        "gain": Solver(gain.solve, serves="each", n_sampled=N_SAMPLED),
        "maxn": Solver(in_modes(lambda space, _: np.array([space.strongest_mode]))),
    }
    if len(presets):
        found["presets"] = Solver(in_modes(lambda *_: presets))
    for n in sizes:
        drawn = in_modes(lambda space, draw, n=n: random_modes(space, n, draw))  # type: ignore[misc]
        found[f"random_{n}"] = Solver(drawn, None)
        for name, method in methods.items():
            found[f"{name}_{n}"] = Solver(by_prediction(method, n, False), None)
            found[f"{name}_{n}_verified"] = Solver(by_prediction(method, n, True), None, "each")
    return found


def learned_solvers(learned: Sequence[Mapping[str, Sequence[Learned]]]) -> dict[str, Solver]:
    """Build the solvers with networks by name.

    ALS answers with the best choice in the modes that were profiled for any job. The others answer
    by prediction, unverified; each job has modes of its own.

    `learned`: of each job of the space, in the order of `Space.workloads`: what `learn` returned
    """

    def answers(solver: str) -> Solve:
        def solve(space: Space, problems: Problems, draw: int) -> Answers:
            modes, workloads = zip(*(job[solver][draw] for job in learned), strict=True)
            if solver == ALS:
                return solve_in_modes(space, problems, np.concatenate(modes))
            return predicted.solve(space, problems, space.with_workloads(workloads), modes)

        return solve

    return {
        solver: Solver(answers(solver), len(draws))
        for solver, draws in (learned[0] if learned else {}).items()
    }


# -- how well they answer --------------------------------------------------------------------------


def evaluate(
    space: Space, problems: Problems, solvers: Mapping[str, Solver], n_draws: int
) -> pd.DataFrame:
    """Judge solvers against the best of all choices on the solvable problems of a set.

    A row for each solver and draw: `SCORE_COLUMNS` without those of the set. A solver whose method
    cannot be fitted has a note instead of numbers.
    """
    best = exhaustive.solve(space, problems)
    solvable = np.flatnonzero(best.choice != NONE)
    problems, n_problems, n = problems.subset(solvable), len(problems), len(solvable)
    best = best.subset(solvable)
    shared = {"n_problems": n_problems, "n_solvable": n}
    row = {"solver": "exhaustive", "draw": 0, **shared, "n_judged": n}
    if not n:
        return pd.DataFrame([{**row, "note": "no problem has an answer"}])
    least = space.judge(problems, best.choice[:, None]).cost[:, 0]
    rows = [{**row, "profiles_serve": "all", **statistics(space, problems, best, least)}]
    for name, solver in solvers.items():
        order = np.random.default_rng(SEED).permutation(n)  # the same for all solvers
        judged = np.sort(order[: solver.n_sampled])
        row = {"solver": name, **shared, "n_judged": len(judged), "profiles_serve": solver.serves}
        for draw in range(solver.n_draws or n_draws):
            try:
                sampled = problems.subset(judged)
                answers = solver.solve(space, sampled, draw)
                found = statistics(space, sampled, answers, least[judged])
            except PredictionError as error:
                found = {"note": str(error).partition("\n")[0]}
            rows.append({**row, "draw": draw, **found})
    return pd.DataFrame(rows)


def statistics(
    space: Space, problems: Problems, answers: Answers, least: Numbers
) -> dict[str, float | str]:
    """Compute `STATISTICS` of one solver's answers to solvable problems; NaN without an answer.

    `least`: (p,), cost of the best answer to each problem.
    """
    answered = answers.choice != NONE
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    kept = answered & judged.holds[:, 0]
    usable = kept & (least != 0)
    loss_pct = 100 * (judged.cost[usable, 0] - least[usable]) / np.abs(least[usable])
    shares = [
        100 * float((answered & condition).sum()) / max(int(answered.sum()), 1)
        for condition in (kept, judged.keeps_power[:, 0], judged.in_time[:, 0])
    ]
    losses = [np.nan] * 4
    if loss_pct.size:
        losses = [
            *(float(np.median(loss_pct)), float(loss_pct.mean())),
            *(float(np.quantile(loss_pct, 0.9)), 100 * float((loss_pct < 1e-6).mean())),
        ]
    profiles = float(np.median(answers.n_profiles)), float(np.median(answers.board_s)) / 60
    values = (100 * float(answered.mean()), *shares, *losses, *profiles)
    return dict(zip(STATISTICS, values, strict=True))


def write_scores(
    tables: Path,
    paths: Mapping[PowerRule, Path],
    learned: Mapping[str, str],
    processes: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Judge all solvers on all sets of jobs, and write their scores (`SCORE_COLUMNS`).

    Under the mean power those of jobs that share a board are judged: of one job it is the highest.

    `paths`: rule of the problems -> table to write
    `learned`: job of the study -> file of `write_learned_job`; none: without these solvers
    `processes`: how many sets are judged at once

    Raises ConfigError: the tables lack a network of the study.
    """
    tasks = [
        (jobs, rule, learned)
        for rule in paths
        for jobs in sets_of(required_schedule(), tables)
        if rule == "highest" or len(jobs.names) == 2
    ]
    scores = []
    with workers(min(processes, len(tasks))) as pool:
        for number, rows in enumerate(pool.map(_judged, *zip(*tasks, strict=True)), 1):
            scores.append(rows)
            n = int(rows["n_problems"].iloc[0])
            say(f"{n} problems ({number} of {len(tasks)} sets of jobs)")
    frame = pd.concat(scores)
    for rule, path in paths.items():
        write_frame(path, f"scores of schedules, {rule} power", frame[frame["power_rule"] == rule])


def _judged(jobs: Set, rule: PowerRule, learned: Mapping[str, str]) -> pd.DataFrame:
    """Return the scores of one set of jobs: the task of one process."""
    found, without_presets = solvers_of(jobs, learned=learned)
    size = TWO_STREAMS if len(jobs.infer) == 2 else SIZES[rule]
    problems = problems_of(jobs.space, size, rule, jobs.study.power_w)
    rows = evaluate(jobs.space, problems, found, jobs.study.draws)
    if without_presets:
        note = {"solver": ["presets"], "draw": [0], "note": [without_presets]}
        rows = pd.concat([rows, pd.DataFrame(note)])
    rows = rows.assign(power_rule=rule).reindex(columns=list(SCORE_COLUMNS))
    numbers = dict.fromkeys(("n_problems", "n_solvable", "n_judged"), "Int64")
    return jobs.labelled(rows, SCORE_COLUMNS).astype(numbers)
