"""Read the files of others' sweeps as rows of modes: formats.yaml says what their columns mean.

What cannot be is refused with file, line and column; further columns are ignored. To add a format:
an entry of formats.yaml, a function of `REST` for what no column says, and one of `LINES` if the
files are no tables.
"""

import csv
import io
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from epochwatt.board.device.kinds import KINDS
from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.errors import ConfigError
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.tables import read_table, table_text
from epochwatt.text import CELL_TEXT, CELL_TEXT_ADVICE

PER_OUR_UNIT = {  # how many of a unit are one of ours: of MHz, s, W
    "Hz": 1e6,
    "kHz": 1e3,
    "ms": 1e3,
    "us": 1e6,
    "mW": 1e3,
}
TABLE_NAMES = ("table", "source_table", "source_file")  # columns, where tables were put together
CLOCKS_MHZ = (5.0, 50_000.0)  # no clock of a CPU, GPU or memory is outside of it
LEAST_MODULE_W = 4.0  # below it power is not the module's: one that runs TensorFlow draws more
LEAST_OF_REQUEST = 0.95
WHOLE_NETWORK = "(whole network)"
LOG_CLOCK = "Time (mS)"
AGX_ORIN = KINDS["agx_orin"]
RAILS = tuple(rail.label for rail in AGX_ORIN.rails)

Cells = dict[str, Any]  # of a row, by columns of `SweepRow`


class Wanted(NamedTuple):
    """Facts that the caller states of files that do not state them."""

    sweep: str
    device: str = ""  # board or GPU; empty: as the file or its name says
    only: str = "*"  # pattern of the tables to read, where a file holds several


class Column(NamedTuple):
    """A column of the authors, as formats.yaml has it."""

    kind: str
    units: Mapping[str, Sequence[str]]  # unit -> names that the column may have
    optional: bool = False


@dataclass(frozen=True)
class Line:
    """One line of a table, or one entry of another file."""

    where: str  # file and line, for messages
    cells: Mapping[str, str]
    stem: str  # the file's name without its endings

    @property
    def table(self) -> str:
        """Name of the authors' table: from a column, or the file's name."""
        return next((self.cells[name] for name in TABLE_NAMES if name in self.cells), self.stem)

    def text(self, *names: str, default: str | None = None) -> str:
        """Return the cell of the first of these columns that is there, else the default.

        Raises ConfigError: neither column nor default.
        """
        for name in names:
            if name in self.cells:
                return self.cells[name].strip()
        if default is not None:
            return default
        raise ConfigError(
            f"no column {' or '.join(names)}",
            where=self.where.rpartition(", line")[0] or self.where,
            found=self.cells,
            do="look whether this is the authors' own file, and of this format",
        )

    def number(self, kind: str, *names: str, unit: str = "") -> Any:
        """Read a number from the first of these columns that is there, and convert it to our unit.

        None where the kind is `measured` and the cell holds no number above zero. Raises
        ConfigError: no such column, or a cell that is not allowed. `kind`: as in formats.yaml.
        """
        cell, factor = self.text(*names), PER_OUR_UNIT.get(unit, 1.0)
        try:
            value = float(cell) if cell else math.nan
        except ValueError:
            raise self._wrong(names, "a number") from None
        is_positive = math.isfinite(value) and value > 0
        if kind == "measured":
            return value / factor if is_positive else None
        low, high = (mhz * factor for mhz in CLOCKS_MHZ)
        allowed, is_allowed = {
            "finite": ("a finite number", math.isfinite(value)),
            "positive": ("a finite number above zero", is_positive),
            "whole": ("a whole number above zero", is_positive and value.is_integer()),
            "clock": (f"a number, {low:.0f} to {high:.0f} {unit}", low <= value <= high),
        }[kind]
        if not is_allowed:
            raise self._wrong(names, allowed)
        return int(value) if kind == "whole" else value / factor

    def _wrong(self, names: Iterable[str], allowed: str) -> ConfigError:
        name = next(name for name in names if name in self.cells)
        return ConfigError(f"{name} is {self.cells[name]!r}", where=self.where, allowed=allowed)

    def read(self, column: Column) -> Any:
        """Read the cell of a column of formats.yaml; None: it is optional and not there."""
        for unit, names in column.units.items():
            if present := [name for name in names if name in self.cells]:
                if column.kind == "text":
                    return self.text(*present)
                return self.number(column.kind, *present, unit=unit)
        return None if column.optional else self.text(*chain(*column.units.values()))


