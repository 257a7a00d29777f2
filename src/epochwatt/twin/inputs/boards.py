"""The boards as their data sheets describe them: `config/twin/boards.yaml`."""

from dataclasses import dataclass
from pathlib import Path

from epochwatt.errors import ConfigError
from epochwatt.twin.inputs.yaml_rows import entry, read_rows

FILE = "boards.yaml"


@dataclass(frozen=True)
class Board:
    """One kind of board.

    Attributes
    ----------
    cores, cluster_cores : CPU cores, and how many share a clock
    ipc : instructions per clock relative to a Carmel core
    cuda_cores : of the GPU; each does one multiply-add (2 FLOP) a clock
    gpu_power : power of one of them relative to a Volta core at the same clock and voltage
    emc_bytes_per_clock : what the memory moves per cycle of its clock (both edges)
    ram_mib : of CPU and GPU together
    cpu_mhz, gpu_mhz, emc_mhz : lowest and highest clock
    cpu_v, gpu_v : voltage at those clocks, V
    power : prefix of its own power parameters
    kind : as `telemetry/rails.py` calls it
    rails : rail -> share that it sees of each part's power
    units : instance -> its time and its power, relative to the one that the parameters describe;
        those not named are like it
    sources : where a number is from that no data sheet tells
    """

    title: str
    cores: int
    cluster_cores: int
    ipc: float
    cuda_cores: int
    gpu_power: float
    emc_bytes_per_clock: float
    ram_mib: float
    cpu_mhz: tuple[float, float]
    gpu_mhz: tuple[float, float]
    emc_mhz: tuple[float, float]
    cpu_v: tuple[float, float]
    gpu_v: tuple[float, float]
    power: str
    kind: str
    rails: dict[str, dict[str, float]]
    units: dict[str, list[float]]
    sources: dict[str, str]


def load_boards(folder: Path) -> dict[str, Board]:
    """Read `boards.yaml`; ConfigError names the file and the board that is wrong."""
    path = folder / FILE
    boards = {name: entry(Board, path, name, row) for name, row in read_rows(path).items()}
    for name, board in boards.items():
        for unit, factors in board.units.items():
            if len(factors) != 2 or not all(isinstance(f, int | float) and f > 0 for f in factors):
                raise ConfigError(
                    f"{path}: {name}: unit {unit} is {factors!r}\n  needed: two factors above 0, "
                    "of its time and of its power"
                )
    return boards
