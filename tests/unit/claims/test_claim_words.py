"""Comparisons that fail, in words: the published side first, then ours, both with their unit."""

from pathlib import Path

import pytest

from epochwatt.claims.claim_words import comparisons, tolerances, values_of
from epochwatt.claims.evaluate import Claim
from epochwatt.claims.tolerances import load_terms
from epochwatt.claims.verdict import Comparison, Percentage

ROOT = Path(__file__).resolve().parents[3]
CLAIM = Claim(*[""] * len(Claim._fields))._replace(
    threshold_source="paper", devices="agx nano", models="lenet resnet"
)
TITLES = {"lenet": "LeNet-5", "nano": "Nano"}


def words(comparison, claim=CLAIM, *, named=False):
    (text,) = comparisons([comparison], claim, TITLES, named=named)
    return text


def failing(text, where, left, operator, right):
    return Comparison(text, where, left, operator, right, False, -1.0)


@pytest.mark.parametrize(
    ("comparison", "text"),
    [
        (
            failing("'a' not in front(m)", "m=resnet", "a", "not in", "front a g"),
            "resnet: published as off the front, here a is on it (front a g)",
        ),
        (
            failing("'a' in front(m)", "m=resnet", "a", "in", "front b g"),
            "resnet: published as on the front, here a is not on it (front b g)",
        ),
        (
            failing("near(x(E), 6)", "m=lenet, v=6, E=[2.3, 2.4]", 11.2, "near", 6),
            "LeNet-5: published 6, here 11.2",
        ),
        (
            failing("near(stall_s(a), 456)", "", 603.24, "near", 456),
            "published 456 s, here 603 s",
        ),
        (
            failing("near(stall_s(a), 4560)", "", 6032.4, "near", 4560),
            "published 4560 s, here 6032 s",
        ),
        (
            failing("near(stall_s(a) / stall_s(b), 2.5)", "", 2.0148, "near", 2.5),
            "published a factor of 2.5, here 2.01",
        ),
        (
            failing("near_pp(pct(e2e_s(a), e2e_s(b)), 4.7)", "", Percentage(0.386), "near",
                    Percentage(4.7)),
            "published +4.7 %, here +0.4 %",
        ),
        (
            failing("energy_wh(m) <= 1", "m=lenet", 4.218, "<=", 1),
            "LeNet-5: published ≤ 1 Wh, here 4.22 Wh",
        ),
        (
            failing("x(m) <= 1", "m=lenet", Percentage(4.218), "<=", 1),
            "LeNet-5: published ≤ 1 %, here 4.2 %",
        ),
        (
            failing("stall_s(a) < stall_s(b)", "", 59.74, "<", 57.75),
            "published as less, here 59.7 s against 57.8 s",
        ),
        (
            failing("stall_s(a, w=1) < stall_s(a, w=0)", "", 0.719, "<", 0.366),
            "published as less with 1 worker than with 0 workers, here 0.719 s against 0.366 s",
        ),
        (
            failing("similar(x)", "", [1.0, 2.5], "similar within", Percentage(15)),
            "published as alike, here 1, 2.5",
        ),
        (
            failing("best_mode_set(nx) == 'efij'", "", "dfhj", "==", "efij"),
            "published = e f i j, here d f h j",
        ),
    ],
)  # fmt: skip
def test_the_published_side_comes_first_and_units_are_there(comparison, text):
    assert words(comparison) == text


@pytest.mark.parametrize(
    ("text", "left", "operator", "right", "shown"),
    [
        ("spread(x) <= 5.89 + EPS_PP", Percentage(9.389), "<=", 8.89, "≤ 5.89 %, here 9.4 %"),
        ("spread(x) >= 90 - EPS_PP", Percentage(81.0), ">=", 87.0, "≥ 90 %, here 81.0 %"),
        ("gpu_util_pct(a) >= 100 - EPS_PP", Percentage(91.0), ">=", 97.0, "≈ 100 %, here 91.0 %"),
        (
            "-19.5 - EPS_PP <= pct(stall_s(a), stall_s(b)) <= -17.6 + EPS_PP",
            Percentage(-12.62), "<=", -14.6, "-19.5 to -17.6 %, here -12.6 %",
        ),
        (
            "1.8 * (1 - EPS_RATIO) <= e2e_s(a) / e2e_s(b) <= 3.9 * (1 + EPS_RATIO)",
            1.53, "<=", 1.311, "1.8 to 3.9, here 1.31",
        ),
    ],
)  # fmt: skip
def test_a_bound_is_the_printed_one_without_our_slack(text, left, operator, right, shown):
    assert words(failing(text, "", left, operator, right)) == f"published {shown}"


def test_a_limit_that_is_ours_alone_is_not_called_published():
    ours = CLAIM._replace(threshold_source="ours")
    limit = failing("share(a, b) < SMALL_PCT", "d=nano", Percentage(20.4), "<", 10)
    assert words(limit, ours) == "Nano: read as < 10 %, here 20.4 %"
    slack = failing("iops(a) <= EPS_IOPS", "", 4.0, "<=", 1)
    assert words(slack) == "read as ≤ 1, here 4"


def test_board_and_network_are_named_where_the_claim_is_of_several():
    text = "near(stall_s(nano, lenet, w=0), 5)"
    assert words(failing(text, "", 7.0, "near", 5)).startswith("Nano, LeNet-5: published 5 s")
    alone = CLAIM._replace(devices="nano", models="lenet")
    assert words(failing(text, "", 7.0, "near", 5), alone).startswith("published 5 s")
    both = "near(stall_s(nano, lenet) - stall_s(agx, resnet), 5)"
    assert words(failing(both, "", 7.0, "near", 5)).startswith("published 5")
    assert words(
        failing("near(stall_s(a), 5)", "m=lenet, d=hdd, p=d, q=e, v=5", 7.0, "near", 5)
    ) == ("LeNet-5, HDD, d to e: published 5 s, here 7 s")
    assert words(failing("near(stall_s(a), 5)", "p=k", 7.0, "near", 5), named=True) == (
        "mode k, stall per epoch: published 5 s, here 7 s"
    )


def test_comparisons_that_would_begin_alike_are_told_apart_by_their_setting():
    texts = [
        f"near(compute_ms_per_minibatch(a, bs={n}) / compute_ms_per_minibatch(a, bs=8), 2)"
        for n in (1, 16)
    ]
    both = [failing(text, "", 1.1, "near", 2) for text in texts]
    assert [text.partition(":")[0] for text in comparisons(both, CLAIM, TITLES, named=False)] == [
        "1 against 8 samples",
        "16 against 8 samples",
    ]


def test_a_list_said_to_be_alike_names_what_each_value_is_of():
    text = "similar([stall_ms_per_minibatch(nx, scale=x) for x in (0.25, 4)])"
    comparison = failing(text, "", [16.31, 13.82], "similar within", Percentage(15))
    assert values_of(comparison) == "16.3 ms at 0.25 x the data, 13.8 ms at 4 x the data"


def test_tolerances_are_named_once_and_as_ours():
    near = failing("near(x, 1)", "", 2.0, "near", 1)
    points = failing("near_pp(x, 1)", "", Percentage(9.0), "near", Percentage(1))
    slack = failing("x <= 5 * (1 + EPS_RATIO)", "", 9.0, "<=", 5.75)
    order = failing("x(a) < x(b)", "", 2.0, "<", 1.0)
    terms = load_terms(ROOT)
    assert list(tolerances([near, slack, points, near], terms)) == [
        "our tolerance: 15 % and 3 points"
    ]
    assert list(tolerances([order], terms)) == []
