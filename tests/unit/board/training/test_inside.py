"""A job in a container: what crosses, who holds what, and that real training is the same."""

import json
import os
import runpy
import sys

import pytest

from epochwatt.board.device import container
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training import exit_status
from epochwatt.board.training.job import run_part
from epochwatt.errors import TrainingError

SETTINGS = {"engine": "docker", "image": "epochwatt:x", "rootfs": "", "runtime": ""}


def run_program(module, words):
    """Run a module as a program, in a process that has torch; it has to succeed."""
    sys.argv[1:] = words
    sys.modules.pop(module, None)
    read_end, _ = os.pipe()  # the other end stays open as long as the process
    os.dup2(read_end, 0)
    exit_status.leave = sys.exit  # this process is the test's
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert not end.value.code


@pytest.fixture
def run_without_container(monkeypatch, in_child):
    """The container's words, run by this Python on the machine itself."""
    calls = []

    def run(settings, words, name):
        calls.append(words)
        _, module, *own = words[words.index("epochwatt:x") + 1 :]
        in_child(run_program, module, own)

    monkeypatch.setattr(container, "describe", lambda s: {**s, "version": "1", "digest": "12ab"})
    monkeypatch.setattr(container, "run", run)
    return calls


def test_epochs_inside_are_those_outside_and_say_so(
    run_without_container, folder, factors, data_root, machine, tmp_path, machine_tmp
):
    other = RunFolder(str(tmp_path / "other"), folder.run)
    run_part(other, factors, 0, 0, data_root, str(tmp_path / "a.json"), machine)
    contained = {**factors, "container_settings": SETTINGS}
    run_part(folder, contained, 0, 0, data_root, str(tmp_path / "b.json"), machine)
    plain, record = other.read(0).meta, folder.read(0).meta
    assert record["loss"] == plain["loss"]
    both = record["software"].keys() & plain["software"].keys()  # the first may import more
    assert {"python", "torch"} <= both
    assert all(record["software"][key] == plain["software"][key] for key in both)
    assert record["builds"] == plain["builds"]
    assert record["inside"] == {**SETTINGS, "version": "1", "digest": "12ab"}
    assert "inside" not in plain
    assert json.loads((tmp_path / "b.json").read_text("utf-8"))["epochs"][0]["epoch"] == 0
    assert len(run_without_container) == 1


def test_a_missing_image_leaves_nothing_behind(folder, factors, data_root, machine, monkeypatch):
    monkeypatch.setenv("PATH", "/no-such")
    contained = {**factors, "container_settings": SETTINGS}
    with pytest.raises(TrainingError, match="docker is not installed"):
        run_part(folder, contained, 0, 0, data_root, "a.json", machine)
    assert not os.path.exists(folder.path)
