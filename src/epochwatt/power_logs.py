"""`epochwatt import`: make records of a power log of another program and the bounds of epochs.

The records lie in `measured/{run}/`, as those of `EpochMonitor` do; the log is read as
docs/how-to/import-a-power-log.md says. Of an epoch only its bounds are known: no part of its time,
and none of its mini-batches. Readings at regular instants may keep to these, so a bound of the
energy needs a sensor that leaves nothing out: means without gaps, or a counter.
"""

import csv
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.board.records import files
from epochwatt.board.records.run_folder import TELEMETRY, EpochRecord, RunFolder
from epochwatt.board.records.samples import write_samples
from epochwatt.board.records.shapes import ANY, Document
from epochwatt.board.telemetry.channel import Tally
from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.board.telemetry.source import sensor_facts
from epochwatt.board.telemetry.tegrastats import parse_line
from epochwatt.epochs.collect import epoch_row
from epochwatt.epochs.placement import BOUNDS_ONLY
from epochwatt.epochs.telemetry import read_all
from epochwatt.epochs.windows import Array, typical_step_s
from epochwatt.errors import ConfigError, RecordError
from epochwatt.monitor import J_PER_WH, OWN, Window
from epochwatt.study.imported import SOURCE
from epochwatt.study.place import MEASURED
from epochwatt.tables import table_text

UNIX_S = 1e8  # an earlier time is counted from the begin of the log
LATEST_S = 1e11  # what is later is not in seconds
MOST_W = 200.0  # ASSUME: no rail of a module takes more, and the largest never less than 0.2 W
NVIDIA_SMI_MEAN_S = 1.0  # SOURCE: `nvidia-smi --help-query-gpu`, power.draw.average
PREAMBLE = 20  # lines in which loggers name themselves before the readings
NO_READING = {"", "nan", "n/a", "[n/a]", "[not supported]", "[unknown error]", "err!"}
TIME_FORMS = (  # of tegrastats, of nvidia-smi, and the German one; 02/03/2026 could be two days
    "%m-%d-%Y %H:%M:%S",
    *("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"),
    *("%d.%m.%Y %H:%M:%S.%f", "%d.%m.%Y %H:%M:%S"),
)
# Names that loggers give to rails, by board: those of AmazingDD/Jetson-Energy-Monitor.
_ORIN = {"GPU+SOC": "VDD_GPU_SOC", "CPU+CV": "VDD_CPU_CV", "I/O (5V0)": "VIN_SYS_5V0"}
RAIL_NAMES = {"agx_orin": {**_ORIN, "I/O (VDDQ)": "VDDQ_VDD2_1V8AO"}}
MLPERF = ":::MLLOG "  # SOURCE: mlcommons/logging, mllog: what follows in the line is JSON
# Columns of an epoch that its bounds do not tell, and factors that nobody has told.
UNKNOWN = [
    *("wait_s", "copy_s", "compute_s", "stall_s", "overhead_s", "n_minibatches", "host_wait_s"),
    *("fetch_s", "preprocess_s", "loss", "protocol", "stall_energy_j", "stall_energy_error_pct"),
    *("num_workers", "batch_size", "prefetch_factor", "cache_policy", "seed", "torch_threads"),
    "gpu_timing",
]


@dataclass(frozen=True)
class Options:
    """Options of the command line for a log."""

    name: str = ""  # of the run; empty: that of the log
    board: str = ""  # whose rails were read; empty: as the rails' names show it
    gpus: Sequence[int] = ()  # that trained, in a log of several
    start: str = ""  # of a log whose times are counted from its begin; empty: epochs are as well
    timezone: str = ""  # of times without one; empty: this machine's
    averaging_s: float | None = None  # each reading is a mean over so many seconds; None: not known
    meter: str = ""  # the column of a CSV that a meter at the plug has written
    cpu: bool = False  # of CodeCarbon, take the energy of the CPU, which it read from RAPL

    @property
    def zone(self) -> tzinfo | None:
        """Return the time zone; ConfigError where there is none of that name."""
        try:
            if re.match(r"[+-]|Z$", self.timezone):
                return datetime.fromisoformat(f"2000-01-01T00:00:00{self.timezone}").tzinfo
            return ZoneInfo(self.timezone) if self.timezone else None
        except (ValueError, OSError, KeyError) as error:
            raise ConfigError(
                f"there is no time zone {self.timezone}", allowed="such as +02:00 or Europe/Berlin"
            ) from error


