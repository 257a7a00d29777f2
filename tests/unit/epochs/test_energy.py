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

from epochwatt.epochs.energy import counted, paper_energy_wh, paper_missing_pct, trapezoid
from epochwatt.epochs.sensor import INSTANT, Sensor, rounding_of_sum_w
from epochwatt.epochs.windows import window_mean, window_median
from epochwatt.errors import RecordError
from epochwatt.tables import read_cells

MLPERF = Path(__file__).resolve().parents[2] / "data/measured/mlperf_inference_nvidia_jetson_maxq"
FINE = Sensor(INSTANT, averaging_s=0.0, rounding_w=0.0)


# -- by hand -------------------------------------------------------------------------------------

GAP = [10.0] * 4 + [math.nan] * 5 + [10.0] * 2
SHORT_GAP = [10.0] * 4 + [math.nan] * 2 + [10.0] * 5  # three periods at the most


@pytest.mark.parametrize(
    ("t", "power", "window", "energy_j", "flags", "no_flags"),
    [
        # power rises by 2 W/s from 10 W at 0 s; from 0.5 to 2.5 s it is 13 W on average
        ([0, 1, 2, 3], [10, 12, 14, 16], (0.5, 2.5), 26.0, "", "gap end_held negative"),
        ([1, 2], [10, 20], (0.5, 4.0), 5 + 15 + 40, "end_held", ""),  # an end is held
        (range(11), GAP, (0.0, 10.0), 100.0, "gap", "missing"),  # bridged
        (range(11), SHORT_GAP, (0.0, 10.0), 100.0, "", "gap"),
        (range(5), [10, 10, -2, 10, 10], (0.0, 4.0), 40.0, "negative", ""),
        ([0, 1, 2, 9], [1, 1, 1, -1], (0.0, 2.0), 2.0, "", "negative"),
        ([0, 1, 1, 1, 2], [10, 11, 12, 16, 10], (0.0, 2.0), 23.0, "", ""),  # equal stamps: mean
    ],
)
def test_trapezoid(t, power, window, energy_j, flags, no_flags):
    found = trapezoid(list(t), power, *window)
    assert found.energy_j == pytest.approx(energy_j, abs=1e-12)
    assert {f"power_{flag}" for flag in flags.split()} <= found.flags
    assert not {f"power_{flag}" for flag in no_flags.split()} & found.flags


@pytest.mark.parametrize("t", [[], [1.0, 2.0]])
def test_no_reading_at_all_is_nothing_rather_than_zero(t):
    power = [math.nan] * len(t)
    found = trapezoid(t, power, 0.0, 3.0)
    assert found.flags == {"power_missing"}
    numbers = [found.energy_j, found.error_pct, counted(t, power, 0.0, 3.0).energy_j]
    numbers += [f(t, power, 0.0, 3.0) for f in (paper_energy_wh, window_mean, window_median)]
    assert np.isnan(numbers).all()
    assert trapezoid([0, 1], [-1, -1], 0.0, 1.0).flags == {"power_missing", "power_negative"}


def test_a_sensor_silent_between_the_bounds_is_a_gap():
    t = np.arange(0.0, 10.05, 0.1)
    power = np.full(t.size, math.nan)
    power[[0, -1]] = 10.0
    found = trapezoid(t, power, 0.0, 10.0)
    assert "power_gap" in found.flags
    assert math.isnan(found.error_pct)


@pytest.mark.parametrize("function", [trapezoid, paper_energy_wh, counted, window_mean])
@pytest.mark.parametrize(
    ("t", "window", "said"),
    [
        ([0, 1, 0.5], (0.0, 1.0), r"run backward: 0\.5 s follows 1\.0 s"),
        *(([0, 1, 2], (1.0, end), "is empty") for end in (1.0, 0.5, math.nan)),
    ],
)
def test_what_cannot_be_integrated_is_refused(function, t, window, said):
    with pytest.raises(RecordError, match=said):
        function(t, [1, 1, 1], *window)


@pytest.mark.parametrize(
    ("t", "power", "window", "energy_j"),
    [
        # a logger: three intervals of 1 s, each with the power at its end; the first is lost
        ([0.2, 1.2, 2.2, 3.2], [5, 10, 20, 30], (0.0, 3.9), 60.0),
        # of faster samples those nearest to whole seconds: 10.1, 10.8, 11.9, 13.45 s
        (
            [9.9, 10.1, 10.4, 10.8, 11.3, 11.9, 12.2, 13.45],
            [99, 1, 99, 2, 99, 3, 99, 4],
            *((10.0, 13.5), 2 * 0.7 + 3 * 1.1 + 4 * 1.55),
        ),
        ([0, 1, 2], [10, -2, 10], (0.0, 2.0), 20.0),
    ],
)
def test_paper_sum(t, power, window, energy_j):
    assert paper_energy_wh(t, power, *window) * 3600 == pytest.approx(energy_j)


def test_what_the_paper_sum_lacks():
    t = np.append(np.arange(0.0, 5.0, 0.1), np.arange(9.0, 10.05, 0.1))
    assert paper_missing_pct(t, t + 1, 0.0, 10.0) == pytest.approx(21.0)  # 4.9 to 9 s, but for two
    assert paper_missing_pct([1.0], [5.0], 0.0, 2.0) == 100.0


