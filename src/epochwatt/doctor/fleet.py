"""`epochwatt fleet-check`: look at every board of a fleet, and say how to fix what is wrong.

The boards are Slurm's nodes whose features a device file asks for (`constraint`), and those that
device files reach by themselves (`remote: true`). On each one the device's own interpreter runs
`epochwatt.board.training.trial node`. No setting is changed, and a busy node is left alone.
"""

import json
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from epochwatt import __version__
from epochwatt.board.device import remedies
from epochwatt.board.device.node import HEAD, leave_file, workflow_of
from epochwatt.board.device.root_helper import VERSION
from epochwatt.board.records.shapes import Document
from epochwatt.doctor.finding import Finding, finding_lines, info, ok, problem, warning
from epochwatt.doctor.subject import IMPORTS_S, run_trial, settings_of
from epochwatt.errors import EpochwattError
from epochwatt.study.config import Device
from epochwatt.study.devices import DEVICES
from epochwatt.study.place import MEASURED
from epochwatt.study.plan import duration, epoch_estimate_s, measured_e2e_s
from epochwatt.study.runs import Run
from epochwatt.study.settings import Settings, load_settings
from epochwatt.text import counted

SINFO_S = 30.0  # for sinfo; a controller that is lost does not answer
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
        done = subprocess.run(command, capture_output=True, text=True, timeout=SINFO_S, check=False)
    except subprocess.TimeoutExpired:
        raise EpochwattError(f"sinfo did not answer within {SINFO_S:g} s") from None
    if done.returncode != 0:
        raise EpochwattError(
            f"sinfo failed: {done.stderr.strip()}", do="start slurmctld, and munged on this machine"
        )
    return read_sinfo(done.stdout.splitlines())


def read_sinfo(lines: Sequence[str]) -> tuple[list[Node], list[Partition]]:
    """Parse sinfo's lines, one for each node and partition, to nodes and partitions."""
    nodes: dict[str, Node] = {}
    partitions: dict[str, Partition] = {}
    for line in lines:
        name, state, features, partition, max_time, default_time, sharing, reason = line.split(
            "|", 7
        )
        feature_set = frozenset(features.split(",")) - {"(null)"}
        state = re.sub(r"[~#!%$@^+-]+", "", state)
        nodes[name] = Node(name, state, feature_set, partition, reason)
        limit_s = seconds(default_time)
        limit_s = seconds(max_time) if limit_s is None else limit_s
        partitions[partition] = Partition(partition, limit_s, sharing.upper())
    return list(nodes.values()), list(partitions.values())


def seconds(time: str) -> float | None:
    """Parse a time limit of Slurm to seconds; None: there is none, or it is not set."""
    days, _, clock = time.rpartition("-")
    if not re.fullmatch(r"[\d:]+", clock):
        return None
    parts = [int(word) for word in reversed(clock.split(":"))]
    clock_s = sum(n * step_s for n, step_s in zip(parts, _STEPS_S, strict=False))
    return 86400.0 * int(days or 0) + clock_s


def on_node(node: Node) -> list[str]:
    """Return the words that start a program on a node, and give up where it is not free."""
    return [
        *("srun", "--quiet", f"--partition={node.partition}", f"--nodelist={node.name}"),
        *("--nodes=1", "--ntasks=1", "--time=5", f"--immediate={START_S}"),
    ]


ANSWER_S = IMPORTS_S + 90.0  # to all that a board is asked, with srun's wait for it
SEEN_S = 60.0  # for a board's file to be seen here, as latency-wait of profiles/slurm
AT_ONCE = 16  # boards that are asked at the same time


@dataclass
class Board:
    """A board of the fleet, and what it answered."""

    name: str  # of its node, or of its device where it is reached without Slurm
    device_name: str
    device: Device
    node: Node | None = None  # None: the device's own command reaches it
    answer: Document = field(default_factory=dict)  # of `epochwatt.board.device.node.look`
    error: str = ""  # why it did not answer
    seen_s: float | None = None  # until its file was seen here; None: it was not

    @property
    def python(self) -> list[str]:
        """Words that start, on the board, the interpreter that has torch."""
        start = [] if self.node is None else on_node(self.node)
        return [*start, *(self.device.python or [sys.executable])]

    @property
    def instance(self) -> str:
        """The unit that it is by its features, or the first one."""
        features = self.node.features if self.node else frozenset()
        named = [name for name in self.device.instances if name in features]
        return next(iter(named), self.device.instances[0])

    @property
    def settings(self) -> Document:
        """Settings of the machine for its jobs."""
        return settings_of(self.device, self.instance)


