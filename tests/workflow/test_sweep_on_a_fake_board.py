"""The job of a sweep on a fake AGX Orin: chunks, kills, flags, and the board as it was before."""

import itertools
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_board import make_board, settings_of
from full_checkout import wait_for

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.records.mode_folder import SweepFolder, mode_name
from epochwatt.columns import FLAG_EFFECTS
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe
from epochwatt.epochs.board_flags import board_flags
from epochwatt.epochs.collect import is_valid
from epochwatt.epochs.telemetry import energies, read_all, telemetry_flags

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
SWEEP = "sweep-fake-orin-lenet-p1-0123abcd"
SCALE = 0.1  # 180 digits: passes of 12 mini-batches
GRID = [
    {"cores": cores, "cpu_mhz": cpu_mhz, "gpu_mhz": gpu_mhz, "emc_mhz": 2133.0}
    for cores, cpu_mhz, gpu_mhz in itertools.product(
        (4, 8, 12), (729.6, 1113.6, 1497.6, 2201.6), (114.75, 318.75, 624.75, 930.75, 1300.5)
    )
]
BRIEF = {"idle_s": 0.0, "patience_s": 0.1, "power_readings": 1, "minibatches": 4}
DETECTING = {"idle_s": 2.0, "patience_s": 20.0, "power_readings": 5, "minibatches": 40}


