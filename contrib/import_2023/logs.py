"""Read the logs of the papers' scripts: runs in a folder, their epochs, the monitor's samples.

Files are named ``mn_nw{workers}_pf{prefetch}_{kind}.csv``. Times of mini-batches and epochs are in
ms; `log_time` is the wall clock less its value when the script started, in s. The kinds of `NEEDED`
are required; any other that is missing or unreadable gives a warning (docs/how-to/import-2023.md).

Source: public artifact of SIGMETRICS 2023 (dream-lab/edge-train-bench, branch sigmetrics-2023);
jetson-stats 3.1.4, whose tables the monitor wrote.
"""

import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochwatt.board.records import files
from epochwatt.epochs.windows import Array
from epochwatt.errors import RecordError
from epochwatt.text import counted

NEEDED = ("epoch_stats", "fetch", "compute")
KINDS = (
    *NEEDED,
    *("vmtouch_stats", "io_stats", "mem_stats", "swap_stats", "tegrastats"),
    *("cpufreq_stats", "gpufreq_stats", "emc_stats", "ram_stats"),
)
_NAME = re.compile(rf"mn_nw(\d+)_pf(\d+)_({'|'.join(KINDS)})\.csv")

AGREE = 0.05  # of a sum in s and the same in ms: two clocks, but one duration
UNITS_FACTOR = 10.0  # log times may differ from durations by prints and jumps, not by so much
UNITS_MIN_S = 0.1  # too short to compare
KIB = {"k": 1.0, "M": 1024.0, "G": 1024.0**2}  # unit column of jtop's memory table -> KiB


@dataclass(frozen=True)
class LoggedEpoch:
    """A finished epoch; arrays of shape (n,), s, one value per mini-batch."""

    e2e_s: float
    end_s: float  # log time of its line, written just after its end
    stall_s: Array  # wait and copy together
    compute_s: Array
    logged_s: Array  # log time of its line, written just after its end

    @property
    def start_s(self) -> float:
        """Log time of its beginning."""
        return self.end_s - self.e2e_s

    @property
    def minibatch_s(self) -> Array:
        """Times as records have them, (n, 3), s: wait (here with the copy), copy, compute."""
        return np.column_stack([self.stall_s, np.zeros_like(self.stall_s), self.compute_s])


@dataclass(frozen=True)
class Series:
    """A column of the monitor over log time, both of shape (n,); NaN: no reading."""

    t_s: Array
    values: Array


@dataclass(frozen=True)
class Logs:
    """One run.

    Parameters
    ----------
    num_workers, prefetch_factor : as in the names of its files
    sha256 : name of each of its files -> SHA-256
    epochs : its finished epochs, 0 and on
    series : `power_total_w`, `cpu_util_pct`, `gpu_util_pct`, `ram_used_mib`, `read_iops`,
        `read_mib_s`, `cached_pct`; those that could be read
    warnings : what was left out and why
    """

    num_workers: int
    prefetch_factor: int
    sha256: dict[str, str]
    epochs: list[LoggedEpoch]
    series: dict[str, Series]
    warnings: list[str]


def read_folder(folder: Path) -> list[Logs]:
    """Read all runs of a folder; RecordError: file, fault, what to do."""
    if not folder.is_dir():
        raise RecordError(f"{folder} is not a folder", allowed="one with mn_nw*_pf*_*.csv")
    runs: dict[tuple[int, int], dict[str, Path]] = {}
    for path in sorted(folder.glob("*.csv")):
        if name := _NAME.fullmatch(path.name):
            runs.setdefault((int(name[1]), int(name[2])), {})[name[3]] = path
    if not runs:
        raise RecordError(
            f"no logs of the 2023 scripts in {folder}", allowed="files mn_nw*_pf*_*.csv"
        )
    return [_read_run(*key, paths) for key, paths in sorted(runs.items())]


