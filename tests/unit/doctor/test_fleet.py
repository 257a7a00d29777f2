"""The check of a fleet: what Slurm and the boards answer, and what is made of it."""

import os
import sys

import pytest
from fake_board import make_board
from fake_device import DEVICE, LIBRARIES

from epochwatt.board.device.root_helper import VERSION
from epochwatt.doctor import fleet
from epochwatt.doctor.fleet import Board, Node, Partition
from epochwatt.study.config import Device

SINFO = """\
agx1|idle|agx,d1|boards|infinite|n/a|NO|none
agx2|mixed|agx,d2|boards|infinite|n/a|NO|none
nano1|down*|nano,d1|boards|infinite|n/a|NO|Not responding
pc|idle|(null)|others|2:00:00|30:00|FORCE:4|none
"""
HEAD = {"seen": "x", "ahead_s": 0.0, "workflow": {"Python": "3.12", "snakemake": "9.1"}}
GOOD = {
    **LIBRARIES,
    "refused": None,
    "jetpack": "5.1",
    "helper": VERSION,
    "no_helper": None,
    "free_gib": 20.0,
    "seen": "x",
    "ahead_s": 0.002,
    "unwritable": None,
    "workflow": HEAD["workflow"],
}
NODE = Node("agx1", "idle", frozenset(("agx", "d1")), "boards", "none")


def device(**keys) -> Device:
    """Return a device of the cluster."""
    text = {"storage": {"ssd": {"title": "a disk", "root": "data"}}, "constraint": "agx", **keys}
    plain = {"title": "t", "backends": ["host"], "instances": ["d1"], "dvfs": ["on"]}
    return Device.model_validate({**plain, "power_modes": {"asis": {}}, **text})


def board(name="agx1", seen_s=0.0, **answer) -> Board:
    """Return a board that answers as a good one, but for some keys."""
    return Board(name, "agx", device(), NODE, {**GOOD, **answer}, seen_s=seen_s)


def findings(one) -> list[tuple[str, str]]:
    """Return level and message of what is found on a board."""
    return [(f.level, f.message) for f in fleet.board_findings(one, HEAD)]


def test_nodes_and_partitions_are_read_and_offer_their_features():
    nodes, partitions = fleet.read_sinfo(SINFO.splitlines())
    assert nodes[0] == NODE
    assert [node.state for node in nodes] == ["idle", "mixed", "down*", "idle"]
    assert partitions == [Partition("boards", None, "NO"), Partition("others", 1800.0, "FORCE:4")]
    offered = {"agx": True, "agx&d1": True, "agx&d2": False, "nano": False}
    assert {constraint: NODE.offers(constraint) for constraint in offered} == offered


@pytest.mark.parametrize(
    ("instances", "messages"),
    [
        (["d1"], []),
        ([], []),
        (["d3"], ["no node has the features agx&d3: its runs would wait forever"]),
        (["twin"], ["2 nodes have the features agx&twin: a run could be measured on each"]),
    ],
)
def test_each_unit_is_one_node(instances, messages):
    nodes = [NODE._replace(features=NODE.features | {"twin", name}) for name in ("d1", "d2")]
    nodes[1] = nodes[1]._replace(features=frozenset(("agx", "d2", "twin")))
    made = fleet.unit_findings("agx", device(), instances, nodes)
    assert [f.message for f in made] == messages


def test_a_partition_that_shares_or_ends_jobs_is_a_problem():
    limits = {0.0: 1, 3600.0: 2}
    for longest_s, n_problems in limits.items():
        _, partitions = fleet.read_sinfo(SINFO.splitlines())
        made = [f for p in partitions for f in fleet.partition_findings(p, longest_s)]
        assert [f.topic for f in made] == ["others"] * n_problems
    assert "30 min 00 s" in made[-1].message


@pytest.mark.parametrize(
    ("answer", "level", "message"),
    [
        ({"refused": "of kind nano"}, "problem", "of kind nano"),
        ({"torch": None}, "problem", "has no torch (unknown)"),
        ({"no_helper": "the helper is missing"}, "problem", "the helper is missing"),
        ({"helper": "0"}, "warning", "root helper 0 is there"),
        ({"free_gib": 1.0}, "warning", "1.0 GiB free at data"),
        ({"seen": None, "unwritable": "no folder"}, "problem", "does not see the files"),
        ({"seen": "y"}, "problem", "others lie there"),
        ({"unwritable": "Permission denied"}, "problem", "may not write: Permission denied"),
        ({"seen_s": None}, "problem", "is not seen here"),
        ({"seen_s": 20.0}, "warning", "after 20 s"),
        ({"ahead_s": -3.0}, "warning", "its clock is -3.0 s from"),
        (
            {"workflow": None, "no_workflow": "No such file"},
            "problem",
            "jobs cannot start: No such",
        ),
        (
            {"workflow": {"Python": "3.12", "snakemake": "9.0"}},
            "problem",
            "other versions: snakemake 9.0 (here 9.1)",
        ),
    ],
)
def test_each_fault_of_a_board_is_found_alone(answer, level, message):
    ((found_level, text),) = findings(board(**answer))
    assert found_level == level
    assert message in text


@pytest.fixture
def cluster(checkout, tmp_path, monkeypatch):
    """A Slurm of two scripts, whose nodes are this machine, and a checkout with a fake AGX."""
    programs = {
        "sinfo": f"cat {tmp_path}/sinfo.txt",
        "srun": 'while case "$1" in -*) ;; *) false;; esac; do shift; done; exec "$@"',
    }
    for name, script in programs.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))  # a torch that is there at once
    for name in ("torch", "torchvision"):
        path = tmp_path / "lib" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("__version__ = '2.0'\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "sinfo.txt").write_text(SINFO)
    root = make_board(tmp_path / "agx", "agx_xavier").root
    text = DEVICE.format(board="agx_xavier", root=root, modes="asis: {}")
    checkout.write("devices/agx.yaml", f"{text}constraint: agx\n")
    return checkout


def test_a_fleet_is_looked_at_node_by_node(cluster):
    lines, status = fleet.fleet_lines(cluster.path)
    text = " ".join("\n".join(lines).split())
    assert status == 1
    assert "it is at work (mixed): not looked at" in text
    assert "agx: JetPack 4.5.1, Python" in text
    assert "info pc no device file asks for its features: it has none" in text
    assert lines[-1].endswith("of 4 boards")
    assert not list((cluster.path / "measured").glob(".fleet*"))
    cluster.edit("devices/agx.yaml", "board: agx_xavier", "board: nano")
    lines, _ = fleet.fleet_lines(cluster.path)
    assert any("the row is of a board of kind nano" in line for line in lines)


def test_a_board_behind_a_command_of_its_own_is_asked_the_same(cluster):
    words = ["/usr/bin/env", sys.executable]
    cluster.edit("devices/agx.yaml", "constraint: agx", f"remote: true\npython: {words}")
    lines, status = fleet.fleet_lines(cluster.path)
    assert lines[2].startswith("ok  agx  agx: JetPack 4.5.1")
    assert (lines[-1], status) == ("ready to measure: 1 of 1 board", 0)
