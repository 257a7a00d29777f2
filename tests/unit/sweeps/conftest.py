"""What the tests of sweeps share: a checkout whose config/sweeps.yaml a test fills."""

import pytest
from fake_board import make_board

from epochwatt.sweeps.table import load_sweeps

HOST = {
    "title": "threads",
    "backend": "host",
    "device": "host",
    "workload": {"model": "lenet", "num_workers": 0},
    "grid": {"modes": [{"cores": 1}]},
}
ORIN = {
    "title": "Jetson AGX Orin",
    "backends": ["jetson", "twin"],
    "board": "agx_orin",
    "instances": ["d1"],
    "storage": {"ssd": {"title": "a disk", "root": "data"}},
    "power_modes": {"MAXN": {"cores": 12, "cpu_mhz": 2200, "gpu_mhz": 1300, "emc_mhz": 3200}},
    "dvfs": ["off", "on"],
    "guess_samples_per_s": {"lenet": 1200},
}
BOARD = {**HOST, "backend": "jetson", "device": "orin", "grid": "fulcrum-orin"}


class SweepCheckout:
    """A small checkout with sweeps; one is written by `sweep`, all of them are selected."""

    def __init__(self, checkout):
        self.checkout = checkout
        self.write = checkout.write
        self.settings = checkout.settings
        self._entries = {}

    def sweep(self, name="one", base=HOST, **keys):
        """Add or replace a sweep and return it as it is selected; None takes a key away."""
        entry = {k: v for k, v in {**base, **keys}.items() if v is not None}
        self._entries[name] = entry
        self.write("sweeps.yaml", self._entries)
        return self.table([name]).sweeps.get(name)

    def table(self, names):
        """Return the table of these sweeps."""
        return load_sweeps({"studies": ["small"], "sweeps": names}, self.checkout.path)


@pytest.fixture
def sweeps(checkout):
    """A checkout with a sweep over threads, a host and an AGX Orin that is not here."""
    checkout.write("devices/orin.yaml", ORIN)
    return SweepCheckout(checkout)


@pytest.fixture
def at_hand(sweeps, tmp_path):
    """Return a function that puts a fake AGX Orin of a JetPack at hand."""

    def put(jetpack):
        board = make_board(tmp_path / jetpack, f"agx_orin-{jetpack}")
        keys = {"sysroot": str(board.root), "power_source": "sysfs"}
        sweeps.write("devices/orin.yaml", {**ORIN, **keys})
        return sweeps

    return put


@pytest.fixture
def orin(at_hand):
    """The checkout with a fake AGX Orin of JetPack 5.0 at hand."""
    return at_hand("jp5")


BASES = {"host": HOST, "board": BOARD, "twin": {**BOARD, "backend": "twin"}}


@pytest.fixture
def bases():
    """Entries of config/sweeps.yaml to start from: host, board, twin."""
    return BASES
