"""`epochwatt fleet-check`: look at every board of a fleet, and say how to fix what is wrong.

The boards are Slurm's nodes whose features a device file asks for (`constraint`), and those that
device files reach by themselves (`remote: true`). On each one the device's own interpreter runs
`epochwatt.training.trial node`. No setting is changed, and a node that is at work is left alone.
"""

from collections.abc import Collection
from pathlib import Path

from epochwatt import __version__
from epochwatt.doctor import fleet_findings as check
from epochwatt.doctor.finding import Finding, finding_lines
from epochwatt.doctor.fleet_boards import Board, ask
from epochwatt.doctor.slurm import IDLE, Node, nodes_and_partitions
from epochwatt.errors import EpochwattError
from epochwatt.study.config import Device
from epochwatt.study.devices import DEVICES
from epochwatt.study.plan import epoch_estimate_s, measured_e2e_s
from epochwatt.study.runs import Run
from epochwatt.study.settings import Settings, load_settings
from epochwatt.text import counted


def fleet_lines(checkout: Path = Path()) -> tuple[list[str], int]:
    """Look at every board of the fleet.

    Parameters
    ----------
    checkout : the folder that holds config/, at the path where the boards see it

    Returns
    -------
    list of str : the findings, each with what to do
    int : exit status, 1 where there is a problem

    Raises
    ------
    EpochwattError : no device file speaks of a fleet, or Slurm does not answer
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
        boards += _idle(nodes, wanted)
        for name, device in wanted.items():
            units = {run.factors["instance"] for run in _runs_of(settings, [name])}
            findings += check.unit_findings(name, device, sorted(units), nodes)
        longest_s = longest_job_s(settings, wanted)
        findings += [f for p in partitions for f in check.partition_findings(p, longest_s)]
        findings += [f for node in nodes for f in check.node_findings(node, wanted)]
    head = ask(boards, checkout)
    findings += check.head_findings(head) if wanted else []
    findings += [f for board in boards for f in check.board_findings(board, head)]
    findings += check.differences(boards)
    names = {board.name for board in boards} | {node.name for node in nodes}
    return _report(findings, len(names), {board.name for board in boards})


def _idle(nodes: list[Node], devices: dict[str, Device]) -> list[Board]:
    """Return the nodes that can be looked at now, each for every device that may get it."""
    return [
        Board(node.name, name, device, node)
        for node in nodes
        for name, device in devices.items()
        if node.state == IDLE and node.offers(device.constraint)
    ]


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


def _report(findings: list[Finding], n_boards: int, looked_at: set[str]) -> tuple[list[str], int]:
    wrong = {finding.topic for finding in findings if finding.level == "problem"}
    head = f"epochwatt {__version__} fleet-check: {counted(n_boards, 'boards')}"
    end = f"ready to measure: {len(looked_at - wrong)} of {counted(n_boards, 'boards')}"
    return [head, "", *finding_lines(findings), end], int(bool(wrong))