def table_lines(path: Path, delimiter: str = ",") -> Iterator[Line]:
    """Yield the lines of a table, compressed or not; column names lose spaces around them."""
    for number, row in read_table(path, delimiter):
        cells = {name.lstrip("\ufeff").strip(): cell for name, cell in row.items()}
        yield Line(f"{path}, line {number}", cells, path.name.partition(".")[0])


# -- what no column says: further cells of a line, or a sentence on why it has no row --------------


def _translucence(line: Line) -> Cells:
    """Read board, workload and inputs from the table's name, power from time and energy."""
    named = re.match(r"([A-Za-z]\w*?)_(?:(\d+)_)?([a-z]+)(?:_|$)", line.table)
    board, inputs, workload = named.groups() if named else ("", None, line.table)
    time_s = line.number("measured", "inference_time")
    energy_mj = line.number("measured", "total_energy_consumption")
    return {
        "device": board,
        "workload": workload,
        "work": f"{inputs} {workload}s" if inputs else f"all {workload} inputs",
        "power_w": energy_mj / 1e3 / time_s if time_s and energy_mj else None,
        "power_scope": "module" if time_s and energy_mj else "",
    }


def _without_partial_power(rows: list[SweepRow]) -> list[SweepRow]:
    """Empty the power of all rows where its median is below a module's: some rails are missing."""
    known = [row.power_w for row in rows if row.power_w is not None]
    if not known or median(known) >= LEAST_MODULE_W:
        return rows
    flag = "power_of_some_rails"
    return [replace(row, power_w=None, power_scope="", flags=flag) for row in rows]


def _zeus(line: Line) -> Cells | str:
    """Read a summary of epochs, or a measurement window, under a power limit of the GPU."""
    if "window_name" not in line.cells:
        in_name = re.match("summary_power_(.*)", line.stem)
        return {
            "device": in_name[1].upper() if in_name else "",
            "workload": "-".join(line.text(name) for name in ("network", "dataset", "optimizer")),
            "batch_size": line.number("whole", "batch_size"),
            "work": "epoch",
            "power_limit_w": line.number("positive", "power_limit"),
            "power_w": line.number("measured", "average_power"),
        }
    window = line.text("window_name")
    limit = re.search(r"PowerLimitOptimizer_(\d+(?:\.\d+)?)$", window)
    if limit is None:
        return f"window {window} is of no power limit"
    gpu, _, rest = line.stem.partition("+")
    network = rest.partition("+")[0]
    gpus = [name for name in line.cells if re.fullmatch(r"gpu\d+_energy", name)]
    energies_j = [line.number("measured", name) for name in gpus]
    time_s = line.number("measured", "elapsed_time")
    return {
        "device": gpu if network else "",
        "workload": network + (f" on {len(gpus)} GPUs" if len(gpus) > 1 else ""),
        "work": "window of steps",
        "power_limit_w": float(limit[1]),
        "power_w": sum(energies_j) / time_s if time_s and gpus and all(energies_j) else None,
    }


def _fairness(line: Line) -> Cells:
    """Read a profile of a kernel, or of a whole network's inference."""
    network, kernel = line.text("network"), line.text("kernel")
    if kernel == WHOLE_NETWORK:
        return {"workload": network, "work": "inference"}
    return {"workload": f"{network} {kernel}", "work": "kernel"}


def _ali(line: Line) -> Cells:
    chip = re.match(r"[A-Z]{1,2}\d+(?=-)", line.table)
    return {"device": chip[0] if chip else ""}


def _opml19(line: Line) -> Cells:
    """Read board, network with its image size, and the number of cores online."""
    size = line.text("size", "image_size")
    network = line.text("model_name", default="xception")
    online = [name for name in line.cells if re.fullmatch(r"core\d+_status", name)]
    if "cpu_cores" in line.cells:
        cores = line.number("whole", "cpu_cores")
    else:
        cores = sum(int(line.number("finite", name)) for name in online)
    return {
        "device": line.text("system_name", default="tx2").lower(),
        "workload": f"{network} {size if 'x' in size else f'{size}x{size}'}",
        "cores": cores,
    }


