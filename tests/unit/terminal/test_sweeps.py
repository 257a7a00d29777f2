"""Sweeps in the bar: how long chunks take, which mode is under way, how many are kept."""

import pytest

from snakemake_logger_plugin_epochwatt.progress import Progress

SWEEP, GRID = "fake-orin-d1-lenet", "0a1b2c3d"


@pytest.fixture
def progress(tmp_path, monkeypatch):
    """What is known at the start of two chunks of two modes each."""
    monkeypatch.chdir(tmp_path)
    modes = [f"measured/{SWEEP}/mode-c{cores}-x-x-x" for cores in range(1, 5)]
    parts = {(0, 1): 30.0, (2, 3): 50.0}
    sweep = {"title": "threads", "modes": modes, "parts": parts}
    progress = Progress(cores=2)
    progress.plan({"measure_modes": 2, "collect_sweep": 1, "sweeps": 1})
    progress.expect({"runs": {}, "sweeps": {f"{SWEEP}/{GRID}": sweep}, "slowness": 1.0})
    return progress


def start(progress, first, log):
    """Start the job of a chunk."""
    words = {"sweep": SWEEP, "grid": GRID, "first": str(first), "last": str(first + 1)}
    progress.started(first, "measure_modes", words, [str(log)])
    return progress.look()


def test_each_chunk_counts_with_its_own_estimate(progress, tmp_path):
    assert progress.headline() == "4 jobs: about 1 min 21 s on 2 cores"
    start(progress, 0, tmp_path / "0.log")
    assert progress.left_s() == pytest.approx(80.7, abs=1.0)
    progress.finished(0)
    assert progress.left_s() < 51.0  # it went faster than was expected


def test_the_bar_names_the_mode_that_was_measured_last(progress, tmp_path):
    log = tmp_path / "0.log"
    job = start(progress, 0, log)
    assert progress.measuring()
    assert progress.epoch_line(job) == "threads: modes 1 to 2"
    log.write_text("mode 1 of 4: mode-c1-x-x-x: 12.3 ms, 8.1 W\nwaiting for the lock\n", "utf-8")
    line = "threads: mode 1 of 4, mode-c1-x-x-x: 12.3 ms, 8.1 W"
    assert progress.epoch_line(progress.look()) == line
    log.write_text("mode 2 of 4: mode-c2-x-x-x: 12.3 ms\n", "utf-8")
    assert progress.left_s() == pytest.approx(50.7, abs=1.0)  # nothing is left of the first chunk


def test_modes_that_are_kept_are_counted(progress, tmp_path):
    assert progress.modes_kept() == (0, 4)
    (tmp_path / "measured" / SWEEP / "mode-c3-x-x-x").mkdir(parents=True)
    assert progress.modes_kept() == (1, 4)
