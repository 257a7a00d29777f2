"""Recipes: all that decides the content of a data set."""

import json

import pytest

from epochwatt.datasets.recipes import n_samples, recipe
from epochwatt.errors import ConfigError


def test_recipe_is_what_it_was():
    """It stands in the id of every run: a change here is a new id for each."""
    assert recipe("mnist", "digits", 8) == {
        **{"name": "mnist", "source": "digits", "scale": 8, "seed": 0, "version": 1}
    }


def test_recipe_survives_json():
    told = recipe("mnist", "digits", 0.5)
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("scale", "count"), [(1, 1797), (8, 14376), (0.5, 898), (0.01, 18), (1e-6, 1)]
)
def test_scale_counts_in_originals_and_is_never_empty(scale, count):
    assert n_samples("mnist", "digits", scale) == count


@pytest.mark.parametrize(("name", "source"), [("mnist", "paper"), ("cifar", "digits")])
def test_unknown_source_names_those_there_are(name, source):
    with pytest.raises(ConfigError) as told:
        recipe(name, source, 1)
    assert f"{name!r} from source {source!r}" in str(told.value)
    assert "mnist from digits" in str(told.value)