def _read_run(num_workers: int, prefetch_factor: int, paths: dict[str, Path]) -> Logs:
    for kind in NEEDED:
        if kind not in paths:
            there = next(iter(paths.values()))
            raise RecordError(
                f"{there.parent} has {there.name}, but no {kind}; {', '.join(NEEDED)} are required",
                do="move incomplete runs out of the folder",
            )
    warnings: list[str] = []
    logged = {kind: read_sections(paths[kind]) for kind in NEEDED}
    counts = [len(sections) for sections in logged.values()]
    if len(set(counts)) > 1:
        raise RecordError(
            f"{paths['epoch_stats']} holds {counted(counts[0], 'runs')}, fetch {counts[1]}, "
            f"compute {counts[2]}",
            do="take them apart by hand: a run begins with each header",
        )
    back = _chosen(logged["epoch_stats"], paths["epoch_stats"], warnings)
    stats, fetch, compute = (logged[kind][-back] for kind in NEEDED)
    epochs = _epochs(stats, fetch, compute, warnings)
    series = {}
    for kind, read in READERS.items():
        if kind not in paths:
            warnings.append(f"there is no {kind}")
            continue
        try:
            series.update(read(_section(paths[kind], back, warnings), warnings))
        except RecordError as error:
            warnings.append(f"left out: {error}")
    sha256 = {path.name: files.sha256_of(str(path)) for path in paths.values()}
    return Logs(num_workers, prefetch_factor, sha256, epochs, series, warnings)


def _chosen(sections: list["Section"], path: Path, warnings: list[str]) -> int:
    """Return the place, from the end, of the last run that has the most finished epochs."""
    finished = [len(section.rows) for section in sections]
    if not any(finished):
        raise RecordError(f"{path} holds no finished epoch")
    back = 1 + finished[::-1].index(max(finished))
    if len(finished) > 1:
        warnings.append(
            f"{path.name} holds {len(finished)} runs of {', '.join(map(str, finished))} finished "
            f"epochs: number {len(finished) - back + 1} is imported"
        )
    return back


# -- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """The rows of one run in a file: cells by column; a last line that was cut is left out."""

    path: Path
    columns: list[str]
    rows: list[list[str]]
    lines: list[int]  # number of each row's line
    bad: list[int]  # lines with another number of cells
    cut: bool

    def cells(self, column: str) -> list[str]:
        """Return a column; RecordError when there is none of that name."""
        if column not in self.columns:
            raise RecordError(f"{self.path}: no column {column!r} among {', '.join(self.columns)}")
        place = self.columns.index(column)
        return [row[place] for row in self.rows]

    def values(self, column: str, parse: Callable[[str], float] = float) -> Array:
        """Return a column as numbers; a cell that is none is NaN."""
        return np.array([number(cell, parse) for cell in self.cells(column)], dtype=np.float64)

    def needed(self, column: str) -> Array:
        """Return a column in which every cell has to be a number >= 0, or RecordError."""
        values = self.values(column)
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            n = int(np.argmax(bad))
            raise RecordError(
                f"{self.path}, line {self.lines[n]}: {column} is {self.cells(column)[n]!r}: the "
                "file is damaged",
                allowed="a number >= 0",
            )
        return values


def read_sections(path: Path) -> list[Section]:
    """Read a file; a run begins wherever its header stands again, even behind a line that was cut.

    Raises RecordError when it cannot be read or does not begin with a header.
    """
    try:
        text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error
    header = text.split("\n", 1)[0]
    columns = _cells(header)
    if "log_time" not in columns:
        raise RecordError(f"{path} does not begin with a header that has log_time")
    sections, line = [], 0
    for body in text.split(header)[1:]:
        sections.append(_section_of(path, columns, body, line + 1))
        line += body.count("\n")
    return sections


