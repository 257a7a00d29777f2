"""The campaigns of faults and of damaged inputs, in short: nothing is lost, no reader crashes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = (
    *("flip record.json", "truncate samples-*.csv", "delete checkpoint", "zero manifest.json"),
    *("damaged attempt", "kill -9 group", "power cut", "SIGINT trainer", "EIO of a call"),
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("campaign", "words"), [("faults", ["1", "--only", *FAULTS]), ("fuzz", ["300"])]
)
def test_measurements_recover_and_readers_take_damaged_inputs(campaign, words):
    command = [sys.executable, "-m", f"benchmarks.{campaign}", "--seed", "20261122", "--count"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
