"""Energy and utilisation from samples: hand-computed, for any samples, and against the truth."""

import csv
import gzip
import math
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.epochs.energy import (
    counted,
    paper_energy_wh,
    paper_missing_pct,
    trapezoid,
)
from epochwatt.epochs.placement import stall_intervals
from epochwatt.epochs.sensor import INSTANT, Sensor, rounding_of_sum_w
from epochwatt.epochs.windows import window_mean, window_median
from epochwatt.errors import RecordError

MLPERF = Path(__file__).resolve().parents[2] / "data/measured/mlperf_inference_nvidia_jetson_maxq"
FLAGS = {
    "power_missing",
    "power_negative",
    "power_gap",
    "power_lost",
    "power_stuck",
    "power_still",
    "power_end_held",
    "power_sampling_regular",
    "power_resolution_unknown",
}

FINE = Sensor(INSTANT, averaging_s=0.0, rounding_w=0.0)


# -- by hand -------------------------------------------------------------------------------------


def test_trapezoid_interpolates_both_ends():
    # power rises by 2 W/s from 10 W at 0 s; from 0.5 to 2.5 s it is 13 W on average
    found = trapezoid([0, 1, 2, 3], [10, 12, 14, 16], 0.5, 2.5)
    assert found.energy_j == pytest.approx(26.0, abs=1e-12)
    assert "power_gap" not in found.flags
    assert "power_end_held" not in found.flags


def test_a_missing_end_is_held_and_flagged():
    found = trapezoid([1, 2], [10, 20], 0.5, 4.0)
    assert found.energy_j == pytest.approx(5 + 15 + 40, abs=1e-12)
    assert "power_end_held" in found.flags


def test_no_reading_at_all_is_nothing_rather_than_zero():
    for t, power in (([], []), ([1.0, 2.0], [math.nan, math.nan])):
        found = trapezoid(t, power, 0.0, 3.0)
        assert math.isnan(found.energy_j)
        assert math.isnan(found.error_pct)
        assert found.flags == {"power_missing"}
        assert math.isnan(paper_energy_wh(t, power, 0.0, 3.0))
        assert math.isnan(window_mean(t, power, 0.0, 3.0))
        assert math.isnan(window_median(t, power, 0.0, 3.0))
        assert math.isnan(counted(t, power, 0.0, 3.0).energy_j)


def test_a_reading_of_nan_is_bridged():
    t = np.arange(11.0)
    power = np.full(11, 10.0)
    power[4:9] = math.nan
    found = trapezoid(t, power, 0.0, 10.0)
    assert found.energy_j == pytest.approx(100.0)
    assert "power_gap" in found.flags
    power[4:9] = 10.0
    power[4:6] = math.nan
    assert "power_gap" not in trapezoid(t, power, 0.0, 10.0).flags  # three periods at the most


def test_a_reading_below_zero_is_none_and_flagged():
    found = trapezoid([0, 1, 2, 3, 4], [10, 10, -2, 10, 10], 0.0, 4.0)
    assert found.energy_j == pytest.approx(40.0)
    assert "power_negative" in found.flags
    assert "power_negative" not in trapezoid([0, 1, 2, 9], [1, 1, 1, -1], 0.0, 2.0).flags
    assert trapezoid([0, 1], [-1, -1], 0.0, 1.0).flags == {"power_missing", "power_negative"}
    assert paper_energy_wh([0, 1, 2], [10, -2, 10], 0.0, 2.0) * 3600 == pytest.approx(20.0)


def test_a_sensor_silent_between_the_bounds_is_a_gap():
    t = np.arange(0.0, 10.05, 0.1)
    power = np.full(t.size, math.nan)
    power[[0, -1]] = 10.0
    found = trapezoid(t, power, 0.0, 10.0)
    assert "power_gap" in found.flags
    assert math.isnan(found.error_pct)


def test_equal_stamps_count_once_with_their_mean():
    found = trapezoid([0, 1, 1, 1, 2], [10, 11, 12, 16, 10], 0.0, 2.0)
    assert found.energy_j == pytest.approx(23.0)