def _section_of(path: Path, columns: list[str], body: str, line: int) -> Section:
    """Make a section of the text after its header, which is line `line`."""
    *whole, rest = body.split("\n")
    rows, lines, bad = [], [], []
    for n, text in enumerate(whole, line):  # the first is what else stands in the header's line
        cells = _cells(text)
        if len(cells) == len(columns) and n > line:
            rows.append(cells)
            lines.append(n)
        elif text:
            bad.append(n)
    return Section(path, columns, rows, lines, bad, bool(rest))


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def number(cell: str, parse: Callable[[str], float] = float) -> float:
    """Return a cell as a number; NaN for what is none, such as `null`, `OFF` or an empty cell."""
    try:
        return parse(cell)
    except ValueError:
        return math.nan


# -- epochs ---------------------------------------------------------------------------------------


def _epochs(
    stats: Section, fetch: Section, compute: Section, warnings: list[str]
) -> list[LoggedEpoch]:
    """Return the finished epochs of a run; RecordError where its files contradict each other."""
    for section in (stats, fetch, compute):
        if section.bad:
            raise RecordError(
                f"{section.path}, line {section.bad[0]}: not {len(section.columns)} cells: the "
                "file is damaged",
                do="import another run",
            )
        if section.cut:
            warnings.append(f"{section.path.name}: a line that was cut is left out")
    e2e_s, end_s = seconds(stats, "time", "epochtime_ms"), stats.needed("log_time")
    if (stats.needed("epoch") != np.arange(len(e2e_s))).any():
        raise RecordError(f"{stats.path}: the epochs are not 0, 1, 2 and so on")
    of_fetch, of_compute = fetch.needed("epoch"), compute.needed("epoch")
    stall_s = seconds(fetch, "fetchtime", "fetchtime_ms")
    compute_s = seconds(compute, "computetime", "computetime_ms")
    logged_s = compute.needed("log_time")
    numbers = fetch.needed("batch_idx"), compute.needed("batch_idx")
    epochs = []
    for k in range(len(e2e_s)):
        mine, also = of_fetch == k, of_compute == k
        n = max(1, int(mine.sum()))
        for path, batches in ((fetch.path, numbers[0][mine]), (compute.path, numbers[1][also])):
            if not np.array_equal(batches, np.arange(n)):
                raise RecordError(
                    f"{path}: lines of epoch {k} are missing or doubled: not one for each of "
                    f"{counted(n, 'mini-batches')}",
                    do="import another run",
                )
        epochs.append(
            LoggedEpoch(
                float(e2e_s[k]), float(end_s[k]), stall_s[mine], compute_s[also], logged_s[also]
            )
        )
    if (of_fetch >= len(epochs)).any():
        warnings.append(f"epoch {len(epochs)} was not finished and is left out")
    _check_units(epochs, stats.path)
    return epochs


def seconds(section: Section, in_s: str, in_ms: str) -> Array:
    """Return a duration in s from its column in ms, which that in s (if filled) has to agree with.

    Their sums over the rows that have both may differ by `AGREE`: the two were not read from one
    clock. RecordError beyond it.
    """
    duration_s = section.needed(in_ms) / 1000.0
    other_s = section.values(in_s)
    both = np.isfinite(other_s)
    other, total = float(other_s[both].sum()), float(duration_s[both].sum())
    if abs(other - total) > AGREE * max(other, total):
        raise RecordError(
            f"{section.path}: {in_s} sums to {other:g} s, {in_ms} to {total:g} s: their units "
            "contradict each other",
            do=f"empty the column {in_s} if it is the wrong one",
        )
    return duration_s


def _check_units(epochs: Sequence[LoggedEpoch], path: Path) -> None:
    """Compare the durations with the log times between the mini-batches; RecordError."""
    ratios = []
    for epoch in epochs:
        timed_s = float((epoch.stall_s + epoch.compute_s)[1:].sum())
        elapsed_s = float(epoch.logged_s[-1] - epoch.logged_s[0])
        if max(timed_s, elapsed_s) > UNITS_MIN_S:
            ratios.append(elapsed_s / max(timed_s, 1e-9))
    ratio = float(np.median(ratios)) if ratios else 1.0
    if not 1 / UNITS_FACTOR < ratio < UNITS_FACTOR:
        raise RecordError(
            f"{path}: between mini-batches log_time advances {ratio:.3g} times as fast as the "
            "columns in ms: their units contradict each other, or the clock was set"
        )


