"""The whole job on a virtual board: a study on the board itself, and one driven over ssh from here.

It needs torch and the workflow's packages for aarch64, which are fetched from PyPI and kept with
the board's programs in job.img.
"""

import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from epochwatt.errors import EpochwattError
from epochwatt.study.devices import Devices
from tests.fakeboard.kinds import FakeKind

from .build import (
    CACHE,
    HERE,
    PROGRAMS,
    ROOT_SCRIPT,
    SUITE,
    Kernel,
    fetch_programs,
    make_image,
    make_once,
    run,
)
from .run import MARK, Line, console, fill, has_passed, machine, shown

REPOSITORY = HERE.parents[1]
IMAGE = CACHE / "job.img"
JOB_PROGRAMS = (*PROGRAMS, "openssh-server", "make", "bash", "coreutils", "libstdc++6")
TORCH = ("torch==2.5.1", "torchvision==0.20.1", "numpy==1.26.4", "pillow==11.0.0", "psutil==6.1.0")
PYTHON = "3.11"  # of the board, as Debian has it
VENV = "opt/epochwatt-venv"
LOCK = REPOSITORY / "requirements/workflow.txt"
PARTS_OF_CHECKOUT = ("Makefile", "Snakefile", "pyproject.toml", "config", "profiles", "workflow")
PARTS_OF_CHECKOUT += ("requirements", "src", "README.md")
MEMORY_MIB = 3072
LIMIT_S = 3600
STUDY = "virtual"
SYSROOT = "/data/board"  # a link to / on the board: so its runs are of backend `fake`, not measured
SSH_READY = "SSH READY"
STAGES = ("set-up", "study", "ssh")  # each on a freshly started board


def check_job(kernel: Kernel, fake: FakeKind, stages: list[str]) -> bool:
    """Run the job on a board, print a line for each check; return whether all are as expected.

    Parameters
    ----------
    stages : of `STAGES`
    """
    check_needs()
    build_image()
    start_s = time.monotonic()
    lines: list[Line] = []
    for stage in stages:
        with tempfile.TemporaryDirectory(prefix="epochwatt-virtual-board-") as work:
            lines += _check_stage(kernel, fake, Path(work), stage)
    what = f"the whole job, {', '.join(stages)}, {fake.name} with Linux {kernel.version}"
    return has_passed(what, lines, len(stages), time.monotonic() - start_s, kernel.folder)


def check_needs() -> None:
    """Raise EpochwattError where this machine lacks what drives a board over ssh."""
    needed = {"ssh": "openssh-client", "ssh-keygen": "openssh-client", "sshfs": "sshfs"}
    missing = sorted({package for name, package in needed.items() if not shutil.which(name)})
    if missing:
        raise EpochwattError(
            "the whole job cannot be run here: commands of Debian are missing",
            found="no " + ", ".join(missing),
            do="apt install --no-install-recommends " + " ".join(missing),
        )


# -- the root ---------------------------------------------------------------------------------
def build_image() -> None:
    """Make the board's root with torch, the workflow's packages and an ssh server; once."""
    made_of = [SUITE, *JOB_PROGRAMS, *TORCH, PYTHON, VENV, ROOT_SCRIPT, LOCK]
    make_once(CACHE / "job.built", made_of, _build_image)


def _build_image() -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        work = Path(name)
        debs = fetch_programs(work, JOB_PROGRAMS)
        more = work / "more"
        _install(more / f"usr/local/lib/python{PYTHON}/dist-packages", *TORCH)
        packages = more / VENV / f"lib/python{PYTHON}/site-packages"
        _install(packages, "--require-hashes", "-r", str(LOCK))
        _make_venv(more / VENV)
        _compile(more, "/")
        words = [debs, work / "tree", IMAGE.with_suffix(".new"), "3G", more]
        run("fakeroot", "sh", "-e", ROOT_SCRIPT, *words)
    IMAGE.with_suffix(".new").rename(IMAGE)


def _install(target: Path, *words: str) -> None:
    """Install packages of PyPI for the board; nothing of them is run here."""
    run(
        *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", target),
        *("--python-platform", "aarch64-manylinux_2_28", "--python-version", PYTHON, *words),
    )


