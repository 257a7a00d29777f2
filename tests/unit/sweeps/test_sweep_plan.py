"""What the plan says of sweeps: modes, how many are measured, how long the rest may take."""

import pytest

from epochwatt.study.plan import JOB_S
from epochwatt.sweeps.plan import chunk_estimates_s, modes_left, sweep_lines


@pytest.fixture
def threads(sweeps):
    """A sweep over three numbers of threads, whatever this machine has."""
    sweeps.sweep(grid={"modes": [{"cores": 1}]})
    return sweeps


def test_a_guess_counts_switching_mini_batches_and_the_job(threads):
    sweep = threads.sweep()
    (chunk_s,), basis = chunk_estimates_s(sweep, threads.settings())
    assert basis == "a guess"
    assert chunk_s == pytest.approx(3 + 10 + 1.5 * 40 * 16 / 7188)
    last = sweep_lines(threads.table(["one"]), threads.settings())[-1]
    assert last == f"sweeps: the rest takes about {round(chunk_s + JOB_S)} s"


def test_what_is_measured_gives_the_estimate_and_is_not_left(orin, bases, measure_mode):
    modes = [{"cores": 4, "gpu_mhz": gpu} for gpu in (1300.5, 318.75)]
    sweep = orin.sweep(base=bases["board"], grid={"modes": modes}, chunk=1)
    assert [len(modes_left(sweep)), len(sweep.chunks)] == [2, 2]
    measure_mode(sweep, modes[0], took_s=20.0)
    (done_s, left_s), basis = chunk_estimates_s(sweep, orin.settings())
    assert (done_s, basis) == (0, "measured")
    assert left_s == pytest.approx(16.0 + 4.0 * 1300.5 / 318.75)  # of 20 s 4 s were mini-batches
    line = sweep_lines(orin.table(["one"]), orin.settings())[1]
    assert line.split()[:3] == ["one", "2", "1"]


def test_simulated_sweeps_take_no_time_of_a_board_and_others_are_left_alone(sweeps, bases):
    sweeps.sweep("simulated", base=bases["twin"])
    sweeps.sweep("elsewhere", base=bases["board"])
    lines = sweep_lines(sweeps.table(["simulated", "elsewhere"]), sweeps.settings())
    assert lines[1].split() == ["simulated", "441", "-", "simulated", "seconds"]
    assert lines[2].startswith("left alone: sweep elsewhere: it wants a Jetson AGX Orin")
    assert len(lines) == 3
    assert sweep_lines(sweeps.table([]), sweeps.settings()) == []
