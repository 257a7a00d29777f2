"""End to end: real Snakemake and real, tiny training, in checkouts of their own.

Each `FullCheckout` is a folder with a copy of workflow, package and configuration. Its folder for
temporary files is its own too, so its machine's lock never meets that of a real measurement.
"""

import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from epochwatt.study.runs import Run
from epochwatt.study.settings import load_settings

PATIENCE_S = 400.0  # before a test gives up waiting; nothing here takes a tenth of it
TINY = 0.5  # dataset_scale of an epoch of a tenth of a second
LONG = 5  # dataset_scale of an epoch of more than a second, of mini-batches of 64
STOPPABLE = 2  # of one that is long enough to be stopped inside, of mini-batches of 16
# rules that make tables and pages of measured runs
TABLES = ["advise_runs", "check_claims", "collect_study", "compare_printed", "split_energy"]
PAGES = ["show_index", "summarise"]


class Outcome(NamedTuple):
    """A command that has ended."""

    status: int
    text: str  # all that it wrote to the screen

    @property
    def jobs(self) -> list[str]:
        """Jobs that were started, as "rule wildcards", sorted, without `all`."""
        found = re.findall(r"^( *)(?:local)?rule (\w+):\n((?:\1 {4}.*\n)*)", self.text, re.M)
        return sorted(_label(rule, about) for _, rule, about in found if rule != "all")

    @property
    def measuring(self) -> list[str]:
        """Those of the jobs that may measure."""
        return [job for job in self.jobs if job.startswith("train_epoch")]


def _label(rule: str, about: str) -> str:
    wildcards = re.search(r"^ +wildcards: (.*)$", about, re.M)
    values = re.findall(r"\w+=([^,]+)", wildcards[1]) if wildcards else []
    return " ".join([rule, *values])


