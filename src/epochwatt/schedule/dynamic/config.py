"""Key `changing` of config/schedule.yaml: rates that change, and what a change of mode costs."""

from typing import Annotated

from pydantic import Field, model_validator

from epochwatt.study.config import Closed

Positive = Annotated[float, Field(gt=0)]
Pair = Annotated[list[Positive], Field(min_length=2, max_length=2)]


class Rates(Closed):
    """How the rate of requests changes; one of three forms."""

    steps: list[Pair] = Field(
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
    def _one(self) -> "Rates":
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
