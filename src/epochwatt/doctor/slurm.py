"""Read what Slurm says of its nodes, and start programs on one of them."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from epochwatt.errors import EpochwattError

ANSWER_S = 30.0  # for sinfo; a controller that is lost does not answer
IDLE = "idle"  # states of nodes
BUSY = ("allocated", "mixed", "completing", "planned", "reserved")
START_S = 30  # for srun to get an idle node
_COLUMNS = "%N|%T|%f|%R|%l|%L|%h|%E"
_STEPS_S = (1, 60, 3600)  # of a time as Slurm prints it: [days-][[hours:]minutes:]seconds


class Node(NamedTuple):
    """A node, as sinfo prints it."""

    name: str
    state: str  # without the signs that follow it, but for `*`: it does not answer
    features: frozenset[str]
    partition: str  # one that it is in
    reason: str  # why it is down or drained

    def offers(self, constraint: str) -> bool:
        """Return whether it has all features that `&` joins."""
        return set(constraint.split("&")) <= self.features


class Partition(NamedTuple):
    """A partition, as sinfo prints it."""

    name: str
    limit_s: float | None  # that a job gets which asks for no time; None: no limit
    sharing: str  # NO, YES:n, FORCE:n or EXCLUSIVE


def nodes_and_partitions() -> tuple[list[Node], list[Partition]]:
    """Return all nodes and partitions of the cluster. Raises EpochwattError."""
    if not shutil.which("sinfo"):
        raise EpochwattError(
            "sinfo is not installed here",
            do="run it where jobs are submitted: docs/how-to/fleet.md",
        )
    command = ["sinfo", "--noheader", "--Node", f"--format={_COLUMNS}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise EpochwattError(f"sinfo did not answer within {ANSWER_S:g} s") from None
    if done.returncode != 0:
        raise EpochwattError(
            f"sinfo failed: {done.stderr.strip()}", do="start slurmctld, and munged on this machine"
        )
    return read_sinfo(done.stdout.splitlines())


def read_sinfo(lines: Sequence[str]) -> tuple[list[Node], list[Partition]]:
    """Return the nodes and partitions of sinfo's lines; a node has one for each partition."""
    nodes: dict[str, Node] = {}
    partitions: dict[str, Partition] = {}
    for line in lines:
        name, state, features, partition, most, default, sharing, reason = line.split("|", 7)
        has = frozenset(features.split(",")) - {"(null)"}
        nodes[name] = Node(name, re.sub(r"[~#!%$@^+-]+", "", state), has, partition, reason)
        limits = [s for s in map(seconds, (default, most)) if s is not None]
        partitions[partition] = Partition(partition, next(iter(limits), None), sharing.upper())
    return list(nodes.values()), list(partitions.values())


def seconds(time: str) -> float | None:
    """Return a time limit in seconds; None: there is none, or it is not set."""
    days, _, clock = time.rpartition("-")
    if not re.fullmatch(r"[\d:]+", clock):
        return None
    parts = [int(word) for word in reversed(clock.split(":"))]
    return sum(n * step for n, step in zip(parts, _STEPS_S, strict=False)) + 86400.0 * int(
        days or 0
    )


def on_node(node: Node) -> list[str]:
    """Return the words that start a program on a node, and give up where it is not free."""
    return [
        *("srun", "--quiet", f"--partition={node.partition}", f"--nodelist={node.name}"),
        *("--nodes=1", "--ntasks=1", "--time=5", f"--immediate={START_S}"),
    ]
