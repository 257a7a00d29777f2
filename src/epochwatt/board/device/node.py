"""Tell what a board of a fleet is and what it sees (board side: Python 3.6 grammar)."""

import json
import os
import subprocess
import time

from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.shapes import Document
from epochwatt.errors import EpochwattError

HEAD = "head"  # file of the machine that asks, in the folder both should see
PATIENCE_S = 60.0  # for an interpreter to start from a slow network disk
_WORKFLOW = """
import importlib.metadata, json, platform
versions = {"Python": platform.python_version()}
for name in ("snakemake", "snakemake-executor-plugin-slurm"):
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        versions[name] = None
print(json.dumps(versions))
"""


def look(folder: str, name: str, settings: Document, workflow: str) -> Document:
    """Look at this board of a fleet: machine, helper, disk, clock, workflow.

    Returns `refused` (why it cannot measure; None: it can), `jetpack`, `helper` (its version),
    `no_helper` (why it does not answer), `free_gib`, and those of `leave_file` and `workflow_of`.

    `folder`: where the machine that asks has left a file `head`
    `settings`: as `Machine` takes them
    `workflow`: the Python in which jobs of the workflow run; empty: none runs here
    """
    machine = open_machine(settings)
    answer: Document = {"refused": None}
    answer["free_gib"] = free_gib(settings["storage"]["root"])
    try:
        machine.check()
    except EpochwattError as error:
        answer["refused"] = str(error)
    if isinstance(machine, JetsonBoard) and machine.identity is not None:
        answer.update(jetpack=machine.identity.jetpack, helper=None, no_helper=None)
        try:
            answer["helper"] = machine.ask_helper("status")["version"]
        except EpochwattError as error:
            answer["no_helper"] = error.problem
    answer.update(leave_file(folder, name))
    if workflow:
        answer.update(workflow_of(workflow))
    return answer


def leave_file(folder: str, name: str) -> Document:
    """Leave a file in a folder that machines share, and compare its time with the clock.

    Returns `seen` (what stands in the file of the machine that asks; None: no such file), `ahead_s`
    (this machine's clock minus the shared disk's), `unwritable` (why; None: it was written).
    """
    answer: Document = {"seen": None, "ahead_s": None, "unwritable": None}
    try:
        with open(os.path.join(folder, HEAD), encoding="ascii") as handle:
            answer["seen"] = handle.read()
        path = os.path.join(folder, name)
        with open(path + ".new", "w", encoding="ascii") as handle:
            handle.write(answer["seen"])
            handle.flush()
            os.fsync(handle.fileno())
            now_s = time.time()
            answer["ahead_s"] = now_s - os.fstat(handle.fileno()).st_mtime
        os.rename(path + ".new", path)
    except OSError as error:
        answer["unwritable"] = "{}: {}".format(folder, error.strerror)
    return answer


def workflow_of(python: str) -> Document:
    """Ask a Python for the workflow's packages.

    Returns `workflow` (versions by name, None: not installed) or `no_workflow` (why not).
    """
    try:
        done = subprocess.run(
            [python, "-c", _WORKFLOW],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode == 0:
            return {"workflow": json.loads(done.stdout)}
        why = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
    except OSError as error:
        why = str(error.strerror)
    except subprocess.TimeoutExpired:
        why = f"no answer within {PATIENCE_S:g} s"
    return {"no_workflow": why}


def free_gib(path: str) -> float:
    """Return the free space, GiB, of the file system of a path, which need not exist yet."""
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize / 2.0**30
