"""A folder in which one fault is injected: a copy of a measured run, and starts of its job."""

import ctypes
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from benchmarks import template
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training import __main__ as training
from epochwatt.errors import EpochwattError

PATIENCE_S = 120.0  # of a start; normally one second
ORPHAN_S = 8.0  # until all children have to be gone
_SET_CHILD_SUBREAPER = 36
_ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}

Prepare = Callable[[], None]  # called in the child, before the job


def adopt_orphans() -> None:
    """Become the parent of whatever our children leave behind, so that it is seen."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Start:
    """One start of the job, in a forked process (torch is imported already), and what it said."""

    def __init__(self, pid: int, screen: Path) -> None:
        self.pid = pid
        self._screen = screen
        self.status: int | None = None

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for the end; return the exit status, negative after a signal; -99: it hangs."""
        deadline_s = time.monotonic() + patience_s
        while not self.ended():
            time.sleep(0.005)
            if time.monotonic() > deadline_s:
                self.kill_all()
                os.waitpid(self.pid, 0)
                self.status = -99
        return self.status  # type: ignore[return-value]

    def ended(self) -> bool:
        """Say whether it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def send(self, number: int) -> None:
        """Send a signal to the trainer alone."""
        if not self.ended():
            os.kill(self.pid, number)

    def send_group(self, number: int) -> None:
        """Send a signal to the trainer and its loader workers."""
        if not self.ended():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def kill_all(self) -> None:
        """End it and all its children."""
        for pid in [*descendants(self.pid), self.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @property
    def text(self) -> str:
        """What it said so far."""
        return self._screen.read_text("utf-8", "replace")


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
        self._n_starts = 0
        (folder / "results").mkdir(exist_ok=True)

    def epoch(self, number: int) -> Path:
        """Return the folder of an epoch."""
        return Path(self.runs.epoch_path(number))

    def own(self, path: Path) -> Path:
        """Return a file of the data set after making it this place's own: they are hard links."""
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        return path

    def start(
        self,
        prepare: Prepare = lambda: None,
        collect: bool = True,
        epochs: int = template.EPOCHS,
    ) -> Start:
        """Start the job in a session of its own; then, with `collect`, its tables."""
        words = ["--run", template.RUN, "--factors", json.dumps(self.run_factors)]
        words += ["--first", "0", "--last", str(epochs - 1)]
        words += ["--measured", str(self.folder / "measured")]
        words += ["--data-root", str(self.folder / "data")]
        words += ["--receipt", str(self.folder / "results/receipt.json")]
        words += ["--machine", json.dumps(template.machine_settings(self.folder))]

        def work() -> int:
            status = training.main(words)
            return status or (self._collect(epochs) if collect else 0)

        return self._forked(prepare, work)

    def collected(self) -> Start:
        """Start the making of the tables alone, as where results/ was removed."""
        return self._forked(lambda: None, lambda: self._collect(template.EPOCHS))

    def _forked(self, prepare: Prepare, work: Callable[[], int]) -> Start:
        """Fork; no signal reaches the child before its handlers are its own."""
        self._n_starts += 1
        screen = self.folder / f"screen-{self._n_starts}.txt"
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            pid = os.fork()
            if pid == 0:
                self._be(screen, prepare, work)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        return Start(pid, screen)

    def _collect(self, epochs: int) -> int:
        try:
            template.collect(self.folder, epochs)
        except EpochwattError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 0

    def _be(self, screen: Path, prepare: Prepare, work: Callable[[], int]) -> None:
        """Be the child: a session, a screen and a folder for temporary files of its own."""
        status = 70
        try:
            os.setsid()
            out = os.open(screen, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout = sys.stderr = os.fdopen(2, "w", 1, closefd=False)
            os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"] = str(self.folder / "tmp")
            tempfile.tempdir = None
            for number in _ENDING:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            prepare()
            status = work()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:  # noqa: BLE001  as an interpreter does with what nobody caught
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

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


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and theirs."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, path.read_text("ascii").split()):
                found += [child, *descendants(child)]
    return found


def command_of(pid: int) -> str:
    """Return the command line of a process; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").replace("\0", " ")
    except OSError:
        return ""


def orphans() -> list[str]:
    """Wait for what our children left behind; return, and kill, what does not end by itself."""
    # with which this process's own multiprocessing keeps track of its resources
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
    deadline_s = time.monotonic() + ORPHAN_S
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = [pid for pid in descendants(os.getpid()) if pid != tracker]
        if not left or time.monotonic() > deadline_s:
            break
        time.sleep(0.01)
    told = [f"{pid} {command_of(pid)[:80]}" for pid in left]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return told
