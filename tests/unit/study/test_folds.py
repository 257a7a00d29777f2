"""The folds of the cross-validation: each row in one, and what gives it away leaves with it."""

import re
import shutil
from collections import Counter

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.study.folds import (
    IDENTITIES,
    RULES,
    derived_leaks,
    folds,
    judged,
    load_leaks,
    points,
)
from epochwatt.study.published import Measurement, Relation, load_published


@pytest.fixture(scope="module")
def published(request):
    return load_published(request.config.rootpath / "config/published")


@pytest.fixture(scope="module")
def twin(request):
    return request.config.rootpath / "config/twin"


@pytest.fixture(scope="module")
def found(twin):
    return folds(twin)


def test_every_row_is_in_the_fold_of_its_take_away(published, twin, found):
    rows = judged(twin)
    assert rows.keys() == published.facts().keys()
    assert {n: row.take_away for n, row in rows.items()} == {
        n: fact.take_away for n, fact in published.facts().items()
    }
    assert Counter(name for fold in found.values() for name in fold.ids) == dict.fromkeys(rows, 1)
    assert all(fold.ids <= fold.removed for fold in found.values())


def test_leaks_that_follow_from_the_tables_are_in_the_file(published, twin):
    committed = load_leaks(twin, published.facts())
    derived = {(leak.ids, leak.rule) for leak in derived_leaks(published)}
    assert derived == {(leak.ids, leak.rule) for leak in committed if leak.rule != "arithmetic"}
    assert {leak.rule for leak in committed} == set(RULES)


@pytest.mark.parametrize(
    ("take_away", "lost"),
    [
        ("5.1.1", "S5.2.2-03 S5.1.6-10"),  # 12.9 s, 20.9 s
        ("5.2.2", "S5.1.1-02 S5.3.1-01"),  # 12.9 s, 1443 x 195 ms
        ("5.1.6", "S5.1.1-06 RS5.1.3-03"),  # 21 s, 2.4 x 456 s
        ("5.1.3", "S5.1.6-09 S5.5.1-01 S5.1.5-01"),  # 456 s, 1.9 x 12 s of 349 s, 2.5 x
        ("5.1.5", "S5.1.3-01 S5.1.3-02 S5.1.3-03 S5.1.3-04"),  # printed there again
        ("5.5.1", "S5.6-05 S5.4.1-01 RS5.6-01 RS5.6-02 RS5.6-03"),  # 31 W, 15 h / 150
        ("5.6", "S5.5.1-01 S5.5.1-03"),  # 349 s, 3.03 Wh
        ("5.4.1", "S5.5.1-01"),
        ("5.3.1", "S5.2.2-01 S5.2.2-04 RS5.6.7-05"),
        ("5.6.7", "S5.3.1-01 S5.2.2-01 RS5.6.6-12"),
        ("5.6.6", "RS5.6.5-04 RS5.6.7-01"),
        ("H-III.B", "H-III.A-02"),  # 173 s, 173.8 s
        ("H-III.F", "H-III.A-03"),  # 1226 s, 1200 s
    ],
)
def test_rows_that_give_a_take_away_away_leave_with_it(found, take_away, lost):
    assert set(lost.split()) <= found[take_away].removed


def test_the_papers_are_not_pooled(published, found):
    facts = published.facts()
    assert all(len({facts[i].paper for i in fold.removed}) == 1 for fold in found.values())


def equations(published):
    """Return the rows (id -> coefficients of ln) and the identities, both linear in ln of points.

    A sum's coefficients are the shares of its parts, different in every run: only what holds for
    any shares counts as following.
    """
    index = {}
    rng = np.random.default_rng(0)

    def row(terms):
        return {index.setdefault(point, len(index)): factor for point, factor in terms}

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
    for run in dict.fromkeys(point[:-1] for point in touched):
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

    return {n: dense(terms) for n, terms in rows.items()}, [dense(t) for t in identities]


def following(rows, identities, ids, removed):
    """Return the ids whose number follows from the rows that are not removed."""
    asked = [i for i in ids if i in rows]
    kept = np.array([*(line for name, line in rows.items() if name not in removed), *identities])
    _, sizes, basis = np.linalg.svd(kept, full_matrices=False)
    span = basis[sizes > 1e-9]
    rest = [rows[i] - span.T @ (span @ rows[i]) for i in asked]
    return {i for i, left in zip(asked, rest, strict=True) if np.linalg.norm(left) < 1e-9}


def test_no_held_out_number_follows_from_what_the_fit_sees(published, found):
    rows, identities = equations(published)
    assert len(rows) > 140
    leaking = {
        take_away: following(rows, identities, fold.ids, fold.removed)
        for take_away, fold in found.items()
    }
    assert {take_away: ids for take_away, ids in leaking.items() if ids} == {}
    # the same question without the leaks has an answer: what it finds has to leave
    assert following(rows, identities, found["5.2.2"].ids, found["5.2.2"].ids) == {"S5.2.2-03"}
    assert "S5.6-05" in following(rows, identities, found["5.6"].ids, found["5.6"].ids)


def test_what_cannot_be_simulated_is_not_judged(published, twin):
    rows = judged(twin)
    for name, fact in published.facts().items():
        row = rows[name]
        constant = fact.unit in {"MHz", "count", "epochs", "MB"} or fact.metric == "cuda_cores"
        none_or_all = not fact.is_bound and fact.unit in {"1/s", "pct"} and fact.value in (0, 100)
        by_hand = fact.section.startswith("5.4")
        other = isinstance(fact, Measurement) and fact.kind in {"protocol", "prediction"}
        if constant or none_or_all or by_hand or other:
            assert not row.is_simulable, name
        assert row.is_simulable or row.why, name
    assert sum(row.is_simulable for row in rows.values()) == 183


def test_how_a_number_is_judged(published, twin):
    rows = judged(twin)
    for name, fact in published.facts().items():
        if not rows[name].is_simulable:
            continue
        small = fact.unit == "pct" and (
            isinstance(fact, Measurement) or fact.b_over_a is None or abs(fact.value) < 20
        )
        expected = "bound" if fact.is_bound else "points" if small else "ratio"
        assert rows[name].judged_as == expected, name


@pytest.fixture
def copy(tmp_path, twin):
    """A copy of the files in which a text can be replaced."""
    for name in ("folds.csv", "leaks.csv"):
        shutil.copy(twin / name, tmp_path)

    def change(name, old, new):
        text = (tmp_path / name).read_text("utf-8")
        assert old in text
        (tmp_path / name).write_text(text.replace(old, new, 1), "utf-8")
        return tmp_path

    return change


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("folds.csv", "S5.1.1-01,5.1.1", "S5.1.1-01,", "S5.1.1-01 needs one take-away"),
        ("folds.csv", "S5.1.1-02", "S5.1.1-01", "S5.1.1-01 needs one take-away"),
        ("folds.csv", "yes,ratio", "yes,odds", "judged_as 'odds'\n  allowed: yes and ratio"),
        ("folds.csv", "yes,ratio", "no,ratio", "simulable is 'no', judged_as 'ratio'"),
        ("leaks.csv", "S5.1.1-02", "S9.9.9-01", "line 2: S9.9.9-01 is not in folds.csv"),
        ("leaks.csv", "identity", "magic", "is no leak\n  needed: two ids or more, why"),
    ],
)
def test_a_wrong_line_is_named(copy, name, old, new, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as error:
        folds(copy(name, old, new))
    assert name in str(error.value)
