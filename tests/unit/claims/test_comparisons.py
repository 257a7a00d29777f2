"""comparisons.csv: each comparison with the printed number that it is of."""

import pytest

from epochwatt.claims.comparisons import comparison_rows, facts_by_reads, in_words
from epochwatt.claims.evaluate import evaluate
from epochwatt.claims.number_sources import EpochTable
from epochwatt.published.numbers import load_published

TITLES = {"lenet": "LeNet-5", "resnet": "ResNet-18", "agx": "AGX Xavier"}


@pytest.fixture(scope="module")
def facts(pytestconfig):
    published = load_published(pytestconfig.rootpath / "config/published")
    return facts_by_reads(published.facts().values())


@pytest.fixture
def rows(claim, terms, facts):
    """Return a function that judges a predicate on epochs, and gives its comparisons."""

    def of(predicate, epochs, source="paper"):
        one = claim(predicate)._replace(threshold_source=source)
        (verdict,) = evaluate([one], EpochTable(epochs), terms)
        return comparison_rows(verdict, "twin", facts, TITLES, terms)

    return of


def hdd(epochs, **columns):
    """Return runs of LeNet on AGX's hard disk with no worker and with one."""
    return [
        row
        for workers, values in enumerate(zip(*columns.values(), strict=True))
        for row in epochs(
            {"storage": "hdd", "num_workers": workers},
            *[dict(zip(columns, values, strict=True))] * 3,
        )
    ]


def test_a_printed_number_is_found_by_its_run_and_metric(rows, epochs):
    predicate = "near(stall_s(agx,lenet,storage=hdd,w=0), 22)"
    (row,) = rows(predicate, hdd(epochs, stall_s=(30.0, 12.0)))
    assert (row.published_id, row.printed, row.observed) == ("S5.1.3-01", "22", "30")
    assert (row.unit, row.tolerance, row.verdict) == ("s", "15 %", "does_not_hold")
    assert row.in_words == "published 22 s, here 30 s"
    (other,) = rows(predicate.replace("22", "23"), hdd(epochs, stall_s=(30.0, 12.0)))
    assert other.published_id == ""


def test_every_part_has_a_row_and_only_those_that_fail_are_told(rows, epochs):
    stall = "stall_s(agx,lenet,storage=hdd,w={})"
    predicate = f"near({stall.format(0)}, 22) and near({stall.format(1)}, 12.1)"
    both = rows(predicate, hdd(epochs, stall_s=(22.0, 20.0)))
    assert [row.verdict for row in both] == ["holds", "does_not_hold"]
    assert [row.subject for row in both] == ["0 workers", "1 worker"]
    assert [row.fails for row in both] == [False, True]
    assert in_words(both) == "1 worker: published 12.1 s, here 20 s; our tolerance: 15 %"


def test_what_lacks_runs_is_not_evaluable_and_its_other_parts_are_judged(rows, epochs):
    predicate = "all(stall_s(d,lenet,storage=hdd,w=0) < 20 for d in (agx,nx))"
    (row,) = rows(predicate, hdd(epochs, stall_s=(22.0, 20.0)))
    assert (row.status, row.verdict, row.fails) == ("not_evaluable", "does_not_hold", True)
    (none,) = rows(predicate, [])
    assert (none.comparison, none.verdict, none.fails) == ("", "not_evaluable", False)


@pytest.mark.parametrize(
    ("predicate", "printed", "limit", "words"),
    [
        ("pct({0}, {1}) <= -50 + EPS_PP", "-50", "-47", "published ≤ -50 %, here +0.0 %"),
        ("2 * (1 - EPS_RATIO) <= {0} / {1}", "2", "1.7", "published ≥ 2, here 1"),
        ("share({0}, {1}) < SMALL_PCT", "", "10", "read as < 10 %, here 100.0 %"),
        (
            "{0} < FAR_LESS * {1}",
            "",
            "5",
            "published as less, here 10 s (0 workers) against 5 s (1 worker)",
        ),
        ("not_printed", "", "", ""),
    ],
)
def test_our_tolerances_are_no_part_of_what_is_printed(
    predicate, printed, limit, words, rows, epochs
):
    sides = [f"stall_s(agx,lenet,storage=hdd,w={n})" for n in (0, 1)]
    if predicate == "not_printed":
        predicate, words = (
            "{0} < {1}",
            "published as less, here 10 s (0 workers) against 10 s (1 worker)",
        )
        limit = "10"
    (row,) = rows(predicate.format(*sides), hdd(epochs, stall_s=(10.0, 10.0)))
    assert (row.printed, row.limit, row.in_words) == (printed, limit, words)


def test_each_pair_of_a_chain_tells_its_own_sides_apart(rows, epochs):
    few, many = (f"stall_s(agx,lenet,storage=hdd,w={n})" for n in (0, 1))
    chained = rows(f"{few} > {many} <= {few} == 1.0 * {few}", hdd(epochs, stall_s=(10.0, 5.0)))
    assert [row.in_words for row in chained] == [
        "published as more, here 10 s (0 workers) against 5 s (1 worker)",
        "published as no more, here 5 s (1 worker) against 10 s (0 workers)",
        "published as the same, here 10 s against 10 s",
    ]