class Started:
    """A command under way, alone with its children in its process group."""

    def __init__(self, process: subprocess.Popen, screen: Path, patience_s: float) -> None:
        self.process = process
        self.screen = screen
        self.patience_s = patience_s

    def wait_until(self, happened: Callable[[], object]) -> None:
        """Return once `happened()`; fail, with the screen, when the command ends before."""
        ended = self.process.poll
        wait_for(lambda: happened() or ended() is not None, self.patience_s)
        assert happened(), f"the command ended before:\n{self.screen.read_text()}"

    def end(self) -> Outcome:
        """Wait for the end."""
        return Outcome(self.process.wait(self.patience_s), self.screen.read_text())

    def kill_group(self) -> None:
        """Kill -9 the command and all its children at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def kill_main(self) -> None:
        """Kill -9 the command alone; its children go on."""
        self.process.kill()
        self.process.wait(PATIENCE_S)


class FullCheckout:
    """A folder in which the workflow runs, with its own config/.

    Parameters
    ----------
    workflow : the folder that holds Snakefile and package, when it is another one
    machine : folder for temporary files, hence the machine's lock; inside `root` by default
    """

    profile = "profiles/host"
    style = "snakemake"  # of the screen: all lines, which tests read
    patience_s = PATIENCE_S
    before: tuple[str, ...] = ()  # words in front of each command

    def __init__(
        self, root: Path, workflow: Path | None = None, machine: Path | None = None
    ) -> None:
        self.root = root
        self.workflow = workflow or root
        self.machine = machine or root / "tmp"
        self.machine.mkdir(exist_ok=True)
        self.python = sys.executable
        self.environment: dict[str, str] = {}  # more variables

    def configure(self, drawn: tuple[str, ...] = ("host-pipeline",), **studies: dict) -> None:
        """Select these studies (`_` in a name stands for `-`); draw those of `drawn`.

        A study is its epochs, its blocks as `sweep` and what else it has; see `block`.
        """
        common = {"title": "a test", "backend": "host", "device": "host"}
        named = {name.replace("_", "-"): common | study for name, study in studies.items()}
        self.write_yaml("config/studies.yaml", named)
        self.write_yaml("config/config.yaml", {"studies": list(named)})
        plotting = self.read_yaml("config/plotting.yaml")
        figure = plotting["figures"]["fig02"]
        figure["studies"] = [name for name in drawn if name in named]
        plotting["figures"] = {"fig02": figure}
        self.write_yaml("config/plotting.yaml", plotting)

    def read_yaml(self, path: str):
        return yaml.safe_load((self.root / path).read_text())

    def write_yaml(self, path: str, content) -> None:
        (self.root / path).write_text(yaml.safe_dump(content, sort_keys=False))

    def append(self, path: str, line: str) -> None:
        with open(self.root / path, "a") as handle:
            handle.write(line + "\n")

    def runs(self) -> list[Run]:
        """Return the run table, in order."""
        return list(load_settings(root=self.root).table.runs.values())

    def run_of(self, study: str) -> Run:
        """Return the only run of a study."""
        (run,) = [run for run in self.runs() if study in run.studies]
        return run

    def _snakemake(self) -> list[str]:
        words = [self.python, "-m", "snakemake", "--logger-epochwatt-style", self.style]
        if self.workflow == self.root:
            return [*words, "--profile", self.profile]
        return [
            *(*words, "--profile", str(self.workflow / self.profile)),
            *("--snakefile", str(self.workflow / "Snakefile"), "--directory", str(self.root)),
        ]

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "PYTHONPATH": str(self.workflow / "src"),
            "TMPDIR": str(self.machine),
            **self.environment,
        }

    def command(self, *words: str) -> Outcome:
        """Run a command in the folder, to its end."""
        result = subprocess.run(
            [*self.before, *words],
            cwd=self.root,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.patience_s,
            check=False,
        )
        return Outcome(result.returncode, result.stdout)

    def snakemake(self, *arguments: str) -> Outcome:
        """Run the workflow, to its end."""
        return self.command(*self._snakemake(), *arguments)

    def make(self, *targets: str) -> Outcome:
        """Run the workflow; it has to succeed."""
        outcome = self.snakemake(*targets)
        assert outcome.status == 0, outcome.text
        return outcome

    def epochwatt(self, *arguments: str) -> Outcome:
        """Run the command line tool, to its end."""
        return self.command(self.python, "-m", "epochwatt", *arguments)

    @contextmanager
    def started(self, *arguments: str) -> Iterator[Started]:
        """Start the workflow; what is left of it at the end of the block is killed."""
        screen = self.root / f"screen-{len(list(self.root.glob('screen-*')))}.txt"
        with open(screen, "w") as out:
            process = subprocess.Popen(
                [*self.before, *self._snakemake(), *arguments],
                cwd=self.root,
                env=self._environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                yield Started(process, screen, self.patience_s)
            finally:
                if process_group_lives(process.pid):
                    os.killpg(process.pid, signal.SIGCONT)
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def record(self, run: str, epoch: int) -> dict:
        """Return what the record of an epoch says."""
        return json.loads(self.read(f"measured/{run}/epoch-{epoch}/record.json"))

    def minibatch_s(self, run: str, epoch: int) -> np.ndarray:
        """Return wait, copy and compute of each mini-batch of an epoch, (n, 3)."""
        return np.load(self.root / f"measured/{run}/epoch-{epoch}/minibatches.npy")

    def losses(self, run: Run) -> list[float]:
        """Return the loss of each of a run's epochs."""
        return [self.record(run.id, epoch)["loss"] for epoch in range(run.epochs)]

    def rows(self, run: str) -> list[dict[str, str]]:
        """Return the rows of a run's epochs.csv."""
        return self.table(f"results/runs/{run}/epochs.csv")

    def table(self, path: str) -> list[dict[str, str]]:
        """Return the rows of a CSV file."""
        with open(self.root / path, newline="") as handle:
            return list(csv.DictReader(handle))

    def job_log(self, run: str, first: int, last: int) -> str:
        """Return the log of a measuring job; empty while there is none."""
        path = self.root / f"results/logs/train_epoch/{run}/part-{first}-{last}.log"
        return path.read_text() if path.exists() else ""

    def is_measuring(self, run: str, epoch: int) -> bool:
        """Say whether an attempt at the epoch is under way, or was left."""
        return (self.root / f"measured/{run}/epoch-{epoch}.unfinished/attempt.json").exists()

    def is_measured(self, run: str, epoch: int) -> bool:
        return (self.root / f"measured/{run}/epoch-{epoch}").exists()

    def state(self, *paths: str, content_only: bool = False) -> dict[str, tuple]:
        """Return SHA-256 and (unless `content_only`) time of change of all files below `paths`."""
        tops = [self.root / path for path in paths]
        below = [p for top in tops for p in ([top] if top.is_file() else top.rglob("*"))]
        return {
            str(path.relative_to(self.root)): (
                hashlib.sha256(path.read_bytes()).hexdigest(),
                0 if content_only else path.stat().st_mtime_ns,
            )
            for path in sorted(below)
            if path.is_file() and path.name != ".workflow.lock"  # each start writes its holder
        }

    def epoch_state(self, run: str, *epochs: int) -> dict[str, tuple]:
        """Return the state of what is kept of these epochs, but for their checkpoint.

        Its checksum leaves `SHA256SUMS` when it is removed; those of all other files have to stay.
        """
        state = self.state(*(f"measured/{run}/epoch-{epoch}" for epoch in epochs))
        kept = {path: about for path, about in state.items() if Path(path).stem != "checkpoint"}
        for path in [path for path in kept if Path(path).name == "SHA256SUMS"]:
            lines = (self.root / path).read_text().splitlines()
            kept[path] = tuple(line for line in lines if "checkpoint" not in line)
        return kept

    def leftovers(self) -> list[str]:
        """Return what an attempt or a writer that died left under a temporary name."""
        return [
            str(path)
            for top in ("measured", "results", "data")
            for path in (self.root / top).rglob("*")
            if path.suffix in (".tmp", ".unfinished")
        ]

    def processes(self) -> dict[int, tuple[int, list[str]]]:
        """Return parent and words of each process that works in this folder, by its id."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(entry / "cwd") == str(self.root):
                    parent = re.search(rb"^PPid:\s*(\d+)", (entry / "status").read_bytes(), re.M)
                    words = os.fsdecode((entry / "cmdline").read_bytes()).split("\0")
                    found[int(entry.name)] = int(parent[1]), words
            except OSError:  # it ended meanwhile
                continue
        return found

    def trainers(self, run: str) -> list[int]:
        """Return the ids of the processes that train a run: the training one, then its workers."""
        parents = {
            pid: parent
            for pid, (parent, words) in self.processes().items()
            if "epochwatt.board.training" in words and run in words
        }
        return sorted(parents, key=lambda pid: (parents[pid] in parents, pid))


def wait_for(happened: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Return once `happened()`."""
    deadline_s = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < deadline_s, f"nothing happened in {patience_s:g} s"
        time.sleep(0.002)


def process_group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def block(**factors) -> dict:
    """Return a block of a sweep: LeNet on few digits, unless `factors` say otherwise."""
    return {
        "model": "lenet",
        "dataset_scale": TINY,
        "num_workers": 0,
        "batch_size": 64,
    } | factors


def configure_two_studies(
    checkout: FullCheckout, drawn_batch: int = 64, beside_batch: int = 128, beside_epochs: int = 1
) -> None:
    """Select the studies of `finished`, changed where the arguments say so."""
    checkout.configure(
        host_pipeline={"epochs": 2, "sweep": [block(batch_size=drawn_batch)]},
        beside={"epochs": beside_epochs, "sweep": [block(batch_size=beside_batch)]},
    )


def configure_long_runs(checkout: FullCheckout, *epochs_per_job: int) -> None:
    """Select runs of three epochs that can be stopped inside; they differ in their job length."""
    checkout.configure(
        host_pipeline={
            "epochs": 3,
            "sweep": [
                block(dataset_scale=STOPPABLE, batch_size=16, epochs_per_job=length)
                for length in epochs_per_job
            ],
        }
    )
