"""What the log file of a job says: progress of an epoch, warnings, and the end of a failed one."""

import glob
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from epochwatt.study.place import MEASURED

_PROGRESS = re.compile(
    r"^(?:epoch (\d+)|warm-up): mini-batch (\d+) of (\d+)(?:, (\S+)/s, \d+ s left)?$", re.M
)
_MODE = re.compile(r"^mode (\d+) of (\d+): (.*)$", re.M)
_EPOCH = re.compile(r"^epoch (\d+): [\d.]+ s = ", re.M)
_WARNING = re.compile(r"^warning: .*(?:\n[ \t]+.*)*", re.M)
# of all columns of power the one that stands for the whole, the best first
_POWER = ("power_module_w", "power_jtop_w", "power_total_w", "power_gpu_w", "power_cpu_package_w")
_MOST_BYTES = 65536
SHOWN_LINES = 12  # of the log of a failed job


@dataclass(frozen=True)
class EpochUnderWay:
    """The epoch that a job trains now.

    Attributes
    ----------
    epoch : its number; None: warming up
    done, n : mini-batches, those done reckoned on from the last word of the job
    rate : mini-batches per second
    power_w : the last sample of the power; None: there is none
    """

    epoch: int | None
    done: int
    n: int
    rate: float
    power_w: float | None = None

    @property
    def left_s(self) -> float:
        """Seconds until the end of the epoch."""
        return (self.n - self.done) / self.rate


class ModeUnderWay(NamedTuple):
    """The mode that a job finished last: its place in the sweep from 1, of how many, and what."""

    place: int
    n: int
    words: str


class TrainingLog:
    """Follows the log of a job that trains; costs a look at its size while nothing is added.

    Parameters
    ----------
    path : the job's log file
    run : id of the run
    """

    def __init__(self, path: Path, run: str) -> None:
        self._path = path
        self._run = run
        self._size = -1
        self._seen_s = 0.0
        self._last: tuple[int | None, int, int, float] | None = None

    def look(self) -> EpochUnderWay | None:
        """Return the epoch under way; None before the first word of it, and between two."""
        try:
            state = os.stat(self._path)
        except OSError:
            return None
        if state.st_size != self._size:
            self._size = state.st_size
            self._seen_s = time.monotonic() - max(0.0, time.time() - state.st_mtime)
            self._last = _last_progress(tail(self._path, 4096))
        if self._last is None:
            return None
        epoch, done, n, rate = self._last
        done = min(n, int(done + rate * (time.monotonic() - self._seen_s)))
        power_w = None if epoch is None else _power_w(Path(MEASURED, self._run), epoch)
        return EpochUnderWay(epoch, done, n, rate, power_w)


class ModesLog:
    """Reads the log of a job that measures modes.

    Parameters
    ----------
    path : the job's log file
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def look(self) -> ModeUnderWay | None:
        """Return the mode that was measured last; None before the first."""
        reports = _MODE.findall(tail(self._path, 4096))
        return (
            ModeUnderWay(int(reports[-1][0]), int(reports[-1][1]), reports[-1][2])
            if reports
            else None
        )


def _last_progress(text: str) -> tuple[int | None, int, int, float] | None:
    """Return epoch, mini-batches done, of how many, and rate; None when the epoch has ended."""
    reports = list(_PROGRESS.finditer(text))
    if not reports or not reports[-1][4]:
        return None
    last = reports[-1]
    if _EPOCH.search(text, last.end()):
        return None
    epoch = None if last[1] is None else int(last[1])
    rate = float(last[4])
    return (epoch, int(last[2]), int(last[3]), rate) if rate > 0.0 else None


def _power_w(run_folder: Path, epoch: int) -> float | None:
    """Return the last power that was sampled in an epoch under way."""
    for path in sorted(
        glob.glob(f"{glob.escape(str(run_folder))}/epoch-{epoch}.unfinished/samples-*.csv")
    ):
        try:
            with open(path, encoding="utf-8") as handle:
                columns = handle.readline().rstrip("\n").split(",")
        except OSError:
            continue
        total = next((name for name in _POWER if name in columns), None)
        rows = tail(Path(path), 2048).rpartition("\n")[0].splitlines()
        if total is None or len(rows) < 2:
            continue
        cells = rows[-1].split(",")
        try:
            power_w = float(cells[columns.index(total)])
        except (ValueError, IndexError):
            continue
        if power_w == power_w:
            return power_w
    return None


def tail(path: Path, most_bytes: int = _MOST_BYTES) -> str:
    """Return the end of a file; empty where it cannot be read."""
    try:
        with open(path, "rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(0, handle.tell() - most_bytes))
            return handle.read().decode("utf-8", "replace")
    except OSError:
        return ""


def warnings_in(path: Path) -> list[str]:
    """Return the warnings of a job in full, each with the indented lines that go on with it."""
    return [match[0].removeprefix("warning: ") for match in _WARNING.finditer(tail(path))]


def last_lines(path: Path, n: int = SHOWN_LINES) -> list[str]:
    """Return the last lines of a log without progress; from its last "error: " on, if any."""
    lines = [line for line in _PROGRESS.sub("", tail(path)).splitlines() if line.strip()]
    errors = [place for place, line in enumerate(lines) if line.startswith("error: ")]
    return lines[errors[-1] :][:n] if errors else lines[-n:]
