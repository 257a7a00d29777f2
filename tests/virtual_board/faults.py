"""Faults that no tree of files has, inside a virtual board, while a run is measured.

The wall clock is set, the sampler dies, the kernel kills the trainer for want of memory, the disk
is full or pulled out, the power is cut. Nothing that was finished may be lost, nothing wrong may be
kept, and the board's settings have to be back at the latest when the next job has started. The job
is ours but for torch (trainer.py), as the rule train_epoch starts it, by an ordinary user; this
here is root, because it breaks things.
"""

import csv
import glob
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import trainer
from check import (
    USER,
    another_mode,
    as_user,
    asked,
    board_files,
    check,
    machine,
    plant,
    run_parts,
    start_board,
    truth_j,
)

from epochwatt.board.records.run_folder import RunFolder
from epochwatt.columns import FLAG_EFFECTS
from epochwatt.epochs.collect import collect_run
from epochwatt.errors import EpochwattError

RUN = "r"
PUT_BACK = "a job before this one was killed: its settings are put back first"
DAY_S = 86400
NO_BOUND = {"sampler_lost", "sampler_gap", "power_lost", "power_missing", "power_still"}
NO_BOUND |= {"power_sampling_regular", "power_resolution_unknown"}
EPOCH_S = trainer.N_MINIBATCHES * (trainer.WAIT_S + trainer.STEP_S)
LIMIT_S = 240  # until a job says what it is waited for; a busy machine is slow
numbers = itertools.count()


class Job:
    """A job of the run, started; its output is in a file."""

    def __init__(self, point, first, last, mode, **variables):
        settings = dict(machine().settings, power_source="sysfs", settle=None)
        settings["storage"] = {"root": f"{point}/data", "mount": "", "block_device": ""}
        factors = dict(trainer.FACTORS, power_mode_settings=mode)
        factors["board_settings"] = {"power_source": "sysfs"}
        words = ["/board/trainer.py", "--data-root", f"{point}/data", "--run", RUN]
        words += ["--machine", json.dumps(settings), "--factors", json.dumps(factors)]
        words += ["--first", str(first), "--last", str(last), "--measured", f"{point}/measured"]
        words += ["--receipt", f"{point}/receipt.json"]
        ended = "python3 -m epochwatt.board.training.ended $?"
        self.log = Path(f"/tmp/job-{next(numbers)}.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", f"( python3 {shlex.join(words)} || {ended} ) 2>&1"],
                stdout=log,
                user=USER,
                group=USER,
                extra_groups=[],
                env=dict(os.environ, HOME="/home/me", USER="me", **variables),
            )

    @property
    def output(self):
        return self.log.read_text()

    def wait_for(self, line):
        """Wait until it has written a line; return when that was."""
        deadline_s = time.monotonic() + LIMIT_S
        while line not in self.output.split("\n"):
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                raise TimeoutError(f"no `{line}` in:\n{self.output}")
            time.sleep(0.05)
        return time.monotonic()

    def end(self):
        """Wait for its end; return its exit status. The console keeps its last words."""
        status = self.process.wait(LIMIT_S)
        print("".join(f"job: {line}\n" for line in self.output.splitlines()[-12:]), flush=True)
        return status


def mount(device, point):
    os.makedirs(point, exist_ok=True)
    deadline_s = time.monotonic() + 20
    while not os.path.exists(device) and time.monotonic() < deadline_s:
        time.sleep(0.2)
    subprocess.run(["busybox", "mount", "-t", "ext4", device, point], check=True)
    if not os.path.exists(f"{point}/data"):
        trainer.make_data(f"{point}/data")
    os.chown(point, USER, USER)


def rows(point):
    """Return what becomes of the records: the rows of epochs.csv."""
    n_epochs = len(RunFolder(f"{point}/measured", RUN).measured())
    collect_run(
        f"{point}/measured", RUN, n_epochs, FLAG_EFFECTS, "/tmp/epochs.csv", "/tmp/energy.csv"
    )
    with open("/tmp/epochs.csv", newline="") as file:
        return list(csv.DictReader(file))


def flags(row):
    return row["flags"].split()


# -- what has to hold after each fault -------------------------------------------------------------
def check_kept(fault, point, n_epochs):
    """Check that these epochs are there and whole, and none beside them."""
    folder, damaged = RunFolder(f"{point}/measured", RUN), []
    check(f"{fault}: finished epochs", list(range(n_epochs)), folder.measured())
    for epoch in folder.measured():
        try:
            folder.verify(epoch)
        except EpochwattError as error:
            damaged.append(str(error))
    check(f"{fault}: damaged epochs", [], damaged)
    fault_of_next = folder.checkpoint_fault(n_epochs - 1) if n_epochs else ""
    check(f"{fault}: the checkpoint to go on from", "whole", fault_of_next or "whole")


