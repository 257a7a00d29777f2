"""Others' measurements beside this project's parsers, laws, rooflines and simulated boards."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from epochwatt.errors import ConfigError
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.sweeps.public.registry import VARIABLE, Registry, load_registry, originals
from epochwatt.twin.predicted import DATASETS
from epochwatt.twin.twin import Twin


@dataclass(frozen=True)
class Finding:
    """What a check found: a row of a table in benchmarks/tables/external/."""

    subject: str  # a mode, a network, a GPU
    unit: str  # of both values; empty for a ratio or an exponent
    expected: str  # value, range or limit
    observed: str  # value or range
    agrees: bool
    note: str = ""


def near(
    subject: str, unit: str, expected: float, observed: float, within_pct: float, note: str
) -> Finding:
    """Return whether a value is the expected one, to some per cent."""
    agrees = abs(observed / expected - 1.0) <= within_pct / 100.0
    return Finding(subject, unit, show(expected), show(observed), agrees, note)


def in_range(
    subject: str, unit: str, measured: float, simulated: list[float], margin: float, note: str
) -> Finding:
    """Return whether a measured value lies in the range of simulated ones, widened by a margin."""
    low, high = min(simulated), max(simulated)
    agrees = low - margin <= measured <= high + margin
    return Finding(subject, unit, show(measured), f"{show(low)} to {show(high)}", agrees, note)


def show(value: float) -> str:
    """Return a number to three figures, and never in exponents."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:.{min(digits, 3)}f}"
    return text.removeprefix("-") if float(text) == 0 else text


class NotHereError(ConfigError):
    """A measurement that epochwatt may not pass on, and that the user has no copy of."""


@dataclass
class Inputs:
    """What all checks read: the checkout, the user's folder of others' repositories, the twin."""

    root: Path
    folder: Path | None
    twin: Twin
    registry: Registry = field(init=False)

    def __post_init__(self) -> None:
        self.registry = load_registry(self.root)

    def tables(self, name: str) -> list[ModeTable]:
        """Return the mode tables of a public sweep, without rows that do not count.

        Raises NotHereError where its licence is none and the user's folder lacks it.
        """
        if not self.registry.is_shipped(name):
            self.originals(name)
        return [table.valid() for table in find_tables(name, self.root, self.folder)]

    def originals(self, name: str) -> list[Path]:
        """Return the authors' files of a public sweep in the user's folder, or NotHereError."""
        paths = originals(self.registry.sweeps[name], self.folder) if self.folder else []
        if not paths:
            raise NotHereError(
                "no licence, so epochwatt may not pass it on; clone "
                f"{self.registry.source(name).repository} into a folder and name that folder "
                f"with {VARIABLE}"
            )
        return paths


def simulated_workloads(
    twin: Twin,
    boards: tuple[str, ...] = ("agx", "nx", "nano"),  # whose simulation rests on printed numbers
    batch_sizes: tuple[int, ...] = (16,),  # the papers' default
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield board and factors of the papers' counted networks, with 0 and 4 workers each."""
    models = [model for model in DATASETS if model in twin.works]
    for device, model, num_workers, batch_size in product(boards, models, (0, 4), batch_sizes):
        place = {"device": device, "instance": "d1", "storage": "ssd", "cache_policy": "kept"}
        work = {"model": model, "dataset": DATASETS[model], "dvfs": "off", "setup": ""}
        loading = {"num_workers": num_workers, "batch_size": batch_size, "dataset_scale": 1.0}
        yield device, {**place, **work, **loading}
