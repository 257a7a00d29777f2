"""Problems are those of the sampler's grid; statistics of answers are those counted by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from epochwatt.errors import ConfigError
from epochwatt.prediction.registry import load_method
from epochwatt.schedule import problem, sampler
from epochwatt.schedule.config import PublicJobs, ScheduleStudy
from epochwatt.schedule.problem import NONE, Answers, Problems, Space
from epochwatt.schedule.solver_means import summarised
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.study import (
    N_SAMPLED,
    evaluate,
    plain_solvers,
    sets_of,
    solvers_of,
    statistics,
)
from epochwatt.schedule.tables import ASSUMED, public_tables
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.mode_table import write_mode_tables

REPOSITORY = Path(__file__).parents[3]
SIZES = (1, 4, 16)
SMALL = sampler.Size(4, 3)
RESNET, SHUFFLENET = "resnet50-imagenet-adadelta", "shufflenetv2-cifar100-adadelta"


def test_a_profile_takes_as_long_as_the_search_of_one_mode_assumes(workload):
    from epochwatt.board.training.procedure import DEFAULTS
    from epochwatt.prediction.profile.bench import AROUND_S

    assert (AROUND_S, DEFAULTS.minibatches) == (problem.AROUND_S, problem.MINIBATCHES)
    one = workload(1, SIZES)
    expected_s = 2 * 3 * AROUND_S + DEFAULTS.minibatches * one.time_s[[0, 5]].sum()
    assert one.board_s(np.array([0, 5])) == pytest.approx(expected_s)


def test_loads_and_latencies_span_what_the_strongest_mode_serves(workload):
    infer = workload(1, SIZES)
    problems = sampler.problems_of(Space(None, (infer,)), SMALL)
    assert len(problems) == (50 - 12 + 1) * 4 * 3
    most = (infer.batch_sizes / infer.time_s[-1]).max()
    assert problems.rates_per_s.max() == pytest.approx(0.95 * most)
    assert problems.max_latencies_s.min() == pytest.approx(1.2 * infer.time_s[-1].min())
    assert set(problems.max_power_w) == set(range(12, 51))


def test_two_streams_share_the_load_and_training_has_power_alone(workload):
    first, second = workload(1, SIZES), workload(2, SIZES)
    two = sampler.problems_of(Space(None, (first, second)), SMALL)
    one = sampler.problems_of(Space(None, (first,)), SMALL)
    assert two.rates_per_s[:, 0] == pytest.approx(one.rates_per_s[:, 0] / 2)
    alone = sampler.problems_of(Space(workload(3, (16,))), SMALL)
    assert alone.rates_per_s.shape == (39, 0)


def test_statistics_of_four_answers(workload):
    space = Space(workload(3, (16,)))
    none = np.zeros((4, 0))
    power = np.sort(space.train.power_w[:, 0])
    problems = Problems(np.full(4, power[-1]), none, none)
    best = exhaustive.solve(space, problems).choice[0]
    slow = int(space.train.time_s[:, 0].argmax())
    tight = Problems(np.array([power[-1], power[-1], power[-1], power[0] * 0.9]), none, none)
    numbers = np.array([3, 5, 7, 9])
    answers = Answers(np.array([best, slow, NONE, best]), numbers, 60.0 * numbers)
    least = np.full(4, -1 / space.train.time_s[best, 0])
    row = statistics(space, tight, answers, least)
    ratio = space.train.time_s[best, 0] / space.train.time_s[slow, 0]
    assert row == {
        "answered_pct": 75,
        "kept_pct": pytest.approx(200 / 3),
        "kept_power_pct": pytest.approx(200 / 3),
        "kept_latency_pct": 100,
        "loss_median_pct": pytest.approx(100 * (1 - ratio) / 2),
        "loss_mean_pct": pytest.approx(100 * (1 - ratio) / 2),
        "loss_p90_pct": pytest.approx(90 * (1 - ratio)),
        "optimal_pct": 50,
        "n_profiles": 6,
        "board_minutes": 6,
    }


@pytest.mark.parametrize("rule", ["highest", "mean"])
def test_each_solver_has_a_row_for_each_draw(workload, rule):
    space = Space(workload(3, (16,)), (workload(1, SIZES),))
    found = plain_solvers({"physical": load_method("physical")}, np.array([0, 5]), (6,))
    rows = evaluate(space, sampler.problems_of(space, SMALL, rule), found, n_draws=2)
    drawn = {"random_6", "physical_6", "physical_6_verified"}
    n_rows = rows["solver"].value_counts().to_dict()
    assert n_rows == {name: 2 if name in drawn else 1 for name in ("exhaustive", *found)}
    n_solvable = rows["n_solvable"].iloc[0]
    assert n_solvable > N_SAMPLED
    n_judged = np.where(rows["solver"] == "gain", N_SAMPLED, n_solvable)
    assert rows["n_judged"].tolist() == n_judged.tolist()
    first = rows.iloc[0]
    assert (first["solver"], first["kept_pct"], first["loss_mean_pct"]) == ("exhaustive", 100, 0)
    profiled = rows["solver"].isin(("gmd", "gain", "random_6", "physical_6_verified"))
    assert (rows["kept_pct"][profiled] == 100).all()


def test_a_budget_of_the_mean_power_allows_at_least_what_one_of_the_highest_does(workload):
    train = workload(3, (16,))
    hungry = replace(train, power_w=1.3 * train.power_w)
    space = Space(hungry, (workload(1, SIZES),))
    problems = [sampler.problems_of(space, SMALL, rule) for rule in ("highest", "mean")]
    highest, mean = (exhaustive.solve(space, some).choice for some in problems)
    assert ((mean != NONE) | (highest == NONE)).all()
    both = highest != NONE
    cost = [
        space.judge(some.only(both), choice[both][:, None]).cost[:, 0]
        for some, choice in zip(problems, (highest, mean), strict=True)
    ]
    assert (cost[1] <= cost[0]).all()
    assert (cost[1] < cost[0]).any()


@pytest.fixture
def jobs():
    return PublicJobs(
        sweep="zeus-v100",
        samples={RESNET: 1281167, SHUFFLENET: 50000},
        train={RESNET: 16},
        infer={SHUFFLENET: [8, 16]},
        together=[[RESNET, SHUFFLENET]],
        power_w=(60, 240),
        methods=["physical"],
        n_profiled=[3],
        draws=1,
    )


def test_a_mini_batch_has_its_part_of_the_epoch_and_training_stands_for_inference(jobs):
    tables = {(t.key.workload, t.key.batch_size): t for t in public_tables(jobs, REPOSITORY)}
    assert {name: t.key.task for (name, _), t in tables.items()} == {
        RESNET: "train",
        SHUFFLENET: "infer",
    }
    epochs = {
        t.key.batch_size: t
        for t in find_tables("zeus-v100", REPOSITORY)
        if t.key.workload == SHUFFLENET
    }
    for size in (8, 16):
        table = tables[SHUFFLENET, size]
        assert (table.key.work, table.key.provenance) == ("mini-batch", "public")
        expected = epochs[size].column("time_s") / (50000 / size)
        assert table.column("time_s") == pytest.approx(expected)
        assert np.array_equal(table.column("power_w"), epochs[size].column("power_w"))


def test_a_mini_batch_size_that_nobody_measured_is_refused(jobs):
    with pytest.raises(ConfigError, match="mini-batch size 5") as caught:
        public_tables(jobs.model_copy(update={"train": {RESNET: 5}}), REPOSITORY)
    assert "16" in str(caught.value)


def test_solvers_answer_on_power_limits_and_those_that_cannot_are_named(jobs, tmp_path):
    write_mode_tables(tmp_path / "none.csv", public_tables(jobs, REPOSITORY))
    study = ScheduleStudy(
        device="orin", grid="fulcrum-orin", train={}, infer={}, n_profiled=[3], public=[jobs]
    )
    one = sets_of(study, tmp_path / "none.csv", REPOSITORY)[-1]
    labelled = one.labelled(pd.DataFrame({"solver": ["x"]}), ("provenance", "infer", "assumed"))
    assert labelled.iloc[0].tolist() == ["public", SHUFFLENET, ASSUMED]
    found, without_presets = solvers_of(one, REPOSITORY)
    assert without_presets == "no preset modes of V100 are known"
    problems = sampler.problems_of(one.space, sampler.Size(3, 3), budgets_w=jobs.power_w)
    assert problems.max_power_w.min() == 60
    rows = evaluate(one.space, problems, found, 1).set_index("solver")
    assert set(rows.index) == {
        *("exhaustive", "gmd", "gain", "maxn"),
        *("random_3", "physical_3", "physical_3_verified"),
    }
    assert (rows["kept_pct"][["gmd", "gain", "random_3"]] == 100).all()
    assert rows["n_profiles"]["exhaustive"] == 7 * 3


def test_answers_within_budgets_are_shares_of_all_solvable_problems():
    names = ("provenance", "jobs", "solver", "answered_pct", "kept_pct", "loss_mean_pct")
    rows = (
        ("simulated", "train", "gmd", 80, 100, 2, 15, 10),
        ("simulated", "train", "gmd", 100, 100, 4, 13, 6),
        ("simulated", "train", "physical_10", 50, 40, None, 10, None),
        ("simulated", "infer", "own_method_10", 100, 90, 1, 50, 20),
        ("simulated", "infer", "exhaustive", *[None] * 5),  # nothing to solve
        ("public", "train", "gmd", 100, 100, 1, 4, 3),
    )
    scores = pd.DataFrame(rows, columns=(*names, "n_profiles", "board_minutes"))
    played = (
        ("simulated", "infer", "own_method_10", "constant", 0, 100),
        ("simulated", "infer", "own_method_10", "poisson", 3, 50),
        ("simulated", "infer", "own_method_10", "poisson", 5, 70),
    )
    names = (*names[:3], "arrivals", "late_pct", "kept_p99_pct")
    summary = summarised(scores, pd.DataFrame(played, columns=names))
    assert summary["provenance"].tolist() == ["simulated"] * 3 + ["public"]
    assert summary["solver"].tolist() == ["gmd", "physical_10", "own_method_10", "gmd"]
    expected = {
        **{"n_rows": (2, 1, 1, 1), "n_profiles": (14, 10, 50, 4)},
        **{"board_minutes": (8, np.nan, 20, 3), "kept_pct": (90, 20, 90, 100)},
        **{"kept_least_pct": (80, 20, 90, 100), "kept_most_pct": (100, 20, 90, 100)},
        **{"loss_pct": (3, np.nan, 1, 1), "loss_least_pct": (2, np.nan, 1, 1)},
        **{"loss_most_pct": (4, np.nan, 1, 1), "late_pct": (np.nan, np.nan, 4, np.nan)},
        "kept_p99_pct": (np.nan, np.nan, 60, np.nan),
    }
    assert summary.columns.tolist() == ["provenance", "jobs", "solver", *expected]
    for name, values in expected.items():
        assert summary[name].tolist() == pytest.approx(list(values), nan_ok=True)