@dataclass
class Power:
    """Power readings of a log."""

    source: str
    scope: str
    columns: tuple[str, ...]
    total: str  # the column that holds the power of the scope
    t_s: Array  # (n,), as stamped, s, ascending
    values: Array  # (n, c), one column a name; NaN: no reading
    device: str = "host"
    rails: ModulePower | None = None  # adds up the rails of a board
    averaging_s: float | None = None  # over which a reading is a mean; None: not known
    has_counter: bool = False  # whether a column counts energy

    @property
    def resolution_s(self) -> float:
        """Return the step of the stamps, s: whole seconds are cut off, so a reading is later."""
        return 1.0 if (self.t_s == np.floor(self.t_s)).all() else 0.0

    @property
    def hold_s(self) -> float:
        """Return for how long a value stands before its stamp or before the next, s."""
        return max(self.resolution_s, self.averaging_s or 0.0)

    def sensor(self) -> Document:
        """Return `sensor_facts` for the bound of the energy; empty: nothing is known."""
        if self.has_counter:  # each of the two ends may be off by half of a stamp's step
            return dict(sensor_facts("mean"), counter_update_s=self.resolution_s)
        if not self.hold_s:
            return {}
        reads = "held" if self.averaging_s is None else "mean"
        return dict(sensor_facts(reads, self.averaging_s, self.hold_s))


# -- text -----------------------------------------------------------------------------------------


def read_rows(path: Path) -> tuple["Format", pd.DataFrame, list[str]]:
    """Read a power log: its format, its cells (text, indexed by line number), and warnings.

    Raises RecordError: no known format, a damaged line, or no reading.
    """
    text = table_text(path)
    lines = {n: line for n, line in enumerate(text.splitlines(), 1) if line.strip()}
    examples = [f"{form.tool}: {form.example}" for form in FORMATS]
    first_line = next(iter(lines.values()), "")
    begins = [
        (n, form) for n in list(lines)[:PREAMBLE] for form in FORMATS if form.mark.search(lines[n])
    ]
    fitting = (begin for begin in begins if _fits(*begin, lines))
    begin, form = next(fitting, begins[-1] if begins else (0, None))
    if form is None:
        raise RecordError(
            "no power log of a known form" if lines else "the log is empty",
            where=f"{path}, line 1",
            found=repr(first_line[:80]),
            allowed="\n    ".join(["", *examples]),
            do="name the columns of a CSV in its first line, the first of them `time`",
        )
    warnings = []
    if begin != next(iter(lines)):
        warnings.append(f"what precedes line {begin} is left out: {first_line[:40]!r}")
        lines = {n: line for n, line in lines.items() if n >= begin}
    separator = _separator(lines[begin])
    if not text.endswith("\n"):
        n, last = lines.popitem()
        warnings.append(f"line {n} has no end and is left out: {last[:40]!r}")
    header = list(form.header)
    rows: dict[int, list[str]] = {}
    for n, line in lines.items():
        cells = form.split(line, separator)
        if cells is None:
            continue
        if not header:
            header = cells
        elif len(cells) == len(header):
            rows[n] = cells
        else:
            raise RecordError(
                "a line that is not whole",
                where=f"{path}, line {n}",
                found=repr(line[:80]),
                allowed=form.example,
                do="take out what is no reading, or import the parts before and after it",
            )
    if not rows:
        raise RecordError("the log has no reading", where=str(path), found=repr(first_line[:80]))
    return form, pd.DataFrame.from_dict(rows, orient="index", columns=header), warnings


def _fits(begin: int, form: "Format", lines: dict[int, str]) -> bool:
    """Whether the next line fits a header: it has as many cells, and begins with a time.

    Always of a form that has no header.
    """
    if form.header:
        return True
    separator = _separator(lines[begin])
    following = next((n for n in lines if n > begin), begin)
    header, cells = (_csv_cells(lines[n], separator) for n in (begin, following))
    if len(cells) != len(header):
        return False
    times, _ = _times(pd.DataFrame([cells], columns=header))
    return 0 <= _instant(times.iloc[0], None) < LATEST_S


def _separator(header: str) -> str:
    return max(",;\t", key=header.count)


def _csv_cells(line: str, separator: str) -> list[str]:
    """Split a line of CSV; with semicolons between the cells, commas are decimal points."""
    if separator == ";":
        line = re.sub(r"(?<=\d),(?=\d)", ".", line)
    row = next(csv.reader([line], delimiter=separator, skipinitialspace=separator != "\t"))
    return [cell.strip() for cell in row]


