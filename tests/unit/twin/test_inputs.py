"""Files of config/twin: boards, data sets, parameters; what is refused; digests of what counts."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from epochwatt.board.device.kinds import KINDS
from epochwatt.errors import ConfigError
from epochwatt.twin.boards import load_boards
from epochwatt.twin.parameters import FILE, digests, load_parameters, write_parameters


@pytest.fixture
def committed(request):
    return request.config.rootpath / "config/twin"


@pytest.fixture
def folder(tmp_path, committed):
    """A copy of config/twin."""
    return shutil.copytree(committed, tmp_path / "twin")


# -- boards and data sets --------------------------------------------------------------------------


def test_boards_of_the_papers_have_parameters_and_what_is_known_of_their_kind(twin):
    assert set(twin.boards) == {"agx", "nx", "nano", "orin"}
    for board in twin.boards.values():
        for name in ("soc_w", "core_w_per_ghz_v2", "carrier_w", "suspend_w"):
            assert twin.parameters[f"{board.power}_{name}"] > 0
        for limits in (board.cpu_mhz, board.gpu_mhz, board.emc_mhz, board.cpu_v, board.gpu_v):
            assert 0 < limits[0] < limits[1]
        for part in ("cpu", "gpu"):
            low, high = getattr(board, f"{part}_mhz")
            assert low < getattr(board, f"{part}_knee_mhz") < high
        kind = KINDS[board.kind]
        assert (board.title, board.cores) == (kind.title, kind.cores)
        assert board.gpu_mhz == (kind.gpu_hz[0] / 1e6, kind.gpu_hz[-1] / 1e6)
        assert list(board.rails) == [rail.label for rail in kind.rails]


def test_kind_may_have_its_former_name_and_other_clocks(committed, tmp_path):
    row = yaml.safe_load((committed / "boards.yaml").read_text("utf-8"))["orin"]
    row |= {"kind": "orin_agx", "emc_mhz": [204.0, 3200.0]}
    (tmp_path / "boards.yaml").write_text(yaml.safe_dump({"orin": row}), "utf-8")
    board = load_boards(tmp_path)["orin"]
    assert (board.kind, board.emc_mhz) == ("agx_orin", (204.0, 3200.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.pop("ipc"), "agx is .*\n  allowed: .*ipc"),
        (lambda row: row.update(kind="tx2"), "agx: unknown kind of board\n  found: 'tx2'"),
        (lambda row: row.update(price=500), "agx is .*price"),
        (lambda row: row.update(cores="eight"), "agx: cores is 'eight'\n  allowed: a number"),
        (lambda row: row.update(ipc=float("nan")), "agx: ipc is nan"),
        (lambda row: row.update(units={"d4": [1.05]}), r"agx: unit d4 is \[1.05\]"),
    ],
)
def test_wrong_board_is_refused(committed, tmp_path, change, message):
    row = yaml.safe_load((committed / "boards.yaml").read_text("utf-8"))["agx"]
    change(row)
    (tmp_path / "boards.yaml").write_text(yaml.safe_dump({"agx": row}), "utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        load_boards(tmp_path)
    assert str(tmp_path / "boards.yaml") in str(caught.value)


# -- parameters ------------------------------------------------------------------------------------


def test_comments_and_layout_stay_when_values_move(committed, tmp_path):
    """There and back gives the bytes of the committed file; between, only the value's line."""
    path = Path(shutil.copy(committed / FILE, tmp_path))
    text, parameters = path.read_text("utf-8"), load_parameters(committed)
    write_parameters(tmp_path, parameters.moved({"launch_kcycles": 77}))
    before, after = text.splitlines(), path.read_text("utf-8").splitlines()
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert [line for _, line in changed] == ["    value: 77"]
    write_parameters(tmp_path, parameters)
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cpu: 3\n", "cpu is 3"),
        ("cpu: {a: {value: 1, unit: s, source: guessed, about: x}}\n", "source is 'guessed'"),
        ("cpu: {a: {value: -1, unit: s, source: assumed, about: x}}\n", "value is -1"),
        ("cpu: {a: {value: 1, unit: s, source: fitted, about: x}}\n", "a: fitted"),
        (
            "cpu: {a: {value: 1, unit: s, source: fitted, about: x, prior: 1, factor: 1}}\n",
            "factor above 1",
        ),
        (
            "cpu: {a: &a {value: 1, unit: s, source: assumed, about: x}}\ngpu: {a: *a}\n",
            "a is in cpu and in gpu",
        ),
    ],
)
def test_wrong_parameter_is_refused(tmp_path, text, message):
    (tmp_path / FILE).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=message):
        load_parameters(tmp_path)


# -- digests: numbers count, words about them do not -----------------------------------------------

ALL = "agx nx nano orin"


@pytest.mark.parametrize(
    ("name", "pattern", "new", "boards"),
    [
        ("parameters.yaml", "^noise:", "# looked at again\nnoise:", ""),
        ("parameters.yaml", "^    about: .*$", "    about: in other words", ""),
        ("boards.yaml", "^  kind: nano$", "  kind: nano\n  title: Another name", ""),
        ("samples.yaml", 'source: ".*"', 'source: "another book"', ""),
        ("parameters.yaml", r"(sync_ms:\n    value: )[\d.]+", r"\g<1>0.123", ALL),
        ("parameters.yaml", r"(nano_soc_w:\n    value: )[\d.]+", r"\g<1>0.123", "nano"),
        ("boards.yaml", r"^(nx:\n(?:  .*\n)*?  ipc: )[\d.]+", r"\g<1>0.123", "nx"),
        ("samples.yaml", r"(n_samples: )\d+", r"\g<1>123", ALL),
    ],
)
def test_edit_changes_the_digests_of_the_boards_whose_numbers_it_changes(
    folder, name, pattern, new, boards
):
    before, path = digests(folder), folder / name
    assert len(set(before.values())) == 4
    text, n = re.subn(pattern, new, path.read_text("utf-8"), count=1, flags=re.MULTILINE)
    assert n == 1
    path.write_text(text, "utf-8")
    after = digests(folder)
    assert {board for board in before if after[board] != before[board]} == set(boards.split())
