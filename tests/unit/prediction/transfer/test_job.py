"""Jobs of study `powertrain` on planted tables."""

import numpy as np
import pytest

from epochwatt.errors import EpochwattError
from epochwatt.prediction.models import powertrain
from epochwatt.prediction.transfer.config import Job, PowertrainGroup
from epochwatt.prediction.transfer.job import run_job
from tests.unit.prediction.sweeps import GRID, planted


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(powertrain, "EPOCHS", 2)


def ran(reference=None, table=None, **keys):
    """Return the tables of a job on a planted table."""
    settings = {"title": "t", "workloads": ["w"], "methods": ["physical"], "n_profiled": [10]}
    job = Job("g", "none" if reference is None else "r", "w")
    group = PowertrainGroup(**{**settings, "draws": 2, **keys})
    frames = run_job(job, group, planted() if table is None else table, reference)
    return {name: frame.to_dict("records") for name, frame in frames.items()}


def test_errors_are_of_the_modes_that_were_not_profiled():
    rows = ran(n_profiled=[10, 20])["errors"]
    assert [(r["n_profiled"], r["draw"], r["target"], r["n_judged"]) for r in rows] == [
        (n, draw, target, 48 - n)
        for n in (10, 20)
        for draw in (0, 1)
        for target in ("time_s", "power_w")
    ]
    assert max(row["median_pct"] for row in rows) < 5  # of a truth that has all its terms
    table = planted()
    order = np.random.default_rng(1).permutation(48)[:10]
    minutes = 40 * sum(table.rows[place].time_s for place in order) / 60
    assert rows[2]["minutes"] == pytest.approx(minutes)
    assert {row["reference"] for row in rows} == {""}


def test_every_limit_has_a_choice_judged_by_what_was_observed():
    table = planted()
    power = table.column("power_w")
    made = ran(limits_w=(3, 10), methods=["physical", "maxn", "random_front"], table=table)
    choices = [row for row in made["choices"] if row["method"] == "maxn"]
    assert [row["limit_w"] for row in choices] == list(range(3, 11))
    assert {row["power_w"] for row in choices} == {power.max()}
    within = power <= 5
    of_five = choices[2]
    best_s = table.column("time_s")[within].min()
    assert of_five["best_time_s"] == best_s
    assert of_five["penalty_pct"] == pytest.approx(100 * (of_five["time_s"] / best_s - 1))
    assert of_five["over_w"] == pytest.approx(power.max() - 5)
    assert all(
        row["over_w"] <= 0
        for row in made["choices"]
        if row["method"] == "random_front" and row["cores"] > 0
    )
    judged = {row["method"]: row for row in made["penalties"]}
    assert judged["random_front"]["over_pct"] == 0
    assert judged["maxn"]["over_pct"] == pytest.approx(
        100 * np.mean(power.max() > np.arange(3, 11))
    )


ELSEWHERE = planted(device="agx_orin")
FLAT = planted(power_w=lambda mode: 7.0)
ONE_CLOCK = planted([(8, 900, *mode[2:]) for mode in GRID[:12]], workload="one clock")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"reference": ELSEWHERE, "methods": ["powertrain"]}, "another board"),
        ({"reference": planted(GRID[::7]), "methods": ["powertrain"]}, "10 modes or more"),
        ({"methods": ["powertrain"]}, "transfers from a reference"),
        ({"table": planted(GRID[:12])}, "20 or more: half of them are to be predicted"),
        ({"table": planted(power_w=None)}, "no energy was measured"),
        ({"table": FLAT, "limits_w": (3, 9)}, "power_w of 7 in all"),
        ({"methods": ["log"]}, "log does not predict time and power"),
        ({"methods": ["stock_modes"]}, "no preset modes of board"),
        ({"reference": ONE_CLOCK, "methods": ["powertrain"]}, "says nothing of cpu_mhz"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_words(keys, message):
    with pytest.raises(EpochwattError) as refused:
        ran(**keys)
    assert message in str(refused.value)