def _tegrastats_cells(line: str, _separator: str) -> list[str]:
    """Return stamp and rails (JSON, mW) of a line of tegrastats; empty: it has none."""
    stamp, has_ram, rest = line.partition("RAM ")
    rails = parse_line(rest).rails_mw if has_ram else {}
    return [stamp.strip(), json.dumps(rails)] if rails else []


def _mlperf_cells(line: str, _separator: str) -> list[str] | None:
    """Return time, s, and power of a line of MLPerf; None: another event; empty: damaged."""
    try:
        event = json.loads(line.partition(MLPERF)[2])
        is_reading = event["key"] == "power_reading"
        return [str(event["time_ms"] / 1000.0), str(event["value"])] if is_reading else None
    except (ValueError, KeyError, TypeError):
        return []


def _times(frame: pd.DataFrame) -> tuple["pd.Series[str]", pd.DataFrame]:
    """Take the times off a table: its first column, or the first two, date and time; the rest."""
    if [str(name).lower() for name in frame.columns[:2]] == ["date", "time"]:
        return frame.iloc[:, 0] + " " + frame.iloc[:, 1], frame.iloc[:, 2:]
    return frame.iloc[:, 0], frame.iloc[:, 1:]


def numbers(cells: "pd.Series[str]", path: Path) -> Array:
    """Parse a column of numbers with or without a unit, float (n,); NaN: no reading.

    Raises RecordError: a cell is neither a number nor one of `NO_READING`.
    """
    bare = cells.str.strip().str.lower()
    values = pd.to_numeric(bare.str.replace(r"\s*(mhz|mw|w|%)$", "", regex=True), errors="coerce")
    invalid = cells[values.isna() & ~bare.isin(NO_READING)]
    if len(invalid):
        raise RecordError(
            f"{cells.name} is not a number",
            where=f"{path}, line {invalid.index[0]}",
            found=repr(invalid.iloc[0]),
            allowed="a number, or N/A where there was no reading",
        )
    return values.to_numpy(np.float64)


def instants(cells: "pd.Series[str]", zone: tzinfo | None, path: Path) -> Array:
    """Parse a column of times in any notation, float (n,), s: Unix time or since a log's begin.

    Raises RecordError: a cell is no time.
    """
    t_s = np.array([_instant(cell, zone) for cell in cells])
    wrong = np.flatnonzero(~((t_s >= 0) & (t_s < LATEST_S)))
    if wrong.size:
        cell = cells.iloc[wrong[0]]
        raise RecordError(
            "no time",
            where=f"{path}, line {cells.index[wrong[0]]}",
            found=repr(cell),
            allowed="Unix seconds, 2026-07-31T14:58:05 with or without +02:00, "
            "31.07.2026 14:58:05, or as the tools write them",
            do="`tegrastats | ts %.s` puts the time before each line; rewrite dates whose day and "
            "month can be mixed up",
        )
    return t_s


def _instant(text: str, zone: tzinfo | None) -> float:
    """Parse seconds, ISO 8601 or a tool's notation to s; NaN: none of these."""
    try:
        return float(text)
    except ValueError:
        pass
    for form in ("", *TIME_FORMS):
        try:
            moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
        except (ValueError, OverflowError):  # in the year 1, too
            continue
    return math.nan


def stamps(cells: "pd.Series[str]", zone: tzinfo | None, path: Path) -> Array:
    """Parse the times of readings, float (n,), s; RecordError: no time, or they run backward."""
    t_s = instants(cells, zone, path)
    back = np.flatnonzero(np.diff(t_s) < 0)
    if back.size:
        k = int(back[0])
        raise RecordError(
            "the times run backward",
            where=f"{path}, line {cells.index[k + 1]}",
            found=f"{t_s[k + 1]:.3f} s after {t_s[k]:.3f} s",
            allowed="readings in order of time",
            do="if the clock was set, or two logs are in one file: import each part by itself",
        )
    return t_s


# -- forms of logs --------------------------------------------------------------------------------


