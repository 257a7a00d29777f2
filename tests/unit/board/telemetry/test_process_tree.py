"""The trainer and its workers, as they come and go."""

import os
import subprocess
import sys

import pytest

from epochwatt.board.telemetry.process_tree import ProcessTree


@pytest.fixture(params=["children files", "parents only"])
def tree(request, root):
    """The tree below process 100 on both kinds of kernel; root.add(pid, parent) adds to it."""
    known = {}

    def add(pid, parent, **used):
        known[pid] = parent
        for each in (100, *known):
            below = [child for child, above in known.items() if above == each]
            children = below if request.param == "children files" else None
            if each == 100:
                root.process(100, 1, (1, 2, 3, 4), (1000, 100), children)
            elif each == pid:
                root.process(pid, parent, children=children, **used)
            elif children is not None:
                root.write(f"proc/{each}/task/{each}/children", " ".join(map(str, children)))

    root.add = add
    if request.param == "parents only":
        (root.path / "proc/100/task/100/children").unlink()
    root.add(7, 1)
    tree = ProcessTree(str(root.path / "proc"), 100)
    yield tree
    tree.close()


def test_descendants_are_counted_and_strangers_are_not(root, tree):
    root.add(101, 100, ticks=(10, 0, 0, 0), io=(50, 5))
    root.add(102, 101, ticks=(20, 0, 0, 0), io=(1, 1))
    root.add(103, 7, ticks=(40, 0, 0, 0), io=(9, 9))
    assert tree.totals() == (40.0, 1051.0, 106.0)


def test_work_of_a_reaped_worker_is_not_lost():
    code = (
        "import os, time\n"
        "def burn(s):\n"
        "    end = time.process_time() + s\n"
        "    while time.process_time() < end: pass\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    burn(0.05); os.write(1, b'a'); os.read(0, 1); os._exit(0)\n"
        "os.waitpid(pid, 0); os.write(1, b'b'); os.read(0, 1)\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        tree = ProcessTree("/proc", process.pid)
        assert process.stdout.read(1) == b"a"
        with_worker = tree.totals()
        assert len(tree.take()) == 2
        process.stdin.write(b"x")
        assert process.stdout.read(1) == b"b"
        without = tree.totals()
        assert len(tree.take()) == 1
        process.stdin.write(b"x")
    tree.close()
    assert with_worker[0] >= 0.04 * os.sysconf("SC_CLK_TCK")
    assert without[0] >= with_worker[0] - 1  # ticks are rounded down in each process