def ask(boards: Sequence[Board], checkout: Path) -> Document:
    """Look at all boards in parallel and set their `answer`; return that of this machine.

    Raises EpochwattError: the folder of records cannot be written here.
    """
    measured = checkout / MEASURED
    try:
        measured.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".fleet-", dir=measured))
        (folder / HEAD).write_text(secrets.token_hex(), "ascii")
    except OSError as error:
        raise EpochwattError(f"cannot write to {measured}: {error.strerror}") from error
    try:
        head = leave_file(str(folder), "this") | workflow_of(sys.executable)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda board: _ask(board, folder, checkout), boards))
        return head
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ask(board: Board, folder: Path, checkout: Path) -> None:
    """Look at a board, set its `answer` or `error`, and time when its file is seen: `seen_s`."""
    workflow = "" if board.node is None else sys.executable
    words = ["node", str(folder.absolute()), board.name, json.dumps(board.settings), workflow]
    try:
        board.answer = run_trial(board.python, words, ANSWER_S, checkout)
    except EpochwattError as error:
        board.error = str(error)
        return
    start_s = time.monotonic()
    while board.seen_s is None and time.monotonic() - start_s < SEEN_S:
        if (folder / board.name).exists():
            board.seen_s = time.monotonic() - start_s
        elif board.answer["seen"] is None:  # it did not see ours, so there is nothing to wait for
            return
        else:
            time.sleep(0.1)


CLOCK_S = 1.0  # ASSUME: Snakemake compares times of files, and people times of records
LATENCY_S = 5.0  # Snakemake's own patience with files; profiles/slurm has more
LOW_GIB = 3.5  # GLD-23k, the largest data set of the papers
_SETUP = "on that board: make setup-jetson"
_ALIKE = ("jetpack", "python", "torch", "torchvision", "numpy")  # of units of one device
_PAGE = "docs/how-to/fleet.md"


def node_findings(node: Node, devices: dict[str, Device]) -> Iterator[Finding]:
    """Check that Slurm can use a node, and that a device file wants it."""
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


def head_findings(head: Document) -> Iterator[Finding]:
    """Check that jobs can be submitted from this machine."""
    for name, version in head["workflow"].items():
        if version is None:
            yield problem("here", f"{name} is not installed", "make .venv/workflow-ready")


def unit_findings(
    name: str, device: Device, instances: Collection[str], nodes: Sequence[Node]
) -> Iterator[Finding]:
    """Check that the cluster has the boards that a device file asks for."""
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

    `longest_s`: a guess at the longest selected run, all of which is one job, s
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


def board_findings(board: Board, head: Document) -> Iterator[Finding]:
    """Check the answer of a board; one finding with its summary if all is well."""
    if board.error:
        do = f"try it by hand: {' '.join(board.python)} -V"
        yield problem(board.name, board.error, do)
        return
    wrong = [
        *_board_problems(board),
        *_disk_and_clock_problems(board, head),
        *_workflow_problems(board, head),
    ]
    yield from wrong
    if not wrong:
        yield ok(board.name, summary(board, head))


def summary(board: Board, head: Document) -> str:
    """Return what a board is, in a line."""
    answer = board.answer
    jetpack = f"JetPack {answer['jetpack']}, " if answer.get("jetpack") else ""
    return (
        f"{board.device_name}: {jetpack}Python {answer['python']}, torch {answer['torch']}, clock "
        f"{1e3 * clock_offset_s(board, head):+.0f} ms, {answer['free_gib']:.0f} GiB free"
    )


def clock_offset_s(board: Board, head: Document) -> float:
    """Return how far a board's clock is ahead of this machine's, by the disk that both see, s."""
    return float(board.answer["ahead_s"] - head["ahead_s"])


def _board_problems(board: Board) -> Iterator[Finding]:
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


