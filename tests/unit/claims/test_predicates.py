"""What a predicate is made of."""

import pytest

from epochwatt.claims.predicates import (
    bound,
    cases,
    is_statistic,
    parts,
    quantities,
    quantity,
    settings_apart,
    with_workers,
    workers,
)

STALL = "stall_s(agx, lenet, w={})"


def test_parts_are_what_is_asked_together_also_inside_of_all():
    assert parts("a < b and c < d") == ["a < b", "c < d"]
    assert parts("all(f(m) < 1 and g(m) < 2 for m in (x, y))") == [
        "all((f(m) < 1 for m in (x, y)))",
        "all((g(m) < 2 for m in (x, y)))",
    ]
    assert parts("a < b or c < d") == ["a < b or c < d"]


def test_cases_are_those_of_a_list_and_of_nothing_else():
    assert cases("all(near(f(d), v) for d, v in ((nx, 1), (agx, 2)))") == [
        "all((near(f(d), v) for d, v in ((nx, 1),)))",
        "all((near(f(d), v) for d, v in ((agx, 2),)))",
    ]
    assert cases("all(f(d) < 1 for d in DEVICES) and a < b") == [
        "all((f(d) < 1 for d in DEVICES))",
        "a < b",
    ]


def test_quantities_have_names_in_words():
    predicate = "gpu_freq_mhz(m) > 1 and near(gpu_util_pct(m), 100)"
    assert quantities(predicate) == {"GPU clock", "GPU utilisation"}


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        ("near(gpu_util_pct(agx), 7)", "GPU utilisation"),
        ("pct(e2e_s(agx, pm='a'), e2e_s(agx, pm='b')) < 3", "change of the E2E per epoch"),
        (f"spread([{STALL}]) < spread([{STALL}])".format(1, 0),
         "range over median of the stall per epoch"),
        ("stall_s(a) < e2e_s(a)", ""),
        ("no predicate at all", ""),
    ],
)  # fmt: skip
def test_quantity_of_a_comparison(comparison, words):
    assert quantity(comparison) == words


def test_a_spread_is_a_statistic_and_a_change_is_none():
    assert is_statistic("spread([stall_s(a)]) < 3")
    assert not is_statistic("pct(stall_s(a), stall_s(b)) < 3")


def test_sides_apart_in_their_workers_alone_say_so():
    assert settings_apart(f"{STALL} < {STALL}".format(1, 0)) == ["1 worker", "0 workers"]
    assert settings_apart("stall_s(agx, w=1) < stall_s(agx, w=0, pm='a')") == []
    assert settings_apart("stall_s(agx, pm='a') < stall_s(agx, pm='b')") == []
    assert settings_apart("stall_s(agx, w=1) < 20") == []


def test_a_bound_is_a_limit_of_one_side():
    at_most = "pct(e2e_s(agx, pm='d'), e2e_s(agx, pm='e')) <= -13.5 + EPS_PP"
    assert bound(at_most, "e2e_s", -13.5) == "at_most"
    assert bound(at_most, "stall_s", -13.5) == ""
    assert bound(at_most, "e2e_s", -13.0) == ""
    assert bound("a < b and compute_s(m) >= -6.8 - EPS_PP", "compute_s", -6.8) == "at_least"
    assert bound("-19.5 - EPS_PP <= stall_s(m) <= -17.6 + EPS_PP", "stall_s", -17.6) == ""


def test_a_predicate_with_another_number_of_workers():
    predicate = "similar([stall_s(nx, m, w=4, scale=x) for x in (0.25, 1)])"
    assert workers(predicate) == {4}
    other = with_workers(predicate, 0)
    assert (workers(other), "scale=x" in other) == ({0}, True)
    assert workers("stall_s(nx, w=1) < stall_s(nx, w=0)") == {0, 1}