def test_stamps_that_run_backward_are_refused():
    with pytest.raises(RecordError, match=r"run backward: 0\.5 s follows 1\.0 s"):
        trapezoid([0, 1, 0.5], [1, 1, 1], 0.0, 1.0)


@pytest.mark.parametrize("end_s", [1.0, 0.5, math.nan])
def test_an_empty_window_is_refused(end_s):
    for function in (trapezoid, paper_energy_wh, counted, window_mean, window_median):
        with pytest.raises(RecordError, match="is empty"):
            function([0, 1, 2], [1, 1, 1], 1.0, end_s)


def test_paper_sum_loses_the_first_interval_and_the_end():
    # a logger at 0.2, 1.2, 2.2, 3.2 s: three intervals of 1 s, each with the power at its end
    found = paper_energy_wh([0.2, 1.2, 2.2, 3.2], [5, 10, 20, 30], 0.0, 3.9)
    assert found * 3600 == pytest.approx(60.0)


def test_paper_sum_takes_the_reading_nearest_to_each_whole_second():
    t = [9.9, 10.1, 10.4, 10.8, 11.3, 11.9, 12.2, 13.45]
    power = [99, 1, 99, 2, 99, 3, 99, 4]
    # inside from 10 s: 10.1, 10.8, 11.9, 13.45; steps of 0.7, 1.1, 1.55 s
    assert paper_energy_wh(t, power, 10.0, 13.5) * 3600 == pytest.approx(
        2 * 0.7 + 3 * 1.1 + 4 * 1.55
    )


def test_what_the_paper_sum_lacks():
    t = np.append(np.arange(0.0, 5.0, 0.1), np.arange(9.0, 10.05, 0.1))
    assert paper_missing_pct(t, t + 1, 0.0, 10.0) == pytest.approx(21.0)  # 4.9 to 9 s, but for two
    assert paper_missing_pct([1.0], [5.0], 0.0, 2.0) == 100.0


def test_counter_is_interpolated_at_the_bounds():
    assert counted([0, 1, 2, 3], [100, 110, 130, 160], 0.5, 2.5).energy_j == pytest.approx(40.0)
    assert math.isnan(counted([0, 1, 2, 3], [100, 110, 130, 160], 0.5, 3.5).energy_j)
    assert math.isnan(counted([0, 1, 2, 3], [100, 110, 3, 9], 0.5, 2.5).energy_j)  # it was reset
    assert counted([0, 1, 2, 3], [100, math.nan, 130, 160], 0, 3).energy_j == pytest.approx(60.0)


def test_stall_intervals_spread_overhead_evenly():
    minibatch_s = np.array([[0.5, 0.25, 1.0], [0.125, 0.125, 0.5]], dtype=np.float32)
    starts, ends = stall_intervals(minibatch_s, start_s=100.0, e2e_s=3.0)
    assert starts.tolist() == [100.0, 102.0]  # 0.5 s of overhead: 0.25 behind each
    assert ends.tolist() == [100.75, 102.25]


def test_stall_intervals_leave_a_known_tail_behind_the_last():
    minibatch_s = np.array([[0.5, 0.25, 1.0], [0.125, 0.125, 0.5]])
    starts, _ = stall_intervals(minibatch_s, start_s=100.0, e2e_s=3.0, tail_s=0.5)
    assert starts.tolist() == [100.0, 101.75]


def test_window_mean_is_weighted_with_time():
    # 100 % at one end of a long step, as it is for half of it
    assert window_mean([0, 1, 5], [0, 0, 100], 0.0, 5.0) == pytest.approx(40.0)
    assert window_mean([0, 1, 5], [7, 7, 7], -3.0, 9.0) == pytest.approx(7.0)


# -- for any samples -----------------------------------------------------------------------------

finite = {"allow_nan": False, "allow_infinity": False}
watts = st.floats(0, 100, **finite)


