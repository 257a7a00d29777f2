"""The folds of the cross-validation: each row in one, and what gives it away leaves with it."""

import re
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from benchmarks.calibration import derived_leaks
from epochwatt.claims.evaluate import load_claims
from epochwatt.claims.numbers_read import points_read
from epochwatt.claims.tolerances import load_terms
from epochwatt.errors import ConfigError
from epochwatt.published.folds import (
    IDENTITIES,
    READ_BY_CLAIMS,
    RULES,
    Judged,
    Leak,
    claim_folds,
    folds,
    giving_away,
    judged,
    load_leaks,
    point,
    points,
)
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS, Measurement, Relation


@pytest.fixture(scope="module")
def found(twin):
    return folds(twin)


def test_every_row_is_in_the_fold_of_its_takeaway(published, twin, found):
    rows = judged(twin)
    assert rows.keys() == published.facts().keys()
    assert {n: row.takeaway for n, row in rows.items()} == {
        n: fact.takeaway for n, fact in published.facts().items()
    }
    assert Counter(name for fold in found.values() for name in fold.ids) == dict.fromkeys(rows, 1)
    assert all(fold.ids <= fold.removed for fold in found.values())


def test_leaks_that_follow_from_the_tables_are_in_the_file(published, twin):
    committed = load_leaks(twin, published.facts())
    derived = {(leak.ids, leak.rule) for leak in derived_leaks(published)}
    assert derived == {(leak.ids, leak.rule) for leak in committed if leak.rule in RULES[:2]}
    assert {leak.rule for leak in committed} == set(RULES)


def test_nothing_that_is_kept_gives_away_or_repeats_what_is_removed(published, twin, found):
    """To the end: what gives a removed number away is removed, and what gives that away, too."""
    rows, leaks = judged(twin), load_leaks(twin, published.facts())
    for fold in [*found.values(), *claim_folds(twin).values()]:
        values = {n for n in fold.removed if n in fold.ids or rows[n].judged_as != "bound"}
        kept = {i for leak in leaks if leak.ids & values for i in leak.ids} - fold.removed
        assert kept == set(), fold.takeaway


@pytest.mark.parametrize("seed", range(4))
def test_leaks_are_followed_to_the_end(seed):
    """Against the components of a random graph of leaks, by powers of its matrix."""
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(30)]
    sets = [set(rng.choice(names, rng.integers(2, 4), replace=False)) for _ in range(14)]
    start = set(rng.choice(names, 2, replace=False))
    rows = dict.fromkeys(names, Judged("5", "ratio", ""))
    linked = np.array([[any({a, b} <= s for s in sets) or a == b for a in names] for b in names])
    reach = np.linalg.matrix_power(linked.astype(float), len(names)) > 0
    expected = {a for i, a in enumerate(names) if any(reach[i, names.index(b)] for b in start)}
    leaks = [Leak(frozenset(s), "arithmetic", "why") for s in sets]
    assert giving_away(start, leaks, rows) == expected


def test_the_papers_are_not_pooled_and_no_kept_number_follows_from_removed_ones(published, found):
    _, rows, identities = equations(published)
    facts = published.facts()
    for name, fold in found.items():
        kept = {i: line for i, line in rows.items() if i not in fold.removed}
        assert following(rows, identities, kept, kept.keys()) == set(), name
        assert len({facts[i].paper for i in fold.removed}) == 1


def equations(published):
    """Return the points, and of the rows (id -> coefficients) and identities what is linear in ln.

    A sum's coefficients are the shares of its parts, different in every run: only what holds for
    any shares counts as following.
    """
    index = {}
    rng = np.random.default_rng(0)

    def row(terms):
        return {index.setdefault(place, len(index)): factor for place, factor in terms}

    rows = {}
    for name, fact in published.facts().items():
        at = list(points(fact))
        if isinstance(fact, Measurement) and len(at) == 1 and not fact.is_bound and fact.value:
            rows[name] = row([(at[0], 1.0)])
        elif isinstance(fact, Relation) and not fact.is_bound:
            if fact.metric.count("/") == 1:
                part, whole = ((*at[0][:-1], metric) for metric in fact.metric.split("/"))
                rows[name] = row([(part, 1.0), (whole, -1.0)])
            elif fact.b_over_a is not None and len(at) == 2:
                rows[name] = row([(at[0], -1.0), (at[1], 1.0)])
    identities = []
    touched = set(index)
    for run in dict.fromkeys(place[:-1] for place in touched):
        for metrics, is_sum in ((IDENTITIES[0], True), (IDENTITIES[1], False)):
            first, second, whole = ((*run, metric) for metric in metrics)
            if len({first, second, whole} & touched) > 1:  # else it relates nothing
                share = rng.uniform(0.1, 0.9)
                factors = (share, 1 - share, -1.0) if is_sum else (1.0, 1.0, -1.0)
                identities.append(row(zip((first, second, whole), factors, strict=True)))

    def dense(terms):
        line = np.zeros(len(index))
        line[list(terms)] = list(terms.values())
        return line

    dense_rows = {n: dense(terms) for n, terms in rows.items()}
    at = {place: dense({n: 1.0}) for place, n in index.items()}
    return at, dense_rows, [dense(t) for t in identities]


def following(rows, identities, asked, removed):
    """Return what follows of what is asked (name -> coefficients) from the rows not removed."""
    kept = np.array([*(line for name, line in rows.items() if name not in removed), *identities])
    _, sizes, basis = np.linalg.svd(kept, full_matrices=False)
    span = basis[sizes > 1e-9]
    left = {name: of - span.T @ (span @ of) for name, of in asked.items()}
    return {name for name, rest in left.items() if np.linalg.norm(rest) < 1e-9}