class FakeSweep:
    """A sweep on a fake board, and the command that measures it."""

    def __init__(self, folder: Path, procedure: dict) -> None:
        self.board = make_board(folder / "orin", "agx_orin-jp5")
        self.folder = folder
        self.modes = SweepFolder(str(folder / "measured"), SWEEP)
        data_recipe = recipe("mnist", "digits", SCALE)
        make_dataset(folder / "data" / folder_name("mnist", "digits", SCALE), data_recipe)
        self.factors = {
            **{"backend": "fake", "device": "orin", "instance": "d1", "model": "lenet"},
            **{"dataset": "mnist", "dataset_source": "digits", "dataset_scale": SCALE},
            **{"storage": "disk", "num_workers": 0, "power_mode": "sweep", "torch_threads": 1},
            **{"recipe": data_recipe, "procedure": procedure},
            "board_settings": {"power_source": "sysfs"},
        }
        medium = {"root": str(folder / "data"), "mount": "", "block_device": ""}
        self.machine = settings_of(self.board.root, "agx_orin", storage=medium)

    def command(self, modes: list[dict], first: int, last: int) -> list[str]:
        """Return the words that measure a chunk."""
        path = self.folder / "modes.json"
        path.write_text(json.dumps(modes), "utf-8")
        words = [sys.executable, "-m", "epochwatt.board.training.sweep", "--sweep", SWEEP]
        words += ["--factors", json.dumps(self.factors), "--modes", str(path)]
        words += ["--first", str(first), "--last", str(last), "--measured", self.modes.root]
        words += ["--data-root", str(self.folder / "data"), "--machine", json.dumps(self.machine)]
        return [*words, "--receipt", str(self.folder / f"chunk-{first}.json")]

    @contextmanager
    def started(self, modes: list[dict], first: int, last: int):
        """Start the job of a chunk; it is ended at the latest with the block."""
        environment = {
            **os.environ,
            **{"PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(self.folder)},
            **{"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        }
        with open(self.folder / f"log-{first}", "ab") as log:
            job = subprocess.Popen(self.command(modes, first, last), env=environment, stderr=log)
        try:
            yield job
        finally:
            job.kill()
            job.wait()

    def run(self, modes: list[dict], first: int, last: int) -> int:
        """Measure a chunk; return the exit status."""
        with self.started(modes, first, last) as job:
            return job.wait()

    def log(self, first: int) -> str:
        """Return what the jobs of a chunk said."""
        return (self.folder / f"log-{first}").read_text("utf-8")

    def flags(self, mode: dict) -> set[str]:
        """Return the flags of a mode, those that its samples give included."""
        record = self.modes.verify(mode)
        samples = read_all(record)
        flags = set(record.meta["flags"]) | board_flags(record, samples) | telemetry_flags(record)
        return flags.union(*(scope["flags"] for scope in energies(record, samples)))


@pytest.fixture
def sweep(tmp_path_factory, request):
    """A sweep with the numbers of the procedure that the test asks for."""
    return FakeSweep(tmp_path_factory.mktemp("s"), getattr(request, "param", BRIEF))


def test_modes_of_a_chunk_killed_twice_are_each_measured_once(sweep):
    """Sixty modes of a fake AGX Orin are swept in test_sweeps.py, through Snakemake."""
    grid, first, last = GRID[::10], 1, 4
    chunk = grid[first : last + 1]
    before = sweep.board.snapshot()
    seen: dict[str, float] = {}

    def note() -> None:
        """Keep when each mode was measured: a second time would be another moment."""
        for mode in grid:
            if sweep.modes.has(mode):
                when = sweep.modes.read(mode).meta["t_start_unix_s"]
                assert seen.setdefault(mode_name(mode), when) == when

    with sweep.board.live():
        for wanted, how in ((1, signal.SIGTERM), (2, signal.SIGKILL)):
            with sweep.started(grid, first, last) as job:
                wait_for(lambda: len(sweep.modes.measured()) >= wanted)  # noqa: B023
                job.send_signal(how)
                assert job.wait() != 0
            put_back = sweep.board.snapshot() == before
            assert put_back == (how == signal.SIGTERM)
            note()
            assert wanted <= len(seen) < len(chunk)
        assert sweep.run(grid, first, last) == 0
    assert sweep.board.snapshot() == before
    note()
    assert set(sweep.modes.measured()) == set(seen) == set(map(mode_name, chunk))
    assert sweep.log(first).count("a job before this one was killed") == 1
    for mode in chunk:
        record = sweep.modes.verify(mode)
        for key, wanted in mode.items():
            assert record.meta["board"]["power_mode"]["read_back"][key] >= 0.95 * wanted
        assert is_valid(sweep.flags(mode), FLAG_EFFECTS), sweep.flags(mode)
    receipt = json.loads((sweep.folder / f"chunk-{first}.json").read_text("utf-8"))
    assert [entry["mode"] for entry in receipt["modes"]] == list(map(mode_name, chunk))


@pytest.mark.thorough
@pytest.mark.parametrize("sweep", [DETECTING], indirect=True)
def test_power_is_seen_to_follow_and_a_clock_held_lower_makes_its_mode_invalid(sweep):
    low, high = GRID[57], GRID[59]  # of 12 cores at their highest clock: the step is large
    before = sweep.board.snapshot()
    sweep.board.set_fault("gpu_held", 0.5)
    with sweep.board.live():
        assert sweep.run([low, high], 0, 1) == 0
    assert sweep.board.snapshot() == before
    records = [sweep.modes.verify(mode) for mode in (low, high)]
    for record in records:
        assert "transition_not_found" not in record.meta["flags"]
        assert record.meta["transition"]["level_w"] > record.meta["transition"]["before_w"]
        assert record.meta["n_minibatches"] >= 40
        assert record.meta["power_readings"] >= 5
        (scope,) = energies(record, read_all(record))
        window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
        watts = sweep.board.energy_j(*window) / (window[1] - window[0])
        assert scope["power_mean_w"] == pytest.approx(watts, rel=0.05)
        assert scope["power_scope"] == "module"
    assert is_valid(sweep.flags(low), FLAG_EFFECTS)
    assert records[1].meta["board"]["power_mode"]["unmet"].keys() == {"gpu_mhz"}
    assert "clock_below_request" in records[1].meta["flags"]
    assert not is_valid(sweep.flags(high), FLAG_EFFECTS)