# -- the monitor ----------------------------------------------------------------------------------


def _section(path: Path, back: int, warnings: list[str]) -> Section:
    """Return a run's rows; `back` counts from the end, as some files are begun anew by each run."""
    sections = read_sections(path)
    if back > len(sections):
        raise RecordError(f"{path.name} was overwritten by a later run")
    section = sections[-back]
    if section.bad:
        n_bad = counted(len(section.bad), "rows")
        warnings.append(f"{path.name}: {n_bad} of other length left out")
    return section


def _series(section: Section, columns: dict[str, Array]) -> dict[str, Series]:
    """Return columns over log time; RecordError when that runs backward."""
    t_s = section.values("log_time")
    timed = np.isfinite(t_s)
    if (np.diff(t_s[timed]) < 0).any():
        raise RecordError(f"{section.path.name}: log_time runs backward, the clock was set")
    values = {name: np.where(np.isfinite(x), x, math.nan) for name, x in columns.items()}
    return {name: Series(t_s[timed], x[timed]) for name, x in values.items()}


def _vmtouch(section: Section, _: list[str]) -> dict[str, Series]:
    share_pct = section.values("resident_pages_%", lambda cell: float(cell.removesuffix("%")))
    return _series(section, {"cached_pct": share_pct})


def _io(section: Section, warnings: list[str]) -> dict[str, Series]:
    """Return reads; nothing where a newer iostat wrote its own order of columns under the header.

    In the order of the header rkB/s is r/s times rareq-sz, up to the rounding of three numbers.
    """
    iops, kib, size_kib = (section.values(name) for name in ("r/s", "rkB/s", "rareq-sz"))
    slack = 0.01 * kib + 0.01 * (iops + size_kib) + 0.02
    if ((abs(iops * size_kib - kib) > slack) | ((iops > 0) & (kib == 0))).any():
        raise RecordError(
            f"{section.path.name}: rkB/s is not r/s times rareq-sz, so another iostat wrote other "
            "columns than the header says"
        )
    return _series(section, {"read_iops": iops, "read_mib_s": kib / 1024.0})


def _tegrastats(section: Section, warnings: list[str]) -> dict[str, Series]:
    """Return the columns of jtop's statistics; power is in mW there, and 0 means no reading."""
    cores = [section.values(name) for name in section.columns if re.fullmatch(r"CPU\d+", name)]
    columns = {}
    if cores:
        table = np.array(cores)
        n_on = np.isfinite(table).sum(axis=0)
        columns["cpu_util_pct"] = np.where(n_on, np.nansum(table, axis=0), math.nan) / n_on.clip(1)
    if "GPU" in section.columns:
        columns["gpu_util_pct"] = section.values("GPU")
    if "power cur" in section.columns:
        power_w = section.values("power cur") / 1000.0
        columns["power_total_w"] = np.where(power_w == 0, math.nan, power_w)
    else:
        warnings.append(f"{section.path.name} has no column 'power cur': there is no energy")
    return _series(section, columns)


def _ram(section: Section, _: list[str]) -> dict[str, Series]:
    kib = np.array([KIB.get(unit, math.nan) for unit in section.cells("unit")])
    return _series(section, {"ram_used_mib": section.values("use") * kib / 1024.0})


Reader = Callable[[Section, list[str]], dict[str, Series]]
READERS: dict[str, Reader] = {
    "vmtouch_stats": _vmtouch,
    "io_stats": _io,
    "tegrastats": _tegrastats,
    "ram_stats": _ram,
}
