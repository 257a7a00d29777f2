"""Published numbers in words."""

from pathlib import Path

import pytest

from epochwatt.published.numbers import load_published
from epochwatt.twin.what_if.nearest import published_questions
from epochwatt.twin.what_if.words import FORMULAS, METRICS, told

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("S5.1.1-07", "share of the data set in the page cache: less than 6 %"),
        ("RS5.1.7-05", "energy of an epoch, change from workers 0 to workers 4: -38.9 %"),
        ("RS5.3.1-03", "compute of a mini-batch, batch 32 over batch 16: about 2 times"),
        ("RS5.6-03", "energy of an epoch, mode g over mode gpu114: about 0.4 times"),
        (
            "RS5.6.2-02",
            "share of the base load (the idle board) in the energy, over mode a b c d e f g h i j: "
            "about 20 to 45 %",
        ),
    ],
)
def test_published_numbers_are_told_in_words(name, words):
    assert told(load_published(ROOT / "config/published").facts()[name]) == words


def test_all_published_numbers_that_may_be_shown_have_words():
    for facts in published_questions(ROOT).values():
        for fact in facts:
            assert fact.metric in METRICS
            assert getattr(fact, "formula", "A/B") in FORMULAS