def _make_venv(folder: Path) -> None:
    """Make of a folder of packages what `make .venv/workflow-ready` makes."""
    (folder / "bin").mkdir()
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to("/usr/bin/python3")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for name, module in (("snakemake", "snakemake.cli"), ("epochwatt", "epochwatt.cli")):
        script = folder / "bin" / name
        script.write_text(
            f"#!/{VENV}/bin/python\nimport sys\n\nfrom {module} import main\n\nsys.exit(main())\n"
        )
        script.chmod(0o755)


def _compile(folder: Path, place: str) -> None:
    """Compile what lies at a place on the board, where this machine has its Python: it is slow."""
    python = shutil.which(f"python{PYTHON}") or sys.executable
    asked = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.stdout.strip() == PYTHON:
        subprocess.run(
            [*(python, "-m", "compileall", "-q", "-s", folder, "-p", place), folder],
            check=False,  # some packages carry files of other versions' grammar
            stdout=subprocess.DEVNULL,
        )


# -- a stage ----------------------------------------------------------------------------------
def _check_stage(kernel: Kernel, fake: FakeKind, work: Path, stage: str) -> list[Line]:
    """Start a board for a stage and run it; return the lines of its checks."""
    keys = work / "keys"
    _make_keys(keys)
    port = _free_port()
    checkout = work / "checkout"
    _copy_checkout(work / "copy")
    _configure(work / "copy", fake, _python_over_ssh(keys) if stage == "ssh" else None)
    _compile(work / "copy", str(checkout))
    make_image(work / "copy", work / "checkout.img", 1024)
    checkout.mkdir()
    fill(kernel, fake, work / "content")
    shutil.copy(HERE / "check_job.py", work / "content")
    shutil.copytree(keys, work / "content/keys")
    (work / "content/checkout").write_text(str(checkout))
    (work / "content/now").write_text(str(time.time()))
    make_image(work / "content", work / "board.img", 64)
    _write_ssh_config(keys, port)

    command = machine(kernel, fake, work, MEMORY_MIB)
    command += ["-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"]
    command += ["-device", "virtio-net-pci,netdev=net,romfile="]
    command += [
        "-append",
        f"console=ttyAMA0 quiet panic=-1 mitigations=off CHECK=check_job WORD={stage}",
    ]
    for n, image in enumerate((IMAGE, work / "board.img", work / "checkout.img")):
        command += ["-drive", f"file={image},format=raw,if=none,id=disk{n},snapshot=on"]
        command += ["-device", f"virtio-blk-pci,drive=disk{n}"]
    drive = functools.partial(_drive, keys, checkout)
    log = kernel.folder / f"console-job-{fake.name}-{stage}.log"
    return list(shown(_watched(console(command, log, None, LIMIT_S), drive)))


