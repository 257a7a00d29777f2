"""What made the results: versions, machines of runs, configuration."""

import os
import subprocess

import pytest

from epochwatt.pages.site import commit, machines


@pytest.fixture
def git(tmp_path, monkeypatch):
    """A git checkout with one commit, and a function that runs git in it."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    def run(*words):
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return run


def test_commit_says_whether_files_differ_and_leaves_gits_index_alone(git, tmp_path, monkeypatch):
    assert commit(tmp_path) == "not a git checkout"
    (tmp_path / "a").write_text("1")
    git("init", "-q")
    git("add", "a")
    git("commit", "-q", "-m", "one")
    head = git("rev-parse", "HEAD")
    assert commit(tmp_path) == head
    os.utime(tmp_path / "a", (1e9, 1e9))
    index = (tmp_path / ".git/index").read_bytes()
    commit(tmp_path)
    assert (tmp_path / ".git/index").read_bytes() == index
    (tmp_path / "a").write_text("2")
    assert commit(tmp_path) == f"{head} and changes to it"
    (tmp_path / "unpacked").mkdir()
    assert commit(tmp_path / "unpacked") == "not a git checkout"  # that around it is not its own
    (tmp_path / "link").symlink_to(tmp_path)
    assert commit(tmp_path / "link").startswith(head)
    monkeypatch.setenv("PATH", "")
    assert commit(tmp_path) == "not a git checkout"


def test_machines_are_those_of_the_records_and_counted_without_serial_numbers(checkout, measure):
    first, second, third, unmeasured = checkout.runs
    measure(first, 0, software={"torch": "1.8.0"})
    measure(first, 1)
    measure(second, 0)
    board = {"board": "agx", "serial": "1421019000001", "gpu_steps_mhz": [114.75, 1377.0]}
    third.factors["backend"] = "fake"
    measure(third, 0, machine=board)
    measured, fake = machines({run.id: run.records for run in checkout.runs})
    assert (measured["runs"], measured["cpu_model"], measured["torch"]) == (2, "one", "2.9.1")
    told = {"runs": 1, "data": "not measured, fake board", "unit": "host/local"}
    assert fake == told | {"board": "agx", "torch": "2.9.1"}
    assert machines({unmeasured.id: unmeasured.records}) == []
