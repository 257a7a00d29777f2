"""State what is to be scheduled, and judge all that can be chosen on many problems at once.

Fulcrum (arXiv 2509.20205) states the problem in words: one training job and one inference stream
share a board, and the application runs whole mini-batches of one or the other. The formulas
(`outcome`) are our reading of it; the paper's own are not public.

A choice is a mode and a mini-batch size for each stream. Choices have knobs: the parts of the mode
that differ, then the mini-batch sizes; each is a place among the knob's steps, ascending.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.columns import MODE_PARTS
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import Mode

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]
Cost = tuple[Numbers, Numbers]  # of one mini-batch: s, W
# `highest`: no job may draw more than the budget while it runs; `mean`: the mean over the time in
# which something runs may not. Idle gaps are left out, so it is an upper bound of the mean over all
# time
PowerRule = Literal["highest", "mean"]

NONE = -1  # in place of a choice: the solver saw none that keeps the budgets
SLACK = 1e-9  # relative: times that fit to the last digit fit
MINIBATCHES = 40  # of a profile; as a sweep counts
# ASSUME: s of a profile besides these: to set the mode, at rest in it, until power has followed; as
# in `prediction.profile.bench`, whose import would bring all that measures
AROUND_S = 14.0


@dataclass(frozen=True, eq=False)
class Workload:
    """One network in every mode and at every mini-batch size; the truth that solvers ask for."""

    name: str  # of the network
    modes: Numbers  # (m, 6) parts of each mode, `prediction.data.modes.Mode`
    batch_sizes: NDArray[np.int64]  # (k,) ascending; one of a training job
    time_s: Numbers  # (m, k), of one mini-batch
    power_w: Numbers  # (m, k), while it runs
    # of the modes that are known; others are placeholders (`mode_tables.UNKNOWN`)
    parts: tuple[str, ...] = MODE_PARTS

    def board_s(self, modes: Indices) -> float:
        """Return how long a board takes to profile modes, at every mini-batch size, s.

        Each mode and size takes `AROUND_S` and `MINIBATCHES` mini-batches.
        """
        times_s = self.time_s[modes]
        return AROUND_S * times_s.size + MINIBATCHES * float(times_s.sum())


@dataclass(frozen=True, eq=False)
class Problems:
    """Many problems of the same jobs: their budgets, and the streams' rates of requests."""

    max_power_w: Numbers  # (p,)
    rates_per_s: Numbers  # (p, s), of each of the s streams
    max_latencies_s: Numbers  # from a request's arrival until its answer, of every request
    power_rule: PowerRule = "highest"  # of all of them

    @classmethod
    def one(
        cls, max_power_w: float, *streams: tuple[float, float], power_rule: PowerRule = "highest"
    ) -> "Problems":
        """Build one problem; each stream is its rate, requests/s, and its latency budget, s."""
        rates, latencies = np.array(streams, float).reshape(-1, 2).T
        return cls(np.array([float(max_power_w)]), rates[None], latencies[None], power_rule)

    def __len__(self) -> int:
        return len(self.max_power_w)

    @cached_property
    def by_streams(self) -> tuple["Problems", list[Indices]]:
        """Problems grouped by rates and latency budgets: one of each group, and all their indices.

        Problems of a group differ in the power budget alone, so that a plan gives the same in all.
        """
        zeros = np.zeros(len(self))  # training alone has no streams to group by
        columns = np.column_stack([zeros, self.rates_per_s, self.max_latencies_s])
        order = np.lexsort(columns.T)
        starts = np.flatnonzero((np.diff(columns[order], axis=0) != 0).any(1)) + 1
        groups = np.split(order, starts)
        return self.subset(np.array([group[0] for group in groups])), groups

    def subset(self, indices: slice | Indices) -> "Problems":
        """Return the problems at these indices."""
        return Problems(
            self.max_power_w[indices],
            self.rates_per_s[indices],
            self.max_latencies_s[indices],
            self.power_rule,
        )


class Outcome(NamedTuple):
    """Outcome of plans, arrays of one shape."""

    throughput_per_s: Numbers  # mini-batches of training a second; 0 without training
    latency_s: tuple[Numbers, ...]  # of each stream, of the request that waits longest
    power_w: Numbers  # by the rule of the problem
    n_train: Numbers  # mini-batches of training in each period
    is_stable: Bools  # whether the streams are served as fast as they arrive


