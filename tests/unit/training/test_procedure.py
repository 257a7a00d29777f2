"""The numbers by which a mode is measured."""

import pytest

from epochwatt.errors import ConfigError
from epochwatt.training.procedure import DEFAULTS, procedure_of


def test_without_a_word_they_are_the_defaults():
    assert procedure_of({}) == DEFAULTS
    assert (DEFAULTS.minibatches, DEFAULTS.power_readings) == (40, 10)


def test_what_a_sweep_says_replaces_them():
    factors = {"minibatches": 12, "procedure": {"idle_s": 1.5}}
    assert procedure_of(factors) == DEFAULTS._replace(minibatches=12, idle_s=1.5)


@pytest.mark.parametrize(
    "factors",
    [{"minibatches": 1}, {"procedure": {"idle_s": -1}}, {"procedure": {"idle": 1}}],
)
def test_what_cannot_be_is_refused(factors):
    with pytest.raises(ConfigError):
        procedure_of(factors)
