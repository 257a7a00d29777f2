"""The side to Snakemake: takes its log records, and lets no error of ours reach it."""

import logging
import os
import shlex
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Optional

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from snakemake_logger_plugin_epochwatt.snakemake_lines import SnakemakeLines

if TYPE_CHECKING:
    from snakemake_logger_plugin_epochwatt.run_screen import RunScreen

COMMAND = "EPOCHWATT_COMMAND"  # what a person typed, where that is not Snakemake's command
INTERRUPTED = 130  # exit status after Ctrl-C before the first job
STYLES = ("auto", "plain", "snakemake")


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Settings of the plugin, options of Snakemake's command line."""

    style: Optional[str] = field(  # noqa: UP045 - Snakemake reads the type
        default="auto",
        metadata={
            "help": "auto: a bar where there is a terminal, else plain lines; plain: lines in a "
            "terminal, too; snakemake: Snakemake's own lines, all of them.",
            "env_var": False,
            "required": False,
        },
    )


class LogHandler(LogHandlerBase):
    """Shows a run by `RunScreen`; all that is not a run as Snakemake would."""

    def __post_init__(self) -> None:
        settings, common = self.settings, self.common_settings
        style = getattr(settings, "style", None) or "auto"
        if style not in STYLES:
            raise ValueError(f"--logger-epochwatt-style {style}: not one of {', '.join(STYLES)}")
        out = sys.stdout if common.stdout else sys.stderr
        self._lines = SnakemakeLines(out, common.nocolor)
        self._held: list[logging.LogRecord] = []  # what comes before it is clear what runs
        self._run: RunScreen | None = None
        asks_for_lines = (
            common.dryrun or common.quiet or common.verbose or common.debug_dag
        ) or common.printshellcmds
        if style != "snakemake" and not asks_for_lines:
            try:
                from snakemake_logger_plugin_epochwatt import run_screen

                self._run = run_screen.RunScreen(
                    out, common.nocolor, style == "plain", command_typed()
                )
                self._watch_interrupts()
            except Exception as error:  # noqa: BLE001 - a screen must not break a run
                self._give_up(error)

    # -- what Snakemake asks for --

    @property
    def writes_to_stream(self) -> bool:
        """Yes: it takes the place of Snakemake's own lines."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """No: Snakemake's own log file has it all."""
        return False

    @property
    def has_filter(self) -> bool:
        """No: Snakemake's filter sees to `--quiet` and its like."""
        return False

    @property
    def has_formatter(self) -> bool:
        """No: Snakemake's own form is right for what is not a run."""
        return False

    @property
    def needs_rulegraph(self) -> bool:
        """Whether it wants to know which rule comes after which: for the time left."""
        return self._run is not None

    # -- records --

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record; called from one thread of Snakemake's."""
        try:
            if self._run is not None:
                self._show(self._run, record)
                return
        except Exception as error:  # noqa: BLE001 - a screen must not break a run
            self._give_up(error)
        try:
            self._lines.write(record, self.format(record))
        except Exception:  # noqa: BLE001
            self.handleError(record)

    def _show(self, run: "RunScreen", record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        if run.has_begun:
            run.take(record, self.format)
        elif event == LogEvent.WORKFLOW_STARTED:
            self._held.clear()
            run.begin()
        elif event == LogEvent.RULEGRAPH:
            return
        elif record.levelno >= logging.WARNING or record.getMessage().startswith("Building DAG"):
            self._as_snakemake()  # an error before the start, or no run at all
            self._lines.write(record, self.format(record))
        else:
            self._held.append(record)

    def _as_snakemake(self) -> None:
        """From here on write Snakemake's lines, those first that were held back."""
        run, self._run = self._run, None
        if run is not None:
            run.abandon()
        held, self._held = self._held, []
        for record in held:
            self._lines.write(record, self.format(record))

    def _give_up(self, error: Exception) -> None:
        """Say once that the bar failed, and go on with Snakemake's lines."""
        try:
            self._as_snakemake()
        except Exception as second:  # noqa: BLE001
            error = second
        self._run = None
        print(
            f"the display failed ({type(error).__name__}: {error}); plain logging goes on",
            file=sys.stderr,
        )

    def close(self) -> None:
        """Say how it ended."""
        try:
            if self._run is not None and (self._run.has_begun or self._run.interrupted):
                self._run.end()
                self._run = None
            elif self._run is not None:
                self._as_snakemake()
        except Exception as error:  # noqa: BLE001
            self._give_up(error)
        super().close()

    def _watch_interrupts(self) -> None:
        """Note Ctrl-C before Snakemake sees it."""
        if threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGINT)
        if not callable(before):  # ignored: started in the background
            return

        def note(number: int, frame: FrameType | None) -> Any:
            if self._run is not None:
                self._run.interrupted = True
                if not self._run.has_jobs:  # else Snakemake ends them
                    raise SystemExit(INTERRUPTED)
            return before(number, frame)

        signal.signal(signal.SIGINT, note)


def command_typed() -> str:
    """Return what to type to go on: the command that was typed."""
    if command := os.environ.get(COMMAND):
        return command
    program = Path(sys.argv[0])
    words = [sys.argv[0]]
    if program.name == "__main__.py":
        words = [_shown(Path(sys.executable)), "-m", program.parent.name]
    elif program.is_absolute():
        words = [_shown(program)]
    return shlex.join([*words, *sys.argv[1:]])


def _shown(path: Path) -> str:
    """Return a path from this folder where it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
