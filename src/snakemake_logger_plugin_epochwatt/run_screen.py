"""Show a run in a terminal: a bar, a line for each finished run, what failed, how it ended."""

import logging
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text
from snakemake_interface_logger_plugins.common import LogEvent

from epochwatt.columns import label
from epochwatt.errors import ConfigError
from epochwatt.study.plan import duration
from epochwatt.tables import read_frame
from epochwatt.text import counted, printable
from snakemake_logger_plugin_epochwatt.outlook import Outlook

QUIET_JOBS = "EPOCHWATT_QUIET_JOBS"  # jobs write their log file alone: their lines are shown here
STRAY = Path(".snakemake/epochwatt-stderr.log")  # what jobs and libraries write past every log
NAMED = {"train_epoch": "jobs of training", "simulate_run": "simulated runs", "plot_": "figures"}
PLANNED = ("train_epoch", "measure_modes")  # the plan has their seconds
OTHER_JOB_S = 0.5  # ASSUME: of any other job, until the first of them has finished
FULL_BELOW = 65536  # bytes free on a disk: a log there may lack its error
REDRAWN_PER_S = 0.5  # each time takes a CPU for 2 ms, beside a job that measures
SHOWN_LINES, TAIL_BYTES = 12, 65536  # of the log of a failed job; of any log
_WARNING = re.compile(r"^warning: (.*(?:\n[ \t]+.*)*)", re.M)
_TOLD_BY_JOBS = re.compile("CalledProcessError|SystemExit|Exiting because a job|At least one job")


class Job:
    """A job that was started, from Snakemake's record of it."""

    def __init__(self, record: Any) -> None:
        values = dict(getattr(record, "wildcards", None) or {})
        words = ", ".join(f"{name}={value}" for name, value in values.items())
        self.label = record.rule_name + (f" ({words})" if words else "")
        self.logs: list[str] = list(record.log or ())
        self.run = values.get("run") or f"{values.get('sweep')}/{values.get('grid')}"
        self.part = self.run, values.get("first", ""), values.get("last", "")
        self.completes_run = record.rule_name == "collect_run"
        self.start_s = time.monotonic()


