"""Train the timed epoch in the interpreter that owns torch (board side: Python 3.6)."""

import sys
from types import TracebackType
from typing import Optional, Type


def _explain(
    kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
) -> None:
    """Print an uncaught error (`sys.excepthook`): its known cause in a line, or the traceback."""
    from epochwatt.board.training.exit_status import failure_of

    failure = failure_of(error)
    if failure is None:
        sys.__excepthook__(kind, error, trace)
    else:
        print(f"error: {failure}", file=sys.stderr)


if sys.argv[:1] == ["-m"]:  # it is started: numpy may fail before `exit_status` is reached
    with open("/proc/self/cmdline", "rb") as words:  # not a program that imports this package
        if b"\0epochwatt." in words.read():
            sys.excepthook = _explain
