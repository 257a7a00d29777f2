"""Taking measurements back: into the trash, with the receipts that name them and no others."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from epochwatt.board.records.run_folder import write_receipt
from epochwatt.errors import EpochwattError
from epochwatt.study.discard import discard, forget_lost


@pytest.fixture
def run(checkout, measure):
    """A run with epochs 0..3 measured and receipts 0-1, 2-2, 3-3."""
    wanted = checkout.runs[0]
    for epoch in range(4):
        folder = measure(wanted, epoch)
    for first, last in ((0, 1), (2, 2), (3, 3)):
        write_receipt(f"results/runs/{wanted.id}/part-{first}-{last}.json", folder, first, last)
    Path(f"results/runs/{wanted.id}/epochs.csv").touch()
    return wanted


def receipts(run):
    return sorted(p.name for p in Path("results/runs", run.id).glob("*.json"))


def measured(run):
    return sorted(p.name for p in Path("measured", run.id).iterdir())


def test_epoch_moves_to_the_trash_whole(run):
    (moved,) = discard("measured", run.id, 2)
    names = ["SHA256SUMS", "minibatches.npy", "record.json"]
    assert sorted(p.name for p in Path(moved).iterdir()) == names
    assert Path(moved).is_relative_to("measured/.trash")
    assert measured(run) == ["epoch-0", "epoch-1", "epoch-3"]


@pytest.mark.parametrize(
    ("epoch", "left"),
    [
        (0, ["part-2-2.json", "part-3-3.json"]),
        (1, ["part-2-2.json", "part-3-3.json"]),
        (2, ["part-0-1.json", "part-3-3.json"]),
    ],
)
def test_receipts_that_name_the_epoch_go_and_no_others(epoch, left, run):
    discard("measured", run.id, epoch)
    assert receipts(run) == left


def test_epochs_discarded_in_the_same_second_both_reach_the_trash(run, monkeypatch):
    monkeypatch.setattr("time.strftime", lambda form: "20260101T000000")
    paths = discard("measured", run.id, 2) + discard("measured", run.id, 3)
    assert [Path(path, "record.json").exists() for path in paths] == [True, True]


def test_no_receipt_outlives_its_epoch_if_we_die_in_between(run, monkeypatch):
    """A receipt without its record would make Snakemake believe that the epoch is measured."""

    def die(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.rename", die)
    with pytest.raises(KeyboardInterrupt):
        discard("measured", run.id, 2)
    assert "part-2-2.json" not in receipts(run)


def test_idle_power_goes_with_its_receipt(checkout):
    idle = "idle-fake-agx-d1-g-dvfsoff-p1-0123abcd"
    folder = Path("measured", idle, "idle")
    folder.mkdir(parents=True)
    (folder / "record.json").write_text("{}", "utf-8")
    receipt = Path(f"results/idle/{idle}.json")
    receipt.parent.mkdir(parents=True)
    receipt.touch()
    (moved,) = discard("measured", idle, None)
    assert not receipt.exists()
    assert not Path("measured", idle).exists()
    assert (Path(moved) / "record.json").read_text("utf-8") == "{}"


@pytest.mark.parametrize("name", ["../outside", "/etc", "..", ".trash", "a/b", "", "A B"])
@pytest.mark.parametrize("kind", ["epoch-0", "idle"])
def test_what_is_no_id_leads_nowhere(checkout, tmp_path, name, kind):
    outside = Path("measured", name or "x", kind)
    if not name.startswith(("/", "..")):
        outside.mkdir(parents=True)
    else:
        outside = Path("outside", kind)
        outside.mkdir(parents=True)
        Path("measured").mkdir()
    with pytest.raises(EpochwattError, match="is not the id of a run"):
        discard("measured", name, None)
    assert outside.is_dir()


def test_receipt_of_an_epoch_that_was_taken_away_by_hand_goes(run):
    assert forget_lost([run]) == []
    shutil.rmtree(f"measured/{run.id}/epoch-1")
    own = dataclasses.replace(run, factors={**run.factors, "epochs_per_job": 2}, epochs=4)
    (line,) = forget_lost([own])
    assert line == f"{run.id}: epoch 1 is gone from measured/ and is measured again"
    assert receipts(run) == ["part-2-2.json", "part-3-3.json"]