class RunScreen:
    """Shows one start of Snakemake that runs jobs: lines, and on a terminal a bar.

    `plain`: lines only; `command`: what to type to go on
    """

    def __init__(self, out: TextIO, no_colour: bool, plain: bool, command: str) -> None:
        self.has_begun = False  # Snakemake said that this is a run
        self.has_jobs = False  # some may be under way
        self.interrupted = False  # Ctrl-C was pressed
        self._out, self._command = out, command
        is_dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown")
        self._is_terminal = out.isatty() and not plain and not is_dumb
        self.console = Console(
            file=out,
            no_color=no_colour or None,
            force_terminal=self._is_terminal,
            highlight=False,
        )
        self._bar: Bar | None = None
        self._stray: StrayOutput | None = None
        self._plan = Outlook()
        self._jobs: Counter[str] = Counter()  # of each rule
        self._under_way: dict[int, Job] = {}
        self._failed: list[Job] = []
        self._n_done = self._n_other_done = 0
        self._nothing_to_do = False
        self._start_s, self._measuring_s = time.monotonic(), 0.0

    def say(self, text: str, style: str = "") -> None:
        """Print text, above the bar if there is one; control characters become escapes."""
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        safe = printable(text).encode(encoding, "backslashreplace").decode(encoding)
        self.console.print(Text(safe, style=style), soft_wrap=True)

    def take(self, record: Any, form: Callable[[logging.LogRecord], str]) -> None:
        """Update jobs and bar by a record of Snakemake's, and print what a person needs of it.

        `form`: formats the record as Snakemake does
        """
        event, text = getattr(record, "event", None), record.getMessage()
        if self._stray is not None and not self.interrupted and (lines := self._stray.fresh()):
            self.say(lines)
        if event == LogEvent.RUN_INFO:
            self._jobs = Counter({rule: n for rule, n in record.stats.items() if rule != "total"})
        elif event == LogEvent.JOB_INFO:
            self._open(Outlook(), "")  # where the workflow did not tell its plan
            self._under_way[record.jobid] = Job(record)
        elif event == LogEvent.JOB_FINISHED:
            self._finish_job(record.job_id)
        elif event == LogEvent.JOB_ERROR:
            self._fail_job(record)
        elif event not in (None, LogEvent.ERROR):
            return  # it is in the log file
        elif plan := getattr(record, "epochwatt_outlook", None):
            self._open(plan, text)
        elif record.levelno >= logging.ERROR:
            if not self.interrupted and not _TOLD_BY_JOBS.search(text):
                self.say(text if event else form(record), "red")
        elif record.levelno >= logging.WARNING:
            self.say(f"warning: {form(record)}", "yellow")
        elif getattr(record, "epochwatt_says", False):  # the workflow wants it shown
            self.say(text)
        elif text.startswith("Will exit after finishing"):
            self.say("stopping after the jobs under way; a second time, or Ctrl-C, at once")
        elif text.startswith("Nothing to be done"):
            self._nothing_to_do = True

    def _open(self, plan: Outlook, text: str) -> None:
        """Print what is planned, once, show the bar, and make jobs quiet (`QUIET_JOBS`)."""
        if self.has_jobs:
            return
        self.has_jobs, self._plan = True, plan
        os.environ[QUIET_JOBS] = "1"
        words = [counted(self._jobs.total(), "jobs")]
        for start, name in NAMED.items():
            n = sum(n for rule, n in self._jobs.items() if rule.startswith(start))
            words += [counted(n, name)] if n else []
        self.say("\n".join([", ".join(words), *filter(None, text.splitlines())]))
        for handler in logging.getLogger("snakemake.logging").handlers:
            if isinstance(handler, logging.FileHandler):
                self.say(f"details  {os.path.relpath(handler.baseFilename)}")
        if self._is_terminal and self._out is sys.stderr and self._out.fileno() == 2:
            self._stray = StrayOutput()
            self.console.file = self._stray.out
        if self._is_terminal:
            self._bar = Bar(self)
            self._bar.start()

    def _finish_job(self, job_id: int) -> None:
        """Count a finished job; print the run's line where the job completes one."""
        if (job := self._remove_job(job_id)) is None:
            return
        self._n_done += 1
        if self._plan.jobs_s.pop(job.part, None) is None:
            self._n_other_done += 1
        else:
            self._measuring_s += time.monotonic() - job.start_s
        if job.completes_run:
            self.say(run_line(self._plan.titles.get(job.run, job.run), job.run))

    def _fail_job(self, record: Any) -> None:
        """Note a failed job and print the end of its logs."""
        job = self._remove_job(record.jobid) or Job(record)
        if self.interrupted:
            return
        self._plan.jobs_s.pop(job.part, None)
        self._failed.append(job)
        lines = [f"failed: {job.label}"]
        lines += [f"  {name}: {value}" for name, value in (record.aux or {}).items()]
        for log in job.logs:
            lines += [f"  | {line}" for line in last_lines(log) or ["(its log is empty)"]]
            lines.append(f"  log: {log}")
            if is_full(os.path.dirname(log)):
                lines.append("  the disk of this log is full: free some space")
        self.say("\n".join(lines), "red")

    def _remove_job(self, job_id: int) -> Job | None:
        """Remove a job from those under way and print the warnings of its logs; None: unknown."""
        job = self._under_way.pop(job_id, None)
        for log in job.logs if job else ():
            for warning in _WARNING.findall(tail(log)):
                self.say(f"warning: {job and job.label}: {warning}", "yellow")
        return job

    def left_s(self) -> float:
        """Estimate the seconds left: planned jobs by the plan, others by the mean of those done."""
        now_s, planned_s, measuring_s = time.monotonic(), dict(self._plan.jobs_s), self._measuring_s
        for job in list(self._under_way.values()):
            if job.part in planned_s:
                measuring_s += now_s - job.start_s
                planned_s[job.part] = max(0.0, planned_s[job.part] - (now_s - job.start_s))
        n_others = self._jobs.total() - sum(self._jobs[rule] for rule in PLANNED)
        other_s = OTHER_JOB_S
        if self._n_other_done:
            other_s = max(0.0, now_s - self._start_s - measuring_s) / self._n_other_done
        return sum(planned_s.values()) + max(0, n_others - self._n_other_done) * other_s

    def view(self) -> tuple[float, str, str]:
        """Return for the bar: share of the time that is over, numbers, and what is under way."""
        if self.interrupted:
            return 1.0, "", "Ctrl-C: ending the jobs under way ..."
        left_s, over_s = max(1.0, self.left_s()), time.monotonic() - self._start_s
        words = []
        for job in list(self._under_way.values()):
            is_planned = job.part in self._plan.jobs_s
            log_lines = tail(job.logs[0], 4096).split("\n") if is_planned else []
            last = next((line for line in reversed(log_lines) if line.strip()), "")
            words.append(f"{self._plan.titles[job.run]}: {last}" if last else job.label)
        numbers = f"{self._n_done}/{self._jobs.total()} jobs  {duration(left_s)} left"
        return over_s / (over_s + left_s), numbers, ", ".join(words)

    def abandon(self) -> None:
        """Remove the bar, give standard error back, and let jobs write to it again."""
        bar, stray, self._bar, self._stray = self._bar, self._stray, None, None
        if bar is not None:
            bar.stop()
        if stray is not None:
            if (text := stray.fresh()) and not self.interrupted:  # else tracebacks alone
                self.say(text)
            stray.restore()
        os.environ.pop(QUIET_JOBS, None)

    def end(self) -> None:
        """Remove the bar and print how the run ended, and the command to go on with."""
        self.abandon()
        took, n_jobs = duration(time.monotonic() - self._start_s), self._jobs.total()
        again = f"continue with: {self._command}"
        kept = f"{self._plan.kept()}{self._n_done} of {n_jobs} jobs done"
        if not self.has_jobs and self.interrupted:
            self.say(f"stopped before a job was started; {again}")
        elif not self.has_jobs:
            if self._nothing_to_do and not n_jobs:
                self.say(f"nothing to do: all that is asked for is there ({took})")
        elif self._failed and not self.interrupted:
            lines = [f"{len(self._failed)} failed, after {took}:"]
            lines += [f"  {job.label}  {' '.join(job.logs[:1])}".rstrip() for job in self._failed]
            self.say("\n".join(lines), "red")
            n_waiting = n_jobs - self._n_done - len(self._failed)
            waiting = f"; {n_waiting} more wait for them" if n_waiting > 0 else ""
            self.say(f"{kept}{waiting}\nmend what the log says, then {again}")
        elif self._n_done < n_jobs:
            self.say(f"stopped after {took}; {kept}\n{again}")
        else:
            makes_page = any(rule.endswith("show_index") for rule in self._jobs)
            page = "; open results/index.html" if makes_page else ""
            self.say(f"done: {n_jobs} jobs in {took}{page}")


