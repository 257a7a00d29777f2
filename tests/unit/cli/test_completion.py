"""Completion in bash, zsh and fish: the script, and what it offers."""

import os
import shutil
import subprocess
import sys

import pytest

from epochwatt import cli

CHECK = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


@pytest.mark.parametrize("shell", CHECK)
def test_script_is_one_of_the_shell(shell, capsys, tmp_path):
    assert cli.main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out, "utf-8")
    assert "_EPOCHWATT_COMPLETE" in script.read_text("utf-8")
    if shutil.which(shell):
        subprocess.run([*CHECK[shell], script], check=True)


def test_another_shell_is_refused(capsys):
    assert cli.main(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


def offered(*words):
    """Return what bash is offered for the last of the words of a command line."""
    line = ["epochwatt", *words]
    environment = {
        **os.environ,
        "_EPOCHWATT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(line),
        "COMP_CWORD": str(len(words)),
    }
    command = [sys.executable, "-m", "epochwatt"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_and_options_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there is no checkout
    assert offered("re") == ["recommend", "report"]
    assert offered("plan", "--ex") == ["--explain"]
    assert offered("what-if", "--dvfs", "o") == ["on", "off"]
    assert offered("what-if", "--device", "a") == []


def test_names_of_the_checkout_are_completed(checkout, measure):
    run = checkout.runs[0]
    measure(run, 0)
    assert offered("plan", "sm") == ["small"]
    assert "host" in offered("doctor", "--device", "")
    assert offered("discard", run.id[:8]) == [run.id]
    assert offered("recommend", "--model", "len") == ["lenet"]
