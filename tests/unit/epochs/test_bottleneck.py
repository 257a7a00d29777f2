"""One rule and one vocabulary for what holds an epoch back."""

import math

import pytest

from epochwatt.epochs.bottleneck import find_bottleneck, find_longest_part


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"loader": 3.0, "copy": 2.0, "compute": 2.5}, "Bound by the loader"),
        ({"loader": 1.0, "copy": 2.0, "compute": 1.5}, "Bound by copying to the GPU"),
        ({"loader": 1.0, "compute": 2.0}, "Bound by compute"),
        ({"loader": math.nan, "compute": 2.0, "overhead": 1.0}, "Bound by compute"),
        ({"compute": 2.0, "overhead": 3.0}, "Bound by overhead"),
        (
            {"loader": 3.0, "launches": 2.0, "arithmetic": 1.0, "memory": 0.5},
            "Bound by compute, its limit is launches",
        ),
        ({"loader": 4.0, "launches": 2.0, "arithmetic": 1.0, "memory": 0.5}, "Bound by the loader"),
        (
            {"loader": 2.0, "memory": 1.0, "arithmetic": 0.5, "below the roof": 4.0},
            "Bound by compute, its limit is memory",
        ),
    ],
)
def test_the_longest_part_holds_an_epoch_back(costs, words):
    assert str(find_bottleneck(costs)) == words


def test_a_row_of_a_table_is_judged_by_its_columns():
    row = {"wait_s": "1.5", "copy_s": "", "compute_s": "1.0", "overhead_s": None, "run": "any"}
    assert find_longest_part(row) == ("loader", "")
