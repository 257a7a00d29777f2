"""A folder in which one fault is injected: a copy of a measured run, and starts of its job."""

import ctypes
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import psutil

from benchmarks import template
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training import __main__ as training
from epochwatt.errors import EpochwattError

PATIENCE_S = 120.0  # of a start; normally one second
ORPHAN_S = 8.0  # until all children have to be gone
HANGS = -99  # in place of an exit status
FORK = multiprocessing.get_context("fork")
_SET_CHILD_SUBREAPER = 36
_ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Start(FORK.Process):  # type: ignore[name-defined]
    """One start of the job, in a session of its own (torch is imported already).

    `prepare` is called in the child before `work`, which returns the exit status.
    """

    def __init__(self, screen: Path, prepare: Callable[[], None], work: Callable[[], int]) -> None:
        super().__init__()
        self._screen, self._prepare, self._work = screen, prepare, work
        sys.stdout.flush()
        # no signal reaches the child before its handlers are its own
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def run(self) -> None:
        os.setsid()
        out = os.open(self._screen, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = sys.stderr = os.fdopen(2, "w", 1, closefd=False)
        tempfile.tempdir = None
        os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"] = str(self._screen.parent / "tmp")
        for number in _ENDING:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self._prepare()
        sys.exit(self._work())

    def wait(self) -> int:
        """Wait for the end; return the exit status, negative after a signal."""
        self.join(PATIENCE_S)
        if self.is_alive():
            self.send_all(signal.SIGKILL)
            self.join()
            return HANGS
        return self.exitcode  # type: ignore[return-value]

    def send_all(self, number: int) -> None:
        """Send a signal to it and to all its children."""
        with suppress(psutil.NoSuchProcess):
            for process in [*descendants(self.pid), psutil.Process(self.pid)]:
                process.send_signal(number)

    @property
    def text(self) -> str:
        """What it said so far."""
        return self._screen.read_text("utf-8", "replace") if self._screen.exists() else ""


class Place:
    """A copy of the template after some epochs.

    Parameters
    ----------
    folder : to be made
    source : the template: data/, tmp/, after-{k}/
    n_done : how many epochs are measured in it
    """

    def __init__(self, folder: Path, source: Path, n_done: int) -> None:
        self.folder, self.source, self.n_done = folder, source, n_done
        folder.mkdir()
        shutil.copytree(source / f"after-{n_done}", folder, dirs_exist_ok=True)
        shutil.copytree(source / "data", folder / "data", copy_function=os.link)
        self.run_factors: dict[str, Any] = json.loads((source / "factors.json").read_text("utf-8"))
        self.runs = RunFolder(str(folder / "measured"), template.RUN)
        self.starts: list[Start] = []
        (folder / "results").mkdir(exist_ok=True)

    def epoch(self, number: int) -> Path:
        return Path(self.runs.epoch_path(number))

    def start(
        self,
        prepare: Callable[[], None] = lambda: None,
        collect: bool = False,
        epochs: int = template.EPOCHS,
    ) -> Start:
        """Start the job; then, with `collect`, let it make its tables."""
        words = ["--run", template.RUN, "--factors", json.dumps(self.run_factors)]
        words += ["--first", "0", "--last", str(epochs - 1)]
        words += ["--measured", str(self.folder / "measured")]
        words += ["--data-root", str(self.folder / "data")]
        words += ["--receipt", str(self.folder / "results/receipt.json")]
        words += ["--machine", json.dumps(template.machine_settings(self.folder))]

        def work() -> int:
            return training.main(words) or (self.collect() if collect else 0)

        return self.started(prepare, work)

    def started(self, prepare: Callable[[], None], work: Callable[[], int]) -> Start:
        screen = self.folder / f"screen-{len(self.starts) + 1}.txt"
        self.starts.append(Start(screen, prepare, work))
        return self.starts[-1]

    def collect(self) -> int:
        """Make the tables; return the exit status."""
        try:
            template.collect(self.folder)
        except EpochwattError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 0

    def digests(self) -> dict[int, str]:
        """Return the checksum of all that each finished epoch holds, but for its checkpoint."""
        found = {}
        for number in self.runs.measured():
            digest = hashlib.sha256()
            for path in sorted(self.epoch(number).iterdir()):
                if not path.name.startswith("checkpoint."):
                    lines = path.read_bytes().splitlines(keepends=True)
                    held = [line for line in lines if b"  checkpoint." not in line]  # of SHA256SUMS
                    digest.update(path.name.encode() + b"".join(held))
            found[number] = digest.hexdigest()
        return found


def adopt_orphans() -> None:
    """Become the parent of whatever our children leave behind, so that it is seen."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """Return the children of a process (this one), and theirs."""
    return psutil.Process(pid).children(recursive=True)


def orphans() -> list[str]:
    """Wait for what our children left behind; return, and kill, what does not end by itself."""
    # with which this process's own multiprocessing keeps track of its resources
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
    left = [process for process in descendants() if process.pid != tracker]
    _, left = psutil.wait_procs(left, timeout=ORPHAN_S)
    told = []
    for process in left:
        with suppress(psutil.NoSuchProcess):
            told.append(f"orphan: {process.pid} {' '.join(process.cmdline())[:80]}")
            process.kill()
            process.wait()
    return told
