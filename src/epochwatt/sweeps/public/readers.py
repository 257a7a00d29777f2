"""Read the files of others' sweeps: one reader a format, which gives a row of modes per line.

A reader asks a line for its cells by the names of the columns. What cannot be is refused with file,
line and column; further columns are ignored. To add a format: a function that yields a `SweepRow`
per line or a sentence on why the line is left out, and an entry of `FORMATS`.
"""

import csv
import gzip
import json
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from epochwatt.board.device.kinds import AGX_ORIN, StockMode
from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.tables import read_table
from epochwatt.text import CELL_TEXT, CELL_TEXT_ADVICE

HZ, KHZ, MHZ = 1e6, 1e3, 1.0  # how many of the unit are one MHz
TABLE_NAMES = ("table", "source_table", "source_file")  # columns, where tables were put together
CLOCKS_MHZ = (5.0, 50_000.0)  # no clock of a CPU, GPU or memory is outside of it
FINITE, POSITIVE = "a finite number", "a finite number above zero"
WHOLE_NUMBER = "a whole number above zero"

Rows = Iterator[SweepRow | str]  # a row, or why a line has none


class Wanted(NamedTuple):
    """Facts that the caller states of files that do not state them."""

    sweep: str
    device: str = ""  # board or GPU; empty: as the file or its name says
    only: str = "*"  # pattern of the tables to read, where a file holds several


@dataclass(frozen=True)
class Line:
    """One line of a table, or one entry of another file; all that it returns may be refused."""

    where: str  # file and line, for messages
    cells: dict[str, str]
    stem: str  # the file's name without its endings

    @property
    def table(self) -> str:
        """Name of the authors' table: from a column, or the file's name."""
        return next((self.cells[name] for name in TABLE_NAMES if name in self.cells), self.stem)

    def has(self, *names: str) -> bool:
        """Return whether one of the columns is there."""
        return any(name in self.cells for name in names)

    def text(self, *names: str) -> str:
        """Return the cell of the first of these columns that is there."""
        return self.cells[self._column(names)].strip()

    def device(self, wanted: Wanted, *names: str, in_name: str = "") -> str:
        """Return which device it is: as the caller, a column or the file's name says."""
        device = wanted.device or (self.text(*names) if self.has(*names) else in_name)
        if not device:
            problem = "the file does not say which device was measured"
            raise ConfigError(problem, where=self.where, do="name it with --device")
        return device

    def number(self, *names: str, allowed: str = FINITE) -> float:
        """Return a finite number; `allowed` may be `POSITIVE` or `WHOLE_NUMBER`."""
        column = self._column(names)
        value = self._value(column)
        is_number = value is not None and math.isfinite(value)
        if allowed != FINITE:
            is_number = is_number and value > 0  # type: ignore[operator]
        if allowed == WHOLE_NUMBER:
            is_number = is_number and value.is_integer()  # type: ignore[union-attr]
        if value is None or not is_number:
            raise self._wrong(column, allowed)
        return value

    def clock_mhz(self, *names: str, unit: float) -> float:
        """Return a clock that the file has in `unit`: `HZ`, `KHZ` or `MHZ`."""
        column = self._column(names)
        clock_mhz = self.number(column, allowed=POSITIVE) / unit
        lowest, highest = CLOCKS_MHZ
        if not lowest <= clock_mhz <= highest:
            name = {HZ: "Hz", KHZ: "kHz", MHZ: "MHz"}[unit]
            raise self._wrong(column, f"{lowest * unit:.0f} to {highest * unit:.0f} {name}")
        return clock_mhz

    def measured(self, *names: str) -> float | None:
        """Return what was measured; None where the cell is empty, nan or not above zero."""
        value = self._value(self._column(names))
        return value if value is not None and math.isfinite(value) and value > 0 else None

    def _value(self, column: str) -> float | None:
        cell = self.cells[column].strip()
        try:
            return float(cell) if cell else None
        except ValueError:
            raise self._wrong(column, "a number") from None

    def _column(self, names: tuple[str, ...]) -> str:
        for name in names:
            if name in self.cells:
                return name
        raise ConfigError(
            f"no column {' or '.join(names)}",
            where=self.where.rpartition(", line")[0] or self.where,
            found=self.cells,
            do="look whether this is the authors' own file, and of this format",
        )

    def _wrong(self, column: str, allowed: str) -> ConfigError:
        return ConfigError(f"{column} is {self.cells[column]!r}", where=self.where, allowed=allowed)


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def lines_of(path: Path, wanted: Wanted, delimiter: str = ",") -> Iterator[Line]:
    """Yield the wanted lines of a table, compressed or not."""
    for number, row in read_table(path, delimiter):
        cells = {name.lstrip("\ufeff").strip(): cell for name, cell in row.items()}
        line = Line(f"{path}, line {number}", cells, _stem(path))
        if fnmatchcase(line.table, wanted.only):
            yield line