def _module_power(
    t_s: Array, labels: Sequence[str], watts: Array, options: Options, source: str
) -> Power:
    """Add up a board's rails, `watts` (n, len(labels)), to the power of its module.

    Without `--board` the rails' names tell the board. Raises ConfigError: they fit none or several,
    or it is not known what they add up to.
    """
    names = set(labels) - {""}
    boards = [k for k, kind in KINDS.items() if names <= {rail.label for rail in kind.rails}]
    kind = options.board or (boards[0] if len(boards) == 1 else "")
    if kind not in KINDS:
        raise ConfigError(
            f"no board is called {kind}" if kind else "the names of its rails fit no single board",
            found=labels,
            allowed=boards or list(KINDS),
            do="some rails hang below others, so they are not just added: name the board (--board "
            "NAME), or the column of a meter at the plug (--meter COLUMN)",
        )
    rails = ModulePower(kind, [RAIL_NAMES.get(kind, {}).get(name, name) for name in labels])
    if rails.total is None:
        raise ConfigError(
            f"the rails do not make up the power of a module: {rails.no_total}",
            allowed=[rail.label for rail in KINDS[kind].rails],
            do="take columns that are no rails out of the log, or name another --board",
        )
    values = np.array([rails.row(row) for row in watts.tolist()])
    return Power(source, rails.scope, rails.columns, rails.total, t_s, values, kind, rails)


def _tegrastats(frame: pd.DataFrame, options: Options, path: Path) -> Power:
    t_s = stamps(frame["time"], options.zone, path)
    table = pd.DataFrame(list(frame["rails"].map(json.loads)), dtype=np.float64)
    return _module_power(t_s, list(table.columns), table.to_numpy() / 1000.0, options, "tegrastats")


def _rails(frame: pd.DataFrame, options: Options, path: Path) -> Power:
    """Read a table of rails in mW or W, or a meter's column of it (`--meter`).

    A column's name may end in its unit; else it is mW where the median over the rows of the largest
    rail is above `MOST_W`, and W of a meter.
    """
    times, frame = _times(frame)
    t_s = stamps(times, options.zone, path)
    names = [str(name) for name in frame.columns]
    if options.meter:
        return _meter(frame, t_s, options.meter, path)
    raw = np.column_stack([numbers(frame[name], path) for name in names])
    is_large = bool(np.nanmedian(np.fmax.reduce(raw, axis=1)) > MOST_W)
    labels, is_mw = [], []
    for name in names:
        unit = re.search(r"[ _]*[\[(]?\b(m?W)[\])]?$|_(m?w)$", name)
        labels.append(name[: unit.start()] if unit else name)
        is_mw.append((unit[1] or unit[2]).lower() == "mw" if unit else is_large)
    return _module_power(t_s, labels, raw / np.where(is_mw, 1000.0, 1.0), options, "rails")


def _meter(frame: pd.DataFrame, t_s: Array, column: str, path: Path) -> Power:
    """Read the power of a whole machine, W or in the unit in which the column's name ends."""
    if column not in frame:
        raise ConfigError(f"no column {column}", where=str(path), found=list(frame.columns))
    unit = re.search(r"(?:\b|_)([mk]?)w\W*$", column, re.I)
    factor = {"m": 1e-3, "": 1.0, "k": 1e3}[unit[1].lower() if unit else ""]
    power_w = numbers(frame[column], path)[:, None] * factor
    return Power("meter", "socket", ("power_socket_w",), "power_socket_w", t_s, power_w)


def _nvidia_smi(frame: pd.DataFrame, options: Options, path: Path) -> Power:
    """Add up the power of the GPUs that trained (`--gpu`), reading by reading.

    Raises ConfigError: it is not told which; RecordError: readings of one are missing.
    """
    frame = frame.rename(columns=lambda name: str(name).partition(" [")[0])
    if "timestamp" not in frame:
        raise RecordError("no column timestamp", where=str(path), found=list(frame.columns))
    mean = "power.draw.average"
    power = next(n for n in (mean, "power.draw", "power.draw.instant") if n in frame)
    if "index" not in frame:
        frame["index"] = "0"
    gpus = sorted(set(frame["index"]))
    trained = [str(gpu) for gpu in options.gpus] or gpus
    if (len(gpus) > 1 and not options.gpus) or not set(trained) <= set(gpus):
        raise ConfigError(
            "which GPUs trained?", found=gpus, do="name each: --gpu 0 --gpu 1", where=str(path)
        )
    new_names = {power: "power_gpu_w"}
    if len(trained) == 1 and "utilization.gpu" in frame:
        new_names["utilization.gpu"] = "gpu_util_pct"
    tables = [frame[frame["index"] == gpu] for gpu in trained]
    times = [stamps(table["timestamp"], options.zone, path) for table in tables]
    n = min(map(len, times))
    t_s = np.mean([t[:n] for t in times], axis=0)
    if np.ptp([t[:n] for t in times], axis=0).max() > typical_step_s(t_s) / 2:
        raise RecordError(
            "readings of the GPUs are missing: they cannot be added up",
            where=str(path),
            found=[f"GPU {gpu}: {len(t)} readings" for gpu, t in zip(trained, times, strict=True)],
            do="import one GPU at a time",
        )
    readings = [np.column_stack([numbers(t[name], path) for name in new_names]) for t in tables]
    values = np.sum([rows[:n] for rows in readings], axis=0)
    averaging_s = NVIDIA_SMI_MEAN_S if power == mean else None
    names = tuple(new_names.values())
    return Power("nvml", "gpu", names, names[0], t_s, values, averaging_s=averaging_s)


