"""Sets of jobs that solvers are judged on: the tables of each, and the solvers that can answer."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import preset_places
from epochwatt.schedule.config import Jobs, ScheduleStudy
from epochwatt.schedule.evaluation import Named, solvers
from epochwatt.schedule.profiles import Workload, workload_of
from epochwatt.schedule.public_tables import ASSUMED, public_tables
from epochwatt.schedule.space import Places, Space
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables


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


@dataclass(frozen=True, eq=False)
class Set:
    """A part with the mode tables that it is judged on.

    Attributes
    ----------
    train, infer : tables of each mini-batch size: of the network that trains, of each that serves
    of : what the part is of
    assumed : of the tables; empty: nothing
    """

    part: Part
    train: list[ModeTable]
    infer: list[list[ModeTable]]
    of: Jobs
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

    Parameters
    ----------
    tables : file of `simulated_tables.write_simulated_tables`

    Raises
    ------
    ConfigError : the tables, or a public sweep, lack a network of the study
    """
    sources: list[tuple[Jobs, list[ModeTable], str]] = [(study, read_mode_tables(tables), "")]
    sources += [(jobs, public_tables(jobs, root), ASSUMED) for jobs in study.public]
    sets = []
    for jobs, some, assumed in sources:
        by_name: dict[tuple[str, str], list[ModeTable]] = defaultdict(list)
        for table in some:
            by_name[table.key.workload, table.key.task].append(table)
        sets += [Set(part, *_tables_of(part, by_name), jobs, assumed) for part in parts_of(jobs)]
    return sets


def parts_of(jobs: Jobs) -> list[Part]:
    """Return what is judged of jobs: training, serving, both, two streams."""
    return [
        *(Part("train", model) for model in jobs.train),
        *(Part("infer", "", (model,)) for model in jobs.infer),
        *(Part("train_and_infer", train, (infer,)) for train, infer in jobs.together),
        *(Part("two_infer", "", tuple(pair)) for pair in jobs.streams),
    ]


def _tables_of(
    part: Part, by_name: Mapping[tuple[str, str], list[ModeTable]]
) -> tuple[list[ModeTable], list[list[ModeTable]]]:
    wanted = [(part.train, "train")] if part.train else []
    wanted += [(model, "infer") for model in part.infer]
    if missing := [key for key in wanted if key not in by_name]:
        raise ConfigError(f"no table of {missing[0][0]} ({missing[0][1]})", allowed=sorted(by_name))
    train = by_name[part.train, "train"] if part.train else []
    return train, [by_name[model, "infer"] for model in part.infer]


def named_solvers(one: Set, root: Path = Path()) -> tuple[dict[str, Named], list[dict[str, Any]]]:
    """Return the solvers of a set, and a row with the reason for each that cannot answer there."""
    left_out = []
    try:
        presets = _presets(one.tables[0][0], one.space.workloads[0])
    except PredictionError as error:
        presets = np.zeros(0, np.intp)
        left_out = [{"solver": "presets", "draw": 0, "note": str(error).partition("\n")[0]}]
    methods = {name: load_method(name, root) for name in one.of.methods}
    return solvers(methods, presets, one.of.n_profiled), left_out


def _presets(table: ModeTable, workload: Workload) -> Places:
    """Return the places of the board's preset modes among a workload's modes."""
    rows = observations_of(table)
    places = {tuple(mode): i for i, mode in enumerate(workload.modes.tolist())}
    presets = preset_places(rows, table.key.device).values()
    return np.array([places[tuple(rows.modes[place].tolist())] for place in presets], np.intp)
