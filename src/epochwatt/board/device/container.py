"""Run a command in a container of podman or docker (board side: Python 3.6 grammar).

The one module that knows these programs. The container gets what would otherwise be an effect of
its own rather than of the container: as much shared memory as the machine, the limits of this
process, and the machine's name. It has no network. Files it makes belong to this user.

Sources: podman-run(1) of 4.3, docker-run(1) of 20.10, nvidia-container-runtime.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional, Sequence

import epochwatt
from epochwatt.board.device import host, remedies
from epochwatt.columns import Factors
from epochwatt.errors import TrainingError

NONE = "none"  # an engine, too: the machine itself, once more
PACKAGE = "/opt/epochwatt"  # where the container has this package; its site-packages stay its own
# of the machine, where they are there: kind of board, power modes, the socket that power is read at
MACHINE_FILES = ("/etc/nv_tegra_release", "/etc/nvpmodel.conf", "/run/jtop.sock")
PASSED_ON = (*host.TUNING, "CUDA_", "TORCH", "EPOCHWATT_", "PYTHON", "LC_", "LANG")
UNMASKED = {  # device tree, RAPL and the switch of the page cache are hidden or read-only else
    "podman": ["--security-opt", "unmask=ALL"],
    "docker": ["--security-opt", "systempaths=unconfined"],
}
PODMAN_PROCESSES = 32768  # its own limit as root: it may give no more
INSTALL = {
    "podman": "sudo apt-get install podman runc",
    "docker": "sudo apt-get install docker.io (boards: nvidia-container too)",
}
# what an engine says of an image that cannot be looked at: pattern -> problem, what to type
REFUSALS = (
    (
        "permission denied",
        "this user may not use {engine}",
        "sudo usermod -aG {engine} $USER, then log in anew",
    ),
    ("connect", "{engine} does not answer", "sudo systemctl start {engine}"),
    (
        "",
        "{engine} has no image {image}",
        "make container-image ENGINE={engine} NAME={tag}, or {engine} pull {image}",
    ),
)
NOT_STARTED = {
    125: "{engine} could not start the container",
    126: "{engine} could not start {python} in the container",
    127: "the container has no {python}",
}


def settings_of(factors: Factors) -> Optional[Dict[str, str]]:
    """Return `engine`, `image`, `rootfs`, `runtime` of a run's container; None: no container."""
    settings = factors.get("container_settings")
    return None if settings is None or settings["engine"] == NONE else settings


def describe(settings: Dict[str, str]) -> Dict[str, str]:
    """Ask the engine; return the settings with its `version` and the image's `digest`.

    A root file system in a folder has no digest.

    Raises TrainingError: the engine or the image is not there, or this user may not use it.
    """
    engine = settings["engine"]
    if shutil.which(engine) is None:
        raise TrainingError(f"{engine} is not installed", do=INSTALL[engine])
    version = _run([engine, "--version"]).stdout.strip()
    digest = ""
    if settings["rootfs"]:
        if not os.path.isdir(settings["rootfs"]):
            raise TrainingError("rootfs {} is no folder".format(settings["rootfs"]))
    else:
        answer = _run([engine, "image", "inspect", "--format", "{{.Id}}", settings["image"]])
        if answer.returncode != 0:
            found = answer.stderr.strip()
            values = dict(settings, tag=settings["image"].rpartition(":")[2])
            for pattern, problem, do in REFUSALS:  # the last fits anything
                if re.search(pattern, found, re.IGNORECASE):
                    problem, do = problem.format(**values), do.format(**values)
                    raise TrainingError(problem, found=found, do=do)
        digest = answer.stdout.strip()
    return dict(settings, version=version, digest=digest)


def _run(words: Sequence[str]) -> Any:
    return subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False
    )


