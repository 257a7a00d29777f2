import pytest
from fake_board import make_board

from tests.fakeboard.kinds import KINDS

# the oldest layout, a service for the fan, platform devices, and a kind of which much is unknown
QUICK = ("agx_xavier", "agx_orin-jp5", "orin_nano-jp6.2", "agx_thor")


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.thorough) for name in KINDS
    ]
)
def board(request, tmp_path):
    """One fake board of each kind, started, with no process."""
    return make_board(tmp_path / "board", request.param)


@pytest.fixture
def agx(tmp_path):
    return make_board(tmp_path / "agx", "agx_xavier")


@pytest.fixture
def orin(tmp_path):
    return make_board(tmp_path / "orin", "agx_orin-jp5")
