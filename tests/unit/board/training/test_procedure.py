"""The numbers by which a mode is measured."""

import pytest

from epochwatt.board.training.procedure import procedure_of
from epochwatt.errors import ConfigError


@pytest.mark.parametrize(
    "factors",
    [{"minibatches": 1}, {"procedure": {"idle_s": -1}}, {"procedure": {"idle": 1}}],
)
def test_what_cannot_be_is_refused(factors):
    with pytest.raises(ConfigError):
        procedure_of(factors)
