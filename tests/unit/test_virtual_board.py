"""The virtual board's parts that need neither QEMU nor a network: device tree, verdict, refusal."""

import json
import re
import shutil
import subprocess

import pytest

from epochwatt.board.device.kinds import KINDS
from tests.fakeboard.kinds import find_kind
from tests.virtual_board import build, run
from tests.virtual_board.device_tree import board_tree

QEMU_TREE = """/dts-v1/;

/ {
	interrupt-parent = <0x8002>;
	model = "linux,dummy-virt";
	#size-cells = <0x02>;
	#address-cells = <0x02>;
	compatible = "linux,dummy-virt";

	psci {
		method = "hvc";
	};
};
"""
BOARDS = [(kind, release) for kind in KINDS.values() for release in kind.releases]
WITH_CHIPS = [pair for pair in BOARDS if all(rail.chip for rail in pair[0].rails)]
SHOWN = {"check": "power", "expected": 1.0, "seen": 1.0, "is_right": True}
END = {"check": "end", "is_right": None}


@pytest.fixture(params=WITH_CHIPS[:1] + WITH_CHIPS[-1:], ids=lambda pair: pair[0].name)
def board(request):
    return request.param


def test_tree_names_the_board_and_every_rail_at_its_chip_and_channel(board):
    kind, release = board
    tree = board_tree(QEMU_TREE, kind, release)
    names = re.search(r"\tcompatible = (.*);", tree).group(1)
    assert re.search(kind.pattern, names.lower() + (release.model or kind.model).lower())
    assert f'model = "{release.model or kind.model}";' in tree
    chip, places = "", {}
    for line in tree.splitlines():
        node = re.search(r"ina3221@([0-9a-f]+)", line)
        chip = node.group(1) if node else chip
        channel = re.search(r'channel@(\d) .*label = "(\S+)"; shunt', line)
        if channel:
            places[channel.group(2)] = chip, int(channel.group(1)) + 1
    wanted = {r.label: (r.chip.partition("-")[2].lstrip("0"), r.channel) for r in kind.rails}
    assert places == wanted
    n_chips = len({rail.chip for rail in kind.rails})
    assert tree.count("channel@") == 3 * n_chips
    assert tree.count('status = "disabled"') == 3 * n_chips - len(kind.rails)


def test_tree_can_be_compiled_and_that_of_another_qemu_is_refused(board, tmp_path):
    with pytest.raises(ValueError, match="device tree of QEMU"):
        board_tree(QEMU_TREE.replace("dummy-virt", "other"), *board)
    if shutil.which("dtc") is None:
        pytest.skip("no device-tree-compiler here")
    (tmp_path / "board.dts").write_text(board_tree(QEMU_TREE, *board), encoding="utf-8")
    words = ["dtc", "-q", "-I", "dts", "-O", "dtb", "-o", tmp_path / "board.dtb"]
    subprocess.run([*words, tmp_path / "board.dts"], check=True)


@pytest.mark.parametrize(
    ("lines", "is_passed"),
    [
        ([SHOWN, END], True),
        ([SHOWN, SHOWN | {"seen": 4.0, "is_right": False}, END], False),
        ([SHOWN, SHOWN | {"is_right": "False"}, END], False),  # no verdict that we know
        ([SHOWN], False),  # it ended in the middle
        ([], False),
    ],
)
def test_only_a_board_that_got_to_its_end_without_a_difference_passes(
    lines, is_passed, monkeypatch, tmp_path, capsys
):
    def boot(_, word=""):
        told = lines if word == "settings" else [SHOWN, END]
        told = [f"[ 1.0] {run.MARK}{json.dumps(line)}" for line in told]
        return iter(["booting", *told, "off"])

    monkeypatch.setattr(run, "_prepared", lambda *_: boot)
    monkeypatch.setattr(run, "cut_power", lambda *_: [SHOWN, END])
    monkeypatch.setattr(build, "CACHE", tmp_path)
    assert run.check_board(build.KERNELS["6.1"], find_kind("agx_orin-jp6")) is is_passed
    assert capsys.readouterr().out.count("expected 1.0") == 2 + sum(
        line["is_right"] is not None for line in lines
    )
