"""The verdict on a virtual board, which needs neither QEMU nor a network."""

import json

import pytest

from tests.fakeboard.kinds import find_kind
from tests.virtual_board import build, run

SHOWN = {"check": "power", "expected": 1.0, "seen": 1.0, "is_right": True}
END = {"check": "end", "is_right": None}


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