def _row(line: Line, wanted: Wanted, **columns: Any) -> SweepRow | str:
    """Return the row of a line, or why it is left out: nothing was timed. Power is the GPU's."""
    if columns["time_s"] is None:
        return f"{line.where}: no time"
    columns.setdefault("power_scope", "gpu" if columns.get("power_w") else "")
    for name, value in columns.items():
        if isinstance(value, str) and not re.fullmatch(CELL_TEXT, value):
            raise ConfigError(f"{name} is {value!r}", where=line.where, do=CELL_TEXT_ADVICE)
    try:
        return SweepRow(sweep=wanted.sweep, provenance="public", **columns)
    except ValueError as error:
        raise ConfigError(str(error), where=line.where) from error


# -- Translucence ----------------------------------------------------------------------------------

LEAST_MODULE_W = 4.0  # below it the energy is not the module's: one that runs TensorFlow draws more


def read_translucence(path: Path, wanted: Wanted) -> Rows:
    """Read inference on Jetson boards over cores, CPU, GPU and memory clocks.

    The tables are named `{board}_{inputs}_{workload}_...`, as `tx1_5000_image_target`; the number
    is missing where the authors do not say how many inputs there were. Time is that of the whole
    set; energy is in mJ by plausibility (TX1: 9.5 W), and undocumented: power is empty where it
    cannot be all. Settings of the kernel were drawn along with the mode; lines of one mode are its
    repeats, whatever else was set.
    """
    lines = list(lines_of(path, wanted))
    times_s = [line.measured("inference_time") for line in lines]
    energies_mj = [line.measured("total_energy_consumption") for line in lines]
    powers_w = [
        mj / 1e3 / s if s and mj else None for s, mj in zip(times_s, energies_mj, strict=True)
    ]
    known = [power_w for power_w in powers_w if power_w is not None]
    is_partial = bool(known) and median(known) < LEAST_MODULE_W
    for line, time_s, power_w in zip(lines, times_s, powers_w, strict=True):
        named = re.match(r"([A-Za-z]\w*?)_(?:(\d+)_)?([a-z]+)(?:_|$)", line.table)
        board, inputs, workload = named.groups() if named else ("", None, line.table)
        yield _row(
            line,
            wanted,
            device=line.device(wanted, in_name=board),
            workload=workload,
            task="infer",
            work=f"{inputs} {workload}s" if inputs else f"all {workload} inputs",
            cores=int(line.number("num_cores", allowed=WHOLE_NUMBER)),
            cpu_mhz=line.clock_mhz("core_freq", unit=KHZ),
            gpu_mhz=line.clock_mhz("gpu_freq", unit=HZ),
            emc_mhz=line.clock_mhz("emc_freq", unit=HZ),
            time_s=time_s,
            power_w=None if is_partial else power_w,
            power_scope="module" if power_w and not is_partial else "",
            flags="power_of_some_rails" if is_partial else "",
        )


# -- Zeus ------------------------------------------------------------------------------------------


def read_zeus(path: Path, wanted: Wanted) -> Rows:
    """Read training under power limits of a GPU (NSDI 2023), in two forms of file.

    `summary_power_{gpu}.csv`: network, data set, batch size and optimiser, time of an epoch in s,
    mean power of the GPU in W. The GPU stands in the file's name alone.

    `{gpu}+{network}+gpu{0,1,...}.csv`: windows of a fixed number of steps under each power limit,
    which the window's name ends with: time in s, energy of each GPU in J. Power is that of all.
    """
    for line in lines_of(path, wanted):
        yield (_zeus_window if line.has("window_name") else _zeus_epoch)(line, wanted)