def _mlperf(frame: pd.DataFrame, options: Options, path: Path) -> Power:
    """Read the power of a node of an MLPerf Training submission."""
    t_s, values = stamps(frame["time"], options.zone, path), numbers(frame["power"], path)
    return Power("mlperf", "socket", ("power_socket_w",), "power_socket_w", t_s, values[:, None])


def _codecarbon(frame: pd.DataFrame, options: Options, path: Path) -> Power:
    """Read the energy, kWh, that CodeCarbon counted; power is its mean between two rows.

    A row at the start of the log, at 0, is added. Raises RecordError: a column is missing, several
    runs, or no energy.
    """
    part, scope = ("cpu", "cpu_package") if options.cpu else ("gpu", "gpu")
    for name in ("timestamp", "duration", f"{part}_energy"):
        if name not in frame:
            raise RecordError(f"no column {name}", where=str(path), found=list(frame.columns))
    if "run_id" in frame and frame["run_id"].nunique() > 1:
        raise RecordError(
            "the log holds several runs",
            where=str(path),
            found=sorted(set(frame["run_id"])),
            do="keep the lines of one run",
        )
    t_s = stamps(frame["timestamp"], options.zone, path)
    start_s = t_s[0] - np.floor(numbers(frame["duration"], path)[0])
    energy_j = np.append(0.0, numbers(frame[f"{part}_energy"], path) * 1000.0 * J_PER_WH)
    t_s = np.append(start_s, t_s)
    if not energy_j[-1] > 0:
        raise RecordError(
            f"CodeCarbon counted no energy of a {part.upper()}",
            where=str(path),
            found=f"{part}_energy is {energy_j[-1]:g}",
            do="--cpu takes the CPU's; only where CodeCarbon says that it reads RAPL, else it is "
            "an estimate",
        )
    is_last = np.append(np.diff(t_s) > 0, True)  # of rows with the same stamp
    t_s, energy_j = t_s[is_last], energy_j[is_last]
    power_w = np.diff(energy_j) / np.diff(t_s)
    values = np.column_stack([np.append(power_w[:1], power_w), energy_j])
    names = (f"power_{scope}_w", f"energy_{scope}_j")
    return Power("codecarbon", scope, names, names[0], t_s, values, has_counter=True)


@dataclass(frozen=True)
class Format:
    """A form of logs: the tool that writes it, how its first line is known, how it is read."""

    tool: str
    mark: re.Pattern[str]
    read: Callable[[pd.DataFrame, Options, Path], Power]
    example: str
    header: Sequence[str] = ()  # empty: the first line
    split: Callable[[str, str], list[str] | None] = _csv_cells  # of a line and its separator


FORMATS = (
    Format(
        "tegrastats",
        re.compile(r"\bRAM \d+/\d+MB"),
        _tegrastats,
        "07-31-2026 14:58:05 RAM 4714/62878MB ... VDD_GPU_SOC 2265mW/2265mW ...",
        ("time", "rails"),
        _tegrastats_cells,
    ),
    Format(
        "nvidia-smi",
        re.compile(r"\bpower\.draw\b"),
        _nvidia_smi,
        "timestamp, index, power.draw [W] (--query-gpu=timestamp,index,power.draw --format=csv)",
    ),
    Format(
        "mlperf",
        re.compile(rf"^{MLPERF}.*\bpower_"),
        _mlperf,
        ':::MLLOG {"time_ms": 1715928178951, "key": "power_reading", "value": 5182, ...}',
        ("time", "power"),
        _mlperf_cells,
    ),
    Format(
        "codecarbon",
        re.compile(r"\btimestamp\b.*\bduration\b.*\bgpu_energy\b"),
        _codecarbon,
        "timestamp,run_id,duration,...,cpu_energy,gpu_energy,... (emissions.csv)",
    ),
    Format(
        "rails",
        re.compile(r"^\W*(time|timestamp|date|t_\w+)\b[^,;\t]*[,;\t]", re.I),
        _rails,
        "time,VDD_IN,VDD_CPU_GPU_CV,VDD_SOC (mW or W; the first column is the time)\n"
        "    meter: time,power_w (with --meter power_w)",
    ),
)


