"""Arrivals: their processes, and traces that are none; plans that cannot be."""

import pytest

from epochwatt.board.training.interleave.arrivals import read_times
from epochwatt.board.training.interleave.plan import checked
from epochwatt.errors import ConfigError

PLAN = {"train": "lenet", "infer": "lenet", "seconds": 5, "rate_per_s": 10.0, "batch_size": 4}


@pytest.mark.parametrize(
    "content", ["1\n0.5\n", "-1\n", "x\n", "nan\n", "1,2\n", "inf\n", b"\xff\n"]
)
def test_what_is_no_trace_is_refused_with_its_place(tmp_path, content):
    path = tmp_path / "trace"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match="trace"):
        read_times(str(path))


@pytest.mark.parametrize(
    "change",
    [
        {"rate_per_s": 0},
        {"rate_per_s": None},
        {"seconds": float("inf")},
        {"batch_size": 0},
        {"queue": 3},  # less than a mini-batch: none would ever be complete
        {"n_train": -1},
        {"n_train": 1.5},
        {"colour": "red"},
    ],
)
def test_a_plan_that_cannot_be_is_refused(change):
    with pytest.raises(ConfigError, match="the plan"):
        checked({**PLAN, **change})