def outcome(
    streams: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]],
    train: tuple[ArrayLike, ArrayLike] | None = None,
    power_rule: PowerRule = "highest",
) -> Outcome:
    """Compute what a plan gives: training throughput, worst latencies and power.

    Requests of a stream arrive every 1 / rate seconds and are collected to mini-batches of b, so
    one is complete every T = b / rate seconds. It runs at once; then whole mini-batches of training
    follow, as many as end before the next one is complete:

        n = floor((T - t_infer) / t_train)
        throughput = n / T
        worst latency = (b - 1) / rate + t_infer

    The first request of a mini-batch waits for all others of it. A plan is stable if t_infer <= T.
    Of two streams a mini-batch may find one of the other stream running, and waits for it: with
    t_1 + t_2 <= T_1 and <= T_2 never for a second one, which makes this the condition that we ask
    for. It is sufficient and not necessary.

    `streams`: of each of at most two: rate, mini-batch size, time and power of one mini-batch
    `train`: time and power of one mini-batch of training, beside at most one stream; all arrays of
    any shapes that fit each other
    """
    numbers = [number for job in (*streams, *([train] if train else [])) for number in job]
    arrays = np.broadcast_arrays(*(np.asarray(number, float) for number in numbers))
    train_s, train_w = arrays[-2:]
    if not streams:
        ones = np.ones(train_s.shape)  # training alone: one mini-batch after the other
        return Outcome(1 / train_s, (), train_w, ones, ones.astype(bool))
    rates, sizes, times_s, powers_w = zip(
        *(arrays[i : i + 4] for i in range(0, 4 * len(streams), 4)), strict=True
    )
    periods_s = [size / rate for size, rate in zip(sizes, rates, strict=True)]
    busy_s, power_w = reduce(np.add, times_s), reduce(np.maximum, powers_w)
    is_stable = busy_s <= reduce(np.minimum, periods_s) * (1 + SLACK)
    latencies_s = tuple((n - 1) / rate + busy_s for n, rate in zip(sizes, rates, strict=True))
    if train is None:
        if power_rule == "mean" and len(streams) > 1:
            shares = [time / period for time, period in zip(times_s, periods_s, strict=True)]
            weighed = [share * power for share, power in zip(shares, powers_w, strict=True)]
            power_w = reduce(np.add, weighed) / reduce(np.add, shares)
        zeros = np.zeros(busy_s.shape)
        return Outcome(zeros, latencies_s, power_w, zeros, is_stable)
    n_train = np.floor(np.maximum(periods_s[0] - busy_s, 0) / train_s * (1 + SLACK))
    n_train = np.where(is_stable, n_train, 0)
    if power_rule == "highest":
        power_w = np.where(n_train > 0, np.maximum(power_w, train_w), power_w)
    else:
        drawn_j = busy_s * power_w + n_train * train_s * train_w
        power_w = drawn_j / (busy_s + n_train * train_s)
    return Outcome(n_train / periods_s[0], latencies_s, power_w, n_train, is_stable)


