"""Which board it is, and what runs on it."""

import csv
from pathlib import Path

import pytest

from epochwatt.board.device import identity

ROWS = list(
    csv.DictReader(
        (Path(__file__).parents[3] / "data/releases.csv").read_text("utf-8").splitlines()
    )
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["l4t"])
def test_release_and_jetpack(row):
    release = identity.l4t_release(row["lines"].replace("\\n", "\n") + "\n")
    assert (release, identity.jetpack(release)) == (row["l4t"], row["jetpack"])
