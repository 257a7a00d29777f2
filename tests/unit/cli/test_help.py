"""Help and completion: complete, with examples that can be typed, and names of the checkout."""

import os
import re
import shlex
import subprocess
import sys

import click
import pytest

from epochwatt import cli

COMMANDS = cli.epochwatt.commands


@pytest.fixture
def show(capsys):
    """Return a function that gives what a command prints."""

    def call(*words):
        assert cli.main(words) == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete_and_examples_are_accepted(name, show):
    """Examples are parsed, not run."""
    command = COMMANDS[name]
    text = show(name, "--help")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert (parameter.help or "").endswith("."), f"{name} {parameter.opts}"
    assert max(map(len, text.partition("Examples:")[0].splitlines())) <= 80
    comments, lines = command.examples[::2], command.examples[1::2]
    assert lines
    assert all(comment.startswith("# ") for comment in comments)
    for line in lines:
        words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", line).partition(" | ")[0])
        assert words[:2] == ["epochwatt", name]
        command.make_context(name, words[2:])


def test_the_command_line_alone_imports_no_library_but_click(python):
    loaded = set(python("import sys, epochwatt.cli; print(*sys.modules)").split())
    assert not {"numpy", "yaml", "pandas", "pydantic"} & loaded
    board = python("import sys, epochwatt.board.training.__main__; print(*sys.modules)").split()
    assert "click" not in board


def offered(*words):
    """Return what bash is offered for the last of the words of a command line."""
    environment = {
        **os.environ,
        "_EPOCHWATT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["epochwatt", *words]),
        "COMP_CWORD": str(len(words)),
    }
    command = [sys.executable, "-m", "epochwatt"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_options_and_names_of_the_checkout_are_completed(
    checkout, measure, tmp_path_factory, monkeypatch
):
    run = checkout.runs[0]
    measure(run, 0)
    assert offered("plan", "sm") == ["small"]
    assert "host" in offered("doctor", "--device", "")
    assert offered("discard", run.id[:8]) == [run.id]
    assert offered("recommend", "--model", "len") == ["lenet"]
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))  # where there is no checkout
    assert offered("re") == ["recommend", "report"]
    assert offered("plan", "--ex") == ["--explain"]
    assert offered("what-if", "--dvfs", "o") == ["on", "off"]
    assert offered("what-if", "--device", "a") == []