class Judged(NamedTuple):
    """Effect of choices on problems, arrays of one shape."""

    # less is better: training throughput, negative; without training the worst latency over its
    # budget, of two streams the worse
    cost: Numbers
    keeps_power: Bools  # the conditions
    keeps_latency: Bools
    is_stable: Bools
    power_w: Numbers  # by the rule of the problems

    def single_choice(self) -> "Judged":
        """Drop the axis of choices where one choice was judged for each problem: (p, 1) to (p,)."""
        return Judged(*(array[:, 0] for array in self))  # type: ignore[arg-type]

    @property
    def in_time(self) -> Bools:
        """True where all requests are answered within the latency budget."""
        return self.keeps_latency & self.is_stable

    @property
    def holds(self) -> Bools:
        """True where all conditions are kept."""
        return self.keeps_power & self.keeps_latency & self.is_stable


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A choice in words and numbers: mode, mini-batch sizes, and what they give."""

    place: int  # index of the mode among those of the workloads
    mode: Mode  # its parts
    batch_sizes: tuple[int, ...]  # of each stream
    n_train: int  # mini-batches of training after each of inference; 1 of training alone
    throughput_per_s: float  # as of `Outcome`
    latency_s: tuple[float, ...]
    power_w: float


@dataclass(frozen=True, eq=False)
class Space:
    """The choices for one set of jobs.

    There are four kinds: training, one stream, one stream and training, or two streams.
    """

    train: Workload | None  # the training job, of one mini-batch size; None without one
    infer: tuple[Workload, ...] = ()  # the network of each stream, in the same modes

    def __post_init__(self) -> None:
        first, *others = self.workloads
        for other in others:
            if not np.array_equal(first.modes, other.modes):
                raise ConfigError(
                    f"{first.name} and {other.name} were not run in the same modes",
                    found=f"{len(first.modes)} and {len(other.modes)} modes",
                )
        if self.train is not None and len(self.train.batch_sizes) != 1:
            raise ConfigError(
                f"{self.train.name} trains at several mini-batch sizes",
                found=self.train.batch_sizes.tolist(),
                allowed="one",
            )

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """All jobs, training first."""
        return self.infer if self.train is None else (self.train, *self.infer)

    def with_workloads(self, workloads: Sequence[Workload]) -> "Space":
        """Return the same jobs with other numbers, training first."""
        first = 0 if self.train is None else 1
        return Space(workloads[0] if first else None, tuple(workloads[first:]))

    @property
    def modes(self) -> Numbers:
        """Parts of each mode, shape (m, 6)."""
        return self.workloads[0].modes

    @cached_property
    def choices(self) -> Indices:
        """All n choices: index of the mode, then of each mini-batch size, shape (n, 1 + s)."""
        sizes = (np.arange(len(workload.batch_sizes)) for workload in self.infer)
        grids = np.meshgrid(np.arange(len(self.modes)), *sizes, indexing="ij")
        return np.stack(grids, -1).reshape(-1, 1 + len(self.infer))

    @cached_property
    def knobs(self) -> Indices:
        """Step of each knob in each choice, (n, d): parts of the mode that vary, then sizes."""
        varied = [part for part in self.modes.T if np.ptp(part) > 0]
        steps = [np.unique(part, return_inverse=True)[1] for part in varied]
        mode_steps = np.stack(steps, -1) if steps else np.zeros((len(self.modes), 0), np.intp)
        return np.hstack([mode_steps[self.choices[:, 0]], self.choices[:, 1:]])

    @property
    def n_mode_knobs(self) -> int:
        """Number of knobs that are parts of the mode."""
        return self.knobs.shape[1] - len(self.infer)

    @property
    def strongest_mode(self) -> int:
        """Index of the mode nearest to the highest step of every knob, as MAXN is."""
        steps = self.knobs[:, : self.n_mode_knobs]
        return int(self.choices[np.abs(steps - steps.max(0)).sum(1).argmin(), 0])

    def runs(self, choices: Indices | slice) -> list[tuple[Workload, Indices, Indices]]:
        """Return each job with the indices of its mode and mini-batch size under choices.

        Training comes first.
        """
        mode, *sizes = np.moveaxis(self.choices[choices], -1, 0)
        if self.train is not None:
            sizes.insert(0, np.zeros_like(mode))
        return [(job, mode, size) for job, size in zip(self.workloads, sizes, strict=True)]

    def costs(self, choices: Indices | slice) -> list[Cost]:
        """Return time, s, and power, W, of one mini-batch of each job, training first."""
        runs = self.runs(choices)
        return [(job.time_s[mode, size], job.power_w[mode, size]) for job, mode, size in runs]

    def busy_s(self, choices: Indices, trains: bool = True) -> Numbers:
        """Sum the times of one mini-batch of each job, s; without training unless it `trains`."""
        times_s = [time_s for time_s, _ in self.costs(choices)]
        if self.train is not None and not trains:
            times_s = times_s[1:]
        return np.asarray(sum(times_s))

    def board_s(self, choices: Indices) -> Numbers:
        """Return how long a board takes to profile each choice with every job, s."""
        return len(self.workloads) * AROUND_S + MINIBATCHES * self.busy_s(choices)

    def undominated(self, depth: int = 1, modes: Indices | slice = slice(None)) -> Indices:
        """Return the choices that fewer than `depth` others dominate, at the same mini-batch sizes.

        One dominates another if no job takes longer or draws more, and some job less. Under the
        rule of the highest power it then keeps all that the other keeps and costs no more, unless
        the other is too slow to train at all.

        `modes`: indices of the modes that those others are in.
        """
        columns = [
            column.reshape(len(self.modes), -1).T
            for cost in self.costs(slice(None))
            for column in cost
        ]
        kept = []
        for costs in zip(*columns, strict=True):  # times and powers at one combination of sizes
            beats = np.logical_and.reduce([cost[:, None] <= cost for cost in costs])
            beats &= np.logical_or.reduce([cost[:, None] < cost for cost in costs])
            kept.append(beats[modes].sum(0) < depth)
        return np.flatnonzero(np.stack(kept, 1).ravel())

    def outcome(
        self, problems: Problems, choices: Indices, costs: Sequence[Cost] | None = None
    ) -> Outcome:
        """Compute throughput, latencies and power of choices; arguments as of `judge`."""
        costs = self.costs(choices) if costs is None else costs
        trains = self.train is not None
        streams = [
            (problems.rates_per_s[:, i, None], one.batch_sizes[size], *cost)
            for i, ((one, _, size), cost) in enumerate(
                zip(self.runs(choices)[trains:], costs[trains:], strict=True)
            )
        ]
        return outcome(streams, costs[0] if trains else None, problems.power_rule)

    def judge(
        self, problems: Problems, choices: Indices, costs: Sequence[Cost] | None = None
    ) -> Judged:
        """Judge choices on problems: their cost, and which conditions they keep, arrays (p, q).

        `choices`: indices in `choices`, shape (p, q): q of each problem, or (1, q): alike for all;
        `costs`: what mini-batches are taken to cost instead of what they do, as of `costs`, (p, q)
        """
        given = self.outcome(problems, choices, costs)
        over = [
            latency_s / problems.max_latencies_s[:, i, None]
            for i, latency_s in enumerate(given.latency_s)
        ]
        worst = reduce(np.maximum, over) if over else np.zeros(given.power_w.shape)
        keeps_power = given.power_w <= problems.max_power_w[:, None] * (1 + SLACK)
        cost = worst if self.train is None else -given.throughput_per_s
        columns = (cost, keeps_power, worst <= 1 + SLACK, given.is_stable, given.power_w)
        return Judged(*np.broadcast_arrays(*columns))

    def plan(self, problem: Problems, choice: int) -> Plan:
        """Describe a choice as the plan of one problem."""
        given = self.outcome(problem, np.array([[choice]]))
        mode, *sizes = self.choices[choice]
        return Plan(
            place=int(mode),
            mode=Mode(*self.modes[mode].tolist()),
            batch_sizes=tuple(
                int(one.batch_sizes[size]) for one, size in zip(self.infer, sizes, strict=True)
            ),
            n_train=int(given.n_train.item()),
            throughput_per_s=given.throughput_per_s.item(),
            latency_s=tuple(latency_s.item() for latency_s in given.latency_s),
            power_w=given.power_w.item(),
        )


class Answers(NamedTuple):
    """Answers of one solver to many problems."""

    choice: Indices  # (p,), place among the choices of the space, or `NONE`
    n_profiles: Indices  # (p,), mini-batches that were measured: pairs of job, mode and size
    board_s: Numbers  # (p,), what these take on a board, s (`Space.board_s`)

    def subset(self, indices: Indices) -> "Answers":
        """Return the answers to the problems at these indices."""
        return Answers(self.choice[indices], self.n_profiles[indices], self.board_s[indices])


def joined(parts: Sequence[Answers]) -> Answers:
    """Concatenate the answers to consecutive problems."""
    return Answers(*map(np.concatenate, zip(*parts, strict=True)))


class Profiles:
    """Count what a solver runs on the board for each of many problems."""

    def __init__(
        self, space: Space, problems: Problems, modes: Indices | Sequence[Indices] = ()
    ) -> None:
        """Count the modes that were run at every mini-batch size: for all jobs, or for each job."""
        self.space, self.problems = space, problems
        modes_by_job = [modes] * len(space.workloads) if isinstance(modes, np.ndarray) else modes
        pairs = list(zip(space.workloads, modes_by_job, strict=False))  # no modes: no pairs
        n_profiles = sum(len(profiled) * len(job.batch_sizes) for job, profiled in pairs)
        self.n_profiles = np.full(len(problems), n_profiles)
        board_s = sum(job.board_s(profiled) for job, profiled in pairs)
        self.board_s = np.full(len(problems), float(board_s))

    def count(self, rows: Indices, choice: Indices) -> None:
        """Add the cost of profiling one choice (r,) for each of the problems `rows` (r,)."""
        self.n_profiles[rows] += len(self.space.workloads)
        self.board_s[rows] += self.space.board_s(choice)

    def run(self, rows: Indices, choice: Indices) -> Judged:
        """Profile one choice (r,) for each of the problems `rows` (r,), and judge it, (r,)."""
        self.count(rows, choice)
        judged = self.space.judge(self.problems.subset(rows), choice[:, None])
        return judged.single_choice()

    def answers(self, choice: Indices) -> Answers:
        """Return answers that took these runs."""
        return Answers(choice, self.n_profiles, self.board_s)