class Bar(Progress):
    """A bar at the foot of a terminal, and below it what is under way."""

    def __init__(self, run: RunScreen) -> None:
        self._run = run
        columns = BarColumn(), TextColumn("{task.percentage:3.0f} %  {task.fields[numbers]}")
        super().__init__(
            *columns, console=run.console, transient=True, refresh_per_second=REDRAWN_PER_S
        )
        self.add_task("", total=1.0, numbers="")

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield bar and line of what is under way, anew for each drawing, in rich's thread."""
        try:
            share, numbers, words = self._run.view()
        except Exception as error:  # noqa: BLE001 - the bar must not break a run
            share, numbers, words = 0.0, "", f"({type(error).__name__}: {error})"
        for task in self.tasks:
            self.update(task.id, completed=share, numbers=numbers)
        yield self.make_tasks_table(self.tasks)
        yield Text(printable(words), style="dim", no_wrap=True, overflow="crop")


class StrayOutput:
    """Standard error of this process and its jobs, kept in a file so as not to tear the bar.

    A file, not a pipe: jobs that outlive this process go on writing.
    """

    def __init__(self) -> None:
        sys.stderr.flush()
        self.out = os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding)  # the one before
        STRAY.parent.mkdir(exist_ok=True)
        self._file, self._read = STRAY.open("w+b"), 0
        os.dup2(self._file.fileno(), 2)

    def fresh(self) -> str:
        """Return the whole lines that were written since the last call."""
        new = os.pread(self._file.fileno(), TAIL_BYTES, self._read)
        lines, end, _ = new.rpartition(b"\n")
        self._read += len(lines) + len(end)
        return lines.decode("utf-8", "replace")

    def restore(self) -> None:
        """Give standard error back."""
        sys.stderr.flush()
        os.dup2(self.out.fileno(), 2)
        self._file.close()


def run_line(title: str, run: str) -> str:
    """Return a finished run's line: "LeNet-5: 3 epochs, 2.9 s each, stall 28 %".

    Numbers are means over the valid epochs after the first of its `epochs.csv`, over all epochs
    where there is none. A table that cannot be read makes it "LeNet-5: collected".
    """
    try:
        rows = read_frame(f"results/runs/{run}/epochs.csv")
        later = rows[rows.valid & (rows.epoch > 0)]
        means = (later if len(later) else rows).mean(numeric_only=True).fillna(0.0)
        words = [counted(len(rows), "epochs"), f"{means.e2e_s:.3g} s each"]
        if means.stall_s:
            words.append(f"{label('stall_s')} {100.0 * means.stall_s / means.e2e_s:.0f} %")
        if means.get("energy_wh"):
            words.append(f"{means.energy_wh:.3g} Wh each")
        if n_invalid := int((~rows.valid).sum()):
            words.append(f"{n_invalid} not valid")
    except (OSError, ConfigError, AttributeError, ValueError):
        words = ["collected"]
    return f"{title}: {', '.join(words)}"


def tail(path: str, most_bytes: int = TAIL_BYTES) -> str:
    """Return the end of a file; empty where it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def is_full(folder: str) -> bool:
    """Return whether a folder's disk is so full that a log may end early, or be empty."""
    try:
        return shutil.disk_usage(folder).free < FULL_BELOW
    except OSError:
        return False


def last_lines(path: str) -> list[str]:
    """Return the last lines of a log without progress; from its last "error: " on, if any."""
    lines = [
        line for line in tail(path).splitlines() if line.strip() and ": mini-batch " not in line
    ]
    errors = [k for k, line in enumerate(lines) if line.startswith("error: ")]
    return lines[errors[-1] :][:SHOWN_LINES] if errors else lines[-SHOWN_LINES:]
