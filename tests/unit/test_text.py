"""Words and tables for the terminal."""

import pytest

from epochwatt.text import origin


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
