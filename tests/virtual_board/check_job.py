"""The whole job inside a virtual board: set-up, doctor, bug report, a study to its figures.

What an owner types runs as an ordinary user, in the user's checkout; root only plants and looks.
"""

import csv
import glob
import json
import math
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import check as board
from check import USER, check, plant

CHECKOUT = Path("/board/checkout").read_text()
VENV = "/opt/epochwatt-venv"
PYTHON = f"{CHECKOUT}/.venv/bin/python"
SUDOERS = "/etc/sudoers.d/first"
PROFILE = "/home/me/.config/snakemake/jetson"
HELPER = "/usr/local/sbin/epochwatt-helper"
SERIAL, HOST = Path("/proc/device-tree/serial-number").read_text().strip("\0"), "vboard"


def user(*command):
    """Run a command as the user in the checkout; return its status and all that it wrote."""
    start_s = time.monotonic()
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        env={
            **{"HOME": "/home/me", "USER": "me", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
            "EPOCHWATT_QUIET_JOBS": "",
        },
        user=USER,
        group=USER,
        extra_groups=[],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(f"$ {' '.join(command)}\n{done.stdout}")
    print(f"{' '.join(command)}: {time.monotonic() - start_s:.0f} s", flush=True)
    return done.returncode, done.stdout


# -- set-up --------------------------------------------------------------------------------------
def prepare():
    """Start the board as from the box, with the user's checkout on its disk."""
    now_s = float(Path("/board/now").read_text())
    if time.time() < now_s:  # no clock of its own: what is made would be older than the sources
        time.clock_settime(time.CLOCK_REALTIME, now_s)
    os.makedirs(CHECKOUT, exist_ok=True)
    subprocess.run(["busybox", "mount", "-t", "ext4", "/dev/vdc", CHECKOUT], check=True)
    subprocess.run(["busybox", "chown", "-R", f"{USER}:{USER}", CHECKOUT], check=True)
    os.makedirs("/dev/shm", exist_ok=True)
    subprocess.run(["busybox", "mount", "-t", "tmpfs", "shm", "/dev/shm"], check=True)
    packages = glob.glob(f"{VENV}/lib/python3*/site-packages")[0]
    Path(packages, "epochwatt.pth").write_text(f"{CHECKOUT}/src\n")
    Path(VENV, "path").write_text(CHECKOUT + "\n")
    Path(VENV, "workflow-ready").touch()
    Path("/etc/pam.d/other").unlink()  # it includes files that an unrun postinst makes
    os.symlink("/", "/data/board")  # `sysroot` of the device: where / stands, runs are called real
    board.start_board()
    os.makedirs(os.path.dirname(PROFILE), exist_ok=True)
    subprocess.run(["busybox", "ln", "-sfn", f"{CHECKOUT}/profiles/jetson", PROFILE], check=True)
    subprocess.run(["busybox", "chown", "-R", f"{USER}:{USER}", "/home/me"], check=True)


def allow_helper_by_its_link():
    """Let the user call the helper by the path below `sysroot`, where sudo does not by itself."""
    path = "/data/board" + HELPER
    if user("sudo", "-n", path, "status")[0]:
        rules = Path("/etc/sudoers.d/epochwatt").read_text()
        Path("/etc/sudoers.d/link").write_text(
            rules.replace(HELPER, path).replace("EPOCHWATT", "LINK")
        )


def check_set_up():
    """Let the user type `make remove-jetson` and `make setup-jetson`, with a sudo that asks."""
    refused, _ = user("sudo", "-n", "id")
    check("the user's sudo asks for a password", True, refused != 0)
    Path(SUDOERS).write_text("me ALL = (root) NOPASSWD: ALL\n")  # who has typed the password
    status, _ = user("make", "remove-jetson", "PYTHON=python3")
    check("make remove-jetson", [0, False], [status, os.path.exists(HELPER)])
    status, said = user("make", "setup-jetson", "PYTHON=python3")
    check("make setup-jetson", [0, True], [status, os.path.exists(HELPER)])
    profile = f"{CHECKOUT}/profiles/jetson"
    check("the profile is linked", profile, os.path.realpath(PROFILE))
    os.unlink(SUDOERS)
    refused, _ = user("sudo", "-n", "id")
    check("the user may call the helper alone", True, refused != 0)
    status, said = user("sudo", "-n", HELPER, "status")
    check("the helper answers the user", [0, board.kind.name], [status, json.loads(said)["kind"]])


def check_doctor():
    before = board.settings()
    status, said = user(".venv/bin/epochwatt", "doctor", "--seconds", "4")
    found = re.findall(r"^(ok|info|warning|problem)\s+(\S(?: ?\S)*)", said, re.M)
    total_w = sum(board.rails()[label] for label in board.parts())
    shown_w = re.search(r": ([\d.]+) W on average", said)
    shown_w = float(shown_w.group(1)) if shown_w else math.nan
    is_right = abs(shown_w - total_w) < 0.02
    check("doctor: power of the module, W", round(total_w, 2), shown_w, is_right)
    problems = sorted({topic.partition("  ")[0] for level, topic in found if level == "problem"})
    check("doctor: problems, status", [[], 0], [problems, status])
    board.check_as(before, "doctor changes nothing")


def check_bug_report():
    status, _ = user(".venv/bin/epochwatt", "bug-report")
    archives = glob.glob(f"{CHECKOUT}/*.tar.gz")
    check("bug-report: status, archives", [0, 1], [status, len(archives)])
    with tarfile.open(archives[0]) as archive:
        content = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}
    told = [name for name, data in content.items() if SERIAL.encode() in data]
    check("bug-report: files that name the board's serial number", [], told)
    kinds = json.loads(content["epochwatt-bundle/bundle.json"])
    check("bug-report: kind of board", True, board.kind.name in json.dumps(kinds))
    sums = [n for n in content if "/files/" in n and "curr" in n]
    check(
        "bug-report: currents of the rails", "some", len(sums), len(sums) >= len(board.kind.rails)
    )


