"""Plans that are played: steady arrivals keep every budget; played are those of the plans."""

import numpy as np
import pytest

from epochwatt.board.records import interleaved_folder
from epochwatt.schedule import played
from epochwatt.schedule.config import Jobs
from epochwatt.schedule.evaluation import Part, Set, solvers
from epochwatt.schedule.simulation import N_BATCHES
from epochwatt.schedule.space import Space

SIZES = (1, 4, 16)


@pytest.fixture
def made_up(workload, monkeypatch):
    """Return a function that gives a set of jobs with made-up workloads."""

    def make(kind, train, infer):
        space = Space(
            workload(1, (16,), is_monotone=False) if train else None,
            tuple(workload(seed, SIZES, is_monotone=False) for seed in infer),
        )
        jobs = Jobs(train={}, infer={}, n_profiled=[6])
        one = Set(Part(kind, "a" * train, ("b",)), [], [], jobs)
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
    rows = list(played.arrival_rows(made_up(kind, train, infer)))
    assert [(row.solver, row.arrivals) for row in rows] == [
        (solver, arrivals) for solver in ("exhaustive", "gmd") for arrivals in played.KINDS
    ]
    steady = [row for row in rows if row.arrivals == "constant"]
    assert [(row.kept_worst_pct, row.late_pct) for row in steady] == [(100, 0), (100, 0)]
    best = rows[1]
    assert 0 < best.late_pct < 100
    assert best.kept_worst_pct <= best.kept_p99_pct
    assert best.n_plans == rows[0].n_plans > 20


def test_training_over_power_budgets_never_falls_for_the_best_of_all_modes(made_up):
    one = made_up("train_and_infer", 1, (2,))
    rows = list(played.power_rows(one, solvers({}, np.array([], int), (6,))))
    best = [row for row in rows if row.solver == "exhaustive"]
    assert len(best) == 39
    answered = [row.throughput_per_s for row in best if row.throughput_per_s is not None]
    assert answered
    assert answered == sorted(answered)
    by_budget = {row.max_power_w: row.throughput_per_s for row in best}
    for row in rows:
        if row.throughput_per_s is not None:
            assert row.throughput_per_s <= by_budget[row.max_power_w]


def test_latencies_of_a_plan_end_below_its_budget_with_steady_arrivals(made_up):
    rows = list(played.latency_rows(made_up("train_and_infer", 1, (2,))))
    (steady,) = (r for r in rows if (r.arrivals, r.percentile) == ("constant", 100))
    assert steady.latency_s <= steady.max_latency_s
    assert len(rows) == 2 * len(played.PERCENTILES)


def test_a_measurement_stands_beside_its_plan_played_with_the_same_times(monkeypatch):
    n = 4 * N_BATCHES
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
    rows = list(played.measured_rows("measured/interleaved/one"))
    longest = {r.provenance: r for r in rows if r.percentile == 100}
    assert list(longest) == ["measured", "simulated"]
    for row in longest.values():
        assert row.latency_s == pytest.approx(0.35)  # three more arrive, then it runs
        assert (row.plan, row.n_train, row.batch_size) == ("one", 3, 4)
        assert row.max_latency_s == pytest.approx(0.35)
