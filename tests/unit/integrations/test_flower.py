"""Rounds of Flower: in simulated time, and a real fleet of SuperNodes on this machine."""

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.environments import environment
from benchmarks.federated.quotas import power_w
from benchmarks.flower import run_fleet, why_not
from benchmarks.results import REPOSITORY
from epochwatt.errors import EpochwattError


@pytest.fixture(scope="module")
def python():
    """The interpreter that has Flower, made where it is not there."""
    try:
        return environment("flower")
    except EpochwattError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_rounds_in_simulated_time(python):
    inside = Path(__file__).with_name("flower_inside.py")
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider", inside],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def mhz(row):
    return float(row["mode"].split()[1])


@pytest.mark.slow
@pytest.mark.thorough  # three minutes
@pytest.mark.alone
@pytest.mark.usefixtures("python")
def test_a_real_fleet_is_replanned_and_put_back_and_averages_as_plain_fedavg():
    """Four SuperNodes: one slows down in the middle of a fit, the ClientApp of one is killed."""
    if why := why_not():
        pytest.skip(why)
    # Flower starts dozens of processes
    if (load := os.getloadavg()[0]) > 4 * (os.cpu_count() or 1):
        pytest.skip(f"others use this machine: its load is {load:.0f}")
    fleet = run_fleet(
        300,
        rounds=3,
        patience_s=8.0,
        fit_cpu_s={"a": 0.6, "b": 0.8, "c": 1.4, "d": 0.6},
        events=[
            {"round": 2, "board": "b", "what": "slow", "speed": 0.6},
            {"round": 2, "board": "d", "what": "kill"},
        ],
    )
    log, found = fleet.rounds, fleet.found

    def of(number, board):
        (row,) = log[(log["round"] == number) & (log["board"] == board)].to_dict("records")
        return row

    assert len(log) == 12, fleet.logs
    # no fit is faster than its mode lets it be; how much others slow them is not judged here
    for board in "ac":
        planned = of(2, board)
        assert 0.8 < planned["fit_s"] / planned["planned_fit_s"] < 5
        power = power_w(mhz(planned) / 1000)
        assert planned["energy_j"] == pytest.approx(planned["fit_s"] * power, rel=0.1)
    # one that slowed down in the middle of its fit is planned as slow as it was
    before, after = of(2, "b"), of(3, "b")
    assert before["fit_s"] > 1.2 * before["planned_fit_s"]
    assert "b takes" in after["why"]
    at_same_mode_s = after["planned_fit_s"] * mhz(after) / mhz(before)
    assert at_same_mode_s == pytest.approx(before["fit_s"])
    # the killed one: the round goes on, its mode is put back
    assert pd.isna(of(2, "d")["fit_s"])
    assert "d is missing" in of(3, "a")["why"]
    assert found["restored_s"] < 5
    assert set(found["shares_after"].values()) == {None}
    # no energy is told twice: the counters have shown more
    told_j = log.groupby("board")["energy_j"].sum()
    assert all(told_j[board] < found["planted_j"][board] for board in "abc")
    assert found["equal"]  # to the bit
