"""Real training on an AGX Orin in its stock modes: 1 Hz logs through our parser, rails and energy.

The authors print the power of each run as the sum of all four rails that tegrastats shows. One of
them, VDDQ_VDD2_1V8AO, hangs below VIN_SYS_5V0, whose reading contains it, so it counts twice. Our
table of rails adds three.

SOURCE: github.com/BroncoSpace-Lab/scales-hardware, docs/ML_Training.md (2024): ResNet-50 on
CIFAR-100, ten epochs in each mode; clocks were not locked, batch size and versions are not printed.
"""

import csv
import gzip
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.epochs.energy import trapezoid
from epochwatt.errors import ConfigError
from epochwatt.external.check import AGREES, DIFFERS, Finding, near
from epochwatt.external.inputs import Inputs, not_here
from epochwatt.telemetry.rails import ModulePower
from epochwatt.telemetry.tegrastats_line import parse_line

REPOSITORY = "https://github.com/BroncoSpace-Lab/scales-hardware"
BOARD = "agx_orin"
TABLE = "tegrastats_1hz.csv*"
STAMP = "%m-%d-%Y %H:%M:%S"  # that begins a line of a log
STAMP_LENGTH = 19
TRAINING_PCT = 50  # load of the GPU from which a line is one of training
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
    """Power readings of the training part of a run.

    Attributes
    ----------
    t_s : ascending, shape (n,), s
    rails_w : by label, W, shape (n,)
    """

    t_s: NDArray[np.float64]
    rails_w: dict[str, NDArray[np.float64]]

    @property
    def module_w(self) -> NDArray[np.float64]:
        """Power of the module by the table of rails, W; ConfigError where it knows no total."""
        module = ModulePower(BOARD, list(self.rails_w))
        if module.total is None:
            raise ConfigError(f"no total of the rails: {module.no_total}", where=REPOSITORY)
        rows = np.column_stack(list(self.rails_w.values())).tolist()
        return np.array([module.row(row)[-1] for row in rows])

    @property
    def integral_w(self) -> float:
        """Mean power of the module by the integral of its readings over their stamps, W."""
        start_s, end_s = float(self.t_s[0]), float(self.t_s[-1])
        energy = trapezoid(self.t_s, self.module_w, start_s, end_s)
        return energy.energy_j / (end_s - start_s)


def findings(inputs: Inputs) -> Iterator[Finding]:
    """Yield what the logs give, run by run, and which mode is best.

    Raises
    ------
    NotHereError : the user's folder lacks the logs
    """
    table = inputs.files([TABLE, f"docs/data/{TABLE}"], REPOSITORY)[0]
    tables = read_table(table)
    energies_kj = {}
    for printed in RUNS:
        if printed.run not in tables:
            raise not_here(REPOSITORY)
        log = _log(table.parent, printed.run)
        yield from _of_run(printed, tables[printed.run], log)
        energies_kj[printed.mode] = _energy_kj(printed, (log or tables[printed.run]).module_w)
    yield _best(energies_kj)


def module_powers(inputs: Inputs) -> tuple[Printed, Printed]:
    """Return the runs in MAXN and in the 50 W mode, with the power of three rails.

    Raises
    ------
    NotHereError : the user's folder lacks the logs
    """
    tables = read_table(inputs.files([TABLE, f"docs/data/{TABLE}"], REPOSITORY)[0])
    strongest, weaker = (
        printed._replace(power_w=float(tables[printed.run].module_w.mean()))
        for printed in RUNS[1:3]
    )
    return strongest, weaker


def _energy_kj(printed: Printed, power_w: NDArray[np.float64] | float) -> float:
    return float(np.mean(power_w)) * printed.epoch_s / 1e3


