"""The digest of what a simulation depends on: numbers count, words about them do not."""

import re
import shutil

import pytest

from epochwatt.errors import ConfigError
from epochwatt.twin.inputs.digest import digests


@pytest.fixture
def folder(tmp_path, request):
    """A copy of config/twin."""
    return shutil.copytree(request.config.rootpath / "config/twin", tmp_path / "twin")


def changed(folder, name, pattern, new):
    """Return the boards whose digest changes with a line of a file."""
    before, path = digests(folder), folder / name
    text, n = re.subn(pattern, new, path.read_text("utf-8"), count=1, flags=re.MULTILINE)
    assert n == 1
    path.write_text(text, "utf-8")
    after = digests(folder)
    return {board for board in before if after[board] != before[board]}


def test_every_board_has_one_of_its_own(folder):
    found = digests(folder)
    assert set(found) == {"agx", "nx", "nano", "orin"}
    assert len(set(found.values())) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in found.values())


@pytest.mark.parametrize(
    ("name", "pattern", "new"),
    [
        ("parameters.yaml", "^noise:", "# looked at again\nnoise:"),
        ("parameters.yaml", "^    about: .*$", "    about: in other words"),
        ("parameters.yaml", r"^    spread: [\d.]+$", "    spread: 0.5"),
        ("boards.yaml", "^  kind: nano$", "  kind: nano\n  title: Another name"),
        ("samples.yaml", 'source: ".*"', 'source: "another book"'),
    ],
)
def test_words_change_nothing(folder, name, pattern, new):
    assert changed(folder, name, pattern, new) == set()


@pytest.mark.parametrize(
    ("name", "pattern", "new", "boards"),
    [
        ("parameters.yaml", r"(sync_ms:\n    value: )[\d.]+", r"\g<1>0.123", "agx nx nano orin"),
        ("parameters.yaml", r"(nano_soc_w:\n    value: )[\d.]+", r"\g<1>0.123", "nano"),
        ("boards.yaml", r"^(nx:\n(?:  .*\n)*?  ipc: )[\d.]+", r"\g<1>0.123", "nx"),
        ("samples.yaml", r"(n_samples: )\d+", r"\g<1>123", "agx nx nano orin"),
    ],
)
def test_a_number_changes_the_boards_that_it_is_of(folder, name, pattern, new, boards):
    assert changed(folder, name, pattern, new) == set(boards.split())


def test_a_wrong_file_is_named(folder):
    (folder / "boards.yaml").write_text("agx: 3\n", "utf-8")
    with pytest.raises(ConfigError, match=re.escape("boards.yaml: agx is 3")):
        digests(folder)