def _hkbu(line: Line) -> Cells | str:
    """Read a row of the tables of Hong Kong Baptist University, of kernels or of networks."""
    if line.text("clock_kind", default="absolute") != "absolute":
        return "clocks are offsets from clocks that nobody says"
    core, memory = ("coreF", "core_mhz"), ("memF", "memory_mhz")
    if min(line.number("finite", *names) for names in (core, memory)) <= 0:
        raise ConfigError(
            "clocks are offsets from clocks that the file does not say",
            where=line.where,
            found=f"core {line.text(*core)}, memory {line.text(*memory)}",
            allowed="clocks in MHz",
            do="use the authors' tables with absolute clocks",
        )
    gpu, dash, _ = line.stem.partition("-")
    device = line.text("gpu", default=gpu if dash and gpu.lower() != "dvfs" else "")
    if not line.cells.keys() & {"arg", "command_arguments"}:
        names = ("appName", "application"), ("kernel",), ("argNo", "argument")
        words = [line.text(*either) for either in names if line.cells.keys() & set(either)]
        return {"device": device, "workload": " ".join(words), "task": "infer", "work": "kernel"}
    arguments = line.text("arg", "command_arguments")
    prototxt = re.search(r"[\w.-]*?(?=\.prototxt)", arguments)
    network = prototxt[0] if prototxt else line.text("appName", "network")
    batch = re.search(r"-b(\d+)\b", network)
    return {
        "device": device,
        "workload": network.removesuffix("-GPU-solver").removesuffix("-solver-GPU"),
        "task": "train",
        "batch_size": int(batch[1]) if batch else None,
        "work": "iteration" if arguments.startswith("train") else "forward and backward pass",
    }


def _ellis(line: Line) -> Cells | str:
    """Read an operator at a locked clock; not valid where the mean clock fell below it."""
    locked = ("clock_applied_mhz", "locked_core_mhz")
    if line.text(*locked) == "none":
        return "the clock was not locked"
    mean_mhz = line.number("measured", "avg_clock_mhz", "mean_core_mhz")
    least_mhz = LEAST_OF_REQUEST * line.number("clock", *locked, unit="MHz")
    is_kept = mean_mhz is not None and mean_mhz >= least_mhz
    return {
        "workload": f"{line.text('set')} {line.text('workload', 'operator')}",
        "valid": is_kept,
        "flags": "" if is_kept else "clock_below_request",
    }


def _broncospace(line: Line) -> Cells | str:
    """Read a training run; the power mode in its name says clocks and the share of the GPU."""
    run = line.text("run")
    end = run.rpartition("_")[2].upper()
    name = "MAXN" if end in ("MAXN", "MAXNS", "TRAINING") else f"MODE_{end}"
    mode = next((mode for mode in AGX_ORIN.releases[-1].modes if mode.name == name), None)
    if "training" not in run:
        return "not known to do the same work in each mode"
    if mode is None:
        return f"no power mode of a {AGX_ORIN.title} by this name"
    n_off = (mode.tpc_mask or 0).bit_count()
    return {
        "gpu_mhz": (mode.gpu_hz[1] if mode.gpu_hz[1] > 0 else AGX_ORIN.gpu_hz[-1]) / 1e6,
        "emc_mhz": (mode.emc_hz or AGX_ORIN.emc_hz[-1]) / 1e6,
        "gpu_share": 1 - n_off / AGX_ORIN.tpcs if AGX_ORIN.tpcs else None,
    }


REST: dict[str, Callable[[Line], Cells | str]] = {
    "translucence": _translucence,
    "zeus": _zeus,
    "energy-time-fairness": _fairness,
    "ali": _ali,
    "opml19": _opml19,
    "hkbu": _hkbu,
    "broncospace": _broncospace,
    "ellis": _ellis,
}

# -- lines of files that are no tables with commas -------------------------------------------------


def _profile_lines(path: Path) -> Iterator[Line]:
    """Yield lines of clock, time and power of a network and each kernel, of JSON or of a table."""
    if path.suffix != ".json":
        yield from table_lines(path)
        return
    try:
        profile = json.loads(path.read_text("utf-8"))
        for kernel, part in {WHOLE_NETWORK: profile, **profile.get("kernel_profile", {})}.items():
            for hz, time_us in part["exec_time"].items():
                power_mw = part.get("gpu_power", {}).get(hz, "")
                cells = {"network": profile["model_name"], "kernel": kernel, "gpu_hz": hz}
                cells |= {"time_us": str(time_us), "gpu_power_mw": str(power_mw)}
                yield Line(f"{path}, {kernel}", cells, path.stem)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "not a profile of this format",
            where=str(path),
            found=f"no {error}" if isinstance(error, KeyError) else str(error),
            allowed="model_name, exec_time, gpu_power and kernel_profile",
        ) from error


