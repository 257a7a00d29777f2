"""Fake boards and our code have the paths of real boards: which ones no recording backs is listed.

`nvpmodel/param_paths.csv` holds the paths of real nvpmodel.conf files, `board_paths.csv` those of
files that somebody has read on a board.
"""

import csv
import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import ClassVar

import pytest
from fake_board import make_board

from epochwatt.board.device import alarms, board_files, identity, root_helper
from epochwatt.board.device.board_files import parse_conf
from epochwatt.board.device.stock_modes import stock_conf
from epochwatt.board.telemetry.board import BoardSource
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from tests.fakeboard.kinds import _RECORDED, KINDS
from tests.fakeboard.kinds import RECORDED as RECORDED_CONFS

DATA = Path(__file__).resolve().parents[2] / "data"

# fake board -> kind and L4T of the recorded file; of AGX Orin, JetPack 6 has that of its sister
RECORDED = {
    "nano": ("nano", "32"),
    "xavier_nx": ("xavier_nx", "32"),
    "agx_xavier": ("agx_xavier", "32"),
    "agx_xavier-jp5": ("xavier_nx", "35"),  # its sister's
    "agx_orin-jp5": ("agx_orin", "34"),
    "agx_orin-jp6": ("orin_nx", "36"),
    "orin_nano-jp6.2": ("orin_nano", "36.4"),
}
NOT_RECORDED = {  # fake boards whose nvpmodel.conf nobody has published
    "orin_nano": "JetPack 6.0: as that of 6.2, with a clock for each cluster",
    "orin_nano-jp7.2.1": "as that of 6.2",
    "agx_thor": "names are made up but for the mask's parameter; clocks have paths seen elsewhere",
    "agx_thor-jp7.2": "as that of 7.1",
}
KINDS_READ = ("nano", "xavier_nx", "agx_orin-jp5", "orin_nano-jp6.2", "agx_thor-jp7.2")


def recorded_params(kind, l4t):
    with open(DATA / "nvpmodel/param_paths.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["kind"], row["l4t"]) == (kind, l4t)]
    return {(row["param"], row["arg"]): (row["type"], row["path"]) for row in rows}


def test_each_fake_board_has_a_recorded_configuration_or_is_named():
    assert sorted([*RECORDED, *NOT_RECORDED]) == sorted(KINDS)


@pytest.mark.parametrize("name", RECORDED)
def test_a_fake_board_has_the_parameters_and_paths_of_the_recorded_configuration(name):
    kind, l4t = RECORDED[name]
    recorded = recorded_params(kind, l4t)
    params = stock_conf(KINDS[name].board, KINDS[name].release).params
    same = {p: {arg: path for (q, arg), (_, path) in recorded.items() if q == p} for p in params}
    for param, paths in same.items():
        for arg in set(paths) & set(params[param].paths):
            if kind == KINDS[name].board.name or not param.startswith("CPU_"):
                assert params[param].paths[arg] == paths[arg], (param, arg)
    assert {"CPU_ONLINE", "GPU", "EMC"} <= {param for param, paths in same.items() if paths}


@pytest.mark.parametrize("name", ["agx_xavier", "xavier_nx", "agx_orin-jp5"])
def test_a_configuration_is_the_recorded_one_with_the_stock_modes(name):
    kind = KINDS[name]
    recorded = (RECORDED_CONFS / _RECORDED[name]).read_text("utf-8").partition("< POWER_MODEL")[0]
    assert kind.conf.startswith(recorded)
    conf, stock = parse_conf(kind.conf), stock_conf(kind.board, kind.release)
    for mode, facts in zip(conf.modes, stock.modes, strict=True):
        assert mode[:2] == facts[:2]
        assert mode.settings[: len(facts.settings)] == facts.settings
        assert set(conf.params) >= {param for param, _, _ in mode.settings} - set(stock.params)


def test_modes_of_agx_orin_are_what_nvpmodel_printed_on_one():
    """Its numbers of modes; the paths are those of a JetPack 5 and not this board's."""
    log = (RECORDED_CONFS / "nvpmodel_p_verbose_agx_orin_64gb.log").read_text("utf-8")
    _, *blocks = log.replace("9223372036854775807", "-1").split("POWER_MODEL: ID=")
    stock = stock_conf(KINDS["agx_orin-jp6"].board, KINDS["agx_orin-jp6"].release)
    printed = [block.replace("NVPM VERB:", "").splitlines() for block in blocks]
    assert len(printed) == len(stock.modes)
    for mode, (title, *lines) in zip(stock.modes, printed, strict=True):
        assert title == f"{mode.id} NAME={mode.name}"
        assert {" ".join(row) for row in mode.settings} <= {line.strip() for line in lines}


class Opened:
    """Names below a folder of the files that were opened, numbers written as N."""

    root = ""
    names: ClassVar[set[str]] = set()

    @classmethod
    def note(cls, event, arguments):
        if cls.root and event == "open" and isinstance(arguments[0], str):
            name = os.path.relpath(arguments[0], cls.root)
            if not name.startswith(".."):
                cls.names.add(re.sub(r"\d+", "N", name))


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """What our code opens on fake boards of several kinds, there or not."""
    sys.addaudithook(Opened.note)
    for name in KINDS_READ:
        board = make_board(tmp_path_factory.mktemp("boards") / name, name)
        Opened.root = root = str(board.root)
        identity.identify(root)
        board_files.tables(root)
        board_files.read_clocks(root)
        board_files.boot_id(root)
        for mode in board_files.board_conf(root).modes:
            board_files.other_mask(root, mode)
        alarms.throttling(root)
        alarms.over_current(root)
        for source in (BoardSource(root), Ina3221Source(root, board.kind.board.name)):
            source.read()
            source.close()
        for folder, file, _ in board_files.fan_files(root):
            board_files.text(folder, file)
        root_helper.loosen(root, {"pinned": False})
        Opened.root = ""
    return Opened.names


def test_which_of_our_paths_no_recording_backs(opened):
    rows, others = (
        list(csv.DictReader((DATA / name).read_text("utf-8").splitlines()))
        for name in ("board_paths.csv", "unbacked_paths.csv")
    )
    assert all(row["source"] for row in rows)
    backed = [row["path"] for row in rows]
    unbacked = {name for name in opened if not any(fnmatch(name, path) for path in backed)}
    assert unbacked == {row["path"] for row in others}
    idle = {path for path in backed if not any(fnmatch(name, path) for name in opened)}
    assert not idle, "recorded, but nothing of ours opens it"