@st.composite
def samples(draw, value=watts):
    """Stamps on a grid of 1/64 s, some of them equal, and a value at each."""
    n = draw(st.integers(2, 40))
    steps = draw(st.lists(st.integers(0, 200), min_size=n - 1, max_size=n - 1))
    t = np.cumsum([draw(st.integers(-1000, 1000)), *steps]) / 64
    return t, np.array(draw(st.lists(value, min_size=n, max_size=n)))


@st.composite
def bounds(draw, n=2):
    """Bounds that may lie anywhere about the samples, in order, no two equal."""
    grid = st.integers(-2000, 10000)
    return sorted(x / 64 for x in draw(st.lists(grid, min_size=n, max_size=n, unique=True)))


def close(value, power, duration_s):
    return pytest.approx(value, abs=1e-9 * (1 + np.abs(power).max()) * (1 + abs(duration_s)))


@given(samples(), bounds(), watts, st.floats(-10, 10, **finite))
def test_linear_power_is_exact_inside_the_samples(sampled, window, level_w, slope):
    t, _ = sampled
    start, end = max(window[0], t[0]), min(window[1], t[-1])
    if not start < end:
        return
    level_w += 10 * (abs(start) + abs(end) + np.abs(t).max())  # no reading is below zero
    power = level_w + slope * t
    truth = (end - start) * (level_w + slope * (start + end) / 2)
    assert trapezoid(t, power, start, end).energy_j == close(truth, power, end - start)


@given(samples(), bounds(3))
def test_adjacent_windows_add_up(sampled, window):
    t, power = sampled
    a, b, c = window
    whole = trapezoid(t, power, a, c).energy_j
    parts = trapezoid(t, power, a, b).energy_j + trapezoid(t, power, b, c).energy_j
    assert parts == close(whole, power, c - a)


@given(samples(), bounds(), st.integers(-(10**6), 10**6))
def test_shifting_the_clock_changes_nothing(sampled, window, shift_s):
    t, power = sampled
    start, end = window
    here = trapezoid(t, power, start, end)
    there = trapezoid(t + shift_s, power, start + shift_s, end + shift_s)
    assert there.energy_j == close(here.energy_j, power, end - start)
    assert there.flags == here.flags
    assert there.error_pct == pytest.approx(here.error_pct, nan_ok=True, rel=1e-6, abs=1e-9)
    papers = paper_energy_wh(t, power, start, end)
    assert paper_energy_wh(t + shift_s, power, start + shift_s, end + shift_s) == pytest.approx(
        papers, nan_ok=True
    )
    for function in (window_mean, window_median):
        shifted = function(t + shift_s, power, start + shift_s, end + shift_s)
        assert shifted == pytest.approx(function(t, power, start, end), abs=1e-6)


@given(samples(), bounds())
def test_an_energy_lies_between_those_of_the_lowest_and_the_highest_power(sampled, window):
    t, power = sampled
    start, end = window
    found = trapezoid(t, power, start, end)
    duration = end - start
    assert found.energy_j >= power.min() * duration - 1e-6
    assert found.energy_j <= power.max() * duration + 1e-6
    assert found.flags <= FLAGS
    median_w = window_median(t, power, start, end)
    assert power.min() - 1e-9 <= median_w <= power.max() + 1e-9


@given(
    st.lists(st.tuples(*[st.floats(0, 5, width=32)] * 3), min_size=1, max_size=30),
    st.floats(0, 5, **finite),
)
def test_stall_intervals_are_the_stalls_in_order(minibatch_s, overhead_s):
    minibatch_s = np.array(minibatch_s, dtype=np.float32)
    e2e_s = float(minibatch_s.sum(dtype=np.float64)) + overhead_s
    starts, ends = stall_intervals(minibatch_s, 100.0, e2e_s)
    assert ends - starts == pytest.approx(minibatch_s[:, :2].sum(axis=1, dtype=np.float64))
    assert (starts[1:] >= ends[:-1] - 1e-9).all()
    assert starts[0] == 100.0
    assert ends[-1] <= 100.0 + e2e_s + 1e-9