# -- epochs ---------------------------------------------------------------------------------------


def read_epochs(path: Path, zone: tzinfo | None) -> pd.DataFrame:
    """Read the bounds of epochs from CSV, JSON lines or the log of an MLPerf training.

    Returns columns `epoch`, `start_s`, `end_s`, ascending. Of an MLPerf log they are its epochs, or
    else its blocks, from 0 on. Raises RecordError: no epochs, or they overlap or are not
    consecutive.
    """
    lines = {n: t for n, t in enumerate(table_text(path).splitlines(), 1) if t.strip()}
    form = (
        'CSV with the columns epoch, start, end, lines {"epoch": 0, "start": ..., "end": ...}, '
        "or the log of an MLPerf training"
    )
    rows = _mlperf_epochs(lines)
    if lines and not rows:
        is_json = next(iter(lines.values())).lstrip().startswith("{")
        first = min(lines)
        separator = _separator(lines[first])
        header = (
            [] if is_json else [cell.lower() for cell in _csv_cells(lines.pop(first), separator)]
        )
        if not is_json and not {"epoch", "start", "end"} <= set(header):
            raise RecordError(
                "no epochs", where=f"{path}, line {first}", found=header, allowed=form
            )
        for n, line in lines.items():
            try:
                cells = [] if is_json else _csv_cells(line, separator)
                row = json.loads(line) if is_json else dict(zip(header, cells, strict=True))
                rows.append((n, int(row["epoch"]), str(row["start"]), str(row["end"])))
            except (ValueError, KeyError, TypeError) as error:
                where, found = f"{path}, line {n}", repr(line[:80])
                raise RecordError("no epoch", where=where, found=found, allowed=form) from error
    if not rows:
        raise RecordError("no epochs", where=str(path), allowed=form)
    rows.sort(key=lambda row: row[1])
    epochs = pd.DataFrame(rows, columns=["line", "epoch", "start", "end"]).set_index("line")
    epochs["start_s"] = instants(epochs["start"], zone, path)
    epochs["end_s"] = instants(epochs["end"], zone, path)
    is_wrong = {
        "an epoch that ends before it starts": epochs["start_s"] >= epochs["end_s"],
        "an epoch is missing or there twice": epochs["epoch"].diff().fillna(1) != 1,
        "epochs overlap": epochs["start_s"] < epochs["end_s"].shift(),
    }
    for problem, mask in is_wrong.items():
        for line_number, row in epochs[mask].iterrows():
            raise RecordError(
                problem,
                where=f"{path}, line {line_number}",
                found=f"epoch {row['epoch']} from {row['start']} to {row['end']}",
                allowed="numbers one apart, each epoch after the one before",
            )
    return epochs.reset_index(drop=True)


def _mlperf_epochs(lines: dict[int, str]) -> list[tuple[int, int, str, str]]:
    """Return (line, number; begin and end, text, s) of an MLPerf log's epochs, or else blocks.

    Start and stop events are taken in turn. Empty: it is no such log.
    """
    for kind in ("epoch", "block"):
        event = re.compile(rf'{MLPERF}.*"time_ms": *(\d+),.*"key": *"{kind}_st(?:art|op)"')
        events = [(n, match[1]) for n, line in lines.items() if (match := event.search(line))]
        starts, stops = events[::2], events[1::2]
        if events:
            return [
                (n, epoch, f"{start_ms}e-3", f"{stop_ms}e-3")
                for epoch, ((n, start_ms), (_, stop_ms)) in enumerate(
                    zip(starts, stops, strict=False)
                )
            ]
    return []


# -- records --------------------------------------------------------------------------------------


