"""Problems are those of the sampler's grid; statistics of answers are those counted by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from epochwatt.schedule import sampler
from epochwatt.schedule.config import PublicJobs, ScheduleStudy
from epochwatt.schedule.problem import NONE, Answers, Problems, Space
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.study import (
    evaluate,
    sets_of,
    solvers_of,
    statistics,
)
from epochwatt.schedule.tables import ASSUMED, public_tables
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.mode_table import write_mode_tables

REPOSITORY = Path(__file__).parents[3]


RESNET, SHUFFLENET = "resnet50-imagenet-adadelta", "shufflenetv2-cifar100-adadelta"


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
