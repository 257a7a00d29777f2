"""Findings on the boards of a fleet, each under the name of its node."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from epochwatt.device import remedies
from epochwatt.device.root_helper import VERSION
from epochwatt.doctor.finding import Finding, info, ok, problem, warning
from epochwatt.doctor.fleet_boards import Board
from epochwatt.doctor.slurm import BUSY, IDLE, Node, Partition
from epochwatt.study.config import Device
from epochwatt.study.devices import DEVICES
from epochwatt.study.plan import duration

CLOCK_S = 1.0  # ASSUME: Snakemake compares times of files, and people times of records
SEEN_S = 5.0  # Snakemake's own patience with files; profiles/slurm has more
LOW_GIB = 3.5  # GLD-23k, the largest data set of the papers
_SETUP = "on that board: make setup-jetson"
_ALIKE = ("jetpack", "python", "torch", "torchvision", "numpy")  # of units of one device
_PAGE = "docs/how-to/fleet.md"


def node_findings(node: Node, devices: dict[str, Device]) -> Iterator[Finding]:
    """Check that Slurm can use a node, and that a device file wants it.

    Parameters
    ----------
    node : as sinfo shows it
    devices : that ask for a board of the cluster, by name
    """
    if not any(node.offers(device.constraint) for device in devices.values()):
        features = ", ".join(sorted(node.features)) or "it has none"
        yield info(
            node.name,
            f"no device file asks for its features: {features}",
            f"name one as `constraint` in {DEVICES}/, or leave the node to others",
        )
        return
    if node.state in BUSY:
        yield info(node.name, f"it is at work ({node.state}): not looked at")
    elif node.state != IDLE:
        yield problem(
            node.name,
            f"Slurm cannot use it: {node.state} ({node.reason})",
            f"look at slurmd there, then `scontrol update nodename={node.name} state=resume`",
        )


def head_findings(head: dict[str, Any]) -> Iterator[Finding]:
    """Check that jobs can be submitted from this machine."""
    for name, version in head["workflow"].items():
        if version is None:
            yield problem("here", f"{name} is not installed", "make .venv/workflow-ready")


def unit_findings(
    name: str, device: Device, instances: Collection[str], nodes: Sequence[Node]
) -> Iterator[Finding]:
    """Check that the cluster has the boards that a device file asks for.

    Parameters
    ----------
    name : of the device
    device : asks for a board of the cluster
    instances : units that the selected studies measure
    nodes : of the cluster
    """
    for instance in instances or [""]:
        wanted = "&".join(filter(None, (device.constraint, instance)))
        n_nodes = sum(node.offers(wanted) for node in nodes)
        if not n_nodes:
            yield problem(
                name,
                f"no node has the features {wanted}: its runs would wait forever",
                f"add them to its node in slurm.conf, or correct {DEVICES}/{name}.yaml",
            )
        elif n_nodes > 1 and instance:
            yield problem(
                name,
                f"{n_nodes} nodes have the features {wanted}: a run could be measured on each",
                "give each board a feature of its own, named in `instances`",
            )


def partition_findings(partition: Partition, longest_s: float) -> Iterator[Finding]:
    """Check that a partition leaves a board to one job, for as long as the longest one takes.

    Parameters
    ----------
    partition : as sinfo shows it
    longest_s : a guess at the longest selected run, all of which is one job, s
    """
    if partition.sharing.startswith("FORCE"):
        yield problem(
            partition.name,
            f"OverSubscribe={partition.sharing}: two jobs would measure each other's load",
            "set OverSubscribe=EXCLUSIVE for this partition in slurm.conf",
        )
    if partition.limit_s is not None and partition.limit_s < longest_s:
        yield problem(
            partition.name,
            f"a job is ended after {duration(partition.limit_s)}; the longest run selected takes "
            f"{duration(longest_s)}",
            "raise MaxTime and DefaultTime in slurm.conf; epochs that are measured are kept",
        )


def board_findings(board: Board, head: dict[str, Any]) -> Iterator[Finding]:
    """Check what a board answered; one line if all is well.

    Parameters
    ----------
    board : with its answer
    head : the same of this machine
    """
    if board.error:
        do = f"try it by hand: {' '.join(board.python)} -V"
        yield problem(board.name, board.error, do)
        return
    wrong = [
        *_machine(board),
        *_shared(board, head),
        *_workflow(board, head),
    ]
    yield from wrong
    if not wrong:
        yield ok(board.name, summary(board, head))


def summary(board: Board, head: dict[str, Any]) -> str:
    """Return what a board is, in a line."""
    answer = board.answer
    jetpack = f"JetPack {answer['jetpack']}, " if answer.get("jetpack") else ""
    return (
        f"{board.device_name}: {jetpack}Python {answer['python']}, torch {answer['torch']}, clock "
        f"{1e3 * clock_offset_s(board, head):+.0f} ms, {answer['free_gib']:.0f} GiB free"
    )


def clock_offset_s(board: Board, head: dict[str, Any]) -> float:
    """Return how far a board's clock is ahead of this machine's, by the disk that both see, s."""
    return float(board.answer["ahead_s"] - head["ahead_s"])


def _machine(board: Board) -> Iterator[Finding]:
    """Check kind of board, medium, interpreter, helper and space."""
    answer, name = board.answer, board.name
    if answer["refused"]:
        yield problem(name, answer["refused"].replace("\n ", ";"), f"see {_PAGE}")
    if not answer["torch"]:
        why = answer["errors"].get("torch", "unknown")
        remedy = remedies.remedy_of(why, board.python[-1], answer["python"])
        do = remedies.SOFTWARE if remedy is None else remedy.do
        yield problem(name, f"{board.python[-1]} has no torch ({why})", do)
    if answer.get("no_helper"):
        yield problem(name, answer["no_helper"], _SETUP)
    elif answer.get("helper", VERSION) != VERSION:
        version = answer["helper"]
        yield warning(name, f"root helper {version} is there; this checkout has {VERSION}", _SETUP)
    if answer["free_gib"] < LOW_GIB:
        root = board.settings["storage"]["root"]
        yield warning(
            name, f"{answer['free_gib']:.1f} GiB free at {root}", f"free at least {LOW_GIB:g} GiB"
        )


def _shared(board: Board, head: dict[str, Any]) -> Iterator[Finding]:
    """Check that the board sees our files and we see its, and that the clocks agree."""
    answer, name = board.answer, board.name
    if answer["seen"] != head["seen"]:
        why = answer["unwritable"] or "others lie there"
        yield problem(
            name,
            f"it does not see the files of this checkout ({why})",
            f"mount the checkout there at the same path: {_PAGE}",
        )
        return
    if answer["unwritable"]:
        yield problem(
            name,
            f"it may not write: {answer['unwritable']}",
            "the same user, with the same number (`id -u`), has to own the checkout there",
        )
        return
    if board.seen_s is None:
        yield problem(name, "what it writes is not seen here", "another disk is mounted there")
    elif board.seen_s > SEEN_S:
        yield warning(
            name,
            f"what it writes is seen here after {board.seen_s:.0f} s",
            f"mount it with actimeo=3: each job waits so long ({_PAGE})",
        )
    if abs(offset_s := clock_offset_s(board, head)) > CLOCK_S:
        yield warning(
            name,
            f"its clock is {offset_s:+.1f} s from this machine's",
            "run chrony on both: times of files and records would be in a wrong order",
        )


def _workflow(board: Board, head: dict[str, Any]) -> Iterator[Finding]:
    """Check that jobs of the workflow can start on the board, with the same software as here."""
    if why := board.answer.get("no_workflow"):
        yield problem(
            board.name,
            f"jobs cannot start: {why}",
            f"make this checkout's .venv for it at the same path: {_PAGE}",
        )
    theirs, ours = board.answer.get("workflow"), head.get("workflow")
    if theirs and ours and theirs != ours:
        other = ", ".join(f"{k} {v} (here {ours[k]})" for k, v in theirs.items() if v != ours[k])
        yield problem(board.name, f"other versions: {other}", "set both up from the same locks")


def differences(boards: Sequence[Board]) -> Iterator[Finding]:
    """Check that the units of a device have the same software; other devices may have another."""
    units = defaultdict(list)
    for board in boards:
        if board.answer:
            units[board.device_name].append(board)
    for device_name, alike in units.items():
        for key in _ALIKE:
            values = {board.name: board.answer.get(key) for board in alike}
            usual = Counter(values.values()).most_common(1)[0][0]
            for name, value in values.items():
                if value != usual:
                    yield warning(
                        name,
                        f"{key} {value}; other units of {device_name} have {usual}",
                        "install the same: units with other software are not comparable",
                    )
