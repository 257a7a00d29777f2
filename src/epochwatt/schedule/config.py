"""Schema of config/schedule.yaml, and the simulated mode tables that it asks for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from epochwatt.errors import ConfigError
from epochwatt.study.config import Closed
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.config import SweepEntry, simulated_entry

Positive = Annotated[float, Field(gt=0)]
Size = Annotated[int, Field(ge=1)]
TwoNumbers = Annotated[list[Positive], Field(min_length=2, max_length=2)]
TwoNetworks = Annotated[list[str], Field(min_length=2, max_length=2)]
CONFIG = Path("config/schedule.yaml")


class Rates(Closed):
    """Rate of requests over time; one of three forms."""

    steps: list[TwoNumbers] = Field(
        default_factory=list, description="seconds, and share of the highest rate in them"
    )
    day: list[Positive] = Field(
        default_factory=list,
        description="a day's curve: lowest share of the highest rate, and length, s",
    )
    file: str | None = Field(
        None, description="a recorded trace: one time of an arrival a line, s, ascending"
    )

    @model_validator(mode="after")
    def _check_form(self) -> "Rates":
        """Refuse rates in several forms, a day that is no pair, and shares above 1."""
        if sum(map(bool, (self.steps, self.day, self.file))) != 1:
            raise ValueError("needs one of: steps, day, file")
        if self.day and len(self.day) != 2:
            raise ValueError("day: two numbers, a share and a length in s")
        if max([*(share for _, share in self.steps), *self.day[:1]], default=1) > 1:
            raise ValueError("a share of the highest rate is at most 1")
        return self


class ChangingJobs(Closed):
    """A training job beside a stream whose rate changes, within budgets."""

    train: str = Field(description="network that trains, one of `train`")
    infer: str = Field(description="network that serves, one of `infer`")
    max_power_w: Positive = Field(description="budget of power")
    max_latency_s: Positive = Field(description="budget of latency")
    peak_per_s: Positive = Field(description="highest rate, requests/s")


class Changing(Closed):
    """Streams whose rates change; the board may change its mode meanwhile."""

    slot_s: Positive = Field(description="how often the board may be planned anew, s")
    switch_s: list[Positive] = Field(
        min_length=1, description="times that clocks need to settle, s; each is judged"
    )
    jobs: list[ChangingJobs] = Field(min_length=1, description="what runs; each at all rates")
    rates: dict[str, Rates] = Field(min_length=1, description="named rates")

    @model_validator(mode="after")
    def _within_a_slot(self) -> "Changing":
        if max(self.switch_s) > self.slot_s:
            raise ValueError("switch_s: clocks have to settle within a slot, slot_s")
        return self


class Jobs(Closed):
    """Networks that run on a device, and how many of its modes solvers profile."""

    train: dict[str, Size] = Field(description="networks that train, and their mini-batch size")
    infer: dict[str, list[Size]] = Field(
        description="networks that serve requests, and the mini-batch sizes to choose from"
    )
    together: list[TwoNetworks] = Field(
        default_factory=list, description="a network that trains, and one that serves beside it"
    )
    streams: list[TwoNetworks] = Field(
        default_factory=list, description="two networks that serve beside each other"
    )
    power_w: TwoNumbers = Field(default=[12, 50], description="least and greatest power budget, W")
    methods: list[str] = Field(
        default_factory=list, description="methods of the registry that predict all other modes"
    )
    n_profiled: list[Size] = Field(min_length=1, description="random modes that are profiled")
    draws: int = Field(10, ge=1, description="random sets of modes of each size")

    @model_validator(mode="after")
    def _check_pairs(self) -> "Jobs":
        """Refuse pairs of `together` and `streams` that name networks of no job."""
        pairs = [("together", "train", *pair) for pair in self.together]
        pairs += [("streams", "infer", *pair) for pair in self.streams]
        for key, task, model, served in pairs:
            _check_named(self, key, task, model, served)
        return self

    @property
    def works(self) -> list[tuple[str, str]]:
        """Network and task of all that is to be counted."""
        return [(model, "train") for model in self.train] + [(m, "infer") for m in self.infer]


def _check_named(jobs: Jobs, key: str, task: str, model: str, served: str) -> None:
    """Refuse a pair of `key` unless `model` is in the jobs of `task`, and `served` in infer."""
    if model not in getattr(jobs, task) or served not in jobs.infer:
        raise ValueError(f"{key} names {model} and {served}; they have to be in {task} and infer")


class PublicJobs(Jobs):
    """Jobs on a device that others swept, whose rows are epochs of training."""

    sweep: str = Field(description="its table, by its name in `config/sweeps/`")
    samples: dict[str, Size] = Field(
        description="samples in an epoch of each network, which say how long one mini-batch is"
    )

    @model_validator(mode="after")
    def _of_known_length(self) -> "PublicJobs":
        if lacking := sorted({model for model, _ in self.works} - self.samples.keys()):
            raise ValueError(f"samples lacks {', '.join(lacking)}")
        return self


class ScheduleStudy(Jobs):
    """config/schedule.yaml: training and inference within budgets, on a simulated board."""

    device: str = Field(description="device type, simulated: a file of `config/devices/`")
    grid: str = Field(description="named grid of its modes")
    public: list[PublicJobs] = Field(
        default_factory=list, description="the same on devices that others swept"
    )
    neural_draws: int = Field(
        default=0,
        ge=0,
        description="random sets of modes of solvers with networks; 0: without them",
    )
    changing: Changing | None = Field(
        default=None, description="rates of requests that change; absent: none are judged"
    )

    @model_validator(mode="after")
    def _changing_named(self) -> "ScheduleStudy":
        for jobs in self.changing.jobs if self.changing else ():
            _check_named(self, "changing", "train", jobs.train, jobs.infer)
        return self

    @property
    def jobs(self) -> list[str]:
        """All jobs, task and network, that solvers with networks learn."""
        if not self.neural_draws:
            return []
        return [f"train-{name}" for name in self.train] + [f"infer-{name}" for name in self.infer]

    def sweeps(self) -> Iterator[tuple[str, SweepEntry]]:
        """Yield name and entry of each simulated sweep that the study needs."""
        works = [(model, "train", size, "") for model, size in self.train.items()]
        for model, sizes in self.infer.items():
            works += [(model, "infer", size, f"-{size}") for size in sizes]
        for model, task, size, ending in works:
            entry = simulated_entry(self.device, model, task, size, self.grid)
            yield f"fulcrum-{model}-{task}{ending}", entry


def load_schedule(root: Path = Path()) -> ScheduleStudy | None:
    """Return the study of a checkout; None where it has no config/schedule.yaml.

    Raises ConfigError: file, key and value that cannot be, and what is allowed.
    """
    path = root / CONFIG
    return validated(ScheduleStudy, read_yaml(path), str(CONFIG)) if path.is_file() else None


def required_schedule() -> ScheduleStudy:
    """Return the study of a checkout that has to have one (ConfigError)."""
    study = load_schedule()
    if study is None:
        raise ConfigError("there is no config/schedule.yaml")
    return study