def check_mode(fault, is_put_back):
    """Check that the board has its own mode, or still that of a killed job and remembers."""
    own = board_files.strongest(board_files.board_conf("/")).id
    wanted = [own, False] if is_put_back else [another_mode().id, True]
    shown = as_user(asked, "status")
    what = "mode put back, nothing waits" if is_put_back else "the job's mode, its own waits"
    check(f"{fault}: {what}", wanted, [shown["nvpmodel"]["id"], shown["stored"]])


def check_resumed(fault, point, epoch):
    """Check that an epoch was measured after an attempt that died, with the weights from before."""
    folder = RunFolder(f"{point}/measured", RUN)
    meta = folder.read(epoch).meta
    seen = [meta["weights"], "resumed" in meta["flags"]]
    check(f"{fault}: epoch {epoch} goes on", ["checkpoint", True], seen)


def check_weights(fault, point, n_epochs):
    """Check that the weights were carried through all epochs, whatever came in between."""
    path = RunFolder(f"{point}/measured", RUN).checkpoint_path(n_epochs - 1)
    with trainer.np.load(path) as archive:
        seen = int(archive["0"][0])
    check(f"{fault}: mini-batches learnt", n_epochs * trainer.N_MINIBATCHES, seen)


def energy(point, row):
    """Return an epoch's planted energy, J, ours in words, and whether it is right within its bound.

    One without a bound is right where a flag tells why.
    """
    meta = RunFolder(f"{point}/measured", RUN).read(int(row["epoch"])).meta
    true_j = truth_j(meta["t_start_mono_s"], meta["t_end_mono_s"])
    if not row["energy_error_pct"]:
        why = sorted(NO_BOUND & set(flags(row)))
        return true_j, f"no bound: {' '.join(why)}", bool(why)
    energy_j, bound_pct = 3600 * float(row["energy_wh"]), float(row["energy_error_pct"])
    off_pct = 100 * (energy_j / true_j - 1)
    seen = f"{energy_j:.2f} J, off {off_pct:+.2f} %, bound {bound_pct:.2f} %"
    return true_j, seen, abs(energy_j - true_j) <= bound_pct / 100 * energy_j


def check_energy(fault, point, row):
    true_j, seen, is_right = energy(point, row)
    check(f"{fault}: energy", f"{true_j:.2f} J", seen, is_right)


def job_mode():
    return {"nvpmodel": another_mode().name}


# -- the faults ------------------------------------------------------------------------------------
NVME, USB, DISK = "/data/nvme", "/data/usb", "/data/disk"


def check_first_job():
    """Set the wall clock forth in epoch 1 and back in epoch 2, kill the sampler in 3, the job in 4.

    The last is done by the kernel, when the trainer takes all the memory there is.
    """
    mount("/dev/nvme0n1", NVME)
    job = Job(NVME, 0, 9, job_mode(), **{trainer.EAT_MEMORY_IN: "4"})
    longest_s = {}
    for epoch, by_s in ((1, DAY_S), (2, -2 * DAY_S)):
        begun_s = job.wait_for(f"BEGIN {epoch}")
        job.wait_for(f"HALF {epoch}")
        time.clock_settime(time.CLOCK_REALTIME, time.time() + by_s)
        longest_s[epoch] = job.wait_for(f"EPOCH {epoch}") - begun_s + 0.1
    job.wait_for("HALF 3")
    os.kill(pid_of_sampler(), signal.SIGKILL)
    fault = "out of memory"
    check(f"{fault}: exit status", 128 + signal.SIGKILL, job.end())
    named = "for want of memory" in job.output and "do: " in job.output
    check(f"{fault}: cause and remedy named", True, named or job.output[-300:])
    check_kept(fault, NVME, 4)
    check_mode(fault, is_put_back=False)

    table = rows(NVME)
    for epoch, fault in enumerate(("clock set a day ahead", "clock set two days back"), 1):
        row = table[epoch]
        check(f"{fault}: flag", True, "clock_jumped" in flags(row))
        shown = f"{EPOCH_S:.1f} to {longest_s[epoch]:.1f} s"
        e2e_s = float(row["e2e_s"])
        check(f"{fault}: e2e_s", shown, e2e_s, EPOCH_S <= e2e_s <= longest_s[epoch])
        check_energy(fault, NVME, row)
    check("clock not set: flag", False, "clock_jumped" in flags(table[0]))
    seen = ["sampler_lost" in flags(table[3]), table[3]["energy_wh"], table[3]["valid"]]
    check("sampler killed: flag, energy, times count", [True, "", "True"], seen)


