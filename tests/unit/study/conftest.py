"""What the tests of the run table share: how a refusal looks, a checkout with a fake board."""

import pytest
import yaml
from fake_board import make_board

from epochwatt.errors import ConfigError
from epochwatt.study import place

AGX = {
    "title": "Jetson AGX Xavier",
    "backends": ["jetson"],
    "board": "agx_xavier",
    "instances": ["d1", "d2"],
    "python": ["/usr/bin/python3"],
    "power_source": "sysfs",
    "storage": {"ssd": {"title": "a disk", "root": "data/"}},
    "power_modes": {"g": {"cores": 8, "cpu_mhz": 2265}, "f": {"cores": 2}, "asis": {}},
    "dvfs": ["off", "on"],
    "guess_samples_per_s": {"lenet": 100},
}


class BoardCheckout:
    """A small checkout, and in it a device of a Jetson board; a test changes what it is about."""

    def __init__(self, checkout, board):
        self.checkout = checkout
        self.board = board
        self.path = checkout.path
        self.settings = checkout.settings
        self.set_device(**AGX, sysroot=str(board.root))

    def set_device(self, name="agx", **keys):
        """Change keys of a device's file; None takes a key away."""
        path = self.path / f"config/devices/{name}.yaml"
        known = yaml.safe_load(path.read_text("utf-8")) if path.exists() else {}
        told = {k: v for k, v in {**known, **keys}.items() if v is not None}
        self.checkout.write(f"devices/{name}.yaml", told)

    def sweep(self, *blocks, **study):
        """Replace the one study by blocks of factors for the board."""
        self.checkout.sweep(*blocks, **{"backend": "jetson", "device": "agx", **study})

    @property
    def runs(self):
        """The runs that can be measured here."""
        return list(self.settings().table.runs.values())

    @property
    def elsewhere(self):
        """Id and reason of those that cannot."""
        return [(run.id, reason) for run, reason in self.settings().table.elsewhere]

    def only(self, **block):
        """Return the one run of a sweep of one block."""
        self.sweep(block)
        (run,) = self.runs
        return run


@pytest.fixture
def agx(checkout):
    """A checkout with a fake AGX Xavier; its study is one run with the device's defaults."""
    place._identity.cache_clear()
    board = BoardCheckout(checkout, make_board(checkout.path / "boards/agx", "agx_xavier"))
    board.sweep({})
    return board


@pytest.fixture
def at_hand(monkeypatch):
    """Return a function that makes this machine a board, or (None) none, in the eyes of a study."""

    def be(identity):
        real = place.identify
        told = lambda root: identity if root == "/" else real(root)  # noqa: E731
        monkeypatch.setattr(place, "identify", told)
        monkeypatch.setattr("epochwatt.study.selection.identify", told)
        place._identity.cache_clear()

    yield be
    place._identity.cache_clear()


@pytest.fixture
def refused(checkout):
    """Return a function that reads a configuration which is refused; it gives the two lines."""

    def read():
        with pytest.raises(ConfigError) as told:
            checkout.settings()
        lines = str(told.value).split("\n")
        assert len(lines) == 2, f"not two lines: {told.value}"
        assert lines[1].startswith("  ")
        return lines

    return read
