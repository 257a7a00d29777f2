"""Snakemake's own lines, for all that is not a run: dry runs, lint, graphs, reports, `--quiet`."""

import errno
import logging
import os
import re
from typing import TextIO

from snakemake_interface_logger_plugins.common import LogEvent

_YELLOW, _GREEN, _BLUE, _RED = 33, 32, 34, 31
_COLOURS = {"WARNING": _YELLOW, "INFO": _GREEN, "DEBUG": _BLUE, "CRITICAL": 35, "ERROR": _RED}
_YELLOW_EVENTS = (None, LogEvent.RUN_INFO, LogEvent.SHELLCMD, LogEvent.JOB_STARTED)


_REFUSED = re.compile(r"^(\w+Error: \[Errno (\d+)\] .*: '(.+)')$", re.M)


def in_short(text: str) -> str:
    """Return Snakemake's traceback of a file that cannot be written as a message with a remedy.

    Whatever else it says is returned as it is. Snakemake's log, .snakemake/log, has the traceback.
    """
    match = _REFUSED.search(text)
    if match is None or not text.startswith("Traceback (most recent call last)"):
        return text
    from epochwatt.records.files import ADVICE  # not at every start of any workflow
    from epochwatt.study.place import CACHE_ELSEWHERE

    do = ADVICE.get(int(match[2]), "see `ulimit -a`")
    what = "Snakemake cannot write a file"
    if "snakemake/sourcecache.py" in text:
        what, do = "Snakemake cannot write its cache in the home folder", CACHE_ELSEWHERE
    elif int(match[2]) in (errno.EACCES, errno.EPERM) and _is_here(match[3]):
        do += ": sudo chown -R $USER ."
    return f"error: {what}\n  found: {match[1]}\n  do: {do}"


def _is_here(path: str) -> bool:
    here = os.getcwd()
    return os.path.commonpath([here, os.path.abspath(path)]) == here


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
        text = in_short(text)
        if self._colour and record.levelname in _COLOURS:
            is_yellow = record.levelno == logging.INFO and event in _YELLOW_EVENTS
            colour = _YELLOW if is_yellow else _COLOURS[record.levelname]
            text = f"\033[{colour}m{text}\033[0m"
        self._out.write(text + "\n")
        self._out.flush()