def check_next_job():
    """Go on after it; fill the disk for a moment in epoch 5, and for good in epoch 6."""
    job, filler = Job(NVME, 4, 9, job_mode()), f"{NVME}/filler"
    job.wait_for("HALF 5")
    fill(filler)
    time.sleep(0.3 * EPOCH_S)
    os.unlink(filler)
    job.wait_for("HALF 6")
    fill(filler)
    fault = "full disk"
    check(f"{fault}: exit status", 1, job.end())
    check(f"{fault}: named", True, "the disk is full; free some space" in job.output)
    check_kept(fault, NVME, 6)
    check_mode(fault, is_put_back=True)
    os.unlink(filler)
    check("after out of memory: settings put back first", True, PUT_BACK in job.output)
    check_resumed("after out of memory", NVME, 4)
    table = rows(NVME)
    check_energy("after out of memory", NVME, table[4])
    check_energy("disk full for a moment", NVME, table[5])

    job = Job(NVME, 6, 6, {})
    check(f"{fault}, next start: exit status", 0, job.end())
    check_kept(f"{fault}, next start", NVME, 7)
    check_resumed(f"{fault}, next start", NVME, 6)
    check_weights("all faults so far", NVME, 7)


def pid_of_sampler():
    """Return the process of the sampler; None: there is none."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = Path(path).read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"epochwatt.board.telemetry" in words:
            return int(path.split("/")[2])
    return None


def fill(path):
    """Take all the space that an ordinary user could have."""
    with open(path, "wb") as file:
        space = os.statvfs(path)
        os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize)


def check_dying_disk():
    """Take the disk away in epoch 1, and bring it back after the end of the job."""
    mount("/dev/sda", USB)
    fault = "disk pulled out"
    port = next(
        Path(path).parent
        for path in glob.glob("/sys/bus/usb/devices/*/bDeviceClass")
        if ":" not in path and not Path(path).parent.name.startswith("usb")
    )
    job = Job(USB, 0, 9, job_mode())
    job.wait_for("HALF 1")
    (port / "authorized").write_text("0\n")
    check(f"{fault}: exit status", 1, job.end())
    said = "cannot write" in job.output and "nothing of it counts" in job.output
    check(f"{fault}: named", True, said or job.output[-400:])
    check_mode(fault, is_put_back=True)
    subprocess.run(["busybox", "umount", "-l", USB], check=True)
    (port / "authorized").write_text("1\n")
    deadline_s = time.monotonic() + 30
    while not (found := glob.glob("/dev/sd?")) and time.monotonic() < deadline_s:
        time.sleep(0.2)
    mount(found[0], USB)
    check_kept(fault, USB, 1)
    job = Job(USB, 1, 1, {})
    check(f"{fault}, next start: exit status", 0, job.end())
    check_kept(f"{fault}, next start", USB, 2)
    check_resumed(f"{fault}, next start", USB, 1)
    check_weights(f"{fault}, next start", USB, 2)


# -- power cuts ------------------------------------------------------------------------------------
def record_until_the_cut(n_finished):
    """Check what the last power cut has left, then record epochs until the next one.

    `n_finished`: how many the host has seen end; it cuts the power after some more.
    """
    n_there = after_a_cut(n_finished)
    job = Job(DISK, n_there, 999, job_mode())
    seen = n_there
    while True:
        job.wait_for(f"EPOCH {seen}")
        if seen == n_there and n_finished:
            check("power cut: settings put back first", True, PUT_BACK in job.output)
            check_resumed("power cut", DISK, n_there)
        print("EPOCH", seen, flush=True)  # from the first one on the power may be cut
        seen += 1


def end_after_the_cut(n_finished):
    """Check what the last power cut has left; the next job sets no mode."""
    n_there = after_a_cut(n_finished)
    check("power cut: the board's own mode waits", True, as_user(asked, "status")["stored"])
    job = Job(DISK, n_there, n_there, {})
    check("power cut, next start: exit status", 0, job.end())
    check_kept("power cut, next start", DISK, n_there + 1)
    check_weights("all power cuts", DISK, n_there + 1)
    energies = [energy(DISK, row) for row in rows(DISK)]
    wrong = [words for _, words, is_right in energies if not is_right]
    check(f"all power cuts: wrong ones of {len(energies)} energies", [], wrong)
    check_mode("power cut, next start", is_put_back=True)


def after_a_cut(n_finished):
    """Mount the disk and check it; return how many epochs are there."""
    start_board(is_first=not n_finished)
    mount("/dev/vdc", DISK)
    folder = RunFolder(f"{DISK}/measured", RUN)
    n_there = len(folder.measured())
    if n_finished:
        seen = f"at least {n_finished}" if n_there >= n_finished else n_there
        check("power cut: epochs that had ended", f"at least {n_finished}", seen)
        check_kept("power cut", DISK, n_there)
    return n_there


def main():
    plant(square_ms=300, square_ma=1000)
    word, _, number = (sys.argv[1:] or [""])[0].partition(":")
    if word:
        part = {"cut": record_until_the_cut, "end": end_after_the_cut}[word]
        run_parts([lambda: part(int(number))])
        return
    start_board()
    run_parts([check_first_job, check_next_job, check_dying_disk])


main()
