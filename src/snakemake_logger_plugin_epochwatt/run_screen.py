"""A run as a person sees it: what starts, is under way, is done, has failed, and how it ended."""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_epochwatt import estimate
from snakemake_logger_plugin_epochwatt.job_log import last_lines, warnings_in
from snakemake_logger_plugin_epochwatt.progress import Job, Progress
from snakemake_logger_plugin_epochwatt.screen import Bar, Plain, Ticker, View, open_screen
from snakemake_logger_plugin_epochwatt.stages import OUTLOOK, SAYS, duration
from snakemake_logger_plugin_epochwatt.stray import StrayOutput, takes_stderr

QUIET_JOBS = "EPOCHWATT_QUIET_JOBS"  # jobs write their log file alone: their lines are shown here
RECKON_S = 5.0  # no longer than that is the time left counted down only
MEASURING_PERIOD_S = 2.0  # between two looks while a job measures: each takes a CPU for 2 ms
_OF_A_JOB = ("CalledProcessError", "SystemExit")  # told already by the job's own error
_NOT_AGAIN = ("Exiting because a job execution failed", "At least one job did not complete")

_OF_TRAINING = re.compile("; the rest takes about .*$")

Format = Callable[[logging.LogRecord], str]


class RunScreen:
    """Shows one start of Snakemake that runs jobs.

    Parameters
    ----------
    out : where to
    no_colour, plain : as asked for
    command : what to type to go on

    Attributes
    ----------
    has_begun : Snakemake said that this is a run
    interrupted : Ctrl-C was pressed
    """

    def __init__(self, out: TextIO, no_colour: bool, plain: bool, command: str) -> None:
        self._out, self._no_colour, self._plain = out, no_colour, plain
        self._command = command
        self._lock = threading.RLock()
        self._screen: Plain | Bar = Plain(out)  # until there is something to draw
        self._ticker: Ticker | None = None
        self._stray: StrayOutput | None = None
        self._progress = Progress(cores=os.cpu_count() or 1)
        self._left_s, self._left_at_s = 0.0, 0.0
        self._nothing_to_do = False
        self._said_stopping = False
        self._is_open = False
        self.has_begun = False
        self.interrupted = False

    def begin(self) -> None:
        """Snakemake has started: from now on every record comes here."""
        self.has_begun = True

    # -- records --

    @property
    def has_jobs(self) -> bool:
        """Whether jobs may be under way."""
        return self._is_open

    def take(self, record: logging.LogRecord, form: Format) -> None:
        """Show what a record says, if a person wants to see it."""
        with self._lock:
            event = getattr(record, "event", None)
            if event in _EVENTS:
                _EVENTS[event](self, record)
            elif plan := getattr(record, OUTLOOK, None):
                self._open(plan, record.getMessage())
            elif record.levelno >= logging.WARNING:
                self._trouble(record, form(record))
            elif getattr(record, SAYS, False):
                self._say(record.getMessage())
            elif record.getMessage().startswith("Nothing to be done"):
                self._nothing_to_do = True
            elif record.getMessage().startswith("Will exit after finishing"):
                self._say("stopping after the jobs under way; a second time, or Ctrl-C, at once")

    def _resources(self, record: logging.LogRecord) -> None:
        n = getattr(record, "cores", None) or getattr(record, "nodes", None)
        if isinstance(n, int) and n < 100_000:
            self._progress.cores = max(1, n)

    def _jobs(self, record: logging.LogRecord) -> None:
        self._progress.plan(getattr(record, "stats", {}))
        self._progress.times.recorded_s = estimate.read_record()  # of the working folder, now set

    def _graph(self, record: logging.LogRecord) -> None:
        graph: Any = getattr(record, "rulegraph", None) or {}
        self._progress.order(graph.get("links", ()))

    def _open(self, plan: Any, text: str) -> None:
        """Say what is planned, and put up the bar."""
        if self._is_open:
            return
        self._is_open = True
        if plan:
            self._progress.expect(plan)
        os.environ[QUIET_JOBS] = "1"
        self._say(self._progress.headline())
        for line in filter(None, text.splitlines()):
            self._say(_OF_TRAINING.sub("", line))  # the headline has the time of the whole
        if path := log_file():
            self._say(f"details  {path}")
        if takes_stderr(self._out):
            self._stray = StrayOutput()
            self._out = self._stray.out
        self._screen = open_screen(self._out, self._no_colour, self._plain)
        self._reckon()
        self._ticker = Ticker(self._tick)

    def _job_info(self, record: logging.LogRecord) -> None:
        if not self._is_open:  # a workflow that says nothing of its plan
            self._open(None, "")
        fields: Any = record
        wildcards: Mapping[str, str] = fields.wildcards or {}
        self._progress.started(fields.jobid, fields.rule_name, wildcards, list(fields.log or ()))
        self._reckon()

    def _job_finished(self, record: logging.LogRecord) -> None:
        job, lines = self._progress.finished(getattr(record, "job_id", -1))
        self._warn_of(job)
        for line in lines:
            self._say(line)
        self._reckon()

    def _job_error(self, record: logging.LogRecord) -> None:
        fields: Any = record
        job, lines = self._progress.failure(fields.jobid, stopped=self.interrupted)
        self._warn_of(job)
        if not self.interrupted:
            logs = list(fields.log or ())
            label = job.label if job is not None else fields.rule_name
            for line in failure_lines(label, logs, fields.rule_msg, fields.aux):
                self._say(line, "error")
            for line in lines:
                self._say(line)
        self._reckon()

    def _group_error(self, record: logging.LogRecord) -> None:
        """Nothing: an error of each of its jobs follows."""

    def _trouble(self, record: logging.LogRecord, text: str) -> None:
        """Show a warning or an error in full, unless it is a job's, whose own error says more."""
        if record.levelno < logging.ERROR:
            self._say(f"warning: {text}", "warning")
        elif not (self.interrupted or any(words in text for words in (*_NOT_AGAIN, *_OF_A_JOB))):
            self._say(text, "error")

    def _error(self, record: logging.LogRecord) -> None:
        self._trouble(record, record.getMessage())

    def _hidden(self, record: logging.LogRecord) -> None:
        """Nothing: it is in the log file."""

    def _warn_of(self, job: Job | None) -> None:
        if job is None:
            return
        for path in job.logs:
            for warning in warnings_in(path):
                self._say(f"warning: {job.label}: {warning}", "warning")

    def _show_stray(self) -> None:
        """Show what was written past the logs; after Ctrl-C it is tracebacks alone."""
        if self._stray is not None and (text := self._stray.fresh()) and not self.interrupted:
            self._say(text)

    def _say(self, text: str, style: str = "") -> None:
        self._screen.line(text, style)

    # -- time left --

    def _reckon(self) -> None:
        self._left_s, self._left_at_s = self._progress.left_s(), time.monotonic()

    def _tick(self) -> float:
        """Draw; return the seconds until the next time."""
        with self._lock:
            if self._ticker is None:
                return 1.0
            try:
                self._draw()
            except Exception:  # noqa: BLE001 - the next record tells of it, if that fails, too
                return 60.0
            if self._progress.measuring():
                return max(MEASURING_PERIOD_S, self._screen.period_s)
            return self._screen.period_s

    def _draw(self) -> None:
        if self.interrupted:
            if not self._said_stopping:
                self._said_stopping = True
                self._say("Ctrl-C: ending the jobs under way ...")
            return
        self._show_stray()
        training = self._progress.look()
        if training is not None or time.monotonic() - self._left_at_s > RECKON_S:
            self._reckon()
        now_s = time.monotonic()
        left_s = max(1.0, self._left_s - (now_s - self._left_at_s))
        elapsed_s = now_s - self._progress.start_s
        line = self._under_way(training)
        self._screen.show(
            View(
                elapsed_s / (elapsed_s + left_s),
                left_s,
                self._progress.n_done,
                self._progress.n_jobs,
                line,
            )
        )

    def _under_way(self, training: Job | None) -> str:
        if training is not None:
            return self._progress.epoch_line(training)
        return ", ".join(job.label for job in self._progress.under_way.values())

    # -- the end --

    def abandon(self) -> None:
        """Take the bar away and show nothing more."""
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.stop()
        self._show_stray()
        self._screen.stop()
        if self._stray is not None:
            self._stray.restore()
        os.environ.pop(QUIET_JOBS, None)

    def end(self) -> None:
        """Say how it ended: done, failed, stopped, or nothing to do."""
        self.abandon()
        self._screen = Plain(self._out)
        progress = self._progress
        if progress.n_done:
            estimate.write_record(progress.times)
        took_s = time.monotonic() - progress.start_s
        if self._nothing_to_do and not progress.n_jobs:
            self._say(f"nothing to do: all that is asked for is there ({duration(took_s)})")
        elif not self._is_open:
            if self.interrupted:
                self._say(f"stopped before a job was started; {self._again()}")
        elif self.interrupted:
            self._stopped(took_s)
        elif progress.failed:
            self._failed(took_s)
        elif progress.n_done == progress.n_jobs:
            expected_s = progress.estimate_s or 0.0
            self._say(
                f"done: {progress.n_done} jobs in {duration(took_s)} "
                f"(the estimate at the start: {duration(expected_s)})"
            )
        else:
            self._stopped(took_s)

    def _again(self) -> str:
        return f"continue with: {self._command}"

    def _kept(self) -> str:
        progress = self._progress
        jobs = f"{progress.n_done} of {progress.n_jobs} jobs done"
        n_kept, n_modes = progress.modes_kept()
        if n_modes:
            jobs = f"{n_kept} of {n_modes} modes kept, {jobs}"
        if not progress.runs:
            return jobs
        return f"{progress.kept()} of {progress.epochs} epochs kept, {jobs}"

    def _stopped(self, took_s: float) -> None:
        for line in self._progress.unfinished_stages():
            self._say(line)
        self._say(f"stopped after {duration(took_s)}; {self._kept()}")
        self._say(self._again())

    def _failed(self, took_s: float) -> None:
        progress = self._progress
        for line in progress.unfinished_stages():
            self._say(line)
        n_failed = len(progress.failed)
        not_run = progress.n_jobs - progress.n_done - n_failed
        self._say(f"{n_failed} failed, after {duration(took_s)}:", "error")
        for job in progress.failed:
            self._say(f"  {job.label}" + (f"  {job.logs[0]}" if job.logs else ""), "error")
        waited = f"; {not_run} more wait for them" if not_run > 0 else ""
        self._say(f"{self._kept()}{waited}")
        self._say(f"mend what the log says, then {self._again()}")


