"""A checkout whose runs are measured by a fleet: a real Slurm, whose nodes are fake boards."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from board_checkout import DEVICES, MODES
from fake_board import FakeBoard, make_board
from full_checkout import FullCheckout, block
from slurm_cluster import FLEET, KINDS, Node, SlurmCluster, started_cluster

from epochwatt import columns

# A node has processes, a host name and mounts of its own; all of it ends with its first process.
UNSHARED = ("unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--mount", "--uts")
# What it mounts: files of its board, folder for temporary files (its lock), names of the others.
OWN = 'hostname "$1"; shift; for i in 1 2 3; do mount --bind "$1" "$2"; shift 2; done; exec "$@"'
BOARDS = {"agx_orin": "agx_orin-jp5"}  # kind -> fake board, where they have different names
# Columns of tables with what is measured, by their units; the others depend on the study alone.
MEASURED = {
    field.name
    for field in (*columns.EPOCH_COLUMNS, *columns.RUNS_COLUMNS)
    if field.unit in ("s", "Wh", "J", "W", "%", "MiB", "1/s", "MiB/s")
}
# Flags that tell how busy this machine was, as others use it, too: of sensors read too late or
# too seldom, and of other programs.
OF_THE_MOMENT = ("power_", "stall_power_", "sampler_", "machine_shared")


def board_of(kind: str) -> str:
    """Return the name of the fake board of a kind."""
    return BOARDS.get(kind, kind)


def on(node: Node, **factors) -> dict:
    """Return a block of a study for one node's board, in its first power mode."""
    kind, unit = node.features
    device = DEVICES[board_of(kind)]
    return block(device=device, instance=unit, power_mode=next(iter(MODES[device])), **factors)


class FleetCheckout(FullCheckout):
    """A checkout on a file system that all nodes of a cluster share.

    Parameters
    ----------
    root : the folder, with its own config/
    nodes : of the cluster
    """

    profile = "profiles/slurm"
    patience_s = 1500.0  # thirty runs start Snakemake sixty times

    def __init__(self, root: Path, nodes: tuple[Node, ...] = FLEET) -> None:
        super().__init__(root)
        self.nodes = nodes
        self.environment["EPOCHWATT_ALLOW_ROOT"] = "1"
        self.boards: dict[str, FakeBoard] = {}  # by node
        for number, node in enumerate(nodes):
            kind, _ = node.features
            (root / "tmp" / node.name).mkdir()
            (root / "boards" / kind).mkdir(parents=True, exist_ok=True)  # each node's own
            board = make_board(root / "boards" / node.name, board_of(kind))
            serial = board.root / "proc/device-tree/serial-number"
            serial.write_text(f"14210{number:08}\0")
            self.boards[node.name] = board
        for kind in KINDS:
            self._set_device(kind)
        profile = self.read_yaml("profiles/slurm/config.yaml")
        profile["slurm-init-seconds-before-status-checks"] = 2  # 40 by default
        self.write_yaml("profiles/slurm/config.yaml", profile)

    def _set_device(self, kind: str) -> None:
        device = DEVICES[board_of(kind)]
        path = f"config/devices/{device}.yaml"
        of_kind = [node for node in self.nodes if node.features[0] == kind]
        units = {node.features[1]: self.serial(node) for node in of_kind}
        settings = {
            "sysroot": f"boards/{kind}",
            "constraint": kind,
            "instances": list(units) or ["d1"],
            "units": units,
            "python": [],
            "power_source": "sysfs",
            "settle": None,
            "idle_s": 0,
            "torch_threads": 1,
            "storage": {"disk": {"title": "the disk", "root": "data"}},
            "power_modes": MODES[device],
        }
        self.write_yaml(path, self.read_yaml(path) | settings)

    def serial(self, node: Node) -> str:
        """Return the serial number of a node's board."""
        path = self.boards[node.name].root / "proc/device-tree/serial-number"
        return path.read_text().rstrip("\0")

    def study(self, **study) -> None:
        """Select one study of the fleet's boards; see `configure`."""
        self.configure(drawn=("boards",), boards={"backend": "jetson"} | study)

    def leave_the_fleet(self) -> dict[str, FakeBoard]:
        """Measure here, one run after the other; return the one board that stands for each kind."""
        self.profile = "profiles/jetson"
        boards = {}
        for kind in {node.features[0] for node in self.nodes}:
            boards[kind] = make_board(self.root / "boards" / kind, board_of(kind))
            path = f"config/devices/{DEVICES[board_of(kind)]}.yaml"
            here = {"constraint": "", "remote": True, "units": {}}
            self.write_yaml(path, self.read_yaml(path) | here)
        return boards

    def _seen_by(self, node: Node) -> tuple[str, ...]:
        kind, boards = node.features[0], self.root / "boards"
        hosts = self.root / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {' '.join(self.boards)}\n")
        mounts = (boards / node.name, boards / kind, self.root / "tmp" / node.name, self.machine)
        own = (*UNSHARED, "sh", "-ec", OWN, "sh", node.name)
        return (*own, *map(str, mounts), str(hosts), "/etc/hosts")

    @contextmanager
    def cluster(self) -> Iterator[SlurmCluster]:
        """Start the cluster; each board follows the load of its node.

        Skips the test where nodes cannot have files of their own.
        """
        if (
            not shutil.which("unshare")
            or subprocess.run([*UNSHARED, "true"], check=False).returncode
        ):
            pytest.skip(f"`{' '.join(UNSHARED)}` is not allowed here")
        with ExitStack() as stack:
            cluster = started_cluster(self.root / "slurm", self.nodes, self._seen_by)
            cluster = stack.enter_context(cluster)
            for name, board in self.boards.items():
                stack.enter_context(board.live(cluster.daemons[name].pid))
            self.environment |= cluster.environment
            yield cluster

    def measured_by(self, run: str, epoch: int = 0) -> tuple[str, str]:
        """Return name and serial number of the machine that measured an epoch."""
        record = self.record(run, epoch)
        return record["host_state"]["hostname"], record["machine"]["serial"]

    def lasting_cells(self) -> dict[str, list[dict[str, str]]]:
        """Return the exported tables without what is measured and flags of the moment."""
        return {
            name: [_lasting(row) for row in self.table(f"results/tables/{name}.csv")]
            for name in ("epochs", "runs")
        }


def _lasting(row: dict[str, str]) -> dict[str, str]:
    flags = [flag for flag in row["flags"].split() if not flag.startswith(OF_THE_MOMENT)]
    cells = {column: cell for column, cell in row.items() if column not in MEASURED}
    return cells | {"flags": " ".join(flags)}
