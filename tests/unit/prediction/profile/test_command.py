"""What `epochwatt profile` is asked, before anything runs."""

from pathlib import Path

import pytest

from epochwatt.errors import ConfigError
from epochwatt.prediction.profile.command import Request, profile_of

ROOT = Path(__file__).parents[4]


def test_a_board_that_is_not_simulated_is_refused_with_those_that_are():
    with pytest.raises(ConfigError, match="has no backend twin, only jetson") as error:
        profile_of(Request("orin.nano", "mobilenet", 10.0, backend="twin"), ROOT)
    assert "agx, nano, nx, orin" in error.value.found