# -- against the truth ---------------------------------------------------------------------------

PERIOD_S = 0.1


def dithered(rng, start_s, end_s):
    """One random instant in each 100 ms, from a little before the window to after it."""
    k = np.arange(int((end_s - start_s) / PERIOD_S) + 4) - 2
    return start_s - PERIOD_S * rng.uniform() + (k + rng.uniform(size=k.size)) * PERIOD_S


class Square:
    """8 W for a part of each period, then 22 W; any phase."""

    def __init__(self, rng, period_s=0.35, low=120 / 350):
        self.period_s, self.low_s = period_s, low * period_s
        self.phase_s = rng.uniform(0, period_s)

    def power_w(self, t):
        return np.where((t + self.phase_s) % self.period_s < self.low_s, 8.0, 22.0)

    def energy_j(self, t):
        n, rest_s = np.divmod(t + self.phase_s, self.period_s)
        return 22.0 * (t + self.phase_s) - 14.0 * (n * self.low_s + np.minimum(rest_s, self.low_s))


class Level:
    """15 W, with 10 mW at each look: a sensor that tells the very same for 40 s is stuck."""

    def __init__(self, rng):
        self.rng = rng

    def power_w(self, t):
        return 15.0 + 0.01 * self.rng.standard_normal(t.size)

    def energy_j(self, t):
        return 15.0 * t


class Step:
    """10 W, then 20 W."""

    def __init__(self, rng):
        self.at_s = rng.uniform(2, 38)

    def power_w(self, t):
        return np.where(t < self.at_s, 10.0, 20.0)

    def energy_j(self, t):
        return 10.0 * t + 10.0 * max(t - self.at_s, 0.0)


class Ramp:
    """From 10 W up by 0.25 W/s."""

    def __init__(self, rng):
        self.slope = 0.25

    def power_w(self, t):
        return 10.0 + self.slope * t

    def energy_j(self, t):
        return 10.0 * t + self.slope * t * t / 2


class Noise:
    """15 W on average, with another 3 W at each look."""

    def __init__(self, rng):
        self.rng = rng

    def power_w(self, t):
        return 15.0 + 3.0 * self.rng.standard_normal(t.size)

    def energy_j(self, t):
        return 15.0 * t


SIGNALS = {
    "training": Square,
    "constant": Level,
    "step": Step,
    "ramp": Ramp,
    "noise": Noise,
    **{
        f"{period_s} s": lambda rng, period_s=period_s: Square(rng, period_s)
        for period_s in (0.02, 0.1, 0.15, 0.2, 0.3, 1.0, 5.0)
    },
}


def trials(rng, make_signal, duration_s, n, instants=dithered):
    """Return error and bound of n energies, % (n,) each."""
    errors_pct, bounds_pct = [], []
    for _ in range(n):
        signal = make_signal(rng)
        t = instants(rng, 0.0, duration_s)
        found = trapezoid(t, signal.power_w(t), 0.0, duration_s, FINE)
        truth_j = float(signal.energy_j(duration_s) - signal.energy_j(0.0))
        errors_pct.append(100 * (found.energy_j / truth_j - 1))
        bounds_pct.append(found.error_pct)
    return np.array(errors_pct), np.array(bounds_pct)


@pytest.mark.parametrize("name", SIGNALS)
def test_the_bound_covers_the_truth(name):
    """95 % of all trials; of these 400 at least 93 % (what a true 95 % stays above: 97.5 %)."""
    errors_pct, bounds_pct = trials(np.random.default_rng(1), SIGNALS[name], 40.0, 400)
    assert np.mean(np.abs(errors_pct) <= bounds_pct + 1e-9) >= 0.93


@pytest.mark.parametrize(("duration_s", "limit_pct", "n"), [(40.0, 1.2, 600), (600.0, 0.35, 60)])
def test_the_error_on_the_training_signal_is_within_the_budget(duration_s, limit_pct, n):
    """Budget of the design, rms; an estimate from n trials may exceed it by 2 / sqrt(2 n)."""
    errors_pct, _ = trials(np.random.default_rng(3), Square, duration_s, n)
    assert np.sqrt(np.mean(errors_pct**2)) <= limit_pct
    assert abs(errors_pct.mean()) <= 3 * errors_pct.std() / math.sqrt(n)


