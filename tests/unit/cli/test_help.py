"""Help: complete, with examples that can be typed."""

import re
import shlex

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
