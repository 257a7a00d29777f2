"""Judge solvers on many problems: how often they answer, keep budgets, and lose how much.

Solvers with networks take minutes to learn a job, and what they learn serves all its problems,
alone or beside another job. So it is worked out once and kept in a file, an array of each part:
`{solver}/{draw}/{part}`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import preset_places
from epochwatt.schedule.config import Jobs, ScheduleStudy
from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.problem import NONE, Answers, PowerRule
from epochwatt.schedule.profiles import Workload, workload_of
from epochwatt.schedule.public_tables import ASSUMED, public_tables
from epochwatt.schedule.solvers import exhaustive, gain, gmd, predicted, profiled
from epochwatt.schedule.solvers.als import profiled_modes
from epochwatt.schedule.solvers.predicted import observed, predicted_workload
from epochwatt.schedule.space import Places, Problems, Space
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables

NETWORK, TRANSFERRED = "powertrain_scratch_best", "powertrain"  # methods of the registry
ALS, NEURAL, POWERTRAIN = "als", "neural", "powertrain"
N_TRAIN, N_INFER = 250, 50  # random modes of the baseline of Fulcrum, at every mini-batch size
N_TRANSFERRED = 50  # of PowerTrain
N_SAMPLED, SEED = 100, 0  # problems of each set of jobs, for a solver that thinks about each
NONE_LEARNED: Mapping[str, str] = MappingProxyType({})

Solver = Callable[[Space, Problems, int], Answers]  # space, problems, number of the draw


# -- sets of jobs ----------------------------------------------------------------------------------


class Part(NamedTuple):
    """One set of jobs that is judged."""

    jobs: str  # kind, as of `Problem.jobs`
    train: str = ""  # the network that trains; empty: none
    infer: tuple[str, ...] = ()  # the networks that serve

    @property
    def names(self) -> list[str]:
        """The jobs, training first: `train-lenet`, `infer-resnet50`."""
        training = [f"train-{self.train}"] if self.train else []
        return training + [f"infer-{name}" for name in self.infer]


@dataclass(frozen=True, kw_only=True)
class SetRow:
    """Columns that name the set of jobs in all tables of results/fulcrum/."""

    provenance: str = ""
    device: str = ""
    jobs: str = ""
    train: str = ""
    infer: str = ""


@dataclass(frozen=True, eq=False)
class Set:
    """A part with the mode tables that it is judged on."""

    part: Part
    # tables of each mini-batch size: of the network that trains, of each that serves
    train: list[ModeTable]
    infer: list[list[ModeTable]]
    study: Jobs  # what the part is of
    assumed: str = ""  # of the tables; empty: nothing

    @cached_property
    def space(self) -> Space:
        """All that can be chosen."""
        train = workload_of(self.train) if self.train else None
        return Space(train, tuple(map(workload_of, self.infer)))

    @property
    def first_table(self) -> ModeTable:
        """A table of the first job, training first."""
        return self.train[0] if self.train else self.infer[0][0]

    @property
    def shared(self) -> dict[str, Any]:
        """Cells that all its rows share: the columns of `SetRow`, and what is assumed."""
        key = self.first_table.key
        row = SetRow(
            provenance=key.provenance,
            device=key.device,
            jobs=self.part.jobs,
            train=self.part.train,
            infer=" and ".join(self.part.infer),
        )
        return {**asdict(row), "assumed": self.assumed}


def sets_of(study: ScheduleStudy, tables: Path, root: Path = Path()) -> list[Set]:
    """Return all sets of jobs of a study, the simulated ones first.

    Raises ConfigError: the tables, or a public sweep, lack a network of the study.
    """
    sources: list[tuple[Jobs, list[ModeTable], str]] = [(study, read_mode_tables(tables), "")]
    sources += [(jobs, public_tables(jobs, root), ASSUMED) for jobs in study.public]
    sets = []
    for jobs, all_tables, assumed in sources:
        by_job = tables_by_job(all_tables)
        for part in (
            *(Part("train", model) for model in jobs.train),
            *(Part("infer", "", (model,)) for model in jobs.infer),
            *(Part("train_and_infer", train, (infer,)) for train, infer in jobs.together),
            *(Part("two_infer", "", tuple(pair)) for pair in jobs.streams),
        ):
            tables_of_part = [tables_of(job, by_job) for job in part.names]
            train = tables_of_part.pop(0) if part.train else []
            sets.append(Set(part, train, tables_of_part, jobs, assumed))
    return sets


def tables_by_job(tables: Iterable[ModeTable]) -> dict[str, list[ModeTable]]:
    """Return job, such as `train-lenet` -> its tables of each mini-batch size."""
    by_job: dict[str, list[ModeTable]] = defaultdict(list)
    for table in tables:
        by_job[f"{table.key.task}-{table.key.workload}"].append(table)
    return by_job


def tables_of(job: str, by_job: Mapping[str, list[ModeTable]]) -> list[ModeTable]:
    """Return the tables of a job (ConfigError: there are none)."""
    if job not in by_job:
        raise ConfigError(f"no table of {job}", allowed=sorted(by_job))
    return by_job[job]


# -- what solvers with networks know ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Learned:
    """Profiles and predictions of one workload."""

    modes: Places  # places of the modes that were profiled, at every mini-batch size
    workload: Workload  # observed in these modes, predicted in all others

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
    network, n_modes = load_method(NETWORK), len(workload.modes)

    def from_drawn(
        method: Method, n_most: int, seed: int, taught: Reference | None = None
    ) -> Learned:
        n_drawn = min(n_most, n_modes)
        modes = np.random.default_rng(seed).choice(n_modes, n_drawn, replace=False)
        kept = cache if taught else None
        return Learned(modes, predicted_workload(workload, method, modes, taught, kept))

    learned: dict[str, list[Learned]] = {ALS: [], NEURAL: []}
    for draw in range(n_draws):
        # answers of ALS are looked up in its profiles: nothing is predicted at the end
        learned[ALS].append(Learned(profiled_modes(workload, network, draw), workload))
        learned[NEURAL].append(from_drawn(network, N_TRAIN if is_training else N_INFER, draw))
    if reference is not None:
        taught = Reference(observed(reference, np.arange(len(reference.modes)), 0))
        method = load_method(TRANSFERRED)
        learned[POWERTRAIN] = [
            from_drawn(method, N_TRANSFERRED, draw, taught) for draw in range(n_draws)
        ]
    return learned


def write_learned(learned: Mapping[str, list[Learned]], path: Path) -> None:
    """Write what `learn` returned as an .npz file."""
    arrays: dict[str, np.ndarray] = {}
    for solver, draws in learned.items():
        for draw, seen in enumerate(draws):
            arrays[f"{solver}/{draw}/modes"] = seen.modes
            arrays[f"{solver}/{draw}/time_s"] = seen.workload.time_s
            arrays[f"{solver}/{draw}/power_w"] = seen.workload.power_w
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


# -- the solvers -----------------------------------------------------------------------------------


class Named(NamedTuple):
    """A solver of the evaluation."""

    solve: Solver
    is_drawn: bool  # whether its profiles are drawn, so that several draws say more than one
    # `all`: its profiles are the same for all problems of these jobs, and stay; `each`: each
    # problem needs its own, some or all
    serves: str = "all"
    n_draws: int | None = None  # how often, where not as often as the others
    n_sampled: int | None = None  # solvable problems that it is judged on, drawn; None: all


def named_solvers(
    jobs: Set, root: Path = Path(), learned: Mapping[str, str] = NONE_LEARNED
) -> tuple[dict[str, Named], list["Score"]]:
    """Return the solvers of a set, and a row with the reason for each that cannot answer there.

    Parameters
    ----------
    learned : job -> file of `study.write_learned_job`; of a set without them no solver has networks
    """
    left_out, workloads = [], jobs.space.workloads
    presets = np.zeros(0, np.intp)
    try:
        rows, places = observations_of(jobs.first_table), workloads[0].modes.tolist()
        preset = preset_places(rows, jobs.first_table.key.device).values()
        presets = np.array([places.index(rows.modes[at].tolist()) for at in preset], np.intp)
    except PredictionError as error:
        left_out = [Score(solver="presets", draw=0, note=str(error).partition("\n")[0])]
    methods = {name: load_method(name, root) for name in jobs.study.methods}
    named = solvers(methods, presets, jobs.study.n_profiled)
    if learned.keys() >= set(jobs.part.names):
        pairs = zip(jobs.part.names, workloads, strict=True)
        named |= learned_solvers([read_learned(Path(learned[job]), work) for job, work in pairs])
    return named, left_out


def solvers(
    methods: Mapping[str, Method], presets: Places, sizes: Sequence[int]
) -> dict[str, Named]:
    """Return the solvers by name, except the one that looks at everything.

    Parameters
    ----------
    methods : name -> method of the registry, which predict from random modes
    presets : places of the board's stock modes; none: they are not known
    """

    def in_modes(modes: Callable[[Space, int], Places]) -> Solver:
        return lambda space, problems, draw: profiled.solve(space, problems, modes(space, draw))

    def drawn(n: int) -> Callable[[Space, int], Places]:
        return lambda space, draw: profiled.random_modes(space, n, draw)

    def by_prediction(method: Method, n: int, verifies: bool) -> Solver:
        def solve(space: Space, problems: Problems, draw: int) -> Answers:
            modes = profiled.random_modes(space, n, draw)
            seen = predicted.predicted_space(space, method, modes)
            take = predicted.solve_verified if verifies else predicted.solve
            return take(space, problems, seen, modes)

        return solve

    named = {
        "gmd": Named(lambda space, problems, _: gmd.solve(space, problems), False, "each"),
        "gain": Named(
            lambda space, problems, _: gain.solve(space, problems),
            False,
            "each",
            n_sampled=N_SAMPLED,
        ),
        "maxn": Named(in_modes(lambda space, _: profiled.strongest_mode(space)), False),
    }
    if len(presets):
        named["presets"] = Named(in_modes(lambda *_: presets), False)
    for n in sizes:
        named[f"random_{n}"] = Named(in_modes(drawn(n)), True)
        for name, method in methods.items():
            named[f"{name}_{n}"] = Named(by_prediction(method, n, False), True)
            named[f"{name}_{n}_verified"] = Named(by_prediction(method, n, True), True, "each")
    return named


def learned_solvers(learned: Sequence[Mapping[str, Sequence[Learned]]]) -> dict[str, Named]:
    """Return the solvers with networks by name.

    Parameters
    ----------
    learned : of each job of the space, in the order of `Space.workloads`: what `learn` returned
    """
    named = {}
    for solver, draws in learned[0].items() if learned else ():
        answers = _by_look if solver == ALS else _by_networks
        of_jobs = [job[solver] for job in learned]
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
    learned = [draws[draw] for draws in of_jobs]
    workloads = [job.workload for job in learned]
    train = None if space.train is None else workloads.pop(0)
    choice = exhaustive.solve(Space(train, tuple(workloads)), problems).choice
    n_profiles = sum(job.n_profiles for job in learned)
    pairs = zip(space.workloads, learned, strict=True)
    board_s = sum(workload.board_s(job.modes) for workload, job in pairs)
    return Answers(choice, np.full(len(problems), n_profiles), np.full(len(problems), board_s))


# -- how well they answer --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Score(SetRow):
    """Score of a solver on the problems of one set of jobs: a row of scores.csv.

    `loss` is how far an answer that keeps its budgets is from the best: throughput below the best,
    or latency above it. Problems whose best answer trains nothing have none.
    """

    power_rule: PowerRule | str = ""
    solver: str = ""
    draw: int
    n_problems: int | None = None
    n_solvable: int | None = None
    n_judged: int | None = None
    answered_pct: float | None = None
    kept_pct: float | None = None
    kept_power_pct: float | None = None
    kept_latency_pct: float | None = None
    loss_median_pct: float | None = None
    loss_mean_pct: float | None = None
    loss_p90_pct: float | None = None
    optimal_pct: float | None = None
    n_profiles: float | None = None
    board_minutes: float | None = None
    profiles_serve: str = ""
    note: str = ""
    assumed: str = ""


def evaluate(
    space: Space, problems: Problems, named: Mapping[str, Named], n_draws: int
) -> Iterator[Score]:
    """Yield a row for each solver and draw; without what the rows of a table share."""
    best = exhaustive.solve(space, problems)
    solvable = best.choice != NONE
    problems, n_problems = problems.only(np.flatnonzero(solvable)), len(solvable)
    n = len(problems)
    row = Score(solver="exhaustive", draw=0, n_problems=n_problems, n_solvable=n, n_judged=n)
    if not n:
        yield replace(row, note="no problem has an answer")
        return
    choice = best.choice[solvable]
    least = space.judge(problems, choice[:, None]).cost[:, 0]
    everything = Answers(*(column[solvable] for column in best if column is not None))
    yield judge(space, problems, everything, least, replace(row, profiles_serve="all"))
    for name, solver in named.items():
        order = np.random.default_rng(SEED).permutation(n)  # the same for all solvers
        which = np.sort(order[: solver.n_sampled])
        sampled = problems.only(which)
        for draw in range((solver.n_draws or n_draws) if solver.is_drawn else 1):
            row = replace(
                row,
                solver=name,
                draw=draw,
                n_judged=len(sampled),
                profiles_serve=solver.serves,
            )
            try:
                answers = solver.solve(space, sampled, draw)
            except PredictionError as error:
                yield replace(row, note=str(error).partition("\n")[0])
                continue
            yield judge(space, sampled, answers, least[which], row)


def judge(space: Space, problems: Problems, answers: Answers, least: Numbers, row: Score) -> Score:
    """Return a row with the statistics of one solver's answers to solvable problems.

    `least`: (p,), cost of the best answer to each problem.
    """
    answered = answers.choice != NONE
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    kept = answered & judged.holds[:, 0]
    usable = kept & (least != 0)
    loss_pct = 100 * (judged.cost[usable, 0] - least[usable]) / np.abs(least[usable])
    in_time = (judged.keeps_latency & judged.is_stable)[:, 0]

    def share_pct(which: np.ndarray) -> float:
        return 100 * float(which.sum()) / max(int(answered.sum()), 1)

    row = replace(
        row,
        answered_pct=100 * float(answered.mean()),
        kept_pct=share_pct(kept),
        kept_power_pct=share_pct(answered & judged.keeps_power[:, 0]),
        kept_latency_pct=share_pct(answered & in_time),
        n_profiles=float(np.median(answers.n_profiles)),
    )
    if answers.board_s is not None:
        row = replace(row, board_minutes=float(np.median(answers.board_s)) / 60)
    if not loss_pct.size:
        return row
    return replace(
        row,
        loss_median_pct=float(np.median(loss_pct)),
        loss_mean_pct=float(loss_pct.mean()),
        loss_p90_pct=float(np.quantile(loss_pct, 0.9)),
        optimal_pct=100 * float((loss_pct < 1e-6).mean()),
    )
