"""A Slurm of this machine: slurmctld and one slurmd per node, each node a board of some kind.

The daemons are Debian's (`make slurm`), or those that are installed. They belong to whoever runs
the tests, listen to whoever has the cluster's own MUNGE key, and keep all of their files in a
folder. `python tests/workflow/slurm_cluster.py FOLDER` starts one by hand until Ctrl-C.
"""

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FETCHED = REPOSITORY / ".cache/slurm/bin"
DAEMONS = ("munged", "slurmctld", "slurmd")
PATIENCE_S = 120.0  # for a daemon to answer, also on a busy machine


class Node(NamedTuple):
    """A node of the cluster."""

    name: str
    features: tuple[str, ...]  # kind and unit of its board


KINDS = ("agx_orin", "agx_xavier", "nano")


def node_of(kind: str, unit: str) -> Node:
    """Return the node that is one unit of a kind of board; its name can be a host name."""
    return Node(f"{kind}-{unit}".replace("_", "-"), (kind, unit))


FLEET = tuple(node_of(kind, unit) for kind in KINDS for unit in ("d1", "d2"))


def slurm_path() -> str:
    """Return the PATH on which Slurm's commands are; skip the test where there are none."""
    path = os.pathsep.join([str(FETCHED), os.environ["PATH"], "/usr/sbin"])
    missing = [name for name in DAEMONS if not shutil.which(name, path=path)]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: `make slurm` fetches Debian's packages")
    return path


