"""Exit status and message of a program that measures (board side: Python 3.6 grammar)."""

import errno
import re
import sys
from typing import Callable, Union

from epochwatt.errors import EpochwattError, RebootNeeded, TrainingError
from epochwatt.telemetry.source import in_words
from epochwatt.training.preparation import REBOOT_NEEDED
from epochwatt.training.progress import log_to_stderr
from epochwatt.training.threads import take_the_board

_REFUSED = (
    "error: {}: the machine does not give what a measurement needs: {}. Look at memory, disk and "
    "limits (free, df, `ulimit -a`), then start again: what was finished is kept"
)
_NO_MEMORY = re.compile(
    "can't start new thread|could not create a primitive|out of memory|can't allocate memory"
)
_NUMBER = re.compile(r"\[Errno (\d+)\]")  # torch passes an error of a worker on as text
_NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)


def cannot_import(error: ImportError) -> TrainingError:
    """Return what to say of an interpreter without a library that training needs."""
    return TrainingError(
        f"{sys.executable} cannot import what training needs",
        found=str(error),
        do="name an interpreter that can under `python:` in config/devices/",
    )


def exit_status(what: str, measure: Callable[[], None]) -> int:
    """Measure, and log to stderr; return 0, 1 after an error, 4 when a restart is needed.

    Parameters
    ----------
    what : id of the measurement, for messages
    measure : does it, and imports torch; what is wrong in the program itself passes through
    """
    log_to_stderr()
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
    except (OSError, MemoryError, RuntimeError) as error:
        if not _is_of_the_machine(error):
            raise
        print(_REFUSED.format(what, in_words(error)), file=sys.stderr)
        return 1
    return 0


def _is_of_the_machine(error: Union[OSError, MemoryError, RuntimeError]) -> bool:
    """Tell what the machine refused from what is wrong in a program or in its data."""
    if isinstance(error, RuntimeError):
        return _NO_MEMORY.search(str(error)) is not None
    if isinstance(error, OSError):
        numbers = _NUMBER.findall(str(error))
        return bool(numbers) and int(numbers[-1]) not in _NO_SUCH_FILE
    return True
