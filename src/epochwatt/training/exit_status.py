"""Exit status and message of a program that measures (board side: Python 3.6 grammar)."""

import logging
import re
import sys
from typing import Callable

from epochwatt.errors import EpochwattError, RebootNeeded
from epochwatt.training.preparation import REBOOT_NEEDED

_REFUSED = (
    "error: {}: the machine does not give what a measurement needs: {}. Look at memory, disk and "
    "limits (free, df, `ulimit -a`), then start again: what was finished is kept"
)
_NO_MEMORY = re.compile(
    "can't start new thread|could not create a primitive|out of memory|can't allocate memory"
)


def exit_status(what: str, measure: Callable[[], None]) -> int:
    """Measure, and log to stderr; return 0, 1 after an error, 4 when a restart is needed.

    Parameters
    ----------
    what : id of the measurement, for messages
    measure : does it; what is wrong in the program itself passes through
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    try:
        measure()
    except RebootNeeded as error:
        print("reboot needed: {}: {}".format(what, error), file=sys.stderr)
        return REBOOT_NEEDED
    except EpochwattError as error:
        print("error: {}: {}".format(what, error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ended by Ctrl-C: {}".format(what), file=sys.stderr)
        return 130
    except (OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _NO_MEMORY.search(str(error)):
            raise
        message = "{}: {}".format(type(error).__name__, " ".join(str(error).split()))
        print(_REFUSED.format(what, message), file=sys.stderr)
        return 1
    return 0
