"""Read the boards and data sets to simulate: `boards.yaml`, `samples.yaml` of `config/twin/`.

What `boards.yaml` does not state of a board is that of its kind (`device.kinds`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochwatt import columns
from epochwatt.board.device.kinds import KINDS, Kind
from epochwatt.errors import ConfigError
from epochwatt.twin.inputs.yaml_rows import entry, read_rows

FILE = "boards.yaml"


@dataclass(frozen=True)
class Board:
    """One kind of board.

    Its title, cores, clocks and rails are those of its kind, where `boards.yaml` states no others.
    """

    title: str
    cores: int  # CPU cores, and how many share a clock
    cluster_cores: int
    ipc: float  # instructions per clock relative to a Carmel core
    cuda_cores: int  # of the GPU; each does one multiply-add (2 FLOP) a clock
    gpu_power: float  # power of one of them relative to a Volta core at the same clock and voltage
    emc_bytes_per_clock: float  # what the memory moves per cycle of its clock (both edges)
    ram_mib: float  # of CPU and GPU together
    cpu_mhz: tuple[float, float]  # lowest and highest clock
    gpu_mhz: tuple[float, float]
    emc_mhz: tuple[float, float]
    cpu_v: tuple[float, float]  # voltage at those clocks, V
    gpu_v: tuple[float, float]
    power: str  # prefix of its own power parameters
    kind: str  # of board, a name of `device.kinds`
    rails: dict[str, dict[str, float]]  # rail -> share that it sees of each part's power
    # instance -> its time and its power, relative to the one that the parameters describe; those
    # not named are like it
    units: dict[str, list[float]]
    sources: dict[str, str]  # where a number is from that no data sheet tells


def load_boards(folder: Path) -> dict[str, Board]:
    """Read `boards.yaml`; ConfigError names the file and the board that is wrong."""
    path = folder / FILE
    rows = {name: _with_kind(row, f"{path}: {name}") for name, row in read_rows(path).items()}
    boards = {name: entry(Board, path, name, row) for name, row in rows.items()}
    for name, board in boards.items():
        for unit, factors in board.units.items():
            if len(factors) != 2 or not all(isinstance(f, int | float) and f > 0 for f in factors):
                raise ConfigError(
                    f"unit {unit} is {factors!r}",
                    where=f"{path}: {name}",
                    allowed="two factors above 0, of its time and of its power",
                )
    return boards


def _with_kind(row: Any, where: str) -> Any:
    """Return a row with what its kind of board adds to it."""
    if not isinstance(row, dict) or "kind" not in row:
        return row
    name = columns.FORMER_BOARDS.get(row["kind"], row["kind"])
    if name not in KINDS:
        raise ConfigError("unknown kind of board", where=where, found=repr(name), allowed=KINDS)
    return {**_of_kind(KINDS[name]), **row, "kind": name}


def _of_kind(kind: Kind) -> dict[str, Any]:
    ends = {"cpu": (kind.cpu_khz, 1e3), "gpu": (kind.gpu_hz, 1e6), "emc": (kind.emc_hz, 1e6)}
    return {
        "title": kind.title,
        "cores": kind.cores,
        "cluster_cores": kind.cluster_cores,
        "rails": {rail.label: _shares(rail.feeds) for rail in kind.rails},
        **{
            f"{clock}_mhz": (steps[0] / unit, steps[-1] / unit)
            for clock, (steps, unit) in ends.items()
            if steps
        },
    }


def _shares(feeds: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of a rail; ASSUME: SoC and the rest halve what no clock moves."""
    shares: dict[str, float] = {}
    for part, share in feeds.items():
        name, half = ("soc", 0.5) if part in ("soc", "io") else (part, 1)
        shares[name] = shares.get(name, 0) + half * share
    return shares


SAMPLES = "samples.yaml"


@dataclass(frozen=True)
class SampleFacts:
    """One data set."""

    n_samples: int  # of an epoch at scale 1
    file_bytes: float  # read per sample; 0: all samples were read before the loop
    pixels: float  # decoded and transformed per sample
    mib: float  # of the whole data set on the disk
    source: str  # where the numbers are from


def load_samples(folder: Path) -> dict[str, SampleFacts]:
    """Read `samples.yaml`; ConfigError names the file and the data set that is wrong."""
    path = folder / SAMPLES
    return {name: entry(SampleFacts, path, name, row) for name, row in read_rows(path).items()}