def import_power_log(
    path: Path, epochs_path: Path, options: Options, root: Path = Path()
) -> list[str]:
    """Import a power log as a run of the study `own`; return lines that describe its epochs.

    Written below `root`/measured, all epochs or none. Raises RecordError: a file is damaged, or the
    two do not belong together; ConfigError: an option is missing or wrong.
    """
    epochs = read_epochs(epochs_path, options.zone)
    form, frame, warnings = read_rows(path)
    power = form.read(frame, options, path)
    power.averaging_s = options.averaging_s or power.averaging_s
    if options.meter and power.source != "meter":
        raise ConfigError(f"a log of {form.tool} is not of a meter", do="leave out --meter")
    if options.board and power.rails is None:
        raise ConfigError(f"a log of {form.tool} has no rails of a board", do="leave out --board")
    if power.t_s[-1] < UNIX_S and (options.start or epochs["end_s"].iloc[-1] >= UNIX_S):
        start = pd.Series([options.start], ["--start"])
        power.t_s = power.t_s + instants(start, options.zone, path)[0]
    begin_s, end_s = epochs["start_s"].iloc[0], epochs["end_s"].iloc[-1]
    if begin_s > power.t_s[-1] or end_s < power.t_s[0]:
        raise RecordError(
            "no epoch lies in the log",
            where=str(path),
            found=f"readings from {power.t_s[0]:.0f} to {power.t_s[-1]:.0f} s, epochs from "
            f"{begin_s:.0f} to {end_s:.0f} s",
            do="times of the log without a zone are this machine's: --timezone +02:00; one that "
            "counts from its begin: --start TIME",
        )
    if first := int(epochs["epoch"].iloc[0]):
        warnings.append(f"epoch {first} of {epochs_path} is epoch 0 here")
    source = _run_document(path, epochs_path, options, form, power, warnings)
    target = root / MEASURED / source["run"]
    if (target / SOURCE).exists():
        before = files.read_json(str(target / SOURCE), {"files": ANY})
        if before["files"] != source["files"]:
            raise RecordError(
                f"{target} was imported from other files", do="give another --name, or remove it"
            )
    lines = _write_run(target, source, power, epochs)
    return [f"{target}:", *lines, *(f"  warning: {warning}" for warning in warnings)]


def _run_document(
    path: Path, epochs_path: Path, options: Options, form: Format, power: Power, warnings: list[str]
) -> Document:
    """Return the content of `source.json`: run id, factors, hashes of both files, warnings."""
    name = options.name or path.stem
    known = dict.fromkeys(("setup", "dataset", "dataset_source", "storage"), OWN)
    known |= {"backend": "jetson" if power.rails else "host", "device": power.device}
    known |= {"instance": "local", "model": name, "power_mode": "asis", "dvfs": "on"}
    tool = "meter" if options.meter else form.tool
    factors = columns.with_defaults({**known, "imported": tool})
    canonical = json.dumps(factors, sort_keys=True)
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "run"
    return {
        "schema_version": columns.SCHEMA_VERSION,
        "run": f"{slug}-{hashlib.sha256(canonical.encode('utf-8')).hexdigest()[:8]}",
        "study": OWN,
        "factors": factors,
        "canonical": canonical,
        "files": {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (path, epochs_path)
        },
        "warnings": warnings,
    }


def _write_run(target: Path, source: Document, power: Power, epochs: pd.DataFrame) -> list[str]:
    """Write all epochs to a temporary folder, rename it to `target`; return a line an epoch."""
    unfinished = target.parent / f".import-{target.name}"
    lines: list[str] = []
    first_meta: Document | None = None
    with files.writing("an imported run", str(target)):
        shutil.rmtree(unfinished, ignore_errors=True)
        folder = RunFolder(str(unfinished), target.name)
        for k, (start_s, end_s) in enumerate(zip(epochs["start_s"], epochs["end_s"], strict=True)):
            folder.begin(k)
            statistics = _write_power(folder.attempt_path(k), power, start_s, end_s)
            meta = _epoch_record(k, start_s, end_s, source, statistics["lost"])
            folder.finish(k, meta, np.zeros((0, 3)))
            record: EpochRecord = folder.read(k)
            first_meta = first_meta or record.meta
            row, _ = epoch_row(record, read_all(record), first_meta, columns.FLAG_EFFECTS)
            lines.append("  " + str(_epoch_window(k, row)))
        files.write_json(os.path.join(folder.path, SOURCE), source)
        if target.exists():
            shutil.rmtree(target)
        os.rename(folder.path, target)
        unfinished.rmdir()
    return lines


