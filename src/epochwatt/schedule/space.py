"""Judge all that can be chosen for the jobs of one board on many problems at once.

A choice is a mode and a mini-batch size for each stream. Choices have knobs: the parts of the mode
that differ, then the mini-batch sizes; each is a place among the knob's steps, ascending.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import Mode
from epochwatt.schedule.plans import (
    SLACK,
    Numbers,
    Outcome,
    serve,
    serve_and_train,
    serve_two,
    train_alone,
)
from epochwatt.schedule.problem import Plan, PowerRule, Problem
from epochwatt.schedule.profiles import AROUND_S, MINIBATCHES, Workload

Places = NDArray[np.intp]
Bools = NDArray[np.bool_]
Cost = tuple[Numbers, Numbers]  # of one mini-batch: s, W


@dataclass(frozen=True, eq=False)
class Problems:
    """Many problems of the same jobs."""

    max_power_w: Numbers  # (p,)
    rates_per_s: Numbers  # (p, s), of each of the s streams
    max_latencies_s: Numbers
    power_rule: PowerRule = "highest"  # of all of them

    @classmethod
    def from_one(cls, problem: Problem) -> "Problems":
        """Return one problem as many."""
        streams = problem.streams
        return cls(
            np.array([problem.max_power_w]),
            np.array([stream.rate_per_s for stream in streams])[None],
            np.array([stream.max_latency_s for stream in streams])[None],
            problem.power_rule,
        )

    def __len__(self) -> int:
        return len(self.max_power_w)

    @cached_property
    def by_streams(self) -> tuple["Problems", list[Places]]:
        """One problem of each rate and latency budget, and the places of all that have these.

        They differ in the power budget alone: what a choice does to one, it does to all.
        """
        none = np.zeros(len(self))  # training alone has no streams
        columns = np.column_stack([none, self.rates_per_s, self.max_latencies_s])
        order = np.lexsort(columns.T)
        ends = np.flatnonzero((np.diff(columns[order], axis=0) != 0).any(1)) + 1
        places = np.split(order, ends)
        return self.only(np.array([some[0] for some in places])), places

    def only(self, which: slice | Places) -> "Problems":
        """Return some of them."""
        return Problems(
            self.max_power_w[which],
            self.rates_per_s[which],
            self.max_latencies_s[which],
            self.power_rule,
        )


class Judged(NamedTuple):
    """Effect of choices on problems, arrays of one shape."""

    # less is better: training throughput, negative; without training the worst latency over its
    # budget, of two streams the worse
    cost: Numbers
    keeps_power: Bools  # the conditions
    keeps_latency: Bools
    is_stable: Bools
    power_w: Numbers  # by the rule of the problems

    @property
    def holds(self) -> Bools:
        """True where all conditions are kept."""
        return self.keeps_power & self.keeps_latency & self.is_stable


@dataclass(frozen=True, eq=False)
class Space:
    """The choices for one set of jobs."""

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

    @property
    def modes(self) -> Numbers:
        """Parts of each mode, shape (m, 6)."""
        return self.workloads[0].modes

    @cached_property
    def choices(self) -> Places:
        """Place of the mode and of each mini-batch size, shape (n, 1 + s), of all n choices."""
        sizes = (np.arange(len(one.batch_sizes)) for one in self.infer)
        grids = np.meshgrid(np.arange(len(self.modes)), *sizes, indexing="ij")
        return np.stack(grids, -1).reshape(-1, 1 + len(self.infer))

    @cached_property
    def knobs(self) -> Places:
        """Step of each knob, shape (n, d): of the parts of modes that differ, then of sizes."""
        varied = [part for part in self.modes.T if np.ptp(part) > 0]
        steps = [np.unique(part, return_inverse=True)[1] for part in varied]
        of_modes = np.stack(steps, -1) if steps else np.zeros((len(self.modes), 0), np.intp)
        return np.hstack([of_modes[self.choices[:, 0]], self.choices[:, 1:]])

    @property
    def n_mode_knobs(self) -> int:
        """Number of knobs that are parts of the mode."""
        return self.knobs.shape[1] - len(self.infer)

    @property
    def profiles_per_choice(self) -> int:
        """Runs that one choice takes: each job once."""
        return len(self.workloads)

    def undominated(self, depth: int = 1, modes: Places | slice = slice(None)) -> Places:
        """Return the choices that fewer than `depth` others beat, at the same mini-batch sizes.

        One beats another if no job takes longer or draws more, and some job less. Under the rule of
        the highest power it then keeps all that the other keeps and costs no more, unless the other
        is too slow to train at all.

        `modes`: places of the modes of those others.
        """
        mode, *sizes = self.choices.T
        jobs = [
            (one.time_s[mode, k], one.power_w[mode, k])
            for one, k in zip(self.infer, sizes, strict=True)
        ]
        if self.train is not None:
            jobs.append((self.train.time_s[mode, 0], self.train.power_w[mode, 0]))
        columns = [column.reshape(len(self.modes), -1).T for job in jobs for column in job]
        kept = []
        for some in zip(*columns, strict=True):  # of one combination of sizes
            pairs = [(one[:, None] <= one, one[:, None] < one) for one in some]
            beats = np.logical_and.reduce([least for least, _ in pairs])
            beats &= np.logical_or.reduce([less for _, less in pairs])
            kept.append(beats[modes].sum(0) < depth)
        return np.flatnonzero(np.stack(kept, 1).ravel())

    def busy_s(self, choices: Places, trains: bool = True) -> Numbers:
        """Return the time of one mini-batch of each job, one after the other, s."""
        mode, *sizes = np.moveaxis(self.choices[choices], -1, 0)
        of_infer = [one.time_s[mode, size] for one, size in zip(self.infer, sizes, strict=True)]
        of_train = [self.train.time_s[mode, 0]] if self.train is not None and trains else []
        return np.asarray(sum([*of_train, *of_infer]))

    def board_s(self, choices: Places) -> Numbers:
        """Return how long a board takes to profile choices, s; each runs every job once.

        A run takes as long as `Workload.board_s` says.
        """
        return self.profiles_per_choice * AROUND_S + MINIBATCHES * self.busy_s(choices)

    def measured(self, choices: Places) -> list[Cost]:
        """Return what a mini-batch of each job takes and draws under choices, training first."""
        mode, *sizes = np.moveaxis(self.choices[choices], -1, 0)
        served = [
            (one.time_s[mode, size], one.power_w[mode, size])
            for one, size in zip(self.infer, sizes, strict=True)
        ]
        if self.train is None:
            return served
        return [(self.train.time_s[mode, 0], self.train.power_w[mode, 0]), *served]

    def judge(self, problems: Problems, choices: Places) -> Judged:
        """Return what choices do to problems.

        `choices`: places in `choices`, shape (p, q): q of each problem, or (1, q): alike for all.
        """
        return self._judge(problems, choices, self.measured(choices))

    def judge_if(self, problems: Problems, costs: Sequence[Cost]) -> Judged:
        """Return what all choices would do to problems if mini-batches cost what is given.

        `costs`: as of `measured`, (p, n) each.
        """
        return self._judge(problems, np.arange(len(self.choices))[None], costs)

    def _judge(self, problems: Problems, choices: Places, costs: Sequence[Cost]) -> Judged:
        outcomes = self._outcomes(problems, choices, costs)
        latencies = problems.max_latencies_s.T[:, :, None]
        over = [one.latency_s / most for one, most in zip(outcomes, latencies, strict=False)]
        first = outcomes[0]
        worst = reduce(np.maximum, over) if over else np.zeros(first.power_w.shape)
        keeps_power = first.power_w <= problems.max_power_w[:, None] * (1 + SLACK)
        cost = worst if self.train is None else -first.throughput_per_s
        return Judged(
            *np.broadcast_arrays(
                cost, keeps_power, worst <= 1 + SLACK, first.is_stable, first.power_w
            )
        )

    def n_train(self, problems: Problems, choice: Places) -> Numbers:
        """Return mini-batches of training in each period, under a choice for each problem, (p,)."""
        choices = choice[:, None]
        return self._outcomes(problems, choices, self.measured(choices))[0].n_train[:, 0]

    def _outcomes(
        self, problems: Problems, choices: Places, costs: Sequence[Cost]
    ) -> tuple[Outcome, ...]:
        """Return what choices give, for each stream; one outcome for training alone."""
        sizes = np.moveaxis(self.choices[choices], -1, 0)[1:]
        batches = [one.batch_sizes[size] for one, size in zip(self.infer, sizes, strict=True)]
        rates = problems.rates_per_s.T[:, :, None]
        rule = problems.power_rule
        if self.train is not None:
            if not batches:
                return (train_alone(*costs[0]),)
            return (serve_and_train(rates[0], batches[0], costs[1], costs[0], rule),)
        if len(batches) == 1:
            return (serve(rates[0], batches[0], *costs[0]),)
        pairs = (batches[0], batches[1]), costs[0], costs[1]
        return serve_two((rates[0], rates[1]), *pairs, rule)

    def plan(self, problem: Problem, choice: int, is_profiled: bool = True) -> Plan:
        """Return a choice as the plan of a problem."""
        problems = Problems.from_one(problem)
        place = np.array([[choice]])
        outcomes = self._outcomes(problems, place, self.measured(place))
        mode, *sizes = self.choices[choice]
        first = outcomes[0]
        return Plan(
            place=int(mode),
            mode=Mode(*self.modes[mode].tolist()),
            batch_sizes=tuple(
                int(one.batch_sizes[size]) for one, size in zip(self.infer, sizes, strict=True)
            ),
            n_train=int(first.n_train[0, 0]),
            throughput_per_s=float(first.throughput_per_s[0, 0]),
            latency_s=tuple(float(one.latency_s[0, 0]) for one in outcomes if self.infer),
            power_w=float(first.power_w[0, 0]),
            is_profiled=is_profiled,
        )
