"""Runs that are two sides of a pair."""

from epochwatt.study.runs import pairs_of

PAIRS = {"factor": "container", "values": ["none", "box"], "margin_pct": 3}


def test_sides_differ_in_what_is_compared_alone(checkout):
    checkout.sweep({"seed": [0, 1], "batch_size": [16, 32]}, pairs=PAIRS)
    pairs = pairs_of(checkout.runs, "small", PAIRS)
    assert len(pairs) == 4
    for a, b in pairs:
        assert (a.factors["container"], b.factors["container"]) == ("none", "box")
        assert a.factors["seed"] == b.factors["seed"]
        assert a.factors["batch_size"] == b.factors["batch_size"]


def test_a_side_alone_and_other_studies_are_left_out(checkout):
    checkout.sweep({"seed": [0, 1]}, pairs=PAIRS)
    runs = checkout.runs
    assert len(pairs_of(runs[1:], "small", PAIRS)) == 1
    assert pairs_of(runs, "another", PAIRS) == []
