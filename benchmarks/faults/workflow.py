"""Faults of the whole workflow: Snakemake or all of it killed; then Snakemake is started again."""

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.faults.place import descendants, orphans
from benchmarks.results import REPOSITORY
from benchmarks.workplace import Workplace
from epochwatt.datasets.make import make_dataset
from epochwatt.records.run_folder import RunFolder

SWEEP = {"num_workers": 0, "dataset_scale": 0.05}
EPOCHS = 3
LONGEST_S = 12.0  # of the job table, three jobs and their tables on a busy machine


class Shop:
    """Makes working folders whose data set is there, and knows an undisturbed run.

    Parameters
    ----------
    folder : empty
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.whole = Workplace(self._new("whole"), SWEEP, EPOCHS)
        (self.run,) = self.whole.settings().table.runs.values()
        make_dataset(self.whole.path / self.run.data_folder, self.run.factors["recipe"])
        self.empty = folder / "empty"
        shutil.copytree(self.whole.path, self.empty)
        self.whole.snakemake(self.run.epochs_csv)
        self.losses = self._losses(self.whole.path)

    def _new(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True)
        return path

    def _losses(self, place: Path) -> dict[int, float]:
        runs = RunFolder(str(place / "measured"), self.run.id)
        return {epoch: runs.read(epoch).meta["loss"] for epoch in runs.measured()}

    def place(self, name: str, measured: bool) -> Path:
        """Return a copy of the folder before its first start, or after it."""
        target = self.folder / name
        shutil.copytree(self.whole.path if measured else self.empty, target)
        return target

    def wrong(self, place: Path) -> list[str]:
        """Start the workflow plainly; return what is not as in the undisturbed run."""
        started = _start(place, self.run.epochs_csv)
        try:
            status = started.wait(300)
        except subprocess.TimeoutExpired:
            _kill_all(started.pid)
            return ["the next start hangs"]
        text = (place / "screen.txt").read_text("utf-8", "replace")
        if status:
            return [f"the next start fails: {text[-400:]}"]
        found = self._losses(place)
        if sorted(found) != sorted(self.losses):
            return [f"epochs {sorted(found)} are measured, wanted {sorted(self.losses)}"]
        wrong = [] if found == self.losses else [f"losses {found}, undisturbed {self.losses}"]
        logs = sorted((place / "results/logs").rglob("*.log"))  # of our commands; Snakemake's not
        texts = [log.read_text("utf-8", "replace") for log in logs]
        wrong += [f"traceback: {text[-400:]}" for text in texts if "Traceback" in text]
        return wrong + [f"orphan: {told}" for told in orphans()]


def _start(place: Path, target: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "Snakefile")]
    command += ["--profile", str(REPOSITORY / "profiles/host"), "--directory", str(place), target]
    environment = {**os.environ, "TMPDIR": str(place / "tmp")}
    environment |= {"XDG_RUNTIME_DIR": str(place / "tmp"), "CUDA_VISIBLE_DEVICES": ""}
    with open(place / "screen.txt", "ab") as screen:
        return subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
        )


def _kill_all(pid: int) -> None:
    for one in [*descendants(pid), pid]:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def ended(number: int, whom: str, shop: Shop, place: Path, rng: random.Random) -> list[str]:
    """Start the workflow, end a part of it at any moment, start it again."""
    started = _start(place, shop.run.epochs_csv)
    deadline_s = time.monotonic() + rng.uniform(0.5, LONGEST_S)
    while time.monotonic() < deadline_s and started.poll() is None:
        time.sleep(0.01)
    if started.poll() is None:
        if whom == "all":
            _kill_all(started.pid)
        elif whom == "group":
            os.killpg(started.pid, number)
        else:
            os.kill(started.pid, number)
    try:
        started.wait(60)
    except subprocess.TimeoutExpired:
        _kill_all(started.pid)
        return ["it does not end"]
    return shop.wrong(place)


def deleted(what: str, shop: Shop, place: Path, rng: random.Random) -> list[str]:
    """Remove results, a receipt or a finished epoch by hand, start again."""
    if what == "results":
        shutil.rmtree(place / "results")
    elif what == "epoch":
        number = rng.randrange(EPOCHS)
        shutil.rmtree(place / "measured" / shop.run.id / f"epoch-{number}")
        found = shop.wrong(place)
        # the checkpoint before it is gone: from there on weights are fresh, and flagged
        return [told for told in found if not told.startswith("losses {0:") or number == 0]
    else:
        (place / rng.choice(shop.run.receipts)).unlink()
    return shop.wrong(place)


Fault = Callable[[Shop, Path, random.Random], list[str]]


def faults() -> Iterator[tuple[str, Fault, bool, float]]:
    """Give name, fault, whether it is of a measured run, and share."""
    yield "workflow: kill -9 Snakemake", functools.partial(ended, signal.SIGKILL, "one"), False, 1
    yield "workflow: kill -9 all", functools.partial(ended, signal.SIGKILL, "all"), False, 1
    for number in (signal.SIGINT, signal.SIGTERM):
        yield f"workflow: {number.name}", functools.partial(ended, number, "group"), False, 1
    for what in ("results", "receipt", "epoch"):
        yield f"workflow: {what} deleted", functools.partial(deleted, what), True, 0.6
