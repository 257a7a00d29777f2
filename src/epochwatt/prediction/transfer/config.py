"""Schema of config/powertrain.yaml."""

import re
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from epochwatt.study.config import Closed, Title

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