def _zeus_epoch(line: Line, wanted: Wanted) -> SweepRow | str:
    in_name = re.match("summary_power_(.*)", line.stem)
    return _row(
        line,
        wanted,
        device=line.device(wanted, in_name=in_name[1].upper() if in_name else ""),
        workload="-".join(line.text(name) for name in ("network", "dataset", "optimizer")),
        task="train",
        batch_size=int(line.number("batch_size", allowed=WHOLE_NUMBER)),
        work="epoch",
        power_limit_w=line.number("power_limit", allowed=POSITIVE),
        time_s=line.measured("time_per_epoch"),
        power_w=line.measured("average_power"),
    )


def _zeus_window(line: Line, wanted: Wanted) -> SweepRow | str:
    limit = re.search(r"PowerLimitOptimizer_(\d+(?:\.\d+)?)$", line.text("window_name"))
    if limit is None:
        return f"{line.where}: window {line.text('window_name')} is of no power limit"
    gpu, _, rest = line.stem.partition("+")
    network = rest.partition("+")[0]
    gpus = [name for name in line.cells if re.fullmatch(r"gpu\d+_energy", name)]
    time_s = line.measured("elapsed_time")
    energies_j = [energy for name in gpus if (energy := line.measured(name)) is not None]
    is_complete = bool(gpus) and len(energies_j) == len(gpus)
    return _row(
        line,
        wanted,
        device=line.device(wanted, in_name=gpu if network else ""),
        workload=network + (f" on {len(gpus)} GPUs" if len(gpus) > 1 else ""),
        task="train",
        work="window of steps",
        power_limit_w=float(limit[1]),
        time_s=time_s,
        power_w=sum(energies_j) / time_s if time_s and is_complete else None,
    )


# -- Energy Time Fairness --------------------------------------------------------------------------

WHOLE = "(whole network)"


def read_energy_time_fairness(path: Path, wanted: Wanted) -> Rows:
    """Read networks and their kernels at each GPU clock of a Jetson TX2 (SEC 2023).

    `{network}_profile.json`: of the whole network and of each kernel, clock in Hz -> time in whole
    us and power of the GPU's rail in mW. CPU and memory clocks were not recorded. A table of the
    same numbers (network, kernel, gpu_hz, time_us, gpu_power_mw) is read, too.
    """
    for line in _profile(path) if path.suffix == ".json" else lines_of(path, wanted):
        kernel = line.text("kernel")
        time_us, power_mw = line.measured("time_us"), line.measured("gpu_power_mw")
        yield _row(
            line,
            wanted,
            device=line.device(wanted, in_name="tx2"),
            workload=line.text("network") + ("" if kernel == WHOLE else f" {kernel}"),
            task="infer",
            work="inference" if kernel == WHOLE else "kernel",
            gpu_mhz=line.clock_mhz("gpu_hz", unit=HZ),
            time_s=time_us and time_us / 1e6,
            power_w=power_mw and power_mw / 1e3,
        )


