"""Requests wait as counted by hand; plans that hold with steady arrivals hold when played."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given as having
from hypothesis import strategies as st

from epochwatt.board.records import interleaved_folder
from epochwatt.board.training.interleave.scheduler import Plan
from epochwatt.schedule import played, simulation
from epochwatt.schedule.config import Jobs
from epochwatt.schedule.problem import Space, outcome
from epochwatt.schedule.simulation import Interleaved, arrivals_s, latencies_of_two_s, play, run_as
from epochwatt.schedule.study import Set

SIZES = (1, 4, 16)


def test_a_request_waits_for_the_rest_of_its_mini_batch_and_for_training_that_runs():
    arrivals = np.array([[0.0, 1.0, 2.0, 3.5, 3.6, 3.7]])
    # 1.0 to 1.4 inference; training 1.4 to 2.9, 2.9 to 4.4, late by 0.9; at 4.8 one waits already
    plan = Interleaved(batch_size=2, infer_s=0.4, n_train=3, train_s=1.5)
    waited = play(arrivals, plan).latency_s[0]
    assert waited == pytest.approx([1.4, 0.4, 2.8, 1.3, 1.6, 1.5])


@having(st.floats(0.1, 100), st.integers(1, 64), st.floats(0.01, 1), st.floats(0.01, 3))
def test_steady_arrivals_wait_as_the_formula_says(rate, batch, busy, train):
    infer_s, train_s = busy * batch / rate, train * batch / rate
    given = outcome([(rate, batch, infer_s, 1.0)], (train_s, 1.0))
    arrivals = np.arange(20 * batch)[None] / rate
    plan = Interleaved(batch, infer_s, int(given.n_train), train_s)
    longest_s = play(arrivals, plan).latency_s.max()
    assert longest_s == pytest.approx(float(given.latency_s[0]), rel=1e-6)


def test_a_mini_batch_waits_for_those_of_the_other_stream_that_were_complete_before():
    arrivals = np.array([[0.0, 1.0, 4.0, 5.0]]), np.array([[0.5, 4.5]])
    plans = Interleaved(batch_size=2, infer_s=1.0), Interleaved(batch_size=1, infer_s=2.0)
    first, second = latencies_of_two_s(arrivals, plans)
    assert second[0] == pytest.approx([2.0, 2.0])  # 0.5 to 2.5, 4.5 to 6.5
    assert first[0] == pytest.approx([3.5, 2.5, 3.5, 2.5])  # 2.5 to 3.5, 6.5 to 7.5


@having(
    st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)),
    st.tuples(st.integers(1, 16), st.integers(1, 16)),
    st.floats(0.01, 1),
    st.floats(0.01, 0.99),
)
def test_two_steady_streams_never_wait_longer_than_the_formula_says(rates, sizes, busy, part):
    both_s = busy * min(size / rate for size, rate in zip(sizes, rates, strict=True))
    times = part * both_s, (1 - part) * both_s
    given = outcome([(*job, 1.0) for job in zip(rates, sizes, times, strict=True)])
    pairs = list(zip(rates, sizes, strict=True))
    arrivals = tuple(arrivals_s("constant", rate, (5, 20 * size)) for rate, size in pairs)
    plans = tuple(Interleaved(size, time) for size, time in zip(sizes, times, strict=True))
    for waited, most_s in zip(latencies_of_two_s(arrivals, plans), given.latency_s, strict=True):
        assert waited.max() <= float(most_s) * (1 + 1e-6)


def test_played_arrivals_wait_as_the_scheduler_lets_them():
    plan = Plan(10, 2, 1, 20)
    # complete at 0.2, 0.4 and 0.9: the second waits for nothing, the third is served at once
    played = run_as(plan, [0.05], [0.1], [0.1, 0.2, 0.3, 0.4, 0.8, 0.9], 1.0, 0.16)
    assert played.p99_s == pytest.approx(0.15)
    assert played.share_late == 0
    assert played.throughput_per_s == pytest.approx(4 / 1.05)  # the last one ends late
    late = run_as(plan, [0.05], [0.1], [0.1, 0.2, 0.3, 0.4, 0.8, 0.9], 1.0, 0.14)
    assert late.share_late == 0.5
    # beside a mini-batch that may take longer the gap of 0.15 s is left empty
    often = run_as(plan, [0.05], [0.1, 0.16], np.arange(0.1, 60, 0.1).tolist(), 60.0)
    seldom = run_as(plan, [0.05], [0.1], np.arange(0.1, 60, 0.1).tolist(), 60.0)
    assert seldom.throughput_per_s == pytest.approx(5, rel=0.01)
    assert often.throughput_per_s < 0.7 * seldom.throughput_per_s


# -- the study's plans -----------------------------------------------------------------------------


@pytest.fixture
def made_up(workload, monkeypatch):
    """Return a function that gives a set of jobs with made-up workloads."""

    def make(kind, train, infer):
        space = Space(
            workload(1, (16,), is_monotone=False) if train else None,
            tuple(workload(seed, SIZES, is_monotone=False) for seed in infer),
        )
        jobs = Jobs(train={}, infer={}, n_profiled=[6])
        key = SimpleNamespace(provenance="simulated", device="orin")
        tables = [[SimpleNamespace(key=key)]]
        one = Set(kind, "a" * train, ("b",), tables, jobs)
        monkeypatch.setitem(one.__dict__, "space", space)  # it is worked out once, and kept
        return one

    return make


@pytest.mark.parametrize(
    ("kind", "train", "infer"),
    [("infer", 0, (2,)), ("train_and_infer", 1, (2,)), ("two_infer", 0, (2, 3))],
)
def test_plans_keep_their_latency_with_steady_arrivals_and_not_always_with_random_ones(
    kind, train, infer, made_up
):
    rows = played.arrival_rows(made_up(kind, train, infer))
    assert tuple(rows) == played.ARRIVAL_COLUMNS
    rows = list(rows.itertuples())
    assert [(row.solver, row.arrivals) for row in rows] == [
        (solver, arrivals) for solver in ("exhaustive", "gmd") for arrivals in played.KINDS
    ]
    steady = [row for row in rows if row.arrivals == "constant"]
    assert [(row.kept_worst_pct, row.late_pct) for row in steady] == [(100, 0), (100, 0)]
    best = rows[1]
    assert 0 < best.late_pct < 100
    assert best.kept_worst_pct <= best.kept_p99_pct
    assert best.n_plans == rows[0].n_plans > 20


def test_a_measurement_stands_beside_its_plan_played_with_the_same_times(monkeypatch):
    n = 4 * simulation.N_BATCHES
    arrival_s = np.arange(n) / 10.0
    end_s = np.repeat(arrival_s[3::4], 4) + 0.05
    end_s[-4:] = np.nan  # not served
    meta = {
        "backend": "host",
        "plan": {
            **{"train": "net", "infer": "served", "rate_per_s": 10.0, "batch_size": 4},
            **{"n_train": None, "arrivals": "constant"},
        },
        "before": {"infer_s": [0.05, 0.05, 9.0], "train_s": [0.1]},
    }
    record = interleaved_folder.InterleavedRecord(
        meta, {"arrival_s": arrival_s, "end_s": end_s}, {}, "measured/interleaved/one"
    )
    monkeypatch.setattr(played, "read", lambda folder: record)
    rows = list(played.measured_rows("measured/interleaved/one").itertuples())
    longest = {r.provenance: r for r in rows if r.percentile == 100}
    assert list(longest) == ["measured", "simulated"]
    for row in longest.values():
        assert row.latency_s == pytest.approx(0.35)  # three more arrive, then it runs
        assert (row.plan, row.n_train, row.batch_size) == ("one", 3, 4)
        assert row.max_latency_s == pytest.approx(0.35)
