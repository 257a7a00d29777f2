"""Words and tables for the terminal."""

import pytest

from epochwatt.text import aligned, counted, origin


@pytest.mark.parametrize(
    ("backends", "words"),
    [
        (["host"], "measured on"),
        (["jetson", "host", "jetson"], "measured on"),
        (["fake", "fake"], "not measured, from a fake board:"),
        (["twin"], "simulated, not measured:"),
        (["host", "fake"], "measured on and not measured, from a fake board:"),
    ],
)
def test_origin_says_each_thing_once_and_never_that_a_fake_board_was_measured(backends, words):
    assert origin(backends) == words


def test_origin_of_an_unknown_backend_is_not_made_up():
    with pytest.raises(KeyError):
        origin(["guess"])


@pytest.mark.parametrize(
    ("n", "nouns", "text"),
    [
        (1, "runs", "1 run"),
        (2, "runs", "2 runs"),
        (1, "more epochs", "1 more epoch"),
        (1, "mini-batches", "1 mini-batch"),
        (1.0, "cores", "1 core"),
        (29232000, "modes", "29232000 modes"),
    ],
)
def test_one_of_a_thing_is_singular(n, nouns, text):
    assert counted(n, nouns) == text


def test_columns_are_as_wide_as_their_widest_cell_and_nothing_trails():
    assert aligned([("a", "bcd", "e"), ("abc", "b", "")]) == ["a    bcd  e", "abc  b"]
