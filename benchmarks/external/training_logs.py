"""Real training on an AGX Orin in its stock modes: 1 Hz logs through our parser, rails and energy.

The authors print the power of each run as the sum of all four rails that tegrastats shows. One of
them, VDDQ_VDD2_1V8AO, hangs below VIN_SYS_5V0, whose reading contains it, so it counts twice. Our
table of rails adds three.

SOURCE: github.com/BroncoSpace-Lab/scales-hardware, its page on training (2024): ResNet-50 on
CIFAR-100, ten epochs in each mode; clocks were not locked, batch size and versions are not printed.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.external import Finding, Inputs, near
from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.board.telemetry.tegrastats import parse_line
from epochwatt.epochs.energy import trapezoid
from epochwatt.errors import ConfigError
from epochwatt.tables import table_text

SWEEP = "broncospace-agx-orin"  # of the registry
BOARD = "agx_orin"
LOGS = ("{}.txt*", "tegrastats_{}.txt*")  # how the raw lines of a run are called, beside its table
TIME = "Time (mS)"  # of a line of their table: place of the line in the log, in thousands
STAMP = "%m-%d-%Y %H:%M:%S"  # that begins a line of a log
STAMP_LENGTH = 19
RAIL = " Current (mW)"  # ends the title of a rail's column in their table
SAME_READINGS_PCT, SAME_INTEGRAL_PCT = 0.5, 1.0


class Printed(NamedTuple):
    """A run as the authors print it."""

    mode: str
    run: str
    epoch_s: float
    power_w: float  # all four rails added


RUNS = (
    Printed("MAXN, GPU clock held", "resnet_training", 132, 51.03),
    Printed("MAXN", "resnet_training_maxnS", 131, 50.36),
    Printed("50W", "resnet_training_50W", 164, 34.23),
    Printed("30W", "resnet_training_30W", 305, 21.60),
    Printed("15W", "resnet_training_15W", 634, 13.62),
)


class Readings(NamedTuple):
    """Power readings of the part of a run that the authors' table holds: its training."""

    t_s: NDArray[np.float64]  # ascending, shape (n,), s
    rails_w: pd.DataFrame  # W, a column per label

    @property
    def module_w(self) -> NDArray[np.float64]:
        """Power of the module by the table of rails, W; ConfigError where it knows no total."""
        module = ModulePower(BOARD, list(self.rails_w))
        if module.total is None:
            raise ConfigError(f"no total of the rails: {module.no_total}", where=SWEEP)
        return np.array([module.row(row)[-1] for row in self.rails_w.to_numpy().tolist()])

    @property
    def integral_w(self) -> float:
        """Mean power of the module by the integral of its readings over their stamps, W."""
        start_s, end_s = float(self.t_s[0]), float(self.t_s[-1])
        energy = trapezoid(self.t_s, self.module_w, start_s, end_s)
        return energy.energy_j / (end_s - start_s)


def findings(inputs: Inputs) -> Iterator[Finding]:
    """Yield what the logs give, run by run, and which mode is best."""
    paths, tables = _tables(inputs)
    energies_kj = {}
    for printed in RUNS:
        table = tables[printed.run]
        log = _log(paths[printed.run].parent, printed.run, table)
        energies_kj[printed.mode] = _energy_kj(printed, (log or table).module_w)
        yield from _of_run(printed, table, log)
    # SIGMETRICS 2023 finds of AGX Xavier and Nano that neither end of the modes is the best
    order = sorted(energies_kj, key=energies_kj.__getitem__)
    yield Finding(
        "mode with the least energy of an epoch",
        "kJ",
        "between the strongest and the weakest",
        ", ".join(f"{mode} {energies_kj[mode]:.2f}" for mode in order),
        order[0] not in (RUNS[0].mode, RUNS[1].mode, RUNS[-1].mode),
        "as SIGMETRICS 2023 has it of other boards",
    )


def module_powers(inputs: Inputs) -> tuple[Printed, Printed]:
    """Return the runs in MAXN and in the 50 W mode, with the power of three rails."""
    _, tables = _tables(inputs)
    strongest, weaker = (
        printed._replace(power_w=float(tables[printed.run].module_w.mean()))
        for printed in RUNS[1:3]
    )
    return strongest, weaker