class SlurmCluster:
    """A Slurm under way; `started_cluster` starts and ends one.

    Parameters
    ----------
    folder : of configuration, keys, sockets, state and logs
    nodes : of the cluster, all in the partition `boards`
    before : node -> words in front of the command that starts its slurmd
    """

    def __init__(
        self,
        folder: Path,
        nodes: Sequence[Node] = FLEET,
        before: Callable[[Node], Sequence[str]] = lambda node: (),
    ) -> None:
        self.folder = folder
        self.before = before
        self.nodes = {node.name: node for node in nodes}
        self.ports = _free_ports(1 + len(nodes))
        self.environment = {
            "PATH": os.pathsep.join([str(folder / "bin"), slurm_path()]),
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        self.daemons: dict[str, subprocess.Popen] = {}  # by name: munged, slurmctld or a node's
        for name in ("bin", "state", "log", "spool"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._write_srun()
        (folder / "slurm.conf").write_text(self._configuration())
        key = folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))

    def _write_srun(self) -> None:
        """Put an srun first on the PATH that knows its cluster.

        The plugin takes SLURM_CONF away from it, which a Slurm of /etc/slurm does not need.
        """
        srun = self.folder / "bin/srun"
        actual = shutil.which("srun", path=slurm_path())
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec {actual} "$@"\n')
        srun.chmod(0o755)

    def _configuration(self) -> str:
        common = f"NodeHostname=localhost NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=1000"
        lines = [
            "ClusterName=boards",
            f"SlurmctldHost={socket.gethostname()}(127.0.0.1)",
            f"SlurmctldPort={self.ports[0]}",
            f"SlurmUser={getpass.getuser()}",
            f"SlurmdUser={getpass.getuser()}",
            "AuthType=auth/munge",
            # a job that is requeued starts again after that many seconds
            f"AuthInfo=socket={self.folder}/munge.socket,cred_expire=5",
            "CommunicationParameters=NoInAddrAny",
            f"StateSaveLocation={self.folder}/state",
            f"SlurmdSpoolDir={self.folder}/spool/%n",
            f"SlurmctldPidFile={self.folder}/slurmctld.pid",
            f"SlurmdPidFile={self.folder}/%n.pid",
            "ProctrackType=proctrack/linuxproc",  # cgroups want more rights
            "TaskPlugin=task/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "MpiDefault=none",
            "SlurmdParameters=config_overrides",  # all nodes are this one machine
            "ReturnToService=2",  # a node that comes back is used again
            "SlurmdTimeout=10",
            "KillWait=3",
            "MinJobAge=600",  # how long squeue knows of a job that has ended
            "SchedulerParameters=sched_min_interval=100000,bf_interval=1",
            *(
                f"NodeName={node.name} Port={port} Feature={','.join(node.features)} {common}"
                for node, port in zip(self.nodes.values(), self.ports[1:], strict=True)
            ),
            f"PartitionName=boards Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE",
        ]
        if plugins := _plugins():
            lines.append(f"PluginDir={plugins}")
        return "".join(f"{line}\n" for line in lines)

    # -- the daemons --

    def start(self) -> None:
        """Start all daemons; return once every node can take a job."""
        self._run_daemon(
            "munged",
            *("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket"),
            *(f"--key-file={self.folder}/munge.key", f"--pid-file={self.folder}/munged.pid"),
            *(f"--log-file={self.folder}/log/munged", f"--seed-file={self.folder}/munged.seed"),
        )
        self._wait_for("munged", lambda: (self.folder / "munge.socket").exists())
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        self._wait_for("the nodes", lambda: set(self.states().values()) == {"idle"})

    def start_controller(self) -> None:
        """Start slurmctld; return once it answers."""
        self._run_daemon("slurmctld", "slurmctld", "-D")
        self._wait_for("slurmctld", lambda: self.command("scontrol", "ping").returncode == 0)

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        (self.folder / "spool" / name).mkdir(exist_ok=True)
        stepd = shutil.which("slurmstepd", path=self.environment["PATH"])
        words = (*self.before(self.nodes[name]), "slurmd", "-D", "-N", name, "-d", stepd)
        self._run_daemon(name, *words, SLURMD_NODENAME=name)

    def _run_daemon(self, name: str, *words: str, **variables: str) -> None:
        with open(self.folder / f"log/{name}.txt", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                words,
                env=os.environ | self.environment | variables,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill_daemon(self, name: str) -> None:
        """Kill -9 one daemon and nothing else."""
        process = self.daemons.pop(name)
        process.kill()
        process.wait()

    def kill_node(self, name: str) -> None:
        """Kill -9 a node's slurmd and its jobs, as a power cut would; the spool is in memory."""
        self.kill_daemon(name)
        _kill_all(self.folder, f"SLURMD_NODENAME={name}")
        shutil.rmtree(self.folder / "spool" / name, ignore_errors=True)

    def stop(self) -> None:
        """Kill all jobs and all daemons."""
        for name in list(self.daemons):
            self.kill_daemon(name)
        _kill_all(self.folder)

    def _wait_for(self, what, happened) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not happened():
            dead = [name for name, process in self.daemons.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come up\n{self.logs()}")
            time.sleep(0.1)

    # -- what it says --

    def command(self, *words: str) -> subprocess.CompletedProcess:
        """Run a command of Slurm, to its end."""
        return subprocess.run(
            words, env=os.environ | self.environment, capture_output=True, text=True, check=False
        )

    def states(self) -> dict[str, str]:
        """Return node -> its state, as `sinfo` names it."""
        lines = self.command("sinfo", "-h", "-N", "-o", "%N %t").stdout.splitlines()
        return dict(line.split() for line in lines)

    def jobs(self) -> list[tuple[str, str]]:
        """Return state and node of each job, also of those that have ended; "": it has none yet."""
        lines = self.command("squeue", "-h", "-t", "all", "-o", "%T %N").stdout.splitlines()
        return [(state, node) for state, _, node in (line.strip().partition(" ") for line in lines)]

    def logs(self) -> str:
        """Return the last lines of all logs."""
        logs = sorted((self.folder / "log").glob("*.txt"))
        return "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in logs)


def _plugins() -> Path | None:
    """Return where the fetched Slurm has its plugins; None: those of the system are used."""
    return next((FETCHED.parent / "root/usr/lib").glob("*/slurm-wlm"), None)


def _free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _kill_all(folder: Path, *variables: str) -> None:
    """Kill -9 the processes of a cluster in whose environment these variables are."""
    wanted = {os.fsencode(v) for v in (f"SLURM_CONF={folder}/slurm.conf", *variables)}
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # ended meanwhile, or another user's
            if wanted <= set(path.read_bytes().split(b"\0")):
                os.kill(int(path.parent.name), signal.SIGKILL)


@contextlib.contextmanager
def started_cluster(
    folder: Path,
    nodes: Sequence[Node] = FLEET,
    before: Callable[[Node], Sequence[str]] = lambda node: (),
) -> Iterator[SlurmCluster]:
    """Start a Slurm, and end it with all of its jobs; for the parameters see `SlurmCluster`."""
    cluster = SlurmCluster(folder, nodes, before)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    with started_cluster(Path(sys.argv[1]).resolve()) as cluster:
        for name, value in cluster.environment.items():
            print(f"export {name}={value}", flush=True)
        signal.sigwait([signal.SIGINT, signal.SIGTERM])
