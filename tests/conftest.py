"""What unit, rule and workflow tests share: a small checkout, its measurements, its tables."""

import csv
import fcntl
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import yaml
from xdist.scheduler import LoadFileScheduling

from epochwatt import columns
from epochwatt.board.device import host
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.study.settings import Settings, load_settings

REPOSITORY = Path(__file__).resolve().parents[1]

# Whoever starts the tests in the background (nohup, a CI runner) hands down ignored signals, and
# what ignores a signal by wish goes on ignoring it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# an example that takes long on a busy machine is no error
hypothesis.settings.register_profile(
    "untimed",
    deadline=None,
    max_examples=100 if os.environ.get("THOROUGH") else 25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("untimed")

# -- two workers (`make test`) -----------------------------------------------------------------

# Files whose tests take long begin first, so that both workers end at about the same time.
FIRST = ("tests/workflow", "tests/rules", "tests/unit/twin")
# One worker has them all: they share `finished`, which is built once.
SHARING = (
    *("test_index_browser", "test_not_made", "test_plan_and_discard", "test_report_browser"),
    *("test_reruns", "test_terminal"),
)


class TogetherScheduling(LoadFileScheduling):
    """Gives a worker whole files, and files that share a costly fixture to the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        return "sharing" if Path(path).stem in SHARING else path


def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False  # the order is `FIRST`
    return TogetherScheduling(config, log)


def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):
        first = [REPOSITORY / folder for folder in FIRST]
        items.sort(
            key=lambda item: next(
                (n for n, folder in enumerate(first) if folder in item.path.parents), len(first)
            )
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Run a test marked `alone` while the other worker waits, fixtures included."""
    with ExitStack() as stack:
        if hasattr(item.config, "workerinput"):
            folder = item.config.cache.mkdir("workers")
            how = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
            with _locked(folder / "next", fcntl.LOCK_EX):  # else `alone` might wait for ever
                stack.enter_context(_locked(folder / "running", how))
        return (yield)


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, how)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # forked children may have it open, too


# -- texts of the terminal -----------------------------------------------------------------------

TERMINAL = REPOSITORY / "tests/golden/terminal"


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the texts in tests/golden/terminal"
    )


@pytest.fixture
def golden(request, tmp_path):
    """Return a function that compares what a command prints with its file in tests/golden/terminal.

    A file has a block for each title, behind a line `$ title`. The test's folder is written as TMP.
    """

    def compare(command, title, text):
        path = TERMINAL / f"{command}.txt"
        texts = {}
        if path.exists():
            for block in path.read_text("utf-8").split("\n$ "):
                name, _, content = block.removeprefix("$ ").partition("\n")
                texts[name] = content.rstrip("\n")
        shown = "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")
        shown = shown.replace(str(tmp_path), "TMP")
        if request.config.getoption("--update-golden"):
            texts[title] = shown
            path.parent.mkdir(parents=True, exist_ok=True)
            blocks = [f"$ {name}\n{content}\n" for name, content in texts.items()]
            path.write_text("\n".join(blocks), "utf-8")
        assert shown == texts.get(title), f"if that is meant: pytest -n0 --update-golden ({path})"

    return compare


# -- a small checkout --------------------------------------------------------------------------

