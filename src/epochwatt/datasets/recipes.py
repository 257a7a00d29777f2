"""Recipes: all that decides the content of a data set, known before it exists.

A recipe is part of a run's id. Whoever changes what a recipe makes raises its version.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.datasets.digits import make_digits
from epochwatt.errors import ConfigError


class Maker(NamedTuple):
    """How one source of one data set is made."""

    version: int  # of what `make` writes
    n_samples: int  # at scale 1
    make: Callable[[Path, int, int], list[str]]  # (folder, n_samples, seed) -> names of the files


MAKERS = {
    ("mnist", "digits"): Maker(version=1, n_samples=1797, make=make_digits),
}

SEED = 0


def maker_of(dataset: str, source: str) -> Maker:
    """Return the maker of a data set's source; raise ConfigError naming those there are."""
    try:
        return MAKERS[dataset, source]
    except KeyError:
        known = ", ".join(f"{d} from {s}" for d, s in sorted(MAKERS))
        raise ConfigError(
            f"no data set {dataset!r} from source {source!r}; there are: {known}"
        ) from None


def recipe(dataset: str, source: str, scale: float) -> dict[str, Any]:
    """Return the recipe of a data set: a dict that can stand in a hash."""
    return {
        "name": dataset,
        "source": source,
        "scale": scale,
        "seed": SEED,
        "version": maker_of(dataset, source).version,
    }


def n_samples(dataset: str, source: str, scale: float) -> int:
    """Return the number of samples at that scale."""
    return max(1, round(maker_of(dataset, source).n_samples * scale))