def _epoch_window(k: int, row: dict[str, Any]) -> Window:
    """Return time, energy and flags of an epoch's row, as a `Window` to print."""
    energy_j = None if row["energy_wh"] is None else row["energy_wh"] * J_PER_WH
    error_pct = row["energy_error_pct"]
    return Window(
        name=f"epoch {k}",
        time=row["e2e_s"],
        total_energy=energy_j,
        energy_error=None if energy_j is None or error_pct is None else energy_j * error_pct / 100,
        power=row["power_mean_w"],
        scope=row["power_scope"],
        flags=tuple(sorted(row["flags"] - {"imported"})),
    )


def _write_power(folder: str, power: Power, start_s: float, end_s: float) -> Document:
    """Write an epoch's readings and two around it, and statistics as the sampler's; return these.

    Stamps are shifted: one that is cut to a second is of a reading up to a second later, and the
    reader of samples takes a value for as old as half of what it stands for. `lost`: a counter does
    not reach into the epoch, or fewer than two other readings lie in it.
    """
    sensor = power.sensor()
    shift_s = power.resolution_s / 2 + (0.0 if power.has_counter else power.hold_s / 2)
    t_s = power.t_s + (shift_s if sensor else 0.0)
    last_s = end_s + 2 * power.hold_s
    low = max(int(np.searchsorted(t_s, start_s)) - 2, 0)
    rows = slice(low, int(np.searchsorted(t_s, last_s, side="right")) + 2)
    t_s, values = t_s[rows], power.values[rows]
    total = power.columns.index(power.total)
    if power.has_counter:
        is_read = t_s.size > 1 and t_s[0] < end_s and t_s[-1] > start_s
    else:
        is_read = np.sum((t_s >= start_s) & (t_s <= last_s) & np.isfinite(values[:, total])) > 1
    if not is_read:
        statistics: Document = {"lost": True, "sources": {}}
    else:
        tally = Tally(power.columns, power.total)
        settings: Document = {"sensor": sensor}
        if power.rails is not None:
            power.rails.start()
            n_rails = len(power.columns) - 1
            for row in values[:, :n_rails].tolist():
                power.rails.row(row)  # only to count contradictions
            settings |= power.rails.settings()
        for t, row in zip(t_s.tolist(), values.tolist(), strict=True):
            tally.add(t, None, 0.0, 0.0, row)
        write_samples(folder, power.source, power.columns, t_s, t_s, values)
        source = {
            "columns": list(power.columns),
            "scope": power.scope,
            "total": power.total,
            "settings": settings,
            "n_samples": len(t_s),
            "rows_dropped": 0,
            **tally.summary(),
            "n_failed": int(np.isnan(values[:, total]).sum()),
            # what a counter makes of few rows is no reading that stands still
            **({"stuck_s": 0.0} if power.has_counter else {}),
        }
        statistics = {"lost": False, "clock_jumps": 0, "sources": {power.source: source}}
    files.write_json(os.path.join(folder, TELEMETRY), statistics)
    return statistics


def _epoch_record(
    k: int, start_s: float, end_s: float, source: Document, is_lost: bool
) -> Document:
    """Return the record of an epoch; the log's clock stands for both clocks of a record."""
    factors = source["factors"]
    unknown_times = ("wait_s", "copy_s", "compute_s", "fetch_s", "preprocess_s", "tail_s")
    return {
        "schema_version": columns.SCHEMA_VERSION,
        "protocol": columns.PROTOCOL,
        "backend": factors["backend"],
        "run": source["run"],
        "epoch": k,
        "factors": factors,
        "unknown": UNKNOWN,
        **dict.fromkeys(("t_start_mono_s", "t_start_unix_s"), float(start_s)),
        **dict.fromkeys(("t_end_mono_s", "t_end_unix_s"), float(end_s)),
        "e2e_s": float(end_s - start_s),
        **dict.fromkeys(unknown_times, 0.0),
        "n_minibatches": 0,
        "n_samples": None,
        "loss": None,
        "timing_method": BOUNDS_ONLY,
        "cold_process": None,
        "flags": ["imported", *(["sampler_lost"] if is_lost else [])],
        "machine": {key: factors[key] for key in ("device", "instance")},
        "software": {},
        "measurement_id": f"{source['run']}/{k}",
        "boot_id": factors["imported"],
    }
