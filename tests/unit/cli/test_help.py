"""The help of every command: complete, in plain English, with examples that can be typed."""

import re
import shlex

import click
import pytest

from epochwatt import cli

COMMANDS = cli.epochwatt.commands
BANNED = re.compile(
    r"cannot be had|stands (in|beside|there)|has to be there|comes of|for want of|but for"
    r"|of its own|\b(told|tells|likewise|at hand, else|said)\b|because of what"
    r"|what is (least|most)",
    re.I,
)


@pytest.fixture
def show(capsys):
    """Return a function that gives what a command prints."""

    def call(*words):
        assert cli.main(words) == 0
        return capsys.readouterr().out

    return call


def test_every_command_is_listed_in_one_section(show):
    text = show("--help")
    assert sorted(COMMANDS) == sorted(c.name for section in cli.SECTIONS.values() for c in section)
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z].*\.$", text, re.M), (
            f"{name} has no summary in one line"
        )
    assert "config/" in text, "the help does not say where to run it"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete(name, show):
    command = COMMANDS[name]
    text = show(name, "--help")
    assert "Examples:" in text
    assert command.get_short_help_str(100).endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts} has no help"
            assert parameter.help.endswith("."), parameter.opts
    assert max(map(len, text.partition("Examples:")[0].splitlines())) <= 80


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_is_plain_english(words, show):
    assert BANNED.findall(show(*words, "--help")) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_accepted(name):
    """They are parsed, not run."""
    command = COMMANDS[name]
    assert command.examples
    for line, _ in command.examples:
        words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", line).partition(" | ")[0])
        assert words[:2] == ["epochwatt", name]
        command.make_context(name, words[2:])


def test_jobs_of_the_workflow_are_no_public_commands(show):
    assert not {"simulate-run", "simulate-idle", "count-workload"} & set(COMMANDS)


@pytest.mark.parametrize(("old", "name"), cli.OLD_NAMES.items())
def test_former_name_of_a_command_works_and_is_not_listed(old, name, show):
    assert show(old, "--help").splitlines()[2:] == show(name, "--help").splitlines()[2:]
    assert f"  {old} " not in show("--help")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_on_a_terminal_unless_it_is_not_wanted(no_color, coloured, monkeypatch, capsys):
    monkeypatch.setattr("click._compat.isatty", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", no_color)
    cli.main(["--help"])
    assert ("\x1b[" in capsys.readouterr().out) is coloured


def test_no_colour_where_there_is_no_terminal(show, capsys):
    assert "\x1b[" not in show("--help")
    cli.main(["plna"])
    assert "\x1b[" not in capsys.readouterr().err


def test_the_command_line_alone_imports_no_library_but_click(python):
    loaded = set(python("import sys, epochwatt.cli; print(*sys.modules)").split())
    assert not {"numpy", "yaml", "pandas", "pydantic"} & loaded


def test_measuring_imports_no_click(python):
    loaded = set(
        python("import sys, epochwatt.board.training.__main__; print(*sys.modules)").split()
    )
    assert "click" not in loaded
