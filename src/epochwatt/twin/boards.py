"""The boards as their data sheets describe them: `config/twin/boards.yaml`."""

from dataclasses import dataclass
from pathlib import Path

from epochwatt.twin.tables import entry, read_rows

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
    sources: dict[str, str]


def load_boards(folder: Path) -> dict[str, Board]:
    """Read `boards.yaml`; ConfigError names the file and the board that is wrong."""
    path = folder / FILE
    return {name: entry(Board, path, name, row) for name, row in read_rows(path).items()}
