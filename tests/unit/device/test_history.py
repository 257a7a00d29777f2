"""Whether an epoch directly follows the one before it, and if not, why."""

import os
import stat

import pytest

from epochwatt.device import history, host
from epochwatt.device.locks import machine_folder

PREVIOUS = {"measurement_id": "a", "t_end_unix_s": 1000.0}


@pytest.fixture
def previous(monkeypatch):
    """The record of an epoch that ended 60 s ago, on this machine, since its last start."""
    monkeypatch.setattr("time.time", lambda: 1060.0)
    return dict(PREVIOUS, boot_id=host.boot_id())


def test_epoch_follows_when_the_one_before_was_the_last_measurement(previous):
    history.remember("a", "run-a", 0)
    assert history.interruption(previous) is None


def test_other_measurement_in_between_is_named_with_its_gap(previous):
    history.remember("a", "run-a", 0)
    history.remember("b", "run-b", 4)
    reason = "epoch 4 of run-b was measured in between"
    assert history.interruption(previous) == {"reason": reason, "gap_s": 60.0}


def test_restarted_machine_interrupts_even_when_nothing_was_measured(previous):
    history.remember("a", "run-a", 0)
    interruption = history.interruption(dict(previous, boot_id="another"))
    assert "restarted" in interruption["reason"]
    assert interruption["gap_s"] == 60.0


@pytest.mark.parametrize("content", [None, b"", b"{"])
def test_what_is_not_known_counts_as_an_interruption(previous, content):
    history.remember("a", "run-a", 0)
    path = os.path.join(machine_folder(), "last-measurement.json")
    os.unlink(path)
    if content is not None:
        with open(path, "wb") as handle:
            handle.write(content)
    interruption = history.interruption(previous)
    assert interruption == {"reason": "what was measured in between is not known", "gap_s": 60.0}


def test_clock_set_back_gives_no_negative_gap(previous):
    interruption = history.interruption(dict(previous, t_end_unix_s=5000.0))
    assert interruption["gap_s"] == 0.0


def test_all_users_of_the_machine_may_note_their_measurement(machine_tmp, previous, as_stranger):
    history.remember("a", "run-a", 0)
    machine_tmp.chmod(0o755)
    as_stranger(machine_tmp, history.remember, "b", "run-b", 1)
    assert "epoch 1 of run-b" in history.interruption(previous)["reason"]
    history.remember("a", "run-a", 0)
    assert history.interruption(previous) is None


def test_note_is_readable_by_all_users_under_a_strict_umask(in_child):
    def remember():
        os.umask(0o077)
        history.remember("a", "run-a", 0)

    in_child(remember)
    for path in (machine_folder(), os.path.join(machine_folder(), "last-measurement.json")):
        assert os.stat(path).st_mode & stat.S_IROTH