CONFIG = {
    "config.yaml": "studies: [small]\n",
    "studies.yaml": """\
small:
  title: two numbers of workers, two batch sizes
  backend: host
  device: host
  epochs: 3
  sweep:
    - model: lenet
      dataset_scale: 8
      num_workers: [0, 2]
      batch_size: [16, 32]
""",
    "devices/host.yaml": """\
title: a test's machine
backends: [host]
instances: [local, second]
storage:
  disk: {title: a disk, root: data}
  flash: {title: a memory card, root: flash/sets}
power_modes:
  asis: {}
  low: {cores: 1, cpu_mhz: 800}
dvfs: ["on"]
torch_threads: 1
containers: {box: {engine: podman, rootfs: /}, again: {engine: none}}
""",
    "workloads.yaml": """\
lenet:
  title: LeNet-5
  dataset: mnist
  dataset_source: digits
  guess_samples_per_s: 7188
""",
    "exclusions.yaml": "[]\n",
    "idle_simulated.yaml": "{}\n",
    "plotting.yaml": """\
palette:
  {stall: "#009E73", compute: "#0072B2", overhead: "#BBBBBB", missing: "#777777",
   epoch_0: "#D55E00", epoch_1_plus: "#009E73", published: "#000000"}
figures:
  fig02:
    draw: epochwatt.figures.sigmetrics2023.fig02.draw
    studies: [small]
    panels:
      fig02a: {title: time by workers, width_in: 5.0, height_in: 3.2}
      fig02b: {title: stall by epoch, width_in: 5.0, height_in: 3.2}
      fig02c: {title: energy by epoch, width_in: 5.0, height_in: 3.2}
""",
}


# files of config/ that it has as they are shipped
SHIPPED = (
    "flags.yaml",
    "claims.yaml",
    "paper.mplstyle",
    "published/measurements.csv",
    "published/relations.csv",
    "published/takeaways.csv",
    "published/statements.csv",
    "twin/folds.csv",
    "twin/seen.csv",
)


class Checkout:
    """A folder with the configuration of one small study; a test changes what it is about."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name, text in CONFIG.items():
            self.write(name, text)
        for folder in ("published", "twin"):
            (path / "config" / folder).mkdir()
        for name in SHIPPED:
            shutil.copy(REPOSITORY / "config" / name, path / "config" / name)

    def write(self, name: str, content: object) -> None:
        """Write a file of config/, from text or from a value that becomes YAML."""
        path = self.path / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        path.write_text(text, encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a piece of text that stands in a file of config/."""
        text = (self.path / "config" / name).read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {name}"
        self.write(name, text.replace(old, new))

    def sweep(self, *blocks: dict, **study: object) -> None:
        """Replace the one study by these blocks of factors (LeNet unless they say otherwise)."""
        named = {"title": "swept by a test", "backend": "host", "device": "host", "epochs": 3}
        sweep = [{"model": "lenet", **block} for block in blocks]
        self.write("studies.yaml", {"small": {**named, "sweep": sweep, **study}})

    def settings(self) -> Settings:
        """Read the configuration as it stands now."""
        return load_settings(root=self.path)

    @property
    def runs(self) -> list:
        """Its runs, in the order in which they are measured."""
        return list(self.settings().table.runs.values())

    @property
    def ids(self) -> list[str]:
        """The ids of its runs, in order."""
        return [run.id for run in self.runs]


