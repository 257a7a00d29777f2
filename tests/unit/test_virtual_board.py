"""The virtual board's parts that need neither QEMU nor a network: device tree, verdict, refusal."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from epochwatt.board.device.kinds import KINDS
from epochwatt.errors import EpochwattError
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


def test_power_is_cut_at_drawn_moments_and_each_boot_hears_what_had_ended(
    monkeypatch, tmp_path, capsys
):
    words, moments = [], []

    def boot(program, word, disks, cut_s=None):
        words.append(word)
        moments.append(cut_s)
        first = int(word.partition(":")[2])
        yield f"{run.MARK}{json.dumps(SHOWN)}"
        if cut_s is None:
            yield f"{run.MARK}{json.dumps(END)}"
        else:
            yield from (f"EPOCH {epoch}" for epoch in range(first, first + 3))

    monkeypatch.setattr(run, "run", lambda *_: None)
    monkeypatch.setattr(run, "make_image", lambda *_: None)
    lines = run.cut_power(boot, tmp_path)
    assert lines == [SHOWN] * (run.N_CUTS + 1) + [END]
    assert words == [*(f"cut:{3 * n}" for n in range(run.N_CUTS)), f"end:{3 * run.N_CUTS}"]
    assert len(set(moments)) == run.N_CUTS + 1
    assert capsys.readouterr().out.count("power cut ") == run.N_CUTS


@pytest.fixture
def made(monkeypatch, tmp_path):
    """What a build makes, in order; nothing is fetched or compiled."""
    steps = []
    for name in ("root", "modules", "initrd"):
        monkeypatch.setattr(build, f"_build_{name}", lambda *_, name=name: steps.append(name))
    monkeypatch.setattr(build, "_fetch_kernel", lambda *_: steps.append("kernel"))
    monkeypatch.setattr(build, "check_needs", lambda: None)
    monkeypatch.setattr(build, "CACHE", tmp_path)

    def now():
        steps.clear()
        build.build(build.KERNELS["6.1"])
        return list(steps)

    return now


def test_only_what_has_changed_or_failed_is_built_anew(made, monkeypatch, tmp_path):
    def fails(*_):
        raise EpochwattError("no network")

    with monkeypatch.context() as patch:
        patch.setattr(build, "_fetch_kernel", fails)
        with pytest.raises(EpochwattError, match="no network"):
            made()
    assert made() == ["kernel", "modules", "initrd"]
    assert made() == []
    monkeypatch.setattr(build, "DRIVERS", (*build.DRIVERS, "another"))
    assert made() == ["initrd"]
    shutil.copytree(build.HERE, tmp_path / "here")
    monkeypatch.setattr(build, "HERE", tmp_path / "here")
    assert made() == []
    with open(tmp_path / "here/vboard.c", "a") as source:
        source.write("\n")
    assert made() == ["modules"]
    monkeypatch.setattr(build, "PROGRAMS", (*build.PROGRAMS, "another"))
    assert made() == ["root"]


def test_missing_packages_are_named_before_anything_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(
        shutil, "which", lambda name, **_: None if name == "dtc" else "/bin/" + name
    )
    monkeypatch.setattr(build, "KEYRING", str(tmp_path))
    monkeypatch.setattr(build, "CACHE", tmp_path / "cache")
    with pytest.raises(EpochwattError) as error:
        build.build(build.KERNELS["6.1"])
    assert error.value.found == "no device-tree-compiler"
    assert "apt install" in error.value.do
    assert not (tmp_path / "cache").exists()


def test_our_own_session_can_be_had_without_torch():
    """What the virtual board trains with, which has no torch, follows what our modules import."""
    code = "import sys, trainer; sys.meta_path.insert(0, trainer.MadeUpTorch()); "
    code += (
        "from epochwatt.board.training import __main__, session; print(session.torch.__version__)"
    )
    paths = [str(build.HERE), str(build.HERE.parents[1] / "src")]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", "0 (made up)\n")