def _tables(inputs: Inputs) -> tuple[dict[str, Path], dict[str, Readings]]:
    """Return path and readings of each printed run's table."""
    paths: dict[str, Path] = {}
    readings: dict[str, Readings] = {}
    for path in inputs.originals(SWEEP):
        for run, table in read_table(path).items():
            paths[run], readings[run] = path, table
    if missing := [printed.run for printed in RUNS if printed.run not in readings]:
        raise ConfigError(
            "tables of runs are missing",
            where=str(next(iter(paths.values())).parent),
            found=", ".join(readings) or "none",
            allowed=", ".join(missing),
        )
    return paths, readings


def _energy_kj(printed: Printed, power_w: NDArray[np.float64] | float) -> float:
    return float(np.mean(power_w)) * printed.epoch_s / 1e3


def _of_run(printed: Printed, table: Readings, log: Readings | None) -> Iterator[Finding]:
    """Yield whether we read what the authors read, and the energy without the double count."""
    readings = log or table
    how = "raw log through our parser" if log else "the authors' table, as no raw log is here"
    all_rails_w = float(readings.rails_w.mean().sum())
    energy_kj = _energy_kj(printed, readings.module_w)
    late = "lines are missing for up to 12 s, and the integral weighs the others by time; "
    note = f"expected: as printed; observed: {how}"
    power = f"{printed.mode}: power, all four rails"
    yield near(power, "W", printed.power_w, all_rails_w, SAME_READINGS_PCT, note)
    energy = f"{printed.mode}: energy of an epoch"
    if log:
        of_table = _energy_kj(printed, table.module_w)
        note = f"expected: the authors' table of the same readings; observed: {how}"
        rails = f"{energy}, three rails"
        yield near(rails, "kJ", of_table, energy_kj, SAME_READINGS_PCT, note)
    integral_kj = _energy_kj(printed, readings.integral_w)
    note = f"{late if log else ''}epochs of {printed.epoch_s:g} s as printed"
    ours = f"{energy} by our integral, three rails"
    yield near(ours, "kJ", energy_kj, integral_kj, SAME_INTEGRAL_PCT, note)
    printed_kj = _energy_kj(printed, printed.power_w)
    note = "printed watts count VDDQ_VDD2_1V8AO twice: it is a part of VIN_SYS_5V0"
    theirs = f"{energy} as printed, four rails"
    yield near(theirs, "kJ", energy_kj, printed_kj, SAME_READINGS_PCT, note)


def _log(folder: Path, run: str, table: Readings) -> Readings | None:
    """Return the raw lines of a run that its table holds; None where there is no such file."""
    paths = [path for pattern in LOGS for path in sorted(folder.glob(pattern.format(run)))]
    return read_log(paths[0], round(table.t_s[0]), round(table.t_s[-1])) if paths else None


def read_log(path: Path, first: int, last: int) -> Readings:
    """Return some lines of a log of tegrastats, each with a stamp before it."""
    lines = pd.Series(table_text(path).splitlines())
    stamps = pd.to_datetime(lines.str[:STAMP_LENGTH], format=STAMP, errors="coerce", utc=True)
    lines, stamps = lines[stamps.notna()], stamps.dropna()
    if len(lines) <= last:
        raise ConfigError(
            "fewer lines than the table of the run has",
            where=str(path),
            found=f"{len(lines)}",
            allowed=f"at least {last + 1}",
        )
    rails_mw = pd.DataFrame([parse_line(line).rails_mw for line in lines[first : last + 1]])
    t_s = (stamps[first : last + 1] - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return Readings(t_s.to_numpy(), rails_mw / 1e3)


def read_table(path: Path) -> dict[str, Readings]:
    """Return the readings of a table by run: its column `run`, else the name of the file."""
    lines = table_text(path).splitlines()
    head = next((i for i, line in enumerate(lines) if TIME in line), 0)  # a date is above it
    try:
        rows = pd.read_csv(io.StringIO("\n".join(lines[head:])))
        names = rows["run"] if "run" in rows else [path.name.partition(".")[0]] * len(rows)
        rails = [title for title in rows if str(title).endswith(RAIL)]
        return {
            str(run): Readings(
                (some[TIME] / 1e3).to_numpy(float),
                some[rails].astype(float).rename(columns=lambda name: name.removesuffix(RAIL))
                / 1e3,
            )
            for run, some in rows.groupby(names, sort=False)
        }
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"not a table of readings: {error!r}", where=str(path)) from error
