"""Errors by what was left out: medians, intervals over groups, the headline, the file."""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from epochwatt.twin.validation.accuracy import (
    ENOUGH,
    LABELS,
    TAKE_AWAY,
    TRANSFER,
    accuracies,
    accuracy_table,
)
from epochwatt.twin.validation.validate_twin import grouped, validation


@pytest.fixture(scope="module")
def rows(evidence):
    return validation(evidence)


@pytest.fixture(scope="module")
def found(evidence, rows):
    return {(each.grouping, each.class_): each for each in grouped(evidence, rows)}


@pytest.fixture
def made_up(rows):
    """Return a function that gives times with given errors, and their groups."""
    first = next(row for row in rows if row.class_ == "time" and not row.metric.startswith("stall"))

    def call(groups):
        errors = [(f"S{g}-{i}", g, e) for g, own in groups.items() for i, e in enumerate(own)]
        table = [replace(first, published_id=n, held_out_error_pct=e) for n, _, e in errors]
        return table, {TAKE_AWAY: {name: group for name, group, _ in errors}}

    return call


def test_medians_are_those_of_the_rows(found, rows):
    times = [row for row in rows if row.class_ == "time"]
    for grouping in LABELS:
        own = times
        if grouping == TRANSFER:
            own = [row for row in rows if row.class_ == "hipcw_time"]
        errors = {row.published_id: row.error_by(grouping) for row in own}
        told = found[grouping, "time"]
        assert told.n == len(errors)
        assert told.median_error_pct == median(errors.values())
        assert errors[told.worst_id] == told.worst_error_pct == max(errors.values())


def test_interval_covers_the_median_of_groups_that_are_off_together(made_up):
    """90 % of intervals hold the true median; if numbers were drawn one by one, far fewer would."""
    rng, held = np.random.default_rng(7), 0
    for _ in range(60):
        centres = rng.normal(10.0, 2.0, 25)
        groups = {str(g): list(c + rng.normal(0.0, 0.3, 6)) for g, c in enumerate(centres)}
        (one,) = accuracies(*made_up(groups))
        held += one.low_pct <= 10.0 <= one.high_pct
    assert held > 60 * 0.75


def test_few_groups_have_no_interval(made_up):
    few = {str(g): [1.0, 2.0] for g in range(ENOUGH - 1)}
    (one,) = accuracies(*made_up(few))
    assert (one.low_pct, one.high_pct, one.n_groups) == (None, None, ENOUGH - 1)
    assert "1.5 %, n 8 in 4" in accuracy_table([one])[1]
