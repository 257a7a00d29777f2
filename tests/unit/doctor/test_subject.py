"""The device that is looked at, its interpreter and its sampler."""

import json

import pytest
from fake_board import make_board
from fake_device import DEVICE

from epochwatt.board.device.locks import machine_lock
from epochwatt.doctor.subject import choose, libraries, recording
from epochwatt.errors import EpochwattError, LockedError


@pytest.fixture
def interpreter(checkout):
    """Give the device an interpreter: words of a command."""

    def name(*words):
        checkout.edit("devices/host.yaml", "torch_threads: 1", f"python: {json.dumps(words)}")
        return choose(checkout.path, None)

    return name


def test_a_board_at_hand_is_found(checkout, tmp_path):
    root = make_board(tmp_path / "agx", "agx_xavier").root
    text = DEVICE.format(board="agx_xavier", root=root, modes="asis: {}")
    checkout.write("devices/agx.yaml", text)
    subject = choose(checkout.path, None)
    assert (subject.name, subject.machine.backend, subject.power) == ("agx", "fake", "sysfs")


def test_the_interpreter_of_the_device_is_asked(interpreter):
    script = 'echo noise; echo \'{"torch": "1.8"}\''
    assert libraries(interpreter("/bin/sh", "-c", script)) == {"torch": "1.8"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/no/such/python"], "cannot be started: No such file"),
        (["/bin/sh", "-c", "echo first >&2; echo last >&2; exit 3"], "failed: last"),
        (["/bin/sh", "-c", "exit 3"], "failed: exit status 3"),
        (["/bin/sh", "-c", "echo nonsense"], "failed: nonsense"),
    ],
)
def test_an_interpreter_that_fails_says_why(interpreter, words, message):
    with pytest.raises(EpochwattError, match=message):
        libraries(interpreter(*words))


def test_an_interpreter_that_hangs_is_given_up(interpreter, monkeypatch):
    monkeypatch.setattr("epochwatt.doctor.subject.IMPORTS_S", 0.1)
    with pytest.raises(EpochwattError, match="did not answer within"):
        libraries(interpreter("/bin/sh", "-c", "exec sleep 60"))


def test_an_interpreter_is_not_tried_beside_a_measurement(interpreter):
    with machine_lock().acquire({"run": "another"}), pytest.raises(LockedError):
        libraries(interpreter("/bin/sh", "-c", "exit 1"))


def test_samples_are_there_and_go(checkout):
    with recording(choose(checkout.path, None), 0.2) as recorded:
        assert (recorded.folder / "samples-host.csv").exists()
        assert recorded.folder.parent == checkout.path / "measured"
        assert recorded.statistics["sources"]["host"]["n_samples"] >= 2
        assert recorded.jtop_cpu_s == 0
    assert not recorded.folder.exists()
