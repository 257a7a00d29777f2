"""The folder of a mode: its name, whole or absent, damage named, nothing else taken for one."""

from pathlib import Path

import numpy as np
import pytest

from epochwatt.board.records.mode_folder import RECORD, SweepFolder, mode_name
from epochwatt.errors import DamagedError, RecordError

MODE = {"cores": 12, "cpu_mhz": 2201.6, "gpu_mhz": 1300.5, "emc_mhz": 3199.0}
OTHER = {"cores": 2}
TIMES_S = np.array([[0.5, 0.25, 1.0], [0.125, 0.25, 1.5]], dtype=np.float32)


@pytest.fixture
def sweep(tmp_path):
    """A sweep without a mode."""
    return SweepFolder(str(tmp_path / "measured"), "sweep-a")


@pytest.fixture
def mode_meta(make_meta):
    """Return a function that makes the record of a mode from that of an epoch."""

    def make(place=MODE, **changes):
        meta = make_meta(0, TIMES_S)
        for key in ("run", "epoch", "fetch_s", "preprocess_s"):
            del meta[key]
        meta.update(sweep="sweep-a", mode=place, task="train", repeat=0, flags=[])
        return {**meta, **changes}

    return make


@pytest.fixture
def add(sweep, mode_meta):
    """Return a function that measures a mode."""

    def finish(place=MODE, **changes):
        Path(sweep.open_attempt(place), "samples-x.csv").write_text("t_mono_s,t_unix_s,a\n1,2,3\n")
        sweep.finish(place, mode_meta(place, **changes), TIMES_S)

    return finish


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        (MODE, "mode-c12-2201.6-1300.5-3199"),
        (
            {"cores": 4, "cpu_mhz": 729.6, "gpu_mhz": 114.75, "emc_mhz": 665.6},
            "mode-c4-729.6-114.75-665.6",
        ),
        ({"cores": 2}, "mode-c2-x-x-x"),
        ({"gpu_mhz": 318.75, "cores": None}, "mode-cx-x-318.75-x"),
        ({}, "mode-cx-x-x-x"),
    ],
)
def test_name_is_made_of_the_numbers(mode, name):
    assert mode_name(mode) == name
    assert mode_name({k: float(v) for k, v in mode.items() if v is not None}) == name


def test_finished_mode_is_read_back(sweep, add):
    add()
    record = sweep.read(MODE)
    assert (record.minibatch_s == TIMES_S).all()
    assert record.meta["mode"] == MODE
    assert record.folder == sweep.path_of(MODE)
    assert sweep.has(MODE)
    assert sweep.verify(MODE).meta == record.meta


@pytest.mark.parametrize("name", [RECORD, "minibatches.npy", "samples-x.csv", "SHA256SUMS"])
def test_damage_is_found_wherever_it_is(sweep, add, name):
    add()
    path = Path(sweep.path_of(MODE), name)
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError) as caught:
        sweep.verify(MODE)
    assert name in str(caught.value) or name == "SHA256SUMS"  # a line of it then is another file's
    path.unlink()
    with pytest.raises(DamagedError):
        sweep.verify(MODE)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"sweep": "sweep-b"}, "renamed by hand"),
        ({"mode": OTHER}, "renamed by hand"),
        ({"schema_version": 999}, "schema version 999"),
        ({"mode": {"cores": "two"}}, "mode.cores"),
        ({"flags": None}, "flags"),
        ({"n_minibatches": 3}, "the record says"),
        ({"wait_s": 9.0}, "wait_s sums to"),
    ],
)
def test_record_that_cannot_be_right_is_refused(sweep, add, changes, fault):
    add(**changes)
    with pytest.raises(RecordError, match=fault) as caught:
        sweep.read(MODE)
    assert sweep.path_of(MODE) in str(caught.value)