@pytest.fixture(scope="session")
def make_checkout():
    """Return a function that makes a small checkout in an empty folder."""
    return Checkout


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout, which is the working folder: 4 runs of 3 epochs, nothing measured."""
    path = tmp_path / "checkout"
    path.mkdir()
    monkeypatch.chdir(path)
    return Checkout(path)


@pytest.fixture(scope="session")
def measure():
    """Return a function that puts a record of a `Run` into measured/ of a folder.

    Every epoch takes 4 s: wait 1.0, copy 0.5, compute 2.25, overhead 0.25 s in two mini-batches.
    """

    def write(run, epoch, root="measured", **changes):
        minibatch_s = np.array([[0.75, 0.25, 1.0], [0.25, 0.25, 1.25]], dtype=np.float32)
        meta = {
            **{"run": run.id, "epoch": epoch, "factors": run.factors, "flags": []},
            **{"schema_version": columns.SCHEMA_VERSION, "protocol": columns.PROTOCOL},
            **{"t_start_mono_s": 10.0, "t_end_mono_s": 14.0, "e2e_s": 4.0},
            **{"t_start_unix_s": 1.75e9 + 10 * epoch, "t_end_unix_s": 1.75e9 + 10 * epoch + 4},
            **{"wait_s": 1.0, "copy_s": 0.5, "compute_s": 2.25},
            **{"fetch_s": 0.125, "preprocess_s": 0.5, "n_minibatches": 2, "n_samples": 32},
            **{"loss": 2.0 - 0.5 * epoch, "timing_method": "host_clock", "cold_process": True},
            **{"machine": {"cpu_model": "one"}, "software": {"torch": "2.9.1"}},
            **{"power_scope": None, "energy_method": None, "sampler_period_s": None},
            **{"measurement_id": f"{run.id}/{epoch}", "boot_id": host.boot_id()},
            **{"cache": {"before_pct": None, "after_pct": None, "action": None}},
            **changes,
        }
        folder = RunFolder(str(root), run.id)
        folder.begin(epoch)
        folder.finish(epoch, meta, minibatch_s)
        return folder

    return write


@pytest.fixture(scope="session")
def measure_mode():
    """Return a function that puts a record of a mode of a `Sweep` into measured/ of a folder.

    Five mini-batches take 4 s: wait 1.25, copy 0.5, compute 2 s; the mode took 6 s.
    """

    def write(sweep, mode, root="measured", **changes):
        minibatch_s = np.array([[0.25, 0.1, c] for c in (0.2, 0.3, 0.4, 0.5, 0.6)], np.float32)
        meta = {
            **{"sweep": sweep.id, "mode": mode, "task": "train", "repeat": 0},
            **{"factors": sweep.run.factors, "flags": [], "took_s": 6.0},
            **{"schema_version": columns.SCHEMA_VERSION, "protocol": columns.PROTOCOL},
            **{"t_start_mono_s": 10.0, "t_end_mono_s": 14.0, "e2e_s": 4.0},
            **{"t_start_unix_s": 1.75e9, "t_end_unix_s": 1.75e9 + 4},
            **{"wait_s": 1.25, "copy_s": 0.5, "compute_s": 2.0},
            **{"n_minibatches": 5, "n_samples": 80, "loss": 2.0, "timing_method": "host_clock"},
            **{"machine": {"cpu_model": "one"}, "software": {"torch": "2.9.1"}},
            **{"cold_process": True, "boot_id": host.boot_id(), "measurement_id": sweep.id},
            **{"power_scope": None, "energy_method": None, "sampler_period_s": None},
            **changes,
        }
        folder = SweepFolder(str(root), sweep.id)
        folder.open_attempt(mode)
        folder.finish(mode, meta, minibatch_s)
        return folder

    return write


@pytest.fixture(scope="session")
def write_epochs():
    """Return a function that writes results/runs/{run}/epochs.csv of a run; gives its path.

    Each epoch is a dict of what differs from: E2E 4, wait 1, copy 0.5, compute 2.25 s, valid.
    """

    def write(run_id, factors, *epochs, root="."):
        rows = []
        for number, changes in enumerate(epochs):
            row = {"e2e_s": 4.0, "wait_s": 1.0, "copy_s": 0.5, "compute_s": 2.25, **changes}
            stall_s = row["wait_s"] + row["copy_s"]
            rows.append(
                {
                    **dict.fromkeys(columns.names(columns.RUN_EPOCH_COLUMNS)),
                    **{k: factors[k] for k in columns.FACTOR_NAMES},
                    **{"run": run_id, "epoch": number, "protocol": 1, "schema_version": 1},
                    **{"t_start_unix_s": 1.75e9, "t_end_unix_s": 1.75e9 + 4, "loss": 0.5},
                    **{"n_minibatches": 2, "n_samples": 32, "timing_method": "host_clock"},
                    **{"stall_s": stall_s, "overhead_s": row["e2e_s"] - stall_s - row["compute_s"]},
                    **{"cold_process": False, "valid": True, "flags": set(), **row},
                }
            )
            rows[-1]["flags"] = " ".join(sorted(rows[-1]["flags"]))
        path = Path(root) / "results/runs" / run_id / "epochs.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, columns.names(columns.RUN_EPOCH_COLUMNS))
            writer.writeheader()
            writer.writerows(rows)
        return str(path)

    return write