def _disk_and_clock_problems(board: Board, head: Document) -> Iterator[Finding]:
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
    elif board.seen_s > LATENCY_S:
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


def _workflow_problems(board: Board, head: Document) -> Iterator[Finding]:
    """Check that jobs of the workflow can start on the board, with the same software as here."""
    if why := board.answer.get("no_workflow"):
        yield problem(
            board.name,
            f"jobs cannot start: {why}",
            f"make this checkout's .venv for it at the same path: {_PAGE}",
        )
    versions, here = board.answer.get("workflow"), head.get("workflow")
    if versions and here and versions != here:
        other = [f"{k} {v} (here {here[k]})" for k, v in versions.items() if v != here[k]]
        do = "set both up from the same locks"
        yield problem(board.name, f"other versions: {', '.join(other)}", do)


def software_differences(boards: Sequence[Board]) -> Iterator[Finding]:
    """Check that the units of a device have the same software; other devices may have another."""
    units = defaultdict(list)
    for board in boards:
        if board.answer:
            units[board.device_name].append(board)
    for device_name, boards_of_device in units.items():
        for key in _ALIKE:
            versions = {board.name: board.answer.get(key) for board in boards_of_device}
            most_common = Counter(versions.values()).most_common(1)[0][0]
            for name, version in versions.items():
                if version != most_common:
                    yield warning(
                        name,
                        f"{key} {version}; other units of {device_name} have {most_common}",
                        "install the same: units with other software are not comparable",
                    )


def fleet_lines(checkout: Path = Path()) -> tuple[list[str], int]:
    """Look at every board of the fleet; return report lines and exit status, 1: a problem.

    `checkout`: the folder that holds config/, at the path where the boards see it

    Raises EpochwattError: no device file speaks of a fleet, or Slurm does not answer.
    """
    settings = load_settings(root=checkout)
    devices = {name: settings.devices.get(name, DEVICES) for name in settings.devices.names()}
    boards = [Board(name, name, device) for name, device in devices.items() if device.remote]
    wanted = {name: device for name, device in devices.items() if device.constraint}
    if not wanted and not boards:
        raise EpochwattError(
            "no device file speaks of a fleet",
            where=DEVICES,
            do="give one `constraint`, or `remote: true`: docs/how-to/fleet.md",
        )
    findings: list[Finding] = []
    nodes: list[Node] = []
    if wanted:
        nodes, partitions = nodes_and_partitions()
        boards += [
            Board(node.name, name, device, node)
            for node in nodes
            for name, device in wanted.items()
            if node.state == IDLE and node.offers(device.constraint)
        ]
        for name, device in wanted.items():
            units = {run.factors["instance"] for run in _runs_of(settings, [name])}
            findings += unit_findings(name, device, sorted(units), nodes)
        longest_s = longest_job_s(settings, wanted)
        findings += [f for p in partitions for f in partition_findings(p, longest_s)]
        findings += [f for node in nodes for f in node_findings(node, wanted)]
    head = ask(boards, checkout)
    findings += head_findings(head) if wanted else []
    findings += [f for board in boards for f in board_findings(board, head)]
    findings += software_differences(boards)
    looked_at = {board.name for board in boards}
    n_boards = counted(len(looked_at | {node.name for node in nodes}), "boards")
    wrong = {finding.topic for finding in findings if finding.level == "problem"}
    return [
        f"epochwatt {__version__} fleet-check: {n_boards}",
        "",
        *finding_lines(findings),
        f"ready to measure: {len(looked_at - wrong)} of {n_boards}",
    ], int(bool(wrong))


def _runs_of(settings: Settings, devices: Collection[str]) -> list[Run]:
    """Return the runs of some devices that are still measured."""
    runs = settings.table.runs.values()
    return [run for run in runs if run.factors["device"] in devices and run.parts]


def longest_job_s(settings: Settings, devices: Collection[str]) -> float:
    """Return a guess at the longest selected run of these devices, s: all of it is one job."""
    measured_s = {run.id: measured_e2e_s(run) for run in settings.table.runs.values()}
    jobs_s = [
        run.epochs * epoch_estimate_s(run, measured_s, settings)[0]
        for run in _runs_of(settings, devices)
    ]
    return max(jobs_s, default=0.0)
