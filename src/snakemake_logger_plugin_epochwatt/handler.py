"""Take Snakemake's log records for the screen, and let no error of ours reach Snakemake."""

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
    """Shows a run of the workflow by `RunScreen`; all else, such as a dry run, as Snakemake."""

    writes_to_stream = True  # in place of Snakemake's own lines
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False  # as Snakemake does it

    def __post_init__(self) -> None:
        common, style = self.common_settings, getattr(self.settings, "style", None) or "auto"
        if style not in STYLES:
            raise ValueError(f"--logger-epochwatt-style {style}: not one of {', '.join(STYLES)}")
        self._out = sys.stdout if common.stdout else sys.stderr
        self._held: list[logging.LogRecord] = []  # records until it is known whether jobs will run
        self._run: RunScreen | None = None  # None: Snakemake's own lines are written
        is_dry = common.dryrun or common.debug_dag
        if (
            style == "snakemake"
            or is_dry
            or common.quiet
            or common.verbose
            or common.printshellcmds
        ):
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
        """Show a record on the screen, hold it back until a run begins, or write it as it is."""
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
                    self._leave_screen()  # an error before the start, or no run at all
        except Exception as error:  # noqa: BLE001 - a screen must not break a run
            self._held.append(record)
            self._give_up(error)

    def close(self) -> None:
        """Have the screen say how the run ended; write what was held back."""
        try:
            if self._run is not None and (self._run.has_begun or self._run.interrupted):
                run, self._run = self._run, None
                run.end()
            self._leave_screen()
        except Exception as error:  # noqa: BLE001
            self._give_up(error)
        super().close()

    def _write(self, record: logging.LogRecord) -> None:
        """Write a record in Snakemake's words; tracebacks of files in ours (`in_short`)."""
        text = self.format(record)
        if text and text != "None":
            self._out.write(in_short(text) + "\n")
            self._out.flush()

    def _leave_screen(self) -> None:
        """Take the screen away and write records as Snakemake does, the held ones first."""
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
            self._leave_screen()
        except Exception:  # noqa: BLE001
            self._run = None

    def _watch_interrupts(self) -> None:
        """Install a SIGINT handler that marks the run as interrupted, then calls Snakemake's.

        Where SIGINT is ignored, or this is not the main thread, nothing is installed.
        """
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
    """Return the command that was typed, quoted for a shell, by which the user goes on."""
    if command := os.environ.get("EPOCHWATT_COMMAND"):  # `make run`
        return command
    program = Path(sys.argv[0])
    words = [str(program)]
    if program.name == "__main__.py":
        words = [sys.executable, "-m", program.parent.name]
    words[0] = words[0].removeprefix(f"{Path.cwd()}/")
    return shlex.join([*words, *sys.argv[1:]])


def in_short(text: str) -> str:
    """Turn a traceback of Snakemake about a file that cannot be written into problem and remedy.

    Any other text is returned unchanged. The traceback stays in Snakemake's log, .snakemake/log.
    """
    match = _REFUSED.search(text)
    if match is None or not text.startswith("Traceback (most recent call last)"):
        return text
    from epochwatt.board.records.files import ADVICE  # not at every start of any workflow
    from epochwatt.study.place import CACHE_ELSEWHERE

    problem, do = "Snakemake cannot write a file", ADVICE.get(int(match[2]), "see `ulimit -a`")
    if "snakemake/sourcecache.py" in text:
        problem, do = "Snakemake cannot write its cache in the home folder", CACHE_ELSEWHERE
    elif int(match[2]) in (errno.EACCES, errno.EPERM):
        is_here = Path(match[3]).absolute().is_relative_to(Path.cwd())
        do += ": sudo chown -R $USER ." if is_here else ""
    return f"error: {problem}\n  found: {match[1]}\n  do: {do}"
