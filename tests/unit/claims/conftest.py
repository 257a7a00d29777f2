"""The project's own take-aways and printed numbers, and epochs made up for tests."""

from pathlib import Path

import pytest

from epochwatt.claims.evaluate import Claim, load_claims
from epochwatt.claims.tolerances import load_terms
from epochwatt.columns import EPOCH_COLUMNS, names, with_defaults
from epochwatt.published.numbers import load_published

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def terms():
    """config/claims.yaml as it stands."""
    return load_terms(ROOT)


@pytest.fixture(scope="session")
def claims():
    """The take-aways as they stand, by id."""
    return {claim.id: claim for claim in load_claims(ROOT)}


@pytest.fixture(scope="session")
def measurements():
    """The printed values as they stand, by id."""
    return load_published(ROOT / "config/published").measurements


@pytest.fixture
def claim():
    """Return a function that makes a claim of a predicate, or of a general form."""

    def make(predicate="", general_form="", paper="sigmetrics2023"):
        told = dict.fromkeys(Claim._fields, "")
        told |= {"id": "T", "paper": paper, "role": "core"}
        return Claim(**told | {"predicate": predicate, "general_form": general_form})

    return make


FACTORS = with_defaults(
    {
        **{"setup": "sigmetrics2023", "backend": "twin", "device": "agx", "instance": "d1"},
        **{"model": "lenet", "dataset": "mnist", "dataset_source": "official"},
        **{"storage": "ssd", "power_mode": "g", "dataset_scale": 1.0},
    }
)


@pytest.fixture
def epochs():
    """Return a function that makes the rows of one run: factors that differ, then its epochs."""

    def make(factors, *of_epochs):
        told = {**FACTORS, **factors}
        run = "-".join(str(value) for value in told.values())
        empty = dict.fromkeys(names(EPOCH_COLUMNS), "")
        return [
            {
                **{"run": run, **told, **empty, "epoch": number, "valid": True},
                **{"power_scope": "module", "n_minibatches": 10, "n_samples": 100},
                **columns,
            }
            for number, columns in enumerate(of_epochs)
        ]

    return make
