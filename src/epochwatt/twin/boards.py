"""Read the boards and data sets to simulate: `boards.yaml`, `samples.yaml` of `config/twin/`.

What `boards.yaml` does not state of a board is that of its kind (`device.kinds`).
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import yaml

from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.errors import ConfigError
from epochwatt.study.yaml_files import FAST, refuse_deep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILE = "boards.yaml"
SAMPLES = "samples.yaml"

Array: TypeAlias = "float | NDArray[np.floating[Any]]"  # a number, or one per configuration
Values: TypeAlias = Mapping[str, float]  # parameters by name
Factors: TypeAlias = Mapping[str, Any]  # of a run by name, as the run table has them
T = TypeVar("T")


def number(value: Array) -> float:
    """Return the number of the one configuration that there is; ValueError when there are more."""
    import numpy as np

    return float(np.squeeze(value))


class Clocks(NamedTuple):
    """The settings of a power mode: online cores, and clocks in MHz."""

    cores: Array
    cpu_mhz: Array
    gpu_mhz: Array
    emc_mhz: Array


Modes = Mapping[str, Mapping[str, Clocks]]  # device -> label of a power mode -> its clocks


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
    tf32_gain: float  # operations a clock of a convolution, relative to the cores' own in fp32
    gpu_power: float  # power of one of them relative to a Volta core at the same clock and voltage
    emc_bytes_per_clock: float  # what the memory moves per cycle of its clock (both edges)
    bandwidth_gain: float  # share of that which kernels reach, relative to Xavier's
    ram_mib: float  # of CPU and GPU together
    cpu_mhz: tuple[float, float]  # lowest and highest clock
    gpu_mhz: tuple[float, float]
    emc_mhz: tuple[float, float]
    # voltage, V: up to a knee, MHz, and at the highest clock; linear between
    cpu_v: tuple[float, float]
    gpu_v: tuple[float, float]
    soc_v: tuple[float, float]  # of the memory's controller, by the memory's clock
    cpu_knee_mhz: float
    gpu_knee_mhz: float
    soc_knee_mhz: float
    power: str  # prefix of its own power parameters
    kind: str  # of board, a name of `device.kinds`
    rails: dict[str, dict[str, float]]  # rail -> share that it sees of each part's power
    # instance -> its time and its power, relative to the one that the parameters describe; those
    # not named are like it
    units: dict[str, list[float]]
    sources: dict[str, str]  # where a number is from that no data sheet tells
    # operations a clock of a product of 16 bits, relative to the cores' own in fp32
    half_gain: float = 1.0

    def factors_of(self, instance: str) -> tuple[float, float]:
        """Return the factors of time and power by which a unit differs from the parameters' one."""
        time, watts = self.units.get(instance, (1.0, 1.0))
        return time, watts


@dataclass(frozen=True)
class SampleFacts:
    """One data set."""

    n_samples: int  # of an epoch at scale 1
    file_bytes: float  # read per sample; 0: all samples were read before the loop
    pixels: float  # decoded and transformed per sample
    mib: float  # of the whole data set on the disk
    source: str  # where the numbers are from
    # of a Carmel core, to load one; None: as files, samples and pixels take in the papers
    kcycles: float | None = None


def load_boards(folder: Path) -> dict[str, Board]:
    """Read `boards.yaml`; ConfigError names the file and the board that is wrong."""
    path = folder / FILE
    boards = {
        name: entry(Board, path, name, _with_kind(row, f"{path}: {name}"))
        for name, row in read_rows(path).items()
    }
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
    """Return a row of `boards.yaml` filled up from its kind of board; ConfigError: unknown kind."""
    if not isinstance(row, dict) or "kind" not in row:
        return row
    name = columns.FORMER_BOARDS.get(row["kind"], row["kind"])
    if name not in KINDS:
        raise ConfigError("unknown kind of board", where=where, found=repr(name), allowed=KINDS)
    kind = KINDS[name]
    rails: dict[str, dict[str, float]] = {}
    for rail in kind.rails:
        shares = rails.setdefault(rail.label, {})
        for part, share in rail.feeds.items():
            shares[part] = shares.get(part, 0) + share
    tables = {"cpu": (kind.cpu_khz, 1e3), "gpu": (kind.gpu_hz, 1e6), "emc": (kind.emc_hz, 1e6)}
    ranges_mhz = {
        f"{part}_mhz": (clocks[0] / per_mhz, clocks[-1] / per_mhz)
        for part, (clocks, per_mhz) in tables.items()
        if clocks
    }
    return {
        "title": kind.title,
        "cores": kind.cores,
        "cluster_cores": kind.cluster_cores,
        "rails": rails,
        **ranges_mhz,
        **row,
        "kind": name,
    }


def load_samples(folder: Path) -> dict[str, SampleFacts]:
    """Read `samples.yaml`; ConfigError names the file and the data set that is wrong."""
    path = folder / SAMPLES
    return {name: entry(SampleFacts, path, name, row) for name, row in read_rows(path).items()}


def read_rows(path: Path) -> dict[str, Any]:
    """Return the entries of a YAML file by name, unchecked; ConfigError names the file."""
    try:
        text = path.read_text("utf-8")
        refuse_deep(text, path)
        rows = yaml.load(text, Loader=FAST)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not isinstance(rows, dict):
        raise ConfigError("not a table", where=str(path), allowed="one key per entry")
    return rows


def entry(kind: type[T], path: Path, name: str, row: Any) -> T:
    """Return a row of a YAML file, checked, as the dataclass `kind`; its lists become tuples.

    Raises ConfigError: a key is missing or unknown, or a number is not 0 or more.
    """
    allowed = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    needed = {key for key, field in allowed.items() if field.default is MISSING}
    where = f"{path}: {name}"
    if not isinstance(row, dict) or not needed <= row.keys() <= allowed.keys():
        optional = ", ".join(sorted(allowed.keys() - needed)) or "nothing"
        keys = f"{', '.join(sorted(needed))}; optional: {optional}"
        raise ConfigError(f"{where} is {row!r}", allowed=keys)
    for key, value in row.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if allowed[key].type in (int, float) and not (is_number and 0 <= value < math.inf):
            problem = f"{key} is {value!r}"
            raise ConfigError(problem, where=where, allowed="a number, 0 or more")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
