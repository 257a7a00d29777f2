"""A checkout whose device is a fake board: real training below board code that meets files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fake_board import FakeBoard, make_board
from full_checkout import FullCheckout

DEVICES = {"agx_xavier": "agx", "xavier_nx": "nx", "nano": "nano", "agx_orin-jp5": "orin"}
DEVICES["agx_orin-jp6"] = "orin"
DEVICES |= {"orin_nano-jp6.2": "orin.nano", "agx_thor-jp7.2": "thor"}
MODES = {  # nominal, as people write them: the nearest step is set
    "agx": {
        "g": {"cores": 8, "cpu_mhz": 2265, "gpu_mhz": 1377, "emc_mhz": 2133},
        "f": {"cores": 2, "cpu_mhz": 2100, "gpu_mhz": 900, "emc_mhz": 1600},
        "named": {"nvpmodel": "MODE_15W"},
    },
    "nx": {
        "full": {"cores": 6, "cpu_mhz": 1400, "gpu_mhz": 1100, "emc_mhz": 1600},
        "half": {"cores": 4, "cpu_mhz": 1190, "gpu_mhz": 510, "emc_mhz": 1333},
        "gpu": {"gpu_mhz": 800},
    },
    "nano": {
        "full": {"cores": 4, "cpu_mhz": 1479, "gpu_mhz": 921, "emc_mhz": 1600},
        "half": {"cores": 2, "cpu_mhz": 710, "gpu_mhz": 460, "emc_mhz": 800},
        "named": {"nvpmodel": "5W"},
    },
    "orin": {
        "full": {"cores": 12, "cpu_mhz": 2200, "gpu_mhz": 1300, "emc_mhz": 3200},
        "half": {"cores": 8, "cpu_mhz": 1100, "gpu_mhz": 620, "emc_mhz": 2133},
        "cores": {"cores": 4},
    },
    "orin.nano": {"15W": {"nvpmodel": "15W"}, "25W": {"nvpmodel": "25W"}},
    "thor": {"120W": {"nvpmodel": "120W"}, "MAXN": {"nvpmodel": "MAXN"}},
}


class BoardCheckout(FullCheckout):
    """A checkout with one fake board below `boards/`.

    Parameters
    ----------
    root : the folder, with its own config/
    kind : of fake board
    """

    profile = "profiles/jetson"

    def __init__(self, root: Path, kind: str) -> None:
        super().__init__(root)
        self.device = DEVICES[kind]
        self.board: FakeBoard = make_board(root / "boards" / kind, kind)
        self.environment["EPOCHWATT_ALLOW_ROOT"] = "1"
        self.set_device(
            sysroot=f"boards/{kind}",
            python=[],
            power_source="sysfs",
            settle=None,
            idle_s=0,
            torch_threads=1,
            storage={"disk": {"title": "the disk", "root": "data"}},
            power_modes=MODES[self.device],
        )

    def set_device(self, **keys) -> None:
        """Change keys of the device's configuration."""
        path = f"config/devices/{self.device}.yaml"
        self.write_yaml(path, self.read_yaml(path) | keys)

    def study(self, sweep: list[dict], epochs: int = 1) -> None:
        """Select one study of the board."""
        on_board = {"backend": "jetson", "device": self.device}
        self.configure(drawn=("boards",), boards={"epochs": epochs, "sweep": sweep} | on_board)

    @contextmanager
    def living(self) -> Iterator[FakeBoard]:
        """Let clocks and rails follow the load."""
        with self.board.live() as board:
            yield board
