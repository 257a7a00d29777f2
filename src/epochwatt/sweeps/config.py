"""Schema of config/sweeps.yaml."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from epochwatt.columns import TWIN
from epochwatt.study.config import Backend, Closed, Title

ALL = "all"  # name of the grid of every combination of a machine's steps
Part = Literal["cores", "cpu_mhz", "gpu_mhz", "emc_mhz"]
Positive = Annotated[float, Field(gt=0)]


class Grid(Closed):
    """Grid of modes that a sweep measures."""

    name: str = Field(
        ALL,
        description="a named grid, or `all`: every combination of the board's own steps; on a host "
        "every number of threads, with every CPU clock where cpufreq lets this user set it",
    )
    any_size: bool = Field(
        False,
        description="of a named grid its rule counts, though on this board it gives another number "
        "of modes than was printed",
    )
    parts: dict[Part, list[Positive]] = Field(
        default_factory=dict,
        description="instead of `name`: the values of each part, all combinations; a part that is "
        "not named has all its steps, one with an empty list is left as it is",
    )
    modes: list[dict[Part, Positive]] = Field(
        default_factory=list,
        description="instead of `name`: modes one by one; a part that is not named is left as it "
        "is",
    )
    random: int | None = Field(None, ge=1, description="so many modes drawn from these")
    seed: int = Field(
        0, ge=0, description="of that draw; a larger draw of a seed begins with the smaller one"
    )

    @model_validator(mode="after")
    def _one_way(self) -> "Grid":
        """Refuse a grid that is given in two ways."""
        given = [key for key in ("name", "parts", "modes") if key in self.model_fields_set]
        if len(given) > 1:
            raise ValueError(f"one of name, parts and modes, not {' and '.join(given)}")
        return self


class SweepEntry(Closed):
    """config/sweeps.yaml: one workload in many modes, some forty mini-batches each."""

    title: Title = Field(description="what it is, in a line")
    backend: Backend = Field(
        description="where it runs: on the machine at hand, on a Jetson board, or simulated"
    )
    device: str = Field(description="device type: a file of config/devices/")
    workload: dict[str, Any] = Field(
        min_length=1,
        description="factors of what is trained, `model` at least, as in a block of a study; "
        "without lists, and without power_mode, dvfs and what belongs to epochs",
    )
    grid: Annotated[
        Grid, BeforeValidator(lambda grid: {"name": grid} if isinstance(grid, str) else grid)
    ] = Field(description="the modes: the name of a grid or `all`, or a mapping (see below)")
    chunk: int = Field(
        20, ge=1, description="modes that one job measures; how many it is changes no result"
    )
    procedure: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description="numbers by which a mode is measured that differ from the usual ones "
        "(docs/explanation/sweep-measuring.md): idle_s, patience_s, warm_up_s, ...",
    )
    ceilings: bool = Field(
        default=False,
        description="measure in each mode, too, what the device reaches at best: memory, "
        "arithmetic, launches; some ten seconds a mode; not on the twin",
    )
    minibatches: int = Field(40, ge=5, le=10_000, description="mini-batches measured in each mode")


def simulated_entry(
    device: str | None, model: str | None, task: str, batch_size: int, grid: Grid | str | None
) -> SweepEntry:
    """Return the entry of a simulated sweep that a study asks for: official data, four workers."""
    workload = {"model": model, "task": task, "batch_size": batch_size}
    entry = {
        "title": f"{model}, {task}, {batch_size} at once",
        "backend": TWIN,
        "device": device,
        "workload": workload | {"dataset_source": "official", "num_workers": 4},
        "grid": grid,
    }
    return SweepEntry.model_validate(entry)