def test_regular_instants_are_flagged_because_their_bias_is_not_in_the_bound():
    def regular(rng, start_s, end_s):
        return start_s - PERIOD_S * rng.uniform() + np.arange(6004) * PERIOD_S

    rng = np.random.default_rng(4)
    errors_pct, bounds_pct = trials(rng, Square, 600.0, 20, regular)
    assert np.mean(np.abs(errors_pct) <= bounds_pct) < 0.5
    t = regular(rng, 0.0, 600.0)
    assert "power_sampling_regular" in trapezoid(t, np.ones(t.size), 0.0, 600.0).flags
    for duration_s in (2.0, 10.0, 600.0):
        t = dithered(rng, 0.0, duration_s)
        found = trapezoid(t, np.ones(t.size), 0.0, duration_s)
        assert "power_sampling_regular" not in found.flags


def test_a_coarse_sensor_is_in_the_bound():
    """1 W steps of constant power: the error is up to half a step, whatever the duration."""
    rng = np.random.default_rng(5)
    for level_w in np.linspace(9.5, 10.5, 21)[1:-1]:
        t = dithered(rng, 0.0, 10.0)
        coarse = Sensor(INSTANT, averaging_s=0.0, rounding_w=rounding_of_sum_w([t * 0], [1.0]))
        found = trapezoid(t, np.round(np.full(t.size, level_w)), 0.0, 10.0, coarse)
        assert abs(found.energy_j / (10.0 * level_w) - 1) * 100 <= found.error_pct
        assert "power_resolution_unknown" not in found.flags


def test_the_resolution_is_seen_in_the_values_or_said_to_be_unknown():
    t = np.linspace(0.0, 40.0, 401)
    rough = np.round(15.0 + 5.0 * np.sin(t), 0)
    steps = Sensor(rounding_w=rounding_of_sum_w([rough], [1.0]))
    seen, told = (trapezoid(t, rough, 0.0, 40.0, s, None, []) for s in (Sensor(), steps))
    assert seen.error_pct == told.error_pct
    assert "power_resolution_unknown" not in seen.flags
    alike = trapezoid(t, np.ones(401), 0.0, 40.0, Sensor(), None, [])
    assert "power_resolution_unknown" in alike.flags
    assert math.isnan(alike.error_pct)


@pytest.mark.parametrize("duration_s", [3.0, 40.0])
def test_few_levels_of_a_coarse_sensor_are_in_the_bound(duration_s):
    """Few levels, cut off, of a step that no record tells: it is at most what they show."""
    rng = np.random.default_rng(6)
    for step_w, swing in rng.uniform([0.1, 1.1], [0.5, 5.0], (40, 2)):
        t = dithered(rng, 0.0, duration_s)
        low_w = rng.uniform(2.0, 6.0)
        power = low_w + swing * step_w * (t > duration_s / 3)
        truth_j = duration_s * low_w + swing * step_w * duration_s * 2 / 3
        cut = np.floor(power / step_w) * step_w
        found = trapezoid(t, cut, 0.0, duration_s, Sensor(INSTANT, averaging_s=0.0), None, [])
        assert abs(found.energy_j - truth_j) <= found.error_pct / 100 * found.energy_j
        assert "power_resolution_unknown" not in found.flags


def test_a_gap_and_a_held_end_widen_the_bound():
    """Half a second cut out of the training signal, in the middle and at the end: 95 % covered."""
    rng = np.random.default_rng(6)
    for cut_s in ((20.0, 20.5), (39.5, 41.0)):
        covered = []
        for _ in range(200):
            signal, t = Square(rng), dithered(rng, 0.0, 40.0)
            t = t[(t < cut_s[0]) | (t > cut_s[1])]
            found = trapezoid(t, signal.power_w(t), 0.0, 40.0)
            truth_j = signal.energy_j(40.0) - signal.energy_j(0.0)
            covered.append(abs(found.energy_j - truth_j) <= found.error_pct / 100 * found.energy_j)
            assert "power_gap" in found.flags
        assert np.mean(covered) >= 0.93