# -- a study -------------------------------------------------------------------------------------
class Planter(threading.Thread):
    """Plants a fault in the second epoch of each run: first throttling, then a clock unmet."""

    def __init__(self):
        super().__init__(daemon=True)
        self.cores = {}
        gpu_khz = int(board.facts["gpu_hz"][0]) // 1000
        self.faults = iter([{"throttling": 1}, {"gpu_stuck_khz": gpu_khz}])

    def run(self):
        seen = set()
        while True:
            for folder in glob.glob(f"{CHECKOUT}/measured/*/epoch-*.unfinished"):
                if folder not in seen:
                    seen.add(folder)
                    self.during(folder)
            time.sleep(0.05)

    def during(self, folder):
        time.sleep(0.3)
        self.cores[folder.rpartition(".")[0]] = board.settings()["cores"]
        if "epoch-1" not in folder:
            return
        fault = next(self.faults, {})
        plant(**fault)
        print("planted", fault, "in", folder, flush=True)
        while os.path.exists(folder):
            time.sleep(0.05)
        plant(**dict.fromkeys(fault, 0))


def check_study():
    before = board.settings()
    planter = Planter()
    planter.start()
    status, _ = user(".venv/bin/snakemake", "--profile", "jetson", "tables", "figures")
    check("snakemake --profile jetson: exit status", 0, status)
    check_rows(4, planter.cores)
    board.check_as(before, "after the study")
    left = os.path.exists(f"/{board.FOLDER}/{board.STATE}")
    check("after the study: nothing waits to be put back", False, left)
    drawn = sorted(
        os.path.basename(path) for path in glob.glob(f"{CHECKOUT}/results/figures/*/*.svg")
    )
    check("figures", [f"fig02{panel}.svg" for panel in "abc"], drawn)


def check_rows(n_epochs, cores_seen=None):
    """Check modes, flags and energy of all epochs against what was planted."""
    with open(f"{CHECKOUT}/results/tables/epochs.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    check("epochs in the table", n_epochs, len(rows))
    total_w = sum(board.rails()[label] for label in board.parts())
    for row in rows:
        name, epoch = row["power_mode"], int(row["epoch"])
        path = glob.glob(f"{CHECKOUT}/measured/{row['run']}/epoch-{epoch}/record.json")[0]
        record = json.loads(Path(path).read_text())
        mode = record["board"]["power_mode"]
        wanted = board.kind.cores // (2 if name == "half" else 1)
        is_met = [mode["verified"], mode["read_back"]["cores"]]
        seen = None if cores_seen is None else cores_seen.get(os.path.dirname(path))
        check(f"{name}, epoch {epoch}: verified, cores", [True, wanted], is_met)
        check(f"{name}, epoch {epoch}: backend", "fake", row["backend"])
        if seen is not None:
            check(f"{name}, epoch {epoch}: cores in the kernel", wanted, seen)
        planted_flag = {("all", 1): "throttled", ("half", 1): "clock_below_request"}
        wanted_flag = planted_flag.get((name, epoch)) if cores_seen is not None else None
        flags = {"throttled", "clock_below_request", "over_current", "mode_not_verified"}
        flags &= set(row["flags"].split())
        check(f"{name}, epoch {epoch}: flags", [wanted_flag] if wanted_flag else [], sorted(flags))
        duration_s = record["t_end_mono_s"] - record["t_start_mono_s"]
        energy_j, truth_j = 3600 * float(row["energy_wh"] or "nan"), total_w * duration_s
        check(
            f"{name}, epoch {epoch}: energy",
            f"{truth_j:.1f} J",
            f"{energy_j:.1f} J",
            abs(energy_j / truth_j - 1) < 0.03,
        )


# -- driven from elsewhere -------------------------------------------------------------------------
def serve_ssh():
    """Let somebody drive this board over ssh until they have written /tmp/over."""
    before = board.settings()
    os.makedirs("/run/sshd", exist_ok=True)
    for name, value in (("lo", "127.0.0.1/8"), ("eth0", "10.0.2.15/24")):
        subprocess.run(["busybox", "ifconfig", name, value.partition("/")[0], "up"], check=False)
    subprocess.run(["busybox", "route", "add", "default", "gw", "10.0.2.2"], check=False)
    os.makedirs("/home/me/.ssh", exist_ok=True)
    Path("/home/me/.ssh/authorized_keys").write_text(Path("/board/keys/user.pub").read_text())
    subprocess.run(["busybox", "chown", "-R", f"{USER}:{USER}", "/home/me/.ssh"], check=True)
    options = ["HostKey=/board/keys/board", "UsePAM=no", "Subsystem=sftp internal-sftp"]
    options += ["PasswordAuthentication=no", "ClientAliveInterval=15"]
    words = [word for option in options for word in ("-o", option)]
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *words])
    print("SSH READY", flush=True)
    while not os.path.exists("/tmp/over") and server.poll() is None:
        time.sleep(0.2)
    server.kill()
    check_rows(2)
    board.check_as(before, "after a study driven over ssh")


STAGES = {
    "set-up": (prepare, check_set_up, allow_helper_by_its_link, check_doctor, check_bug_report),
    "study": (prepare, allow_helper_by_its_link, check_study),
    "ssh": (prepare, allow_helper_by_its_link, serve_ssh),
}
if __name__ == "__main__":
    board.run_parts(STAGES[sys.argv[1]])
