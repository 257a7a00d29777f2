"""Schema of config/federated.yaml, the study of rounds on simulated fleets."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from epochwatt.study.config import Closed
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

CONFIG = Path("config/federated.yaml")
Positive = Annotated[float, Field(gt=0)]
Data = Annotated[
    str, Field(pattern=r"^(equal|proportional|(lognormal|dirichlet)_(\d+\.)?\d*[1-9]\d*)$")
]


class Training(Closed):
    """A training of several rounds in which boards slow down and leave."""

    rounds: int = Field(10, ge=2, description="of a training")
    warm_up_s: float = Field(
        9.5, ge=0, description="how much longer every fit of the first round takes"
    )
    throttled_pct: float = Field(10, ge=0, le=100, description="boards that slow down for good")
    slower: float = Field(1.4, ge=1, description="times that their fits then take as long")
    leaving_pct: float = Field(5, ge=0, le=100, description="boards that vanish within a fit")
    patience: float = Field(
        1.1, ge=1, description="the server gives up at so many times the expected end"
    )


class FederatedStudy(Closed):
    """config/federated.yaml: plans of rounds on simulated fleets, beside simpler rules."""

    workload: str = Field(description="network: a row of config/workloads.yaml")
    batch_size: int = Field(16, ge=1, description="samples of a mini-batch")
    devices: list[str] = Field(
        min_length=1, description="simulated boards, files of config/devices/; a fleet has equal "
        "numbers of each"
    )  # fmt: skip
    modes: int = Field(
        1000, ge=20, description="of each board to choose from, drawn from all of its clocks; the "
        "strongest is always among them"
    )  # fmt: skip
    fleets: list[Annotated[int, Field(ge=2)]] = Field(min_length=1, description="boards of a fleet")
    data: list[Data] = Field(
        min_length=1,
        description="how many samples boards have: `equal`; `proportional` to their speed; "
        "`lognormal_0.5` and `dirichlet_5`, drawn with that parameter",
    )
    samples: int = Field(ge=1, description="of a board in a round, mean of the fleet")
    model_mb: Positive = Field(description="weights, sent to every board and back, 10^6 B")
    bandwidth_mbit_s: Positive = Field(description="of each board, both ways")
    engine_s: float = Field(ge=0, description="the engine's own time in a round, s")
    waiting: list[Literal["pinned", "governed"]] = Field(
        min_length=1,
        description="what a board draws while it waits, each is judged: idle, with the clocks of "
        "its mode or, `governed`, the lowest; others than the first on `judged_fleet` boards alone",
    )
    waiting_factors: list[Positive] = Field(
        description="times that power; each is judged, on `judged_fleet` boards"
    )
    judged_fleet: int = Field(
        ge=2, description="boards of the fleet for waiting_factors, deadlines and trainings"
    )
    judged_data: list[Data] = Field(min_length=1, description="data for deadlines and trainings")
    board_pct: float = Field(3, ge=0, description="standard deviation between boards of a kind")
    spread_pct: float = Field(1, ge=0, description="standard deviation of a fit's time")
    risk_pct: float = Field(
        10, gt=0, le=50, description="of a plan: that any board ends later than the slowest needs"
    )
    work_pct: float = Field(
        20, ge=0, lt=100, description="of its data that a board of `plan_work` may add or leave out"
    )
    profiled: int = Field(
        10, ge=4, description="modes that half of the boards are known from, where so judged"
    )
    draws: int = Field(20, ge=1, description="fleets of each kind, by a seed each")
    training: Training = Field(
        default_factory=lambda: Training.model_validate({}), description="of several rounds"
    )


def load_federated(root: Path = Path()) -> FederatedStudy | None:
    """Return the study of a checkout; None where it has no config/federated.yaml.

    Raises ConfigError: file, key and value that cannot be, and what is allowed.
    """
    path = root / CONFIG
    return validated(FederatedStudy, read_yaml(path), str(CONFIG)) if path.is_file() else None
