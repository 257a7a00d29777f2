"""What may go wrong in a training script of others: the training goes on, the record is right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import stranger

pytestmark = pytest.mark.slow
N = stranger.N
WHOLE = (N, set(), True)  # mini-batches, flags that are there, and whether a record is
CUT = {"break_": 3, "error": 3, "ctrl_c": 3}  # whole mini-batches of the first epoch
EXPECTED = {
    **{case.__name__: [WHOLE, WHOLE] for case in stranger.CASES},
    **{name: [(n, {"left_early"}, True), WHOLE] for name, n in CUT.items()},
    "killed_sampler": [(N, {"sampler_lost"}, True)] * 2,
    "full_disk": [(N, {"sampler_lost"}, False), WHOLE],
    "read_only": [(N, set(), False)] * 2,
    "two_at_once": [WHOLE] * 4,
    "cell_run_twice": [WHOLE] * 4,
    "generator": [WHOLE],
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the script says of each case; a disk of 256 KiB and a read-only one, where root may."""
    folder = tmp_path_factory.mktemp("stranger")
    disks = {"full_disk": "size=256k", "read_only": "size=256k,ro"}
    mounted = []
    for name, options in disks.items():
        (folder / name).mkdir()
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder / name)]
        if os.geteuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0:
            mounted.append(name)
    root = Path(__file__).resolve().parents[3]
    try:
        done = subprocess.run(
            [sys.executable, stranger.__file__, *(str(folder / name) for name in disks)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{root}/src:{root}"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    finally:
        for name in mounted:
            subprocess.run(["umount", str(folder / name)], check=True)
    lines = map(json.loads, done.stdout.splitlines())
    return {
        line["case"]: line for line in lines if line["case"] in mounted or line["case"] not in disks
    }


@pytest.mark.parametrize("case", EXPECTED)
def test_training_goes_on_and_the_record_is_right_or_absent(told, case):
    if case not in told:
        pytest.skip("no file system can be mounted here")
    found = told[case]
    assert "error" not in found, found["error"]
    assert found["is_equal"]
    assert len(found["epochs"]) == len(EXPECTED[case])
    for epoch, (n, flags, is_recorded) in zip(found["epochs"], EXPECTED[case], strict=True):
        assert epoch["n"] == n
        assert flags & {"left_early", "sampler_lost"} == set(epoch["flags"]) & {
            "left_early",
            "sampler_lost",
        }
        assert epoch["recorded"] == (n if is_recorded else None)
        assert epoch["parts_s"] == pytest.approx(epoch["e2e_s"], rel=1e-6)
        assert not (flags & {"sampler_lost"} and epoch["energy_wh"])
    if case == "nothing":
        assert any(epoch["energy_wh"] for epoch in found["epochs"])
