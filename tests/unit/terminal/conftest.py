"""What the tests of the terminal share."""

import pytest
from snakemake_records import Terminal

from snakemake_logger_plugin_epochwatt import LogHandlerSettings


@pytest.fixture
def terminal(monkeypatch, tmp_path):
    """Return a function that makes a `Terminal`, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    monkeypatch.setenv("EPOCHWATT_COMMAND", "make run")
    made = []

    def make(style="auto", **common):
        made.append(Terminal(monkeypatch, LogHandlerSettings(style=style), **common))
        return made[-1]

    yield make
    for one in made:
        one.handler.close()
