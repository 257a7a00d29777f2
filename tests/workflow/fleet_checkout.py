"""A checkout whose runs are measured by a fleet: a real Slurm, whose nodes are fake boards."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from board_checkout import DEVICES, MODES
from fake_board import FakeBoard, make_board
from full_checkout import FullCheckout
from slurm_cluster import FLEET, KINDS, Node, SlurmCluster, started_cluster

# What a node sees of its own: host name, files of its board, folder for temporary files (its lock).
OWN = 'hostname "$1"; shift; for i in 1 2 3; do mount --bind "$1" "$2"; shift 2; done; exec "$@"'
BOARDS = {"agx_orin": "agx_orin-jp6"}  # kind -> fake board, where they have different names


class FleetCheckout(FullCheckout):
    """A checkout on a file system that all nodes of a cluster share.

    Parameters
    ----------
    root : the folder, with its own config/
    nodes : of the cluster
    """

    profile = "profiles/slurm"

    def __init__(self, root: Path, nodes: tuple[Node, ...] = FLEET) -> None:
        super().__init__(root)
        self.nodes = nodes
        self.environment["EPOCHWATT_ALLOW_ROOT"] = "1"
        self.boards: dict[str, FakeBoard] = {}  # by node
        for node in nodes:
            kind, _ = node.features
            (root / "tmp" / node.name).mkdir()
            (root / "boards" / kind).mkdir(parents=True, exist_ok=True)  # each node's own
            self.boards[node.name] = make_board(root / "boards" / node.name, BOARDS.get(kind, kind))
        for kind in KINDS:
            self._set_device(kind)
        profile = self.read_yaml("profiles/slurm/config.yaml")
        profile["slurm-init-seconds-before-status-checks"] = 2  # 40 by default
        self.write_yaml("profiles/slurm/config.yaml", profile)

    def _set_device(self, kind: str) -> None:
        device = DEVICES[BOARDS.get(kind, kind)]
        path = f"config/devices/{device}.yaml"
        units = {node.features[1]: node.name for node in self.nodes if node.features[0] == kind}
        settings = {
            "sysroot": f"boards/{kind}",
            "constraint": kind,
            "instances": ["d1", "d2"],
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

    def study(self, **study) -> None:
        """Select one study of the fleet's boards; see `configure`."""
        self.configure(drawn=("boards",), boards={"backend": "jetson"} | study)

    def leave_the_fleet(self) -> None:
        """Measure here, one run after the other, on one board of each kind that stands for all."""
        self.profile = "profiles/jetson"
        for kind in {node.features[0] for node in self.nodes}:
            make_board(self.root / "boards" / kind, BOARDS.get(kind, kind))
            path = f"config/devices/{DEVICES[BOARDS.get(kind, kind)]}.yaml"
            here = {"constraint": "", "remote": True, "units": {}}
            self.write_yaml(path, self.read_yaml(path) | here)

    def _seen_by(self, node: Node) -> tuple[str, ...]:
        kind, boards = node.features[0], self.root / "boards"
        hosts = self.root / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {' '.join(self.boards)}\n")
        mounts = (boards / node.name, boards / kind, self.root / "tmp" / node.name, self.machine)
        own = ("unshare", "--mount", "--uts", "sh", "-ec", OWN, "sh", node.name)
        return (*own, *map(str, mounts), str(hosts), "/etc/hosts")

    @contextmanager
    def cluster(self) -> Iterator[SlurmCluster]:
        """Start the cluster; skip the test where nodes cannot have files of their own."""
        if subprocess.run(["unshare", "--mount", "--uts", "true"], check=False).returncode:
            pytest.skip("unshare --mount is not allowed here")
        folder = self.root / "slurm"
        with started_cluster(folder, self.nodes, self._seen_by) as cluster:
            self.environment |= cluster.environment
            yield cluster