def test_no_held_out_number_follows_from_what_the_fit_sees(published, found):
    _, rows, identities = equations(published)
    assert len(rows) > 140
    own = {n: {i: rows[i] for i in fold.ids if i in rows} for n, fold in found.items()}
    leaking = {n: following(rows, identities, own[n], fold.removed) for n, fold in found.items()}
    assert {takeaway: ids for takeaway, ids in leaking.items() if ids} == {}
    # the same question without the leaks has an answer: what it finds has to leave
    assert following(rows, identities, own["5.2.2"], found["5.2.2"].ids) == {"S5.2.2-03"}
    assert "S5.6-05" in following(rows, identities, own["5.6"], found["5.6"].ids)


@pytest.fixture(scope="module")
def read(request):
    """Take-away -> runs and metrics that its claims read."""
    root = request.config.rootpath
    claims, terms = load_claims(root), load_terms(root)
    own = {claim.fold: [c for c in claims if c.fold == claim.fold] for claim in claims}
    return {fold: points_read(of_it, terms) for fold, of_it in own.items()}


def test_nothing_that_a_claim_reads_or_compares_follows_from_what_its_fit_sees(
    published, twin, read
):
    at, rows, identities = equations(published)
    n_asked = 0
    for takeaway, fold in claim_folds(twin).items():
        known = sorted((p for p in read[takeaway] if p in at), key=str)
        asked = {(p,): at[p] for p in known}
        asked |= {(p, q): at[p] - at[q] for p, q in combinations(known, 2)}
        n_asked += len(asked)
        assert following(rows, identities, asked, fold.removed) == set(), takeaway
    assert n_asked > 50
    # the same question has an answer where nothing is removed
    run = {"device": "agx", "model": "resnet", **DEFAULTS, **DEVICE_DEFAULTS["agx"]}
    e2e = point("sigmetrics2023", run, "e2e_s")
    assert following(rows, identities, {"e2e": at[e2e]}, ()) == {"e2e"}


READ = """
5.4.2 S5.5.1-01 S5.4.1-02 RS5.2.2-01 S5.1.6-12 but S5.6.4-01  349 s, 15 h / 95
5.4.3 S5.5.1-03 S5.6-05 S5.6-06 but S5.6.4-01  3.03 Wh, 31 W
A.0.1 RS5.6.5-04 RS5.6.6-04 RS5.6.5-08 but RS5.6.7-01  d to e, e to f
A.0.3 S5.6.4-01 RS5.6.4-01 RS5.6.5-05 but RS5.6.7-01  b to c, a to b
A.0.4 RS5.6.7-01 RS5.6.7-06 S5.5.1-01 S5.2.2-01 but S5.6.4-01  h to g, g
5.6.1 S5.5.1-03 RS5.6.7-01 RS5.6.6-01 S5.6.4-06 but S5.1.5-01
5.7.2 S5.5.1-01 RS5.6.7-01 RS5.6.6-01 S5.6.4-06 but S5.6-06  all modes
"""


@pytest.mark.parametrize("line", READ.strip().splitlines())
def test_what_the_folds_of_claims_lose(twin, line):
    takeaway, *lost, _, kept = line.partition("  ")[0].split()
    removed = claim_folds(twin)[takeaway].removed
    assert set(lost) <= removed
    assert kept not in removed


def test_which_numbers_are_judged_and_how(published, twin):
    rows = judged(twin)
    for name, fact in published.facts().items():
        row = rows[name]
        constant = fact.unit in {"MHz", "count", "epochs", "MB"} or fact.metric == "cuda_cores"
        none_or_all = not fact.is_bound and fact.unit in {"1/s", "pct"} and fact.value in (0, 100)
        by_hand = fact.section.startswith("5.4")
        other = isinstance(fact, Measurement) and fact.kind in {"protocol", "prediction"}
        if constant or none_or_all or by_hand or other:
            assert not row.is_simulable, name
        if not row.is_simulable:
            assert row.why, name
            continue
        small = fact.unit == "pct" and (
            isinstance(fact, Measurement) or fact.b_over_a is None or abs(fact.value) < 20
        )
        expected = "bound" if fact.is_bound else "points" if small else "ratio"
        assert row.judged_as == expected, name
    assert sum(row.is_simulable for row in rows.values()) == 183


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("folds", "S5.1.1-01,5.1.1", "S5.1.1-01,", "takeaway is ''"),
        ("folds", "S5.1.1-02", "S5.1.1-01", "S5.1.1-01 is there twice"),
        ("folds", "yes,ratio", "yes,odds", "judged_as is 'odds'\n  allowed: '', 'ratio'"),
        ("folds", "yes,ratio", "no,ratio", "simulable is 'no', judged_as 'ratio'"),
        ("overlapping_numbers", "S5.1.1-02", "S9-01", "line 2: S9-01 is not in folds.csv"),
        ("overlapping_numbers", "identity", "magic", "rule is 'magic'\n  allowed: 'same run"),
        ("numbers_read_by_claims", "S5.4.1-01", "S9-01", "line 2: S9-01 is not in folds.csv"),
        ("numbers_read_by_claims", "5.4.3,", "5.4.2,", "line 3: take-away 5.4.2 is there twice"),
    ],
)
def test_a_wrong_line_is_named(copy, name, old, new, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as error:
        {READ_BY_CLAIMS: claim_folds}.get(f"{name}.csv", folds)(copy(f"twin/{name}.csv", old, new))
    assert name in str(error.value)