def _profile(path: Path) -> Iterator[Line]:
    """Yield clock, time and power of the network and of each kernel as lines of a table."""
    try:
        profile = json.loads(path.read_text("utf-8"))
        network = profile["model_name"]
        for kernel, part in {WHOLE: profile, **profile.get("kernel_profile", {})}.items():
            for clock, time_us in part["exec_time"].items():
                power_mw = part.get("gpu_power", {}).get(clock, "")
                cells = {"network": network, "kernel": kernel, "gpu_hz": clock}
                cells |= {"time_us": time_us, "gpu_power_mw": power_mw}
                texts = {name: str(cell) for name, cell in cells.items()}
                yield Line(f"{path}, {kernel}", texts, _stem(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "not a profile of this format",
            where=str(path),
            found=f"no {error}" if isinstance(error, KeyError) else str(error),
            allowed="model_name, exec_time, gpu_power and kernel_profile",
        ) from error


# -- Ali et al. ------------------------------------------------------------------------------------


def read_ali(path: Path, wanted: Wanted) -> Rows:
    """Read applications at each core clock of an A100 and a GV100.

    Tables with `sm_app_clock` (MHz), `run_time` (s), `power_usage` (W, GPU) and `application`;
    tables of run times alone (`dvfs`, `kernel_runtime`) have no power. The GPU stands at the
    beginning of some files' names: `GA100-...`. Mostly HPC; nothing says whether the LSTM trains:
    all are `infer`.
    """
    for line in lines_of(path, wanted):
        chip = re.match(r"[A-Z]{1,2}\d+(?=-)", line.table)
        power = ("power_usage", "power_w")
        yield _row(
            line,
            wanted,
            device=line.device(wanted, in_name=chip[0] if chip else ""),
            workload=line.text("application"),
            task="infer",
            work="run",
            gpu_mhz=line.clock_mhz("sm_app_clock", "core_mhz", "dvfs", unit=MHZ),
            time_s=line.measured("run_time", "run_time_s", "kernel_runtime"),
            power_w=line.measured(*power) if line.has(*power) else None,
        )


# -- OpML 2019 -------------------------------------------------------------------------------------


def read_opml19(path: Path, wanted: Wanted) -> Rows:
    """Read Xception on a Jetson TX2, a full factorial of cores, CPU, GPU and memory clocks.

    `output_{network}_{size}.csv`, separated by spaces: `core0_status` ... (1: online), `core_freq`
    in kHz, `gpu_freq` and `emc_freq` in Hz, time of one `predict` in s. `power_consumption` is a
    sum of the sensor's readings, which grows with time: neither power nor energy, so power is
    empty.
    """
    try:
        with path.open("rb") as handle:
            delimiter = "," if b"," in handle.readline() else " "
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    for line in lines_of(path, wanted, delimiter):
        network = line.text("model_name") if line.has("model_name") else "xception"
        size = line.text("size", "image_size")
        online = [name for name in line.cells if re.fullmatch(r"core\d+_status", name)]
        has_count = line.has("cpu_cores")
        yield _row(
            line,
            wanted,
            device=line.device(wanted, "system_name", in_name="tx2").lower(),
            workload=f"{network} {size if 'x' in size else f'{size}x{size}'}",
            task="infer",
            work="predict",
            cores=int(line.number("cpu_cores", allowed=WHOLE_NUMBER))
            if has_count
            else sum(int(line.number(name)) for name in online),
            cpu_mhz=line.clock_mhz("core_freq", "cpu_khz", unit=KHZ),
            gpu_mhz=line.clock_mhz("gpu_freq", "gpu_hz", unit=HZ),
            emc_mhz=line.clock_mhz("emc_freq", "emc_hz", unit=HZ),
            time_s=line.measured("inference_time", "inference_time_s"),
        )


# -- HKBU ------------------------------------------------------------------------------------------

TIMES = {  # a column of time -> how many of its unit are a second
    **{"time/s": 1.0, "iteration_s": 1.0, "time/ms": 1e3, "time_ms": 1e3},
    **{"time/us": 1e6, "time_us": 1e6},
}
CORE, MEMORY = ("coreF", "core_mhz"), ("memF", "memory_mhz")
POWER, ARGUMENTS = ("power/W", "power_w"), ("arg", "command_arguments")


def read_hkbu(path: Path, wanted: Wanted) -> Rows:
    """Read GPU core and memory clocks of dlbench_dvfs, GPU-DVFS-Job-Schedule, NV-DVFS-Benchmark.

    Tables with `appName`, `coreF` and `memF` in MHz, `time/s`, `time/ms` or `time/us`, and
    `power/W` of the GPU where it was measured. The GPU stands at the beginning of the file's name,
    as `gtx1080ti-...`. Caffe's rows are training iterations; its network is the prototxt of `arg`.
    Clocks that are offsets from clocks that the file does not say are refused.
    """
    for line in lines_of(path, wanted):
        if line.has("clock_kind") and line.text("clock_kind") != "absolute":
            yield f"{line.where}: clocks are offsets from clocks that nobody says"
            continue
        if line.number(*CORE) <= 0 or line.number(*MEMORY) <= 0:
            raise ConfigError(
                "clocks are offsets from clocks that the file does not say",
                where=line.where,
                found=f"core {line.text(*CORE)}, memory {line.text(*MEMORY)}",
                allowed="clocks in MHz",
                do="use the authors' tables with absolute clocks",
            )
        gpu, dash, _ = line.stem.partition("-")
        column = next(filter(line.has, TIMES), "time/s, time/ms or time/us")
        time = line.measured(column)
        yield _row(
            line,
            wanted,
            device=line.device(
                wanted, "gpu", in_name=gpu if dash and gpu.lower() != "dvfs" else ""
            ),
            gpu_mhz=line.clock_mhz(*CORE, unit=MHZ),
            emc_mhz=line.clock_mhz(*MEMORY, unit=MHZ),
            time_s=time and time / TIMES[column],
            power_w=line.measured(*POWER) if line.has(*POWER) else None,
            **_hkbu_work(line),
        )


def _hkbu_work(line: Line) -> dict[str, Any]:
    """Return workload, task, batch size and work of a line."""
    if not line.has(*ARGUMENTS):
        names = ("appName", "application"), ("kernel",), ("argNo", "argument")
        words = [line.text(*either) for either in names if line.has(*either)]
        return {"workload": " ".join(words), "task": "infer", "work": "kernel"}
    arguments = line.text(*ARGUMENTS)
    prototxt = re.search(r"[\w.-]*?(?=\.prototxt)", arguments)
    network = prototxt[0] if prototxt else line.text("appName", "network")
    batch = re.search(r"-b(\d+)\b", network)
    return {
        "workload": network.removesuffix("-GPU-solver").removesuffix("-solver-GPU"),
        "task": "train",
        "batch_size": int(batch[1]) if batch else None,
        "work": "iteration" if arguments.startswith("train") else "forward and backward pass",
    }


# -- Ellis -----------------------------------------------------------------------------------------

LEAST_OF_REQUEST = 0.95
LOCKED = ("clock_applied_mhz", "locked_core_mhz")


def read_ellis(path: Path, wanted: Wanted) -> Rows:
    """Read PyTorch operators at locked core clocks of a laptop's GPU, which the files do not name.

    `data/raw/{set}/{operator}.csv`: a line per clock and repeat (`run_id` as `clk3105_r1_...`),
    clocks in MHz, run time in s, mean power of the GPU in W. Lines whose mean clock stayed over 5 %
    below the locked one do not count: `clock_below_request`.
    """
    for line in lines_of(path, wanted):
        if line.text(*LOCKED) == "none":
            yield f"{line.where}: the clock was not locked"
            continue
        requested_mhz = line.clock_mhz(*LOCKED, unit=MHZ)
        mean_mhz = line.measured("avg_clock_mhz", "mean_core_mhz")
        is_kept = mean_mhz is not None and mean_mhz >= LEAST_OF_REQUEST * requested_mhz
        named = ("workload", "operator")
        folder = line.text("set") if line.has("set") else path.parent.name
        yield _row(
            line,
            wanted,
            device=line.device(wanted, in_name="laptop-gpu"),
            workload=f"{folder} {line.text(*named) if line.has(*named) else line.stem}",
            task="infer",
            work="run",
            gpu_mhz=requested_mhz,
            time_s=line.measured("runtime_s", "run_time_s"),
            power_w=line.measured("avg_power_w", "mean_power_w"),
            valid=is_kept,
            flags="" if is_kept else "clock_below_request",
        )


# -- BroncoSpace -----------------------------------------------------------------------------------

CLOCK = "Time (mS)"
CPU_CLOCK = "CPU Frequency (MHz)"
RAILS = tuple(rail.label for rail in AGX_ORIN.rails)


def read_broncospace(path: Path, wanted: Wanted) -> Rows:
    """Read complete 1 Hz logs of ResNet-50's training on a Jetson AGX Orin in stock modes.

    `docs/data/{run}.csv`: a date, then a line per second with `Time (mS)`, the load of each core or
    `off`, the CPU clock and the rails in mW. The mode is the end of the run's name (`_15W`; a
    training without one ran in MAXN). Time is that of the whole log, ten epochs and a test; power
    is the module's by the board's own rule, which adds three of the four rails. CPU cores and their
    clock are what the log shows, GPU and memory clocks the mode's limits: the board chose below
    them. Runs whose name has no `training` are left out: nothing says that each mode did the same.
    """
    runs: dict[str, list[Line]] = defaultdict(list)
    for line in _samples(path):
        runs[line.text("run") if line.has("run") else line.stem].append(line)
    for run, samples in runs.items():
        name = run.rpartition("_")[2].upper()
        mode_name = "MAXN" if name in ("MAXN", "MAXNS", "TRAINING") else f"MODE_{name}"
        modes = AGX_ORIN.releases[-1].modes
        mode = next((mode for mode in modes if mode.name == mode_name), None)
        if "training" not in run:
            yield f"{path}: {run}: not known to do the same work in each mode"
        elif mode is None:
            yield f"{path}: {run}: no power mode of a {AGX_ORIN.title} by this name"
        elif len(samples) < 2:
            yield f"{path}: {run}: no time"
        else:
            yield _logged_run(samples, mode, wanted)


def _logged_run(samples: list[Line], mode: StockMode, wanted: Wanted) -> SweepRow | str:
    first, module = samples[0], ModulePower(AGX_ORIN.name, RAILS)
    clock_s = np.array([line.number(CLOCK) for line in samples]) / 1e3
    loads = [name for name in first.cells if re.fullmatch(r"CPU \d+ Load \(%\)", name)]
    gpu_hz = mode.gpu_hz[1] if mode.gpu_hz[1] > 0 else AGX_ORIN.gpu_hz[-1]
    rails_w = [[line.number(f"{r} Current (mW)") / 1e3 for r in RAILS] for line in samples]
    return _row(
        first,
        wanted,
        device=first.device(wanted, in_name=AGX_ORIN.name),
        workload="resnet50-cifar100",
        task="train",
        work="10 epochs and a test",
        cores=sum(first.cells[name] != "off" for name in loads),
        cpu_mhz=max(line.number(CPU_CLOCK, allowed=POSITIVE) for line in samples),
        gpu_mhz=gpu_hz / HZ,
        emc_mhz=(mode.emc_hz or AGX_ORIN.emc_hz[-1]) / HZ,
        gpu_share=1 - (mode.tpc_mask or 0).bit_count() / AGX_ORIN.tpcs if AGX_ORIN.tpcs else None,
        time_s=float(clock_s[-1] - clock_s[0] + np.median(np.diff(clock_s))),
        power_w=float(np.mean([module.row(watts)[-1] for watts in rails_w])),
        power_scope="module",
    )


def _samples(path: Path) -> Iterator[Line]:
    """Yield the lines below the one that names the columns."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", newline="", encoding="utf-8") as handle:
            rows = csv.reader(handle)
            header = next((row for row in rows if CLOCK in row), None)
            if header is None:
                raise ConfigError(f"no column {CLOCK}", where=str(path))
            for row in rows:
                where = f"{path}, line {rows.line_num}"
                if len(row) != len(header):
                    raise ConfigError(f"{where} has more or fewer cells than the header")
                yield Line(where, dict(zip(header, row, strict=True)), _stem(path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


# -- all of them -----------------------------------------------------------------------------------


class Format(NamedTuple):
    """A form of the authors' own files."""

    read: Callable[[Path, Wanted], Rows]
    title: str  # what the files are
    files: str  # how they are called in their repository


FORMATS: dict[str, Format] = {
    "translucence": Format(
        read_translucence,
        "inference on Jetson boards over cores, CPU, GPU and memory clocks",
        "data/*.csv of iqbal128855/Translucence",
    ),
    "zeus": Format(
        read_zeus,
        "training under GPU power limits",
        "trace/summary_power_*.csv, tests/profile_data/*.csv of ml-energy/zeus",
    ),
    "energy-time-fairness": Format(
        read_energy_time_fairness,
        "networks and kernels at each GPU clock of a Jetson TX2",
        "models/*/*_profile.json of umassos/energy-time-fairness",
    ),
    "ali": Format(
        read_ali,
        "applications at each core clock of data-centre GPUs",
        "*-dcgm.csv of ghazanfarttu/Optimal-GPU-frequency-using-DNN-based-models",
    ),
    "opml19": Format(
        read_opml19,
        "Xception on a Jetson TX2, full factorial of modes",
        "ConfigLabyrinth/Data/Output/*/output_*.csv of iqbal128855/OpML19-DNNPerfModeling",
    ),
    "hkbu": Format(
        read_hkbu,
        "Caffe training and CUDA kernels over GPU core and memory clocks",
        "caffe/excels/*.csv of blackjack2015/dlbench_dvfs, csvs/*-Performance-Power.csv of "
        "HKBU-HPML/GPU-DVFS-Job-Schedule and blackjack2015/NV-DVFS-Benchmark",
    ),
    "broncospace": Format(
        read_broncospace,
        "complete 1 Hz logs of training on a Jetson AGX Orin in its stock modes",
        "docs/data/*training*.csv of BroncoSpace-Lab/scales-hardware",
    ),
    "ellis": Format(
        read_ellis,
        "PyTorch operators at locked core clocks",
        "data/raw/*/*.csv of DarshEllisd/GPU-Power-Capping-",
    ),
}
