"""Study `powertrain`: schema of config/powertrain.yaml, and the jobs that it asks for."""

import re
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from epochwatt.errors import ConfigError
from epochwatt.prediction.registry import references
from epochwatt.prediction.transfer.names import (
    BASELINES,
    NO_REFERENCE,
    POWERTRAIN_ALL,
    WITHOUT_DRAWS,
)
from epochwatt.study.config import Closed, Title
from epochwatt.study.devices import read_rows
from epochwatt.study.runs import TWIN
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.table import SWEEPS, sweep_names

CONFIG = Path("config/powertrain.yaml")
NAME = r"^[a-z0-9][a-z0-9.-]*$"
Name = Annotated[str, Field(pattern=NAME)]
Limits = list[Annotated[int, Field(gt=0)]]


class PowertrainExample(Closed):
    """One power limit for one workload, told in whole epochs."""

    workload: Name = Field(description="name of its sweep; it belongs to a group with draws")
    limit_w: int = Field(gt=0, description="the limit, W: one of that group's")
    minibatches: int = Field(gt=0, description="mini-batches of an epoch")


class PowertrainGroup(Closed):
    """Workloads that are judged in the same way, each against each of the references."""

    title: Title = Field(description="what it asks, in a line")
    references: list[Name] = Field(
        default_factory=list,
        description="sweeps that methods transfer from; none: no method of the group needs one",
    )
    workloads: list[Name] = Field(
        min_length=1, description="sweeps that are predicted; none is its own reference"
    )
    methods: list[str] = Field(
        min_length=1,
        description="methods of the registry, and the baselines `powertrain_all` (the network on "
        "all modes), `maxn`, `stock_modes` and `random_front` (the best of the profiled modes)",
    )
    n_profiled: list[Annotated[int, Field(ge=1)]] = Field(
        default_factory=list,
        description="modes that are profiled; of a small table those up to half of its modes",
    )
    draws: int = Field(10, ge=1, description="random sets of profiled modes of each size")
    limits_w: Limits = Field(
        default_factory=list,
        description="lowest and highest power limit, in steps of 1 W; without it 34 limits over "
        "the observed powers of the table",
    )

    @model_validator(mode="after")
    def _ascending(self) -> "PowertrainGroup":
        if self.limits_w and (len(self.limits_w) != 2 or self.limits_w[0] >= self.limits_w[1]):
            raise ValueError("limits_w: two limits, the lowest limit first")
        return self


class PowertrainStudy(Closed):
    """config/powertrain.yaml: PowerTrain beside its baselines and other methods."""

    example: PowertrainExample = Field(
        description="one limit of one workload, as the paper's of 30 W"
    )
    groups: dict[str, PowertrainGroup] = Field(
        min_length=1, description="what is judged, by group: names of folders, [a-z0-9.-]"
    )

    @model_validator(mode="after")
    def _names(self) -> "PowertrainStudy":
        if wrong := [name for name in self.groups if not re.fullmatch(NAME, name)]:
            raise ValueError(f"groups: {wrong[0]!r} is no name; [a-z0-9.-] is allowed")
        return self


class Job(NamedTuple):
    """One workload of a group against one reference."""

    group: str
    reference: str  # `NO_REFERENCE`: none
    workload: str


def load_study(root: Path = Path()) -> PowertrainStudy | None:
    """Return the study of a checkout; None where it has no config/powertrain.yaml.

    Raises ConfigError: file, key and value that cannot be, and what is allowed.
    """
    path = root / CONFIG
    if not path.is_file():
        return None
    study = validated(PowertrainStudy, read_yaml(path), str(CONFIG))
    allowed = [*references(root), *BASELINES]
    for name, group in study.groups.items():
        where = f"{CONFIG}: groups.{name}"
        if unknown := [method for method in group.methods if method not in allowed]:
            raise ConfigError(f"unknown method {unknown[0]!r}", where=where, allowed=allowed)
        of_draws = [method for method in group.methods if method not in WITHOUT_DRAWS]
        if of_draws and not group.n_profiled:
            problem = f"{of_draws[0]} learns from profiled modes, and n_profiled is empty"
            raise ConfigError(problem, where=where)
    return study


def check_sweeps(study: PowertrainStudy | None, root: Path = Path()) -> None:
    """Refuse names that no sweep has, and an example that is no workload.

    Raises ConfigError: what is missing, and what there is.
    """
    if study is None:
        return
    tables = [
        path.name
        for folder in ("config", "results")
        for path in (root / folder / "sweeps").glob("*.csv*")
    ]
    allowed = {name.partition(".csv")[0] for name in tables} | set(sweep_names(root))
    for name, group in study.groups.items():
        if unknown := [n for n in (*group.workloads, *group.references) if n not in allowed]:
            raise ConfigError(
                f"no sweep {unknown[0]!r}",
                where=f"{CONFIG}: groups.{name}",
                allowed=sorted(allowed),
                do="add it to config/sweeps.yaml, or its table to config/sweeps/, "
                "or remove this file",
            )
    workloads = dict.fromkeys(w for group in study.groups.values() for w in group.workloads)
    if study.example.workload not in workloads:
        problem = f"example.workload is {study.example.workload!r}"
        raise ConfigError(problem, where=str(CONFIG), allowed=list(workloads))


def jobs_of(study: PowertrainStudy | None) -> list[Job]:
    """Return the jobs of all groups, in order."""
    return [
        Job(name, reference, workload)
        for name, group in (study.groups if study else {}).items()
        for reference in group.references or [NO_REFERENCE]
        for workload in group.workloads
        if workload != reference
    ]


def networks_of(study: PowertrainStudy, job: Job) -> list[Job]:
    """Return the job that leaves the networks of a job's reference in the cache, if one does."""
    return [
        other
        for other in jobs_of(study)
        if other.workload == job.reference != NO_REFERENCE
        and other.reference == NO_REFERENCE
        and POWERTRAIN_ALL in study.groups[other.group].methods
    ][:1]


def simulated_sweeps(study: PowertrainStudy | None, root: Path = Path()) -> list[str]:
    """Return the sweeps of the study that a simulated board answers, in order."""
    if study is None:
        return []
    path = root / SWEEPS
    entries = read_rows(SweepEntry, path) if path.is_file() else {}
    wanted = dict.fromkeys(name for job in jobs_of(study) for name in (job.workload, job.reference))
    return [name for name in wanted if name in entries and entries[name].backend == TWIN]


def table_of(name: str) -> str:
    """Return the path of a sweep's table: one that others measured, or one of results/sweeps/."""
    public = Path(f"config/sweeps/{name}.csv.gz")
    return str(public) if public.is_file() else f"results/sweeps/{name}.csv"
