"""Snakemake's own lines, for all that is not a run: dry runs, lint, graphs, reports, `--quiet`."""

import logging
import os
from typing import TextIO

from snakemake_interface_logger_plugins.common import LogEvent

_YELLOW, _GREEN, _BLUE, _RED = 33, 32, 34, 31
_COLOURS = {"WARNING": _YELLOW, "INFO": _GREEN, "DEBUG": _BLUE, "CRITICAL": 35, "ERROR": _RED}
_YELLOW_EVENTS = (None, LogEvent.RUN_INFO, LogEvent.SHELLCMD, LogEvent.JOB_STARTED)


class SnakemakeLines:
    """Writes records as Snakemake does without a plugin.

    Parameters
    ----------
    out : a stream
    no_colour : use none, even in a terminal
    """

    def __init__(self, out: TextIO, no_colour: bool) -> None:
        self._out = out
        self._colour = not no_colour and out.isatty() and os.environ.get("TERM") != "dumb"
        self._after_job_info = False

    def write(self, record: logging.LogRecord, text: str) -> None:
        """Write a record, formatted before."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO and not self._after_job_info:
            self._out.write("\n")
        self._after_job_info = event == LogEvent.JOB_INFO
        if not text or text == "None":
            return
        if self._colour and record.levelname in _COLOURS:
            is_yellow = record.levelno == logging.INFO and event in _YELLOW_EVENTS
            colour = _YELLOW if is_yellow else _COLOURS[record.levelname]
            text = f"\033[{colour}m{text}\033[0m"
        self._out.write(text + "\n")
        self._out.flush()
