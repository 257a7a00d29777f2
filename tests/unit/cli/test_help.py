"""Help and completion: complete, with examples that can be typed, and names of the checkout."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import click
import pytest

from epochwatt import cli

COMMANDS = cli.epochwatt.commands
CHECK = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


@pytest.fixture
def show(capsys):
    """Return a function that gives what a command prints."""

    def call(*words):
        assert cli.main(words) == 0
        return capsys.readouterr().out

    return call


def test_every_command_is_listed_in_one_section_and_former_names_work(show):
    text = show("--help")
    assert sorted(COMMANDS) == sorted(c.name for section in cli.SECTIONS.values() for c in section)
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z].*\.$", text, re.M), f"{name} has no summary in a line"
    for old, name in cli.OLD_NAMES.items():
        assert show(old, "--help").splitlines()[2:] == show(name, "--help").splitlines()[2:]
        assert f"  {old} " not in text


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


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_on_a_terminal_alone_unless_it_is_not_wanted(
    no_color, coloured, monkeypatch, capsys, show
):
    assert "\x1b[" not in show("--help")
    monkeypatch.setattr("click._compat.isatty", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", no_color)
    cli.main(["--help"])
    assert ("\x1b[" in capsys.readouterr().out) is coloured


def test_the_command_line_alone_imports_no_library_but_click(python):
    loaded = set(python("import sys, epochwatt.cli; print(*sys.modules)").split())
    assert not {"numpy", "yaml", "pandas", "pydantic"} & loaded
    board = python("import sys, epochwatt.board.training.__main__; print(*sys.modules)").split()
    assert "click" not in board


@pytest.mark.parametrize("shell", CHECK)
def test_completion_is_a_script_of_the_shell(shell, show, tmp_path):
    script = tmp_path / "script"
    script.write_text(show("completion", shell), "utf-8")
    assert "_EPOCHWATT_COMPLETE" in script.read_text("utf-8")
    if shutil.which(shell):
        subprocess.run([*CHECK[shell], script], check=True)


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
