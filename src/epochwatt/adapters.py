"""Serve Snakemake's object to the scripts of `workflow/scripts/`; no other module does."""

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from epochwatt.errors import EpochwattError

QUIET_JOBS = "EPOCHWATT_QUIET_JOBS"  # set: the log file alone, from which our logger takes warnings


class _Lines(logging.Formatter):
    """Messages as they are, warnings marked as such."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = "warning: " if record.levelno == logging.WARNING else ""
        return prefix + super().format(record)


class _Log:
    """A rule's log file. On a full disk it is cut short, which hides no error behind its own."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by `close`
        self.close = self._file.close

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text.encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Do nothing: nothing is kept back."""


@contextmanager
def job_log(path: str) -> Iterator[None]:
    """Send logging to a rule's log file and, unless `QUIET_JOBS` is set, to stderr.

    An error is written to the file with its traceback. An EpochwattError ends the process with
    status 1 and its message; others are raised again, or end it where stderr is to stay quiet.
    """
    with closing(_Log(path)) as handle:
        is_quiet = bool(os.environ.get(QUIET_JOBS))
        streams = [handle] if is_quiet else [handle, sys.stderr]
        handlers: list[logging.Handler] = [logging.StreamHandler(stream) for stream in streams]
        for handler in handlers:
            handler.setFormatter(_Lines())
        logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
        try:
            yield
        except EpochwattError as error:
            traceback.print_exc(file=handle)
            logging.getLogger(__name__).error("error: %s", error)
            sys.exit(1)
        except BaseException:
            traceback.print_exc(file=handle)
            if is_quiet:
                sys.exit(1)
            raise