def _log_lines(path: Path) -> Iterator[Line]:
    """Yield a line for each run of a 1 Hz log: cores, highest CPU clock, time, mean power."""
    rows = csv.reader(io.StringIO(table_text(path), newline=""))
    header = next((row for row in rows if LOG_CLOCK in row), None)
    if header is None:
        raise ConfigError(f"no column {LOG_CLOCK}", where=str(path))
    stem = path.name.partition(".")[0]
    runs: dict[str, list[Line]] = defaultdict(list)
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        if len(row) != len(header):
            raise ConfigError(f"{where} has more or fewer cells than the header")
        sample = Line(where, dict(zip(header, row, strict=True)), stem)
        runs[sample.text("run", default=stem)].append(sample)
    module = ModulePower(AGX_ORIN.name, RAILS)
    loads = [name for name in header if re.fullmatch(r"CPU \d+ Load \(%\)", name)]
    for run, samples in runs.items():
        clock_s = np.array([line.number("finite", LOG_CLOCK, unit="ms") for line in samples])
        steps_s = np.diff(clock_s)
        rails_w = [
            [line.number("finite", f"{rail} Current (mW)", unit="mW") for rail in RAILS]
            for line in samples
        ]
        cells = {
            "run": run,
            "cores": sum(samples[0].cells[name] != "off" for name in loads),
            "cpu_mhz": max(line.number("positive", "CPU Frequency (MHz)") for line in samples),
            "time_s": clock_s[-1] - clock_s[0] + np.median(steps_s) if len(steps_s) else "",
            "power_w": np.mean([module.row(watts)[-1] for watts in rails_w]),
        }
        yield Line(f"{path}: {run}", {name: str(cell) for name, cell in cells.items()}, stem)


LINES: dict[str, Callable[[Path], Iterable[Line]]] = {
    "energy-time-fairness": _profile_lines,
    "opml19": lambda path: table_lines(path, "," if "," in table_text(path)[:99] else " "),
    "broncospace": _log_lines,
    "ellis": lambda path: (
        replace(line, cells={"set": path.parent.name, "operator": line.stem, **line.cells})
        for line in table_lines(path)
    ),
}


class Format(NamedTuple):
    """A form of the authors' own files, an entry of formats.yaml."""

    name: str
    title: str  # what the files are
    files: str  # how they are called in their repository
    same: Cells
    columns: Mapping[str, Column]  # ours -> theirs

    def read(self, path: Path, wanted: Wanted) -> tuple[list[SweepRow], list[str]]:
        """Read the rows of a file, and the reason for each line that gives none.

        Raises ConfigError: it cannot be read, a column is missing, or a cell is not allowed.
        """
        rows, left_out = [], []
        for line in LINES.get(self.name, table_lines)(path):
            if fnmatchcase(line.table, wanted.only):
                row = self._row(line, wanted)
                if isinstance(row, str):
                    left_out.append(f"{line.where}: {row}")
                else:
                    rows.append(row)
        return _without_partial_power(rows) if self.name == "translucence" else rows, left_out

    def _row(self, line: Line, wanted: Wanted) -> SweepRow | str:
        """Convert a line to a row, or return why it gives none; power is the GPU's by default."""
        rest = REST[self.name](line)
        if isinstance(rest, str):
            return rest
        cells = {name: line.read(column) for name, column in self.columns.items()}
        cells |= self.same | rest
        cells["device"] = wanted.device or cells["device"]
        if not cells["device"]:
            problem = "the file does not say which device was measured"
            raise ConfigError(problem, where=line.where, do="name it with --device")
        if cells["time_s"] is None:
            return "no time"
        cells.setdefault("power_scope", "gpu" if cells.get("power_w") else "")
        for name, value in cells.items():
            if isinstance(value, str) and not re.fullmatch(CELL_TEXT, value):
                raise ConfigError(f"{name} is {value!r}", where=line.where, do=CELL_TEXT_ADVICE)
        try:
            return SweepRow(sweep=wanted.sweep, provenance="public", **cells)
        except ValueError as error:
            raise ConfigError(str(error), where=line.where) from error


def _read_formats() -> dict[str, Format]:
    """Read formats.yaml, by name of the format."""
    formats = {}
    for name, entry in read_yaml(Path(__file__).with_name("formats.yaml")).items():
        columns = {}
        for ours, theirs in entry["columns"].items():
            kind, units = next(iter(theirs.items()))
            columns[ours] = Column(kind, units, "optional" in theirs)
        formats[name] = Format(name, entry["title"], entry["files"], entry["same"], columns)
    return formats


FORMATS = _read_formats()
