"""Public sweeps in the study: what is assumed of them, and which solvers cannot answer."""

from pathlib import Path

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.schedule.config import PublicJobs, ScheduleStudy
from epochwatt.schedule.evaluation import evaluate, named_solvers, sets_of
from epochwatt.schedule.public_tables import ASSUMED, public_tables
from epochwatt.schedule.sampler import Size, problems_of
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.mode_table import write_mode_tables

REPOSITORY = Path(__file__).parents[3]
RESNET, SHUFFLENET = "resnet50-imagenet-adadelta", "shufflenetv2-cifar100-adadelta"


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
    assert one.shared["provenance"] == "public"
    assert one.shared["assumed"] == ASSUMED
    named, left_out = named_solvers(one, REPOSITORY)
    assert [(row.solver, row.note) for row in left_out] == [
        ("presets", "no preset modes of V100 are known")
    ]
    problems = problems_of(one.space, Size(3, 3), budgets_w=jobs.power_w)
    assert problems.max_power_w.min() == 60
    rows = {row.solver: row for row in evaluate(one.space, problems, named, 1)}
    assert set(rows) == {
        *("exhaustive", "gmd", "gain", "maxn"),
        *("random_3", "physical_3", "physical_3_verified"),
    }
    assert all(rows[name].kept_pct == 100 for name in ("gmd", "gain", "random_3"))
    assert rows["exhaustive"].n_profiles == 7 * 3
