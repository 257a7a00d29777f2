"""Run a program that measures: its options, its exit status (board side: Python 3.6 grammar)."""

import argparse
import atexit
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
_LISTS = ("precisions",)  # options with several values


def options(program: str, description: str, names: str, argv: Optional[List[str]]) -> Any:
    """Parse a program's options, all required; return argparse's namespace.

    `names`: its keys of `OPTIONS`, separated by blanks
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    for name in names.split():
        text, kind = OPTIONS[name]
        n_values = "+" if name in _LISTS else None
        parser.add_argument("--" + name, required=True, help=text, type=kind, nargs=n_values)
    return parser.parse_args(argv)


class _Lines(logging.Formatter):
    """Messages as they are, warnings marked as such: who watches the log looks for that."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = "warning: " if record.levelno == logging.WARNING else ""
        return prefix + super().format(record)


def exit_status(job: str, measure: Callable[[], None]) -> int:
    """Call `measure`, log to stderr and return an exit status.

    That is 0, 1 after an error, 4 when a restart is needed, 130 after Ctrl-C. Errors of this
    program itself pass through. `job`: its name in messages
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    take_the_board()
    try:
        measure()
    except RebootNeeded as error:
        print(f"reboot needed: {job}: {error}", file=sys.stderr)
        return REBOOT_NEEDED
    except EpochwattError as error:
        print(f"error: {job}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"ended by Ctrl-C: {job}", file=sys.stderr)
        return 130
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        print(f"error: {job}: {failure}", file=sys.stderr)
        return 1
    return 0


def leave(status: int) -> None:
    """End this process with a status, at once, when what is registered with `atexit` has run.

    Python itself would first take every module apart: with torch that lasts half a second, and
    longer after the page cache was dropped.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def take_the_board() -> None:
    """Unset the thread limits that Snakemake put into the environment, before torch is imported.

    They are its `--cores`, or one in a job of Slurm. A measurement has the machine to itself, and
    torch counts the cores of its power mode, as without Snakemake. Where the variables differ a
    user has set one of them, and all stay.
    """
    values = {os.environ.get(name) for name in SET_BY_SNAKEMAKE}
    if len(values) == 1 and None not in values:
        for name in SET_BY_SNAKEMAKE:
            del os.environ[name]


# -- errors of libraries and of the machine -------------------------------------------------------

_NO_MEMORY = re.compile(
    "can't start new thread|could not create a primitive|out of memory|can't allocate memory"
)
_ERRNO = re.compile(r"\[Errno (\d+)\]")  # torch passes an error of a worker on as text
_NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_SHARED_MEMORY = ("multiprocessing/synchronize.py", "multiprocessing/heap.py")  # with files in SHM
_LIBRARIES = ("torch", "torchvision", "numpy", "PIL")


@contextmanager
def importing() -> Iterator[None]:
    """Turn whatever a library raises while it is imported in the block into a `TrainingError`."""
    try:
        yield
    except Exception as error:
        if not _is_import_error(error):
            raise
        raise failure_of(error) from error  # type: ignore[misc]  # it is not None


def failure_of(error: BaseException) -> Optional[TrainingError]:
    """Return a `TrainingError` that explains an error of a library or of the machine.

    Explained are failed imports, what the machine refuses, and what `device.remedies` knows; None
    for any other error: it is of this program or its data.
    """
    remedy = remedies.remedy_of(_describe(error))
    if _is_import_error(error):
        cause: Optional[BaseException] = error.__cause__ or error.__context__
        while remedy is None and cause is not None:  # torch looks for CUDA again, and says less
            remedy = remedies.remedy_of(_describe(cause))
            cause = cause.__cause__ or cause.__context__
        problem = f"{sys.executable} cannot import what training needs"
        do = "name an interpreter that can under `python:` in config/devices/"
    elif _is_machine_error(error):
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
        return TrainingError(problem, found=_describe(error), do=do)
    return TrainingError(f"{problem}: {remedy.cause}", found=remedy.line, do=remedy.do)


def _describe(error: BaseException) -> str:
    """Return `Type: message` of an error; of a loader worker's the last line of its traceback.

    /dev/shm is added to an OSError of shared memory, whose message does not name it.
    """
    text = f"{type(error).__name__}: {error}".strip()
    if "Traceback (most recent" in text:
        return text.rpartition("\n")[2]
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, OSError) and any(file.endswith(_SHARED_MEMORY) for file in files):
        return f"{text}: {host.SHM}"
    return text


def _is_import_error(error: BaseException) -> bool:
    """Return whether an error is an ImportError or was raised while a library's module ran."""
    packages = {
        frame.f_globals.get("__name__", "").partition(".")[0]
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_name == "<module>"
    }
    return isinstance(error, ImportError) or bool(packages & set(_LIBRARIES))


def _is_machine_error(error: BaseException) -> bool:
    """Return whether the machine refused memory, disk, a thread or a file that exists."""
    if isinstance(error, RuntimeError):
        return _NO_MEMORY.search(str(error)) is not None
    if isinstance(error, OSError):
        errnos = _ERRNO.findall(str(error))
        return bool(errnos) and int(errnos[-1]) not in _NO_SUCH_FILE
    return isinstance(error, MemoryError)