_EVENTS: dict[Any, Callable[[RunScreen, logging.LogRecord], None]] = {
    LogEvent.RESOURCES_INFO: RunScreen._resources,
    LogEvent.RUN_INFO: RunScreen._jobs,
    LogEvent.RULEGRAPH: RunScreen._graph,
    LogEvent.JOB_INFO: RunScreen._job_info,
    LogEvent.JOB_FINISHED: RunScreen._job_finished,
    LogEvent.JOB_ERROR: RunScreen._job_error,
    LogEvent.GROUP_ERROR: RunScreen._group_error,
    LogEvent.ERROR: RunScreen._error,
    LogEvent.JOB_STARTED: RunScreen._hidden,
    LogEvent.PROGRESS: RunScreen._hidden,
    LogEvent.SHELLCMD: RunScreen._hidden,
    LogEvent.GROUP_INFO: RunScreen._hidden,
}


def failure_lines(
    label: str, logs: list[str], message: str | None, aux: Mapping[str, Any] | None
) -> list[str]:
    """Return what a person needs of a failed job: which, what its log says last, where that is."""
    lines = [f"failed: {label}"]
    lines += [f"  {message}"] if message else []
    lines += [f"  {name}: {value}" for name, value in (aux or {}).items()]
    for log in logs:
        ends = last_lines(Path(log))
        lines += [f"  | {line}" for line in ends] or ["  | (its log is empty)"]
        lines.append(f"  log: {log}")
    return lines


def log_file() -> str | None:
    """Return the path of Snakemake's own log file, from here where that is shorter."""
    for handler in logging.getLogger("snakemake.logging").handlers:
        if isinstance(handler, logging.FileHandler):
            return min(handler.baseFilename, os.path.relpath(handler.baseFilename), key=len)
    return None