@pytest.mark.parametrize(
    ("joules", "window", "energy_j"),
    [
        ([100, 110, 130, 160], (0.5, 2.5), 40.0),  # interpolated at the bounds
        ([100, 110, 130, 160], (0.5, 3.5), math.nan),
        ([100, 110, 3, 9], (0.5, 2.5), math.nan),  # it was reset
        ([100, math.nan, 130, 160], (0.0, 3.0), 60.0),
    ],
)
def test_counter(joules, window, energy_j):
    found = counted([0, 1, 2, 3], joules, *window).energy_j
    assert found == pytest.approx(energy_j, nan_ok=True)


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


class Signal:
    """Power at a time, and the energy up to a time."""

    def __init__(self, power_w, energy_j):
        self.power_w, self.energy_j = power_w, energy_j


def noisy(rng, sd_w):  # a sensor that tells the very same for 40 s is stuck
    return Signal(lambda t: 15.0 + sd_w * rng.standard_normal(t.size), lambda t: 15.0 * t)


def step(rng):
    at_s = rng.uniform(2, 38)
    return Signal(
        lambda t: np.where(t < at_s, 10.0, 20.0), lambda t: 10.0 * t + 10.0 * max(t - at_s, 0.0)
    )


def ramp(rng):
    return Signal(lambda t: 10.0 + 0.25 * t, lambda t: 10.0 * t + 0.25 * t * t / 2)


SIGNALS = {
    "training": Square,
    "constant": lambda rng: noisy(rng, 0.01),
    "step": step,
    "ramp": ramp,
    "noise": lambda rng: noisy(rng, 3.0),
    **{
        f"{period_s} s": lambda rng, period_s=period_s: Square(rng, period_s)
        for period_s in (0.02, 0.1, 1.0)
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
    """95 % of all trials; of these 200 at least 92 % (what a true 95 % stays above: 97.5 %)."""
    errors_pct, bounds_pct = trials(np.random.default_rng(1), SIGNALS[name], 40.0, 200)
    assert np.mean(np.abs(errors_pct) <= bounds_pct + 1e-9) >= 0.92


@pytest.mark.parametrize(("duration_s", "limit_pct", "n"), [(40.0, 1.2, 300), (600.0, 0.35, 30)])
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


def test_a_gap_and_a_held_end_widen_the_bound():
    """Half a second cut out of the training signal, in the middle and at the end: 95 % covered."""
    rng = np.random.default_rng(6)
    for cut_s in ((20.0, 20.5), (39.5, 41.0)):
        covered = []
        for _ in range(100):
            signal, t = Square(rng), dithered(rng, 0.0, 40.0)
            t = t[(t < cut_s[0]) | (t > cut_s[1])]
            found = trapezoid(t, signal.power_w(t), 0.0, 40.0)
            truth_j = signal.energy_j(40.0) - signal.energy_j(0.0)
            covered.append(abs(found.energy_j - truth_j) <= found.error_pct / 100 * found.energy_j)
            assert "power_gap" in found.flags
        assert np.mean(covered) >= 0.9


def test_the_bound_holds_a_counter_that_is_renewed_now_and_then():
    """30 s of training at 10 Hz, renewed each 20 to 200 ms, in steps of 1 mJ to 1 J."""
    rng = np.random.default_rng(0)
    grid = np.arange(0.0, 36.0, 0.001)
    errors, bounds = [], []
    for _ in range(200):
        update_s, step_j = rng.uniform(0.02, 0.2), 10 ** rng.uniform(-3, 0)
        power = np.where(grid % 0.35 < 0.12, 8.0, 22.0) * np.where(grid < rng.uniform(3, 33), 1, 2)
        energy = np.cumsum(power) * 0.001
        t = np.sort(np.append(rng.uniform(2, 34, 320), [2.0, 34.0]))
        phase = rng.uniform(0, update_s)
        renewed = np.floor((t - phase) / update_s) * update_s + phase
        counter = np.floor(np.interp(renewed, grid, energy) / step_j) * step_j
        told = update_s if rng.random() < 0.5 else None
        found = counted(t, counter, 3.0, 33.0, told)
        truth = float(np.diff(np.interp([3.0, 33.0], grid, energy))[0])
        errors.append(abs(found.energy_j - truth))
        bounds.append(found.error_pct / 100 * found.energy_j)
    assert np.mean(np.array(errors) <= bounds) >= 0.95
    assert np.mean(bounds) < 20 * np.mean(errors)


# -- real samples --------------------------------------------------------------------------------


def mlperf_runs():
    """Yield (row of summary.csv, t_s, watts, inside) of each of the 94 distinct runs."""
    keys = ("round", "device", "benchmark", "scenario")
    summary = {tuple(row[k] for k in keys): row for row in read_cells(MLPERF / "summary.csv")}
    with gzip.open(MLPERF / "power_samples.csv.gz", "rt", encoding="utf-8", newline="") as handle:
        rows = csv.reader(handle)
        assert next(rows)[:6] == [*keys, "t_s", "watts"]
        for key, run in groupby(rows, key=lambda row: tuple(row[:4])):
            cells = np.array([(row[4], row[5], row[9]) for row in run], dtype=np.float64)
            yield summary[key], cells[:, 0], cells[:, 1], cells[:, 2] == 1


def test_real_samples_integrate_to_their_own_summary():
    """118,715 samples at 1 Hz, gaps and equal stamps: 0.1 % asked, 0.001 % in 90 of 94 runs."""
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
