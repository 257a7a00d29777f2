"""Sets of jobs that solvers are judged on: the tables of each, and the solvers that can answer."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import preset_places
from epochwatt.schedule.config import Jobs, ScheduleStudy
from epochwatt.schedule.evaluation import Named, learned_solvers, solvers
from epochwatt.schedule.learned import read_learned
from epochwatt.schedule.profiles import Workload, workload_of
from epochwatt.schedule.public_tables import ASSUMED, public_tables
from epochwatt.schedule.space import Places, Space
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables

NONE_LEARNED: Mapping[str, str] = MappingProxyType({})


class Part(NamedTuple):
    """One set of jobs that is judged.

    Attributes
    ----------
    jobs : kind, as of `Problem.jobs`
    train : the network that trains; empty: none
    infer : the networks that serve
    """

    jobs: str
    train: str = ""
    infer: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The jobs, training first: `train-lenet`, `infer-resnet50`."""
        return [f"train-{self.train}"] * bool(self.train) + [f"infer-{name}" for name in self.infer]


@dataclass(frozen=True, eq=False)
class Set:
    """A part with the mode tables that it is judged on.

    Attributes
    ----------
    train, infer : tables of each mini-batch size: of the network that trains, of each that serves
    study : what the part is of
    assumed : of the tables; empty: nothing
    """

    part: Part
    train: list[ModeTable]
    infer: list[list[ModeTable]]
    study: Jobs
    assumed: str = ""

    @property
    def tables(self) -> list[list[ModeTable]]:
        """Tables of each job, training first."""
        return [self.train, *self.infer] if self.train else self.infer

    @cached_property
    def space(self) -> Space:
        """All that can be chosen."""
        train = workload_of(self.train) if self.train else None
        return Space(train, tuple(map(workload_of, self.infer)))

    @property
    def shared(self) -> dict[str, str]:
        """What all rows about it say."""
        key = self.tables[0][0].key
        return {
            "provenance": key.provenance,
            "device": key.device,
            "jobs": self.part.jobs,
            "train": self.part.train,
            "infer": " and ".join(self.part.infer),
            "assumed": self.assumed,
        }


def sets_of(study: ScheduleStudy, tables: Path, root: Path = Path()) -> list[Set]:
    """Return all sets of jobs of a study, the simulated ones first.

    Raises ConfigError: the tables, or a public sweep, lack a network of the study.
    """
    sources: list[tuple[Jobs, list[ModeTable], str]] = [(study, read_mode_tables(tables), "")]
    sources += [(jobs, public_tables(jobs, root), ASSUMED) for jobs in study.public]
    sets = []
    for jobs, some, assumed in sources:
        by_job = tables_by_job(some)
        sets += [Set(part, *_tables_of(part, by_job), jobs, assumed) for part in parts_of(jobs)]
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


def parts_of(jobs: Jobs) -> list[Part]:
    """Return what is judged of jobs: training, serving, both, two streams."""
    return [
        *(Part("train", model) for model in jobs.train),
        *(Part("infer", "", (model,)) for model in jobs.infer),
        *(Part("train_and_infer", train, (infer,)) for train, infer in jobs.together),
        *(Part("two_infer", "", tuple(pair)) for pair in jobs.streams),
    ]


def _tables_of(
    part: Part, by_job: Mapping[str, list[ModeTable]]
) -> tuple[list[ModeTable], list[list[ModeTable]]]:
    tables = [tables_of(job, by_job) for job in part.names]
    return (tables[0], tables[1:]) if part.train else ([], tables)


def named_solvers(
    one: Set, root: Path = Path(), learned: Mapping[str, str] = NONE_LEARNED
) -> tuple[dict[str, Named], list[dict[str, Any]]]:
    """Return the solvers of a set, and a row with the reason for each that cannot answer there.

    Parameters
    ----------
    learned : job -> file of `study.write_learned_job`; of a set without them no solver has networks
    """
    left_out = []
    try:
        presets = _presets(one.tables[0][0], one.space.workloads[0])
    except PredictionError as error:
        presets = np.zeros(0, np.intp)
        left_out = [{"solver": "presets", "draw": 0, "note": str(error).partition("\n")[0]}]
    methods = {name: load_method(name, root) for name in one.study.methods}
    named = solvers(methods, presets, one.study.n_profiled)
    if learned.keys() >= set(one.part.names):
        pairs = zip(one.part.names, one.space.workloads, strict=True)
        named |= learned_solvers([read_learned(Path(learned[job]), work) for job, work in pairs])
    return named, left_out


def _presets(table: ModeTable, workload: Workload) -> Places:
    """Return the places of the board's preset modes among a workload's modes."""
    rows = observations_of(table)
    places = {tuple(mode): i for i, mode in enumerate(workload.modes.tolist())}
    presets = preset_places(rows, table.key.device).values()
    return np.array([places[tuple(rows.modes[place].tolist())] for place in presets], np.intp)
