import pytest
from fake_board import make_board

from tests.fakeboard.kinds import KINDS


@pytest.fixture(params=list(KINDS))
def board(request, tmp_path):
    """One fake board of each kind, started, with no process."""
    return make_board(tmp_path / "board", request.param)


@pytest.fixture
def agx(tmp_path):
    return make_board(tmp_path / "agx", "agx_xavier")


@pytest.fixture
def orin(tmp_path):
    return make_board(tmp_path / "orin", "agx_orin-jp5")
