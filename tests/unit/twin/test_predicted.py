"""What the simulation says to published numbers, and rows of epochs.csv in closed form."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import RUN

from epochwatt import columns
from epochwatt.errors import EpochwattError
from epochwatt.published.folds import judged
from epochwatt.published.numbers import DEFAULTS, Measurement, Relation, load_published, load_seen
from epochwatt.tables import read_cells
from epochwatt.twin.epoch_rows import SIMULATED_COLUMNS, epoch_rows_of_each
from epochwatt.twin.predicted import (
    QUANTITIES,
    Question,
    answer_each,
    predict,
    questions,
    seen_by_fit,
    seen_by_setups,
    write_seen,
)
from epochwatt.twin.records import write_run
from epochwatt.twin.run import simulate

# -- configurations, many at once ------------------------------------------------------------------

AGX = Question("agx", "mobilenet", "hdd", 4, 16, "g")

QUESTIONS = st.builds(
    Question,
    device=st.just("agx"),
    model=st.sampled_from(["lenet", "mobilenet", "resnet"]),
    storage=st.sampled_from(["ssd", "hdd"]),
    num_workers=st.integers(0, 8),
    batch_size=st.sampled_from([1, 16]),
    power_mode=st.sampled_from(["g", "f", "k"]),
    dvfs=st.sampled_from(["off", "on"]),
    cold=st.booleans(),
    scale=st.sampled_from([1.0, 0.25]),
)


@given(st.lists(QUESTIONS, min_size=1, max_size=6), st.lists(st.integers(0, 999), max_size=4))
def test_many_questions_and_draws_are_answered_as_each_alone(twin, asked, seeds):
    p = twin.parameters
    draws = [p]  # some parameters are the same in all draws, as those put in by hand are
    for seed in seeds:
        factors = np.exp(np.random.default_rng(seed).normal(0, 0.1, len(p.fitted)))
        draws.append(p.moved({k: p[k] * f for k, f in zip(p.fitted, factors, strict=True)}))
    answers = answer_each(asked, twin, draws)
    assert answers == [answer_each(asked, twin, [drawn])[0] for drawn in draws]
    for question, values in answers[0].items():
        assert set(values) == set(QUANTITIES)
        assert values == pytest.approx(answer_each([question], twin, [p])[0][question])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device": "tx2"}, "know no 'tx2'"),
        ({"model": "alexnet"}, "know no 'alexnet'"),
        ({"power_mode": "z"}, "agx has no power mode 'z' with numbers\n  allowed: g, a, b"),
    ],
)
def test_question_without_an_answer_is_refused(twin, change, message):
    with pytest.raises(EpochwattError, match=message):
        answer_each([AGX._replace(**change)], twin, [twin.parameters])


# -- published numbers -----------------------------------------------------------------------------

SETTINGS = {**DEFAULTS, "device": "agx", "model": "resnet", "storage": "ssd", "power_mode": "g"}
COMMON = {
    **{"id": "S1", "paper": "sigmetrics2023", "section": "5.1"},
    **{"value": 1.0, "unit": "s", "qualifier": "exact"},
}


def config(**changes):
    return {**SETTINGS, **changes}


def asked(**changes):
    return Question("agx", "resnet", "ssd", 4, 16, "g")._replace(**changes)


def measurement(metric, kind="run", **changes):
    return Measurement(**COMMON, metric=metric, kind=kind, config=config(**changes))


def relation(metric, formula, *sides):
    a, b = (*sides, {})[:2]
    return Relation(**COMMON, metric=metric, formula=formula, config_a=a, config_b=b)


@pytest.fixture
def predicted(twin):
    """Return a function that gives what the simulation says to one number."""
    return lambda fact: predict([fact], twin, twin.parameters).get(fact.id)


@pytest.fixture
def e2e_s(twin):
    """Return a function that gives the epoch time of the default with some changes."""

    def call(**changes):
        question = asked(**changes)
        return answer_each([question], twin, [twin.parameters])[0][question]["e2e_s"]

    return call


@pytest.mark.parametrize(
    ("changes", "cold"), [({}, False), ({"epoch": "0"}, True), ({"cache": "dropped"}, True)]
)
def test_first_epochs_and_dropped_caches_are_cold(changes, cold):
    assert questions(config(**changes)) == [asked(cold=cold)]


def test_measurement_is_the_quantity_and_the_mean_of_several(predicted, e2e_s):
    assert predicted(measurement("e2e_s")) == pytest.approx((e2e_s(),))
    both = (e2e_s() + e2e_s(power_mode="h")) / 2
    assert predicted(measurement("e2e_s", power_mode=("g", "h"))) == pytest.approx((both,))


def test_relations_of_two_sides(predicted, e2e_s):
    a, b = e2e_s(power_mode="h"), e2e_s()
    sides, change = (config(power_mode="h"), config()), 100 * (b - a) / a
    assert change < 0
    values = {"A/B": a / b, "B/A": b / a, "100*(B-A)/A": change, "100*|B-A|/A": -change}
    for formula, value in values.items():
        assert predicted(relation("e2e_s", formula, *sides)) == pytest.approx((value,))


def test_several_ratios_are_a_range_and_several_changes_a_mean(predicted, e2e_s):
    several = config(num_workers=(0, 4), power_mode="h"), config(num_workers=(0, 4))
    ratios = [e2e_s(num_workers=w, power_mode="h") / e2e_s(num_workers=w) for w in (0, 4)]
    ends = (min(ratios), max(ratios))
    assert predicted(relation("e2e_s", "A/B", *several)) == pytest.approx(ends)
    mean = sum(100 * (1 / ratio - 1) for ratio in ratios) / 2
    assert predicted(relation("e2e_s", "mean 100*(B-A)/A", *several)) == pytest.approx((mean,))


def test_committed_file_has_the_numbers_that_the_fit_sees(evidence, request, tmp_path):
    """After a change of what is fitted: `epochwatt calibrate-twin`, as `make validate` does."""
    folder = request.config.rootpath / "config"
    known = load_published(folder / "published"), judged(folder / "twin")
    facts, others = seen_by_fit(*known), seen_by_setups(*known)
    assert load_seen(folder / "twin") == {fact.id for fact in [*facts, *others]}
    assert {fact.paper for fact in facts} == {"sigmetrics2023"}
    assert {fact.paper for fact in others} == {"hipcw2021"}
    assert not any("orin" in str(fact) for fact in evidence.facts)
    assert len(evidence.facts) > 100
    for name in ("published", "twin"):
        shutil.copytree(folder / name, tmp_path / "config" / name)
    written = tmp_path / "config/twin/seen.csv"
    written.unlink()
    write_seen(tmp_path)
    assert written.read_bytes() == (folder / "twin/seen.csv").read_bytes()


# -- rows in closed form ---------------------------------------------------------------------------

EFFECTS = dict.fromkeys(columns.FLAGS, "informs")
# of a short run: its pipeline starts; some forty readings of a power that jumps between two levels
NEAR = {"stall_s": 0.1, "energy_wh": 0.15, "power_mean_w": 0.15}


def epoch_rows(rows, twin, p):
    return next(epoch_rows_of_each([rows], twin, [p], [0]))


@pytest.fixture
def written(twin, factors_of, tmp_path):
    """Return a function that simulates a run event by event and gives its rows, as numbers."""
    kinds = {field.name: field.kind for field in columns.RUN_EPOCH_COLUMNS}
    number = {"int": int, "float": float}

    def call(n_epochs=3, **changes):
        factors = factors_of(**changes)
        epochs = simulate(factors, n_epochs, twin)
        write_run(RUN, str(tmp_path / RUN), factors, epochs, EFFECTS, str(tmp_path))
        return [
            {k: number.get(kinds[k], str)(v) if v else v for k, v in row.items()}
            for row in read_cells(tmp_path / "epochs.csv")
        ]

    return call


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"device": "nano", "num_workers": 0, "mode": "MAXN", "storage": "sd"},
        {"device": "nx", "model": "mobilenet", "storage": "hdd", "num_workers": 2},
        {"model": "mobilenet", "storage": "hdd", "cache_policy": "dropped"},
        {"model": "resnet", "dvfs": "on", "mode": "e"},
    ],
)
def test_rows_are_those_of_the_event_simulation(written, twin, changes):
    simulated = written(**changes)
    closed = epoch_rows(simulated, twin, twin.parameters)
    for row, expected in zip(closed, simulated, strict=True):
        assert all(row[name] == expected[name] for name in columns.FACTOR_NAMES)
        for table in (row, expected):
            mean_w = table["energy_wh"] * 3600 / table["e2e_s"]
            assert table["power_mean_w"] == pytest.approx(mean_w, rel=1e-15)
        assert row["energy_paper_wh"] == row["energy_wh"]  # nothing is read, so nothing missed
        for name in (*SIMULATED_COLUMNS, "energy_wh"):
            if name in expected:  # clocks are no columns of epochs.csv
                near = NEAR.get(name, 0.02)
                assert row[name] == pytest.approx(expected[name], rel=near, abs=1e-6), name
