"""Note what a start of the workflow could not make, and start again without it.

A job that fails takes with it all that is made from its outputs, in the end the landing page. So
after a start with failed jobs the workflow is started once more, and asks neither for their outputs
nor for what is made from them: runs that were not measured count as excluded, all else is left out,
and the page names it. The next start by a person knows nothing of this and tries all of it again.
"""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from snakemake_interface_logger_plugins.common import LogEvent

from epochwatt.board.records import files
from epochwatt.study.runs import RunTable

FILE = Path("results/not_made.json")
LIST = "EPOCHWATT_LIST_JOBS"  # environment: the file in which a dry run lists what is to be done
AGAIN = "EPOCHWATT_AGAIN"  # environment: set where a start does without what `FILE` names
PAGE, SUMMARY = "results/index.html", "results/summary.txt"
COPES = (PAGE, SUMMARY)  # made of whatever is there
# one of many: what gathers them is made of the others
ONE_OF_MANY = re.compile(
    r"results/(runs/[^/]+/(epochs|energy)\.csv|simulated/twin-[^/]+"
    r"|idle/.*\.json|roofline/.*/receipt\.json)"
)
STOPPED = ("Terminating processes on user request", "Will exit after finishing")


class Failure(NamedTuple):
    """A job that failed."""

    rule: str  # its name
    outputs: list[str]  # what it would have made
    log: str  # path of its log; empty: it has none
    reason: str  # what the log says last: the sentence of an error


class NotMade(NamedTuple):
    """The jobs and files that a start does without."""

    failures: list[Failure]  # the jobs that failed
    # path -> index of the failure because of which it is not there, or out of date
    files: dict[str, int]

    def without(self, *paths: Any) -> list[str]:
        """Return the paths, lists of them flattened, but for those that are not made."""
        flat: list[str] = []
        for entry in paths:
            flat += [entry] if isinstance(entry, str) else entry
        return [path for path in flat if path not in self.files]

    def has(self, path: str) -> bool:
        """Say whether a path is not among those that are not made."""
        return path not in self.files

    def leave_out(self, table: RunTable) -> None:
        """Move the runs whose `epochs.csv` is not made to the table's excluded, with the reason."""
        for run in list(table.runs.values()):
            if run.epochs_csv in self.files:
                reason = self.failures[self.files[run.epochs_csv]].reason.splitlines()[0]
                table.excluded.append((run, f"this time it failed: {reason}"))
                del table.runs[run.id]

    def shown(self) -> list[dict[str, Any]]:
        """Return the fields of each failure and `waiting`: what is not made because of it."""
        return [
            {
                **failure._asdict(),
                "waiting": sorted(
                    path
                    for path, cause in self.files.items()
                    if cause == index and path not in (*failure.outputs, *COPES)
                ),
            }
            for index, failure in enumerate(self.failures)
        ]


NOTHING = NotMade([], {})


def without() -> NotMade:
    """Return what this start does without: nothing, where a person began it."""
    return read() if AGAIN in os.environ else NOTHING


def read() -> NotMade:
    """Return what `FILE` names; nothing where there is no such file."""
    if not FILE.exists():
        return NOTHING
    content = files.read_json(str(FILE))
    return NotMade([Failure(**entry) for entry in content["failures"]], content["files"])


class Watch(logging.Handler):
    """Collects jobs that fail; in a dry run with `LIST` it appends all jobs to that file.

    `failures`: so far
    `is_stopped`: somebody pressed Ctrl-C, or asked in another way
    """

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Failure] = []
        self.is_stopped = False
        self._list = os.environ.get(LIST)

    def emit(self, record: logging.LogRecord) -> None:
        """Collect a failed job, list a job, or note a stop, as a record of Snakemake's says."""
        fields: Any = record
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_ERROR:
            log = next(iter(fields.log or ()), "")
            self.failures.append(
                Failure(fields.rule_name, list(fields.output), log, last_error(log))
            )
        elif event == LogEvent.JOB_INFO and self._list:
            job = {"input": fields.input, "output": fields.output}
            with open(self._list, "a", encoding="utf-8") as handle:
                handle.write(json.dumps(job) + "\n")
        elif event is None and record.getMessage().startswith(STOPPED):
            self.is_stopped = True


def last_error(log: str) -> str:
    """Return the last `error: ` line of a log and the indented lines below it.

    Without one, the last line, which names an exception that was not expected.
    """
    try:
        lines = [line for line in Path(log).read_text("utf-8", "replace").splitlines() if line]
    except OSError:
        return "it left no log"
    errors = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not errors:
        return lines[-1] if lines else "its log is empty"
    below = takewhile(lambda line: line.startswith(" "), lines[errors[-1] + 1 :])
    return "\n".join([lines[errors[-1]].removeprefix("error: "), *below])


def affected(
    jobs: Iterable[Mapping[str, Sequence[str]]], failures: Sequence[Failure]
) -> dict[str, int]:
    """Return path -> index of the failure because of which it cannot be made.

    A failure spreads from outputs to all made of them, but not to what gathers `ONE_OF_MANY`.

    `jobs`: `input` and `output` of all that are still to be done
    """
    waiting = [job for job in jobs if not set(job["output"]) & set(COPES)]
    because = {path: index for index, failure in enumerate(failures) for path in failure.outputs}
    is_growing = True
    while is_growing:
        is_growing = False
        for job in waiting:
            causes = [
                because[path]
                for path in job["input"]
                if path in because and not ONE_OF_MANY.fullmatch(path)
            ]
            added = [path for path in job["output"] if path not in because]
            if causes and added:
                because.update(dict.fromkeys(added, causes[0]))
                is_growing = True
    return because


def make_page_without(failures: Sequence[Failure], folder: str) -> None:
    """Start the workflow again in `folder` without what failed, until nothing fails.

    Each round lists the jobs left by a dry run, writes `FILE`, removes results of earlier starts
    that are now out of date, and starts the rest.

    Raises RecordWriteError, RecordError: `FILE` or the list of failures cannot be written or read.
    """
    scratch = Path(".snakemake").absolute()
    listed, failed = scratch / "epochwatt-jobs.jsonl", scratch / "epochwatt-failures.json"
    command = [sys.executable, "-m", "snakemake"]
    environment, failed_so_far = dict(os.environ), list(failures)
    while True:
        listed.unlink(missing_ok=True)
        _start([*command, "--dry-run", *sys.argv[1:]], folder, environment | {LIST: str(listed)})
        if not listed.exists():
            return
        jobs = [json.loads(line) for line in listed.read_text("utf-8").splitlines()]
        not_made = NotMade(failed_so_far, {**read().files, **affected(jobs, failed_so_far)})
        files.write_json(
            str(FILE), {"failures": [f._asdict() for f in failed_so_far], "files": not_made.files}
        )
        for path in map(Path, not_made.files):
            if path.is_file():
                path.unlink()
        environment[AGAIN] = str(failed)
        failed.unlink(missing_ok=True)
        if _start([*command, *sys.argv[1:]], folder, environment) == 0 or not failed.exists():
            return
        failed_so_far += [Failure(**entry) for entry in files.read_json(str(failed))]


def _start(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> int:
    """Run a command without a word on the screen; return its exit status."""
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, check=False
    ).returncode


def write_failures(failures: Sequence[Failure]) -> None:
    """Write the failures of this start to the file that the start before it reads (`AGAIN`)."""
    files.write_json(os.environ[AGAIN], [failure._asdict() for failure in failures])