# -- real samples --------------------------------------------------------------------------------


def mlperf_runs():
    """Yield (row of summary.csv, t_s, watts, inside) of each of the 94 distinct runs."""
    keys = ("round", "device", "benchmark", "scenario")
    with open(MLPERF / "summary.csv", newline="", encoding="utf-8") as handle:
        summary = {tuple(row[k] for k in keys): row for row in csv.DictReader(handle)}
    with gzip.open(MLPERF / "power_samples.csv.gz", "rt", encoding="utf-8", newline="") as handle:
        rows = csv.reader(handle)
        assert next(rows)[:6] == [*keys, "t_s", "watts"]
        for key, run in groupby(rows, key=lambda row: tuple(row[:4])):
            cells = np.array([(row[4], row[5], row[9]) for row in run], dtype=np.float64)
            yield summary[key], cells[:, 0], cells[:, 1], cells[:, 2] == 1


def test_real_samples_integrate_to_their_own_summary():
    """118,715 samples at 1 Hz, gaps and equal stamps: 0.1 % asked, 0.001 % in 90 of 94 runs.

    `wall_energy_j` is, to its 0.1 J, the trapezoid from the first to the last sample inside the
    measurement window. Two things make ours another, and both are tested for their size:

    * Where the analyser did not answer for a second or more its log has rows of -2 W, some with
      the stamp of the row before: 17 in all, 11 of them in the windows of four runs. The summary
      integrates them as they are; here they are no reading, bridged and flagged. That adds 0.01 to
      0.14 %, which is what the bridge has and the rows have not.
    * The window itself (`power_window_s`) is up to two seconds longer than from sample to sample.
      Over all of it the energy is greater by that time at the power of its ends. Where in that
      time it begins is not kept: it is taken to be in the middle of what is possible.
    """
    n_samples = n_runs = n_gaps = n_failed = 0
    worst = {}
    for row, t, power, inside in mlperf_runs():
        first, last = np.flatnonzero(inside)[[0, -1]]
        found = trapezoid(t, power, t[first], t[last])
        wall_j = float(row["wall_energy_j"])
        failed = inside & (power == -2.0)
        assert ("power_negative" in found.flags) == failed.any()
        assert "power_sampling_regular" in found.flags
        mended = np.where(power < 0, np.interp(t, t[power > 0], power[power > 0]), power)
        lost_j = np.trapezoid((mended - power)[inside], t[inside])
        assert found.energy_j == pytest.approx(wall_j + lost_j, rel=1e-5)
        kind = "failed" if failed.any() else "whole"
        worst[kind] = max(worst.get(kind, 0.0), abs(found.energy_j / wall_j - 1))

        window_s = float(row["power_window_s"])
        earliest = max(t[first - 1], t[last] - window_s)
        latest = min(t[first], t[last + 1] - window_s)
        start = (earliest + latest) / 2
        whole = trapezoid(t, power, start, start + window_s)
        more_j = power[[first, last]].mean() * (window_s - (t[last] - t[first]))
        assert whole.energy_j == pytest.approx(found.energy_j + more_j, rel=1e-3)

        # the papers' sum loses a second or so of at least ten minutes
        papers_j = 3600 * paper_energy_wh(t, power, start, start + window_s)
        assert papers_j == pytest.approx(whole.energy_j, rel=4e-3)

        n_samples += t.size
        n_runs += 1
        n_failed += int(failed.sum())
        n_gaps += "power_gap" in found.flags
    assert (n_runs, n_samples, n_failed, n_gaps) == (94, 118715, 11, 1)
    assert worst["whole"] < 1e-5
    assert worst["failed"] == pytest.approx(1.41e-3, rel=0.01)
