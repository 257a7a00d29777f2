"""Fit the rooflines of each device, mode and precision: `results/roofline/fits_*.csv`."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from epochwatt.columns import SHARED_FLAGS
from epochwatt.roofline.ceilings import CeilingRow, read_ceilings
from epochwatt.roofline.fit import N_DRAWS, Kernels, ModeFit, fit_kernels
from epochwatt.roofline.model import Ceilings, EnergyCosts, EnergyRoofline
from epochwatt.roofline.points import InMode, Point, Precision, Processor
from epochwatt.sweeps.mode_table import Scope
from epochwatt.tables import checked_rows, filled, write_entries

PLACE = (
    *("provenance", "device", "instance", "cores", "cpu_mhz", "gpu_mhz", "emc_mhz"),
    *("processor", "precision"),
)
CONSTANTS = ("flops_per_s", "bytes_per_s", "j_per_flop", "j_per_byte", "constant_w")


@dataclass(frozen=True, kw_only=True)
class FitRow(InMode):
    """The rooflines of one mode: a row of the file, in its order and units.

    `_low` and `_high` are the middle 95 % of a bootstrap over micro-kernels; None: nothing varied.

    `flops_per_s`, `bytes_per_s`, `launch_s`, `cache_bytes`, `cached_bytes_per_s`: as of `Ceilings`
    `j_per_flop`, `j_per_byte`, `constant_w`: as of `EnergyCosts`; None: power was not measured
    `ridge_flop_per_byte`, `balance_flop_per_byte`: where the limit of time, of energy, changes over
    `power_scope`: what the energies are those of
    `n`, `n_energies`: micro-kernels that ceilings, that costs were fitted to
    `flags`: what is known against the ceilings
    """

    processor: Processor
    precision: Precision
    flops_per_s: float
    flops_per_s_low: float | None = None
    flops_per_s_high: float | None = None
    bytes_per_s: float
    bytes_per_s_low: float | None = None
    bytes_per_s_high: float | None = None
    launch_s: float
    cache_bytes: float = 0.0
    cached_bytes_per_s: float | None = None
    j_per_flop: float | None = None
    j_per_flop_low: float | None = None
    j_per_flop_high: float | None = None
    j_per_byte: float | None = None
    j_per_byte_low: float | None = None
    j_per_byte_high: float | None = None
    constant_w: float | None = None
    constant_w_low: float | None = None
    constant_w_high: float | None = None
    ridge_flop_per_byte: float
    balance_flop_per_byte: float | None = None
    power_scope: Scope = ""
    n: int
    n_energies: int = 0
    flags: str = ""

    @property
    def is_shared(self) -> bool:
        """True where others used the machine meanwhile, so that it can do more than this."""
        return bool(SHARED_FLAGS & {*self.flags.split()})

    @property
    def ceilings(self) -> Ceilings:
        """Rates that the mode reaches at best."""
        cached = float("inf") if self.cached_bytes_per_s is None else self.cached_bytes_per_s
        return Ceilings(self.flops_per_s, self.bytes_per_s, self.launch_s, self.cache_bytes, cached)

    @property
    def costs(self) -> EnergyCosts | None:
        """Energy that its work costs; None where power was not measured."""
        if self.j_per_flop is None or self.j_per_byte is None or self.constant_w is None:
            return None
        return EnergyCosts(self.j_per_flop, self.j_per_byte, self.constant_w)

    @property
    def energy(self) -> EnergyRoofline | None:
        """Its roofline of energy; None: power was not measured, or an operation costs nothing."""
        costs = self.costs
        if costs is None or costs.j_per_flop + costs.constant_w <= 0:
            return None
        return EnergyRoofline(self.ceilings, costs)


def fit_tables(paths: Iterable[str | Path], n_draws: int = N_DRAWS) -> list[FitRow]:
    """Return the rooflines of every device, mode and precision in tables of ceilings.

    Raises EpochwattError: a table cannot be read, or a mode has no kernel of one kind.
    """
    grouped: dict[tuple[object, ...], list[CeilingRow]] = defaultdict(list)
    for path in paths:
        for row in read_ceilings(path):
            if row.valid:
                grouped[tuple(getattr(row, name) for name in PLACE)].append(row)
    fits = []
    for rows in grouped.values():
        n = 0 if rows[0].provenance == "simulated" else n_draws  # without noise it says nothing
        scope = next((row.power_scope for row in rows if row.power_scope), "")
        flags = " ".join(sorted({flag for row in rows for flag in row.flags.split()}))
        fitted = fitted_row(rows[0], fit_kernels(Kernels.of_mode(rows), n), scope)
        fits.append(replace(fitted, flags=flags))
    return fits


def write_fits_of(ceilings: Iterable[str], path: str) -> None:
    """Fit every device, mode and precision of tables of ceilings: rule fit_roofline.

    Raises EpochwattError: a table cannot be read, or a mode has no kernel of one kind;
    RecordWriteError: the fits cannot be written.
    """
    write_fits(path, fit_tables(ceilings))


def fitted_row(place: CeilingRow | Point, fitted: ModeFit, scope: str) -> FitRow:
    """Return a fit as a row of the file.

    `place`: one of the kernels that were fitted to; `scope`: what the power is that of, where there
    is any
    """
    cells = {name: getattr(place, name) for name in PLACE}
    for name in CONSTANTS:
        if limits := fitted.ranges.get(name):
            cells[name] = limits.value
            if not math.isnan(limits.low):
                cells |= {f"{name}_low": limits.low, f"{name}_high": limits.high}
    ceilings, costs = fitted.ceilings, fitted.costs
    row = FitRow(
        **cells,
        launch_s=ceilings.launch_s,
        cache_bytes=ceilings.cache_bytes,
        cached_bytes_per_s=ceilings.cached_bytes_per_s if ceilings.cache_bytes > 0 else None,
        ridge_flop_per_byte=ceilings.ridge_flop_per_byte,
        power_scope=scope if costs else "",
        n=fitted.n_kernels,
        n_energies=fitted.n_energies,
    )
    if row.energy is None:
        return row
    return replace(row, balance_flop_per_byte=row.energy.balance_flop_per_byte)


def read_fits(path: str | Path) -> list[FitRow]:
    """Return the rows of a file. Raises ConfigError: file, line, column, what is allowed."""
    return [row for _, _, row in checked_rows(FitRow, Path(path), filled)]


def write_fits(path: str | Path, rows: Iterable[FitRow]) -> None:
    """Write rows as one file, whole or not at all. Raises RecordWriteError."""
    write_entries(Path(path), "fitted rooflines", FitRow, rows, ".9g")
