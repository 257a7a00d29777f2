"""Run a program that measures: its options, its exit status (board side: Python 3.6 grammar)."""

import argparse
import errno
import json
import logging
import os
import re
import sys
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from epochwatt.board.device import host, remedies
from epochwatt.errors import EpochwattError, RebootNeeded, TrainingError

REBOOT_NEEDED = 4  # exit status of a job that met RebootNeeded
# what Snakemake sets to the `threads` of a rule, all alike (snakemake/shell.py)
SET_BY_SNAKEMAKE = (
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
OPTIONS: Dict[str, Tuple[str, Callable[[str], Any]]] = {  # name: its help and type
    "run": ("id of the run", str),
    "sweep": ("id of the sweep", str),
    "ceilings": ("id of the measurement", str),
    "idle": ("id of the measurement", str),
    "plan": ("what to do (plan.checked), as JSON", str),
    "factors": ("its canonical factors, as JSON", json.loads),
    "settings": ("mode, DVFS, board settings, as JSON", json.loads),
    "first": ("first epoch of the part, or mode of the sweep, from 0", int),
    "last": ("last epoch of the part, or mode of the sweep, from 0", int),
    "modes": ("JSON file that lists all modes", str),
    "dvfs": ("on: governors choose the clocks; off", str),
    "precisions": ("of matrix products", str),
    "seconds": ("how long", float),
    "measured": ("folder of all measurements", str),
    "data-root": ("folder that holds the data sets", str),
    "receipt": ("file to write when all is measured", str),
    "machine": ("what to know of the machine (device.machine), as JSON", json.loads),
}
_SEVERAL = ("precisions",)


def options(program: str, description: str, names: str, argv: Optional[List[str]]) -> Any:
    """Parse the options of a program, all of them required.

    `names`: those of `OPTIONS` that it has, with blanks between
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    for name in names.split():
        text, kind = OPTIONS[name]
        n_values = "+" if name in _SEVERAL else None
        parser.add_argument("--" + name, required=True, help=text, type=kind, nargs=n_values)
    return parser.parse_args(argv)


class _Lines(logging.Formatter):
    """Messages as they are, warnings marked as such: who watches the log looks for that."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = "warning: " if record.levelno == logging.WARNING else ""
        return prefix + super().format(record)


def exit_status(what: str, measure: Callable[[], None]) -> int:
    """Measure, and log to stderr; return 0, 1 after an error, 4 when a restart is needed.

    `measure` does it, and imports torch; what is wrong in the program itself passes through.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    take_the_board()
    try:
        measure()
    except RebootNeeded as error:
        print(f"reboot needed: {what}: {error}", file=sys.stderr)
        return REBOOT_NEEDED
    except EpochwattError as error:
        print(f"error: {what}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"ended by Ctrl-C: {what}", file=sys.stderr)
        return 130
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        print(f"error: {what}: {failure}", file=sys.stderr)
        return 1
    return 0


def take_the_board() -> None:
    """Forget how many threads Snakemake allows, before torch is imported.

    They are the cores of `--cores`, by default those that were on when the workflow started, and
    one in a job of Slurm (`set-threads` in profiles/slurm). A measurement has the machine to itself
    and torch counts the cores of its power mode, as without Snakemake. A number that somebody set
    for themselves stays.
    """
    values = {os.environ.get(name) for name in SET_BY_SNAKEMAKE}
    if len(values) == 1 and None not in values:
        for name in SET_BY_SNAKEMAKE:
            del os.environ[name]


# -- errors that are not of our program -----------------------------------------------------------

_NO_MEMORY = re.compile(
    "can't start new thread|could not create a primitive|out of memory|can't allocate memory"
)
_NUMBER = re.compile(r"\[Errno (\d+)\]")  # torch passes an error of a worker on as text
_NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_SHARING = ("multiprocessing/synchronize.py", "multiprocessing/heap.py")  # with files in SHM
_LIBRARIES = ("torch", "torchvision", "numpy", "PIL")


@contextmanager
def importing() -> Iterator[None]:
    """Turn whatever a library raises while it is imported in the block into a `TrainingError`."""
    try:
        yield
    except Exception as error:
        if not _is_of_an_import(error):
            raise
        raise failure_of(error) from error  # type: ignore[misc]  # it is not None


def failure_of(error: BaseException) -> Optional[TrainingError]:
    """Return what to say of an error that is not of our program or its data; None: it is of those.

    Whatever a library raises while it is imported counts, what the machine refuses, and what
    `device.remedies` knows.
    """
    remedy = remedies.remedy_of(_text(error))
    if _is_of_an_import(error):
        remedy = next(filter(None, (remedies.remedy_of(_text(e)) for e in _chain(error))), None)
        problem = f"{sys.executable} cannot import what training needs"
        do = "name an interpreter that can under `python:` in config/devices/"
    elif _is_of_the_machine(error):
        problem = "the machine does not give what a measurement needs"
        do = (
            "look at memory, disk and limits (free, df, `ulimit -a`), then start again: what was "
            "finished is kept"
        )
    elif remedy is None or isinstance(error, SyntaxError):
        return None
    else:
        return TrainingError(remedy.cause, found=remedy.line, do=remedy.do)
    if remedy is None:
        return TrainingError(problem, found=_text(error), do=do)
    return TrainingError(f"{problem}: {remedy.cause}", found=remedy.line, do=remedy.do)


def _text(error: BaseException) -> str:
    """Return kind and text of an error; of one that came in a worker only what was raised there."""
    text = f"{type(error).__name__}: {error}".strip()
    if "Traceback (most recent" in text:
        return text.rpartition("\n")[2]
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, OSError) and any(file.endswith(_SHARING) for file in files):
        return f"{text}: {host.SHM}"
    return text


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it came of: torch looks for CUDA again, and says less then."""
    cause: Optional[BaseException] = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_of_an_import(error: BaseException) -> bool:
    """Return whether an error came while a library was imported: its module was being run."""
    names = {
        frame.f_globals.get("__name__", "").partition(".")[0]
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_name == "<module>"
    }
    return isinstance(error, ImportError) or bool(names & set(_LIBRARIES))


def _is_of_the_machine(error: BaseException) -> bool:
    """Tell what the machine refused from what is wrong in a program or in its data."""
    if isinstance(error, RuntimeError):
        return _NO_MEMORY.search(str(error)) is not None
    if isinstance(error, OSError):
        numbers = _NUMBER.findall(str(error))
        return bool(numbers) and int(numbers[-1]) not in _NO_SUCH_FILE
    return isinstance(error, MemoryError)