def _of_run(printed: Printed, table: Readings, log: Readings | None) -> Iterator[Finding]:
    """Yield whether we read what the authors read, and the energy without the double count."""
    readings = log or table
    how = "raw log through our parser" if log else "the authors' table (no raw log is published)"
    all_rails_w = float(sum(watts.mean() for watts in readings.rails_w.values()))
    yield near(
        f"{printed.mode}: power, all four rails",
        "W",
        printed.power_w,
        all_rails_w,
        SAME_READINGS_PCT,
    )._replace(note=f"expected: as printed; observed: {how}")
    energy_kj = _energy_kj(printed, readings.module_w)
    if log:
        yield near(
            f"{printed.mode}: energy of an epoch, three rails",
            "kJ",
            _energy_kj(printed, table.module_w),
            energy_kj,
            SAME_READINGS_PCT,
        )._replace(note=f"expected: the authors' table of the same readings; observed: {how}")
    late = "lines are missing for up to 12 s, and the integral weighs the others by time; " * bool(
        log
    )
    yield near(
        f"{printed.mode}: energy of an epoch by our integral, three rails",
        "kJ",
        energy_kj,
        _energy_kj(printed, readings.integral_w),
        SAME_INTEGRAL_PCT,
    )._replace(note=f"{late}epochs of {printed.epoch_s:g} s as printed")
    yield near(
        f"{printed.mode}: energy of an epoch as printed, four rails",
        "kJ",
        energy_kj,
        _energy_kj(printed, printed.power_w),
        SAME_READINGS_PCT,
    )._replace(note="printed watts count VDDQ_VDD2_1V8AO twice: it is a part of VIN_SYS_5V0")


def _best(energies_kj: dict[str, float]) -> Finding:
    """Return whether the mode with the least energy is one between the strongest and the weakest.

    SIGMETRICS 2023 finds it of AGX Xavier and Nano: neither end of the modes is the best.
    """
    order = sorted(energies_kj, key=energies_kj.__getitem__)
    between = order[0] not in (RUNS[0].mode, RUNS[1].mode, RUNS[-1].mode)
    values = ", ".join(f"{mode} {energies_kj[mode]:.2f}" for mode in order)
    return Finding(
        "mode with the least energy of an epoch",
        "kJ",
        "between the strongest and the weakest",
        values,
        None,
        AGREES if between else DIFFERS,
        "as SIGMETRICS 2023 has it of other boards",
    )


def _log(folder: Path, run: str) -> Readings | None:
    """Return the raw lines of a run; None where there is no such file."""
    for path in sorted(folder.glob(f"tegrastats_{run}.txt*")):
        return read_log(path)
    return None


def read_log(path: Path) -> Readings:
    """Return the training part of a log of tegrastats: from the first line under load to the last.

    Raises
    ------
    ConfigError : it cannot be read, or has no such line
    """
    lines = [line for line in _text(path).splitlines() if _stamp(line) is not None]
    parsed = [parse_line(line) for line in lines]
    busy = [i for i, line in enumerate(parsed) if (line.gpu_pct or 0) > TRAINING_PCT]
    if not busy:
        raise ConfigError("no line with a load of the GPU", where=str(path))
    part = slice(busy[0], busy[-1] + 1)
    rails_mw = [line.rails_mw for line in parsed[part]]
    stamps = [_stamp(line) for line in lines[part]]
    t_s = np.array([stamp.timestamp() for stamp in stamps if stamp is not None])
    return _readings(
        t_s,
        {label: np.array([mw.get(label, np.nan) for mw in rails_mw]) for label in rails_mw[0]},
    )


def read_table(path: Path) -> dict[str, Readings]:
    """Return the readings of the authors' table by run; it holds the training part alone.

    Raises
    ------
    ConfigError : it cannot be read, or lacks a column
    """
    rows: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(_text(path).splitlines()):
        rows.setdefault(row.get("run", ""), []).append(row)
    try:
        return {
            run: _readings(
                np.array([float(row["Time (mS)"]) / 1e3 for row in some]),
                {
                    title.removesuffix(RAIL): np.array([float(row[title]) for row in some])
                    for title in some[0]
                    if title.endswith(RAIL)
                },
            )
            for run, some in rows.items()
        }
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"not a table of readings: {error!r}", where=str(path)) from error


def _readings(t_s: NDArray[np.float64], rails_mw: dict[str, NDArray[np.float64]]) -> Readings:
    return Readings(t_s, {label: mw / 1e3 for label, mw in rails_mw.items()})


def _stamp(line: str) -> datetime | None:
    try:
        return datetime.strptime(line[:STAMP_LENGTH], STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
