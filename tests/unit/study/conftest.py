"""What the tests of the run table share: how a refusal looks."""

import pytest

from epochwatt.errors import ConfigError


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
