"""An epoch that was stopped says so, whoever was stopped, and no other does."""

import json
import time

import pytest

from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training import observation
from epochwatt.board.training.observation import has_stopped, noticed_stops

# The first sample that is transformed stops its process (or the group), and a process outside of
# it lets it go on.
STOPPED = """
import json, os, signal, subprocess, sys
from torch.utils.data import get_worker_info
from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training import workloads
from epochwatt.board.training.job import run_part
root, run, receipt, data_root, factors, machine, target = sys.argv[1:]
os.setsid()
known = workloads.WORKLOADS["lenet"]
mark = receipt + ".stopped"
def stop_once(raw):
    is_there = (get_worker_info() is None) == (target != "worker")  # of the epoch, not before it
    if target != "nobody" and is_there and not os.path.exists(mark):
        open(mark, "w").close()
        pid = -os.getpgid(0) if target == "group" else os.getpid()
        code = "import os, time; time.sleep(0.4); os.kill({}, {:d})".format(pid, signal.SIGCONT)
        subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
        os.kill(pid, signal.SIGSTOP)
    return known.transform(raw)
workloads.WORKLOADS["lenet"] = known._replace(transform=stop_once)
machine = open_machine(json.loads(machine))
run_part(RunFolder(root, run), json.loads(factors), 0, 1, data_root, receipt, machine)
"""


@pytest.mark.parametrize(
    ("target", "num_workers"),
    [
        ("worker", 1),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in (("nobody", 1), ("trainer", 0), ("group", 0), ("group", 1))
        ),
    ],
)
def test_stopped_epoch_is_flagged_and_the_next_is_not(
    folder, factors, data_root, tmp_path, machine, python, target, num_workers
):
    factors = {**factors, "num_workers": num_workers}
    receipt = str(tmp_path / "part.json")
    words = [folder.root, folder.run, receipt, data_root, json.dumps(factors)]
    python(STOPPED, *words, json.dumps(machine.settings), target)
    flags = [RunFolder(folder.root, folder.run).read(epoch).meta["flags"] for epoch in (0, 1)]
    assert ["stopped" in each for each in flags] == [target != "nobody", False]


def test_machine_that_slept_is_noticed(monkeypatch):
    clock = time.clock_gettime
    ahead_s = [0.0]
    monkeypatch.setattr(observation.time, "clock_gettime", lambda which: clock(which) + ahead_s[0])
    with noticed_stops() as about:
        ahead_s[0] = 60.0
    assert about["slept_s"] == pytest.approx(60.0, abs=0.1)
    assert has_stopped(about)
