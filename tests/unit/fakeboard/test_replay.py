"""A board made of a bundle answers as the board that the bundle was made on."""

import io
import json
import os
import tarfile

import pytest
from fake_board import settings_of

from epochwatt.board.device import alarms, board_files
from epochwatt.board.device.identity import identify
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.kinds import KINDS
from epochwatt.board.device.machine import open_machine
from epochwatt.board.telemetry.board import BoardSource
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from epochwatt.board.telemetry.tegrastats import TegrastatsSource
from epochwatt.doctor import bundle as writer
from epochwatt.doctor.bundle import read_all
from epochwatt.errors import DataError
from tests.fakeboard.model import Model
from tests.fakeboard.replay import TOP, unpack

ABOUT = {"schema_version": 1, "links": {}, "errors": {}, "nvpmodel": None}


@pytest.fixture
def bundle(tmp_path):
    """Return a function that writes a bundle of members, and what bundle.json says."""

    def write(members=(), **about):
        path = tmp_path / "bundle.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            told = json.dumps({**ABOUT, **about}).encode()
            for name, content in {f"{TOP}/bundle.json": told, **dict(members)}.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return path

    return write


@pytest.fixture
def replayed(board, bundle, tmp_path, monkeypatch):
    """A fake board of each kind, packed and made again: both roots."""
    monkeypatch.setattr(writer, "TEGRASTATS_LINES", 1)
    Model(str(board.root)).step(5.0, 0.6)
    found = read_all(str(board.root))
    members = {f"{TOP}/files/{name}": value for name, value in found.values.items()}
    members[f"{TOP}/tegrastats.txt"] = writer._tegrastats(str(board.root)).encode()
    facts = writer._nvpmodel(str(board.root))
    path = bundle(members, links=found.links, errors=found.errors, nvpmodel=facts)
    return str(board.root), str(unpack(path, tmp_path / "replayed"))


def read(source):
    values = dict(zip(source.columns, source.read(), strict=True))
    source.close()
    return {name: None if value != value else value for name, value in values.items()}


def test_a_replayed_board_is_the_same_board_and_a_fake_one(replayed):
    there, here = replayed
    found = identify(here)
    assert found == identify(there)
    for look in (board_files.tables, board_files.cpus, board_files.read_clocks):
        assert look(here) == look(there)
    gpu = board_files.find_gpu(there)
    assert os.path.relpath(board_files.find_gpu(here), here) == os.path.relpath(gpu, there)
    assert alarms.throttling(here) == alarms.throttling(there)
    assert alarms.over_current(here) == alarms.over_current(there)
    assert read(Ina3221Source(here, found.kind)) == read(Ina3221Source(there, found.kind))
    assert read(BoardSource(here)) == read(BoardSource(there))
    confs = [board_files.board_conf(root) for root in (here, there)]
    assert confs[0]._replace(text="") == confs[1]._replace(text="")
    lines = [[x for x in conf.text.splitlines() if x and x[0] != "#"] for conf in confs]
    assert lines[0] == lines[1]

    kind = KINDS[found.kind]
    told = read(TegrastatsSource(here, found.kind))  # it repeats its lines
    assert f"power_{kind.scope}_w" in told
    assert any(told[name] > 0 for name in told if name.startswith("rail_"))
    assert told["gpu_mhz"] > 0

    board = open_machine(settings_of(here, found.kind))
    assert isinstance(board, JetsonBoard)
    assert board.backend == "fake"
    board.check()
    steps_mhz = board.describe()["machine"]["gpu_steps_mhz"]
    assert bool(steps_mhz) == ("gpu" not in kind.seen_only)


def test_what_could_not_be_read_cannot_be_read_here_either(bundle, tmp_path):
    errors = {
        "sys/opened": {"errno": 13, "at": "open", "text": "Permission denied"},
        "sys/read": {"errno": 5, "at": "read", "text": "Input/output error"},
    }
    root = unpack(bundle(errors=errors), tmp_path / "board")
    for name in errors:
        assert (root / name).exists()
        with pytest.raises(OSError, match=r"No such device|Input/output"):
            (root / name).read_bytes()
    with open(root / "sys/read", "rb"):
        pass


def refused(path, folder, match):
    with pytest.raises(DataError, match=match):
        unpack(path, folder)


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out", "", "a\0b"])
def test_names_that_lead_out_are_refused(bundle, tmp_path, name):
    folder = tmp_path / "board"
    if "\0" not in name:
        refused(bundle({f"{TOP}/files/{name}": b"x"}), folder, "outside of the board|damaged")
    refused(bundle(links={name: "a"}), tmp_path / "second", "outside of the board")
    refused(bundle(links={"a": name}), tmp_path / "third", "outside of the board")
    refused(bundle(errors={name: {"at": "open"}}), tmp_path / "fourth", "outside of the board")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    with tarfile.open(tmp_path / "x", "w:gz") as archive:
        member = tarfile.TarInfo(f"{TOP}/files/x")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    refused(tmp_path / "x", tmp_path / "board", "does not belong")


@pytest.mark.parametrize("depth", [2, 6])
def test_links_nested_in_links_do_not_climb_out(bundle, tmp_path, depth):
    """`hop` is deep by name and lies at the top, so the `..` behind it lead out of the folder."""
    hop = "/".join("abcdef"[:depth])
    links = {hop: "flat", f"{hop}/out": "victims", f"{hop}/out/new": "y"}
    members = {f"{TOP}/files/flat/keep": b"x"}
    folder = tmp_path / "1/2/3/4/5/6/board"
    victims = folder.parents[depth - 2] / "victims"
    victims.mkdir(parents=True)
    refused(bundle(members, links=links), folder, f"through a link: {hop}")
    assert list(victims.iterdir()) == []
    assert all(path.resolve().is_relative_to(folder) for path in folder.rglob("*"))
