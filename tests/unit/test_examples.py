"""What pages show as the output of a command is what it prints: of those that measure nothing."""

import re
import shlex
from pathlib import Path

import pytest

from epochwatt import cli

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/how-to/schedule.md")
SAME = (
    "what-if",
    "schedule",
    "profile",
)  # they need no result of another command, and print the same always


def examples():
    """Return page, words and shown lines of each example."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for command, shown in re.findall(
            r"```console\n\.venv/bin/epochwatt ([^\n]*)\n```\n\n```text\n(.*?)```", text, re.S
        ):
            words = shlex.split(command)
            if words[0] in SAME:
                found.append((page, words, [line.split() for line in shown.splitlines() if line]))
    return found


def test_there_is_an_example_of_each():
    assert {words[0] for _, words, _ in examples()} == {*SAME}


@pytest.mark.parametrize(("page", "words", "shown"), examples())
def test_an_example_is_what_the_command_prints(page, words, shown, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert cli.main(words) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown if line not in printed] == []
