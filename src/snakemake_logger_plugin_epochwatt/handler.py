"""The side to Snakemake: takes its log records, and lets no error of ours reach it."""

import errno
import logging
import os
import re
import shlex
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

if TYPE_CHECKING:
    from snakemake_logger_plugin_epochwatt.run_screen import RunScreen

STYLES = ("auto", "plain", "snakemake")
HELP = (
    "auto: a bar where there is a terminal, else plain lines; plain: lines in a terminal, too; "
    "snakemake: Snakemake's own lines, all of them."
)
_REFUSED = re.compile(r"^(\w+Error: \[Errno (\d+)\] .*: '(.+)')$", re.M)


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Settings of the plugin, options of Snakemake's command line."""

    style: Optional[str] = field(  # noqa: UP045 - Snakemake reads the type
        default="auto", metadata={"help": HELP, "env_var": False, "required": False}
    )


class LogHandler(LogHandlerBase):
    """Shows a run by `RunScreen`; all that is not a run in Snakemake's words."""

    writes_to_stream = True  # in place of Snakemake's own lines
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False  # as Snakemake does it

    def __post_init__(self) -> None:
        common, style = self.common_settings, getattr(self.settings, "style", None) or "auto"
        if style not in STYLES:
            raise ValueError(f"--logger-epochwatt-style {style}: not one of {', '.join(STYLES)}")
        self._out = sys.stdout if common.stdout else sys.stderr
        self._held: list[logging.LogRecord] = []  # what comes before it is clear what runs
        self._run: RunScreen | None = None
        wants = common.dryrun, common.quiet, common.verbose, common.debug_dag, common.printshellcmds
        if style == "snakemake" or any(wants):
            return
        try:
            from snakemake_logger_plugin_epochwatt import run_screen

            self._run = run_screen.RunScreen(
                self._out, common.nocolor, style == "plain", command_typed()
            )
            self._watch_interrupts()
        except Exception as error:  # noqa: BLE001 - a screen must not break a run
            self._give_up(error)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record; called from one thread of Snakemake's."""
        try:
            if self._run is None:
                self._write(record)
            elif self._run.has_begun:
                self._run.take(record, self.format)
            elif getattr(record, "event", None) == LogEvent.WORKFLOW_STARTED:
                self._held.clear()
                self._run.has_begun = True
            else:
                self._held.append(record)
                if record.levelno >= logging.WARNING or "Building DAG" in record.getMessage():
                    self._as_snakemake()  # an error before the start, or no run at all
        except Exception as error:  # noqa: BLE001 - a screen must not break a run
            self._held.append(record)
            self._give_up(error)

    def close(self) -> None:
        """Say how it ended."""
        try:
            if self._run is not None and (self._run.has_begun or self._run.interrupted):
                run, self._run = self._run, None
                run.end()
            self._as_snakemake()
        except Exception as error:  # noqa: BLE001
            self._give_up(error)
        super().close()

    def _write(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if text and text != "None":
            self._out.write(in_short(text) + "\n")
            self._out.flush()

    def _as_snakemake(self) -> None:
        """From here on write Snakemake's lines, those first that were held back."""
        run, self._run = self._run, None
        if run is not None:
            run.abandon()
        held, self._held = self._held, []
        for record in held:
            self._write(record)

    def _give_up(self, error: Exception) -> None:
        """Say that the bar failed, and go on with Snakemake's lines."""
        why = f"{type(error).__name__}: {error}"
        print(f"the display failed ({why}); plain logging goes on", file=sys.stderr)
        try:
            self._as_snakemake()
        except Exception:  # noqa: BLE001
            self._run = None

    def _watch_interrupts(self) -> None:
        """Note Ctrl-C before Snakemake sees it; where it is ignored, it stays so."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            return

        def note(number: int, frame: Any) -> Any:
            if self._run is not None:
                self._run.interrupted = True
                if not self._run.has_jobs:  # else Snakemake ends them
                    raise SystemExit(130)
            return before(number, frame)

        signal.signal(signal.SIGINT, note)


def command_typed() -> str:
    """Return what to type to go on: the command that was typed."""
    if command := os.environ.get("EPOCHWATT_COMMAND"):  # `make run`
        return command
    program = Path(sys.argv[0])
    words = [str(program)]
    if program.name == "__main__.py":
        words = [sys.executable, "-m", program.parent.name]
    words[0] = words[0].removeprefix(f"{Path.cwd()}/")
    return shlex.join([*words, *sys.argv[1:]])


def in_short(text: str) -> str:
    """Turn Snakemake's traceback of a file that cannot be written into a message with a remedy.

    Whatever else it says is returned as it is. Snakemake's log, .snakemake/log, has the traceback.
    """
    match = _REFUSED.search(text)
    if match is None or not text.startswith("Traceback (most recent call last)"):
        return text
    from epochwatt.board.records.files import ADVICE  # not at every start of any workflow
    from epochwatt.study.place import CACHE_ELSEWHERE

    what, do = "Snakemake cannot write a file", ADVICE.get(int(match[2]), "see `ulimit -a`")
    if "snakemake/sourcecache.py" in text:
        what, do = "Snakemake cannot write its cache in the home folder", CACHE_ELSEWHERE
    elif int(match[2]) in (errno.EACCES, errno.EPERM):
        is_here = Path(match[3]).absolute().is_relative_to(Path.cwd())
        do += ": sudo chown -R $USER ." if is_here else ""
    return f"error: {what}\n  found: {match[1]}\n  do: {do}"