def command(
    settings: Dict[str, str],
    words: Sequence[str],
    name: str,
    readable: Sequence[str],
    writable: Sequence[str],
) -> List[str]:
    """Return the command that runs Python with the arguments `words` in a container `name`.

    It sees the folders `readable` and `writable` at the same paths, besides this package and the
    folder for temporary files.
    """
    engine, rootfs = settings["engine"], settings["rootfs"]
    run = [engine, "run"]
    if settings["runtime"]:  # an option of podman itself
        runtime = ["--runtime", settings["runtime"]]
        run = [engine, *runtime, "run"] if engine == "podman" else [*run, *runtime]
    run += ["--rm", "--interactive", "--name", name, "--network", "none", "--uts", "host"]
    run += ["--shm-size", f"{host.shm_mib()}m", *_limits(engine), *UNMASKED[engine], *_user(engine)]
    run += [*_mounts(readable, writable), "--workdir", os.getcwd(), *_environment(settings)]
    if rootfs:  # on an overlay: nothing in it changes
        return [*run, "--rootfs", f"{rootfs}:O", sys.executable, *words]
    return [*run, "--pull", "never", "--entrypoint", "python3", settings["image"], *words]


def _limits(engine: str) -> List[str]:
    """Return this process's limits: an engine without CAP_SYS_RESOURCE may not raise them."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    processes = resource.getrlimit(resource.RLIMIT_NPROC)
    if engine == "podman" and os.geteuid() == 0:
        processes = (min(processes[0], PODMAN_PROCESSES), min(processes[1], PODMAN_PROCESSES))
    pairs = {"nofile": files, "nproc": processes}
    return [f"--ulimit={name}={soft}:{hard}" for name, (soft, hard) in pairs.items()]


def _user(engine: str) -> List[str]:
    """Return options under which this user's files are read, and new ones are this user's."""
    user = ["--user", f"{os.geteuid()}:{os.getegid()}"]
    if engine == "podman":
        return user if os.geteuid() == 0 else [*user, "--userns", "keep-id"]
    groups = [str(group) for group in os.getgroups() if group != os.getegid()]  # video, jtop
    return user + [word for group in groups for word in ("--group-add", group)]


def _mounts(readable: Sequence[str], writable: Sequence[str]) -> List[str]:
    """Return the options that mount this package and the folders that exist, at their own paths."""
    package = os.path.dirname(os.path.abspath(epochwatt.__file__))
    mounts = [f"{package}:{PACKAGE}/epochwatt:ro"]
    python_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    seen = {os.path.abspath(path) for path in (*readable, *python_path, *MACHINE_FILES) if path}
    written = {os.path.abspath(path) for path in (*writable, tempfile.gettempdir())}
    mounts += [f"{path}:{path}:ro" for path in sorted(seen - written) if os.path.exists(path)]
    mounts += [f"{path}:{path}" for path in sorted(written)]  # after the folders they lie in
    return [word for mount in mounts for word in ("--volume", mount)]


def _environment(settings: Dict[str, str]) -> List[str]:
    """Return options that pass on the variables a training reads; the rest is the image's own."""
    python_path = os.environ.get("PYTHONPATH", "")
    variables = {key: value for key, value in os.environ.items() if key.startswith(PASSED_ON)}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (PACKAGE, python_path)))
    variables["TMPDIR"] = variables["HOME"] = tempfile.gettempdir()  # a home that can be written
    if settings["runtime"] == "nvidia":
        variables.update(NVIDIA_VISIBLE_DEVICES="all", NVIDIA_DRIVER_CAPABILITIES="all")
    return [w for k, v in sorted(variables.items()) for w in ("--env", f"{k}={v}")]


def run(settings: Dict[str, str], words: List[str], name: str) -> None:
    """Run a container, `words` of `command`, to its end; kill it when this process is ended.

    Its standard input is a pipe that nobody writes to: once that is closed, whoever runs inside has
    to end (a killed process closes it, too).

    Raises TrainingError: the container could not be started, or what ran in it failed.
    """
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        try:
            status = process.wait()
        except BaseException:
            _run([settings["engine"], "kill", name])
            raise
    remedy = remedies.of_status(status)
    if remedy is not None:
        raise TrainingError(
            f"the job in the container was ended by {remedy.line}: {remedy.cause}", do=remedy.do
        )
    if status != 0:
        python = sys.executable if settings["rootfs"] else "python3"
        problem = NOT_STARTED.get(status, "the job in the container ended with status {status}")
        raise TrainingError(
            problem.format(status=status, python=python, **settings), do="see its message above"
        )