def _watched(lines: Iterator[str], drive: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Give the lines of a console; at the one that asks for it, drive the board over ssh."""
    for line in lines:
        yield line
        if line.strip() == SSH_READY:
            yield from drive()


def _copy_checkout(folder: Path) -> None:
    """Copy what a study needs of this checkout, not what is in it besides."""
    folder.mkdir()
    no_bytecode = shutil.ignore_patterns("__pycache__")
    for name in PARTS_OF_CHECKOUT:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=no_bytecode)
        else:
            shutil.copy(source, folder)
    (folder / ".venv").symlink_to(f"/{VENV}")


def _configure(checkout: Path, fake: FakeKind, python: list[str] | None) -> None:
    """Select a study of LeNet: on all cores, and on half of them at half the clocks.

    Parameters
    ----------
    python : words that reach the board's interpreter from here, for the second run alone; None:
        both runs are started on the board
    """
    devices = Devices(checkout)
    boards = {devices.get(name, "").board: name for name in devices.names()}
    device = boards[fake.board.name]
    path = checkout / f"config/devices/{device}.yaml"
    cpu_khz, gpu_hz = fake.cpu_khz, fake.gpu_hz
    half = {"cores": fake.board.cores // 2, "cpu_mhz": cpu_khz[len(cpu_khz) // 2] / 1e3}
    half["gpu_mhz"] = gpu_hz[len(gpu_hz) // 2] / 1e6
    changed: dict[str, Any] = {
        "sysroot": SYSROOT,
        **{"settle": None, "idle_s": 0, "torch_threads": 1, "dvfs": ["off"]},
        "storage": {"disk": {"title": "the disk", "root": "data"}},
        "power_modes": {"all": {"cores": fake.board.cores}, "half": half},
    }
    if python is not None:
        changed |= {"remote": True, "python": python}
    _write_yaml(path, yaml.safe_load(path.read_text()) | changed)
    block = {"model": "lenet", "dataset_scale": 0.1, "num_workers": 0, "batch_size": 16}
    block |= {"epochs_per_job": 3}  # one start of torch, which takes a minute or two
    study = {
        **{"title": "A virtual board", "backend": "jetson", "device": device, "epochs": 3},
        "sweep": [block | {"power_mode": ["all", "half"] if python is None else "half"}],
    }
    _write_yaml(checkout / "config/studies.yaml", {STUDY: study})
    _write_yaml(checkout / "config/config.yaml", {"studies": [STUDY]})
    plotting = yaml.safe_load((checkout / "config/plotting.yaml").read_text())
    figure = plotting["figures"]["fig02"]
    plotting["figures"] = {"fig02": figure | {"studies": [STUDY]}}
    _write_yaml(checkout / "config/plotting.yaml", plotting)


def _write_yaml(path: Path, content: object) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


# -- ssh --------------------------------------------------------------------------------------
def _make_keys(folder: Path) -> None:
    folder.mkdir()
    for name in ("board", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name)


def _write_ssh_config(keys: Path, port: int) -> None:
    """Write how ssh reaches the board: as `vboard`, by its key alone."""
    public = " ".join((keys / "board.pub").read_text().split()[:2])
    (keys / "known").write_text(f"[127.0.0.1]:{port} {public}\n")
    (keys / "config").write_text(
        f"Host vboard\n  HostName 127.0.0.1\n  Port {port}\n  User me\n"
        f"  IdentityFile {keys}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {keys}/known\n  ConnectTimeout 60\n"
    )


def _python_over_ssh(keys: Path) -> list[str]:
    """Return the words of docs/how-to/jetson-remote.md for this board."""
    return [
        "bash",
        "-c",
        "export LC_ALL=C.UTF-8; exec ssh -tt -o BatchMode=yes -o LogLevel=ERROR -o "
        f"ServerAliveInterval=15 -F {keys}/config vboard "
        '"cd ${PWD@Q} && PYTHONPATH=src exec /usr/bin/python3 ${*@Q}"',
        "ssh",
    ]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _drive(keys: Path, checkout: Path) -> Iterator[str]:
    """Run the study from here, with the board's checkout mounted at its own path; give checks."""
    on_board = ["ssh", "-F", str(keys / "config"), "-o", "BatchMode=yes", "vboard"]
    boot_id = _patiently(*on_board, "cat /proc/sys/kernel/random/boot_id").strip()
    with _mounted(keys, checkout):
        start_s = time.monotonic()
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "snakemake",
                "--profile",
                "profiles/jetson",
                "tables",
                "figures",
            ],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": f"{checkout}/src", "EPOCHWATT_ALLOW_ROOT": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        yield from done.stdout.splitlines()
        print(f"driven over ssh: {time.monotonic() - start_s:.0f} s", flush=True)
        status = done.returncode or 0
        yield line_of("a study driven over ssh: exit status", 0, status)
        records = [
            json.loads(path.read_text()) for path in checkout.glob("measured/*/epoch-*/record.json")
        ]
        yield line_of("epochs that were measured", 3, len(records))
        yield line_of(
            "where: the board's own start", [boot_id], sorted({one["boot_id"] for one in records})
        )
        drawn = sorted(path.name for path in checkout.glob("results/figures/*/*.svg"))
        yield line_of("a figure is drawn here", [f"fig02{panel}.svg" for panel in "abc"], drawn)
    run(*on_board, "touch /tmp/over")


def _patiently(*command: str) -> str:
    """Run a command until it succeeds, for a minute: the board's server may not listen yet."""
    deadline_s = time.monotonic() + 60
    while True:
        try:
            return run(*command)
        except EpochwattError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(1)


def line_of(check: str, expected: object, seen: object) -> str:
    """Return a check as the console tells of it."""
    told = {"check": check, "expected": expected, "seen": seen, "is_right": expected == seen}
    return MARK + json.dumps(told, default=str)


@contextmanager
def _mounted(keys: Path, checkout: Path) -> Iterator[None]:
    """Mount the board's checkout here at the same path, as docs/how-to/jetson-remote.md says."""
    run(
        *("sshfs", "-F", f"{keys}/config", "-o", "idmap=user,reconnect,ServerAliveInterval=15"),
        *(f"vboard:{checkout}", checkout),
    )
    try:
        yield
    finally:
        subprocess.run(["fusermount3", "-u", "-z", checkout], check=False)
