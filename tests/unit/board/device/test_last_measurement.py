"""Whether an epoch directly follows the one before it, and if not, why."""

import json
import os
import time

import pytest

from epochwatt.board.device import host, notes

PREVIOUS = {"measurement_id": "a", "t_end_unix_s": 1000.0}


@pytest.fixture
def previous(monkeypatch):
    """The record of an epoch that ended 60 s ago, on this machine, since its last start."""
    monkeypatch.setattr("time.time", lambda: 1060.0)
    return dict(PREVIOUS, boot_id=host.boot_id())


def test_epoch_follows_unless_another_was_measured_in_between(previous):
    notes.remember("a", "run-a", 0)
    assert notes.interruption(previous) is None
    notes.remember("b", "run-b", 4)
    reason = "epoch 4 of run-b was measured in between"
    assert notes.interruption(previous) == {"reason": reason, "gap_s": 60.0}


def test_all_users_of_the_machine_may_note_their_measurement(machine_tmp, previous, as_stranger):
    notes.remember("a", "run-a", 0)
    machine_tmp.chmod(0o1777)
    as_stranger(machine_tmp, notes.remember, "b", "run-b", 1)
    assert "epoch 1 of run-b" in notes.interruption(previous)["reason"]
    notes.remember("a", "run-a", 0)
    assert notes.interruption(previous) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folder")
def test_note_that_its_user_did_not_write_is_not_believed(machine_tmp, previous):
    """Somebody makes the folder of another user and says there what was measured."""
    notes.remember("a", "run-a", 0)
    folder = machine_tmp / "epochwatt-4711"
    folder.mkdir()
    lie = {"boot_id": host.boot_id(), "t_mono_s": time.monotonic(), "run": "lie", "epoch": 0}
    (folder / "last-measurement.json").write_text(json.dumps(lie))
    assert notes.interruption(previous) is None


@pytest.mark.parametrize("text", ["[]", '{"run": 1}', "[" * 5000, ""])
def test_note_of_another_form_is_no_traceback(previous, machine_tmp, text):
    notes.remember("b", "a-run", 0)
    path = machine_tmp / f"epochwatt-{os.geteuid()}" / "last-measurement.json"
    path.write_text(text, "utf-8")
    assert "not known" in notes.interruption(previous)["reason"]
