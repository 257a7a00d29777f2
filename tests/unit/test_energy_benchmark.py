"""The energy benchmark: that what it calls the truth is the truth."""

import numpy as np
import pytest

from benchmarks import bounds, energy, power_sensors, signals, windows
from epochwatt.epochs import energy_error


def test_benchmark_runs():
    rows = energy.run(quick=True).rows
    assert sum(row.budget is not None for row in rows) == 2 + 3
    assert all(np.isfinite(row.values).all() for row in rows)


def test_drawn_signals_have_the_energy_they_say():
    rng = np.random.default_rng(0)
    names = (*bounds.SIGNALS, *signals.LOOPS_AND_MORE)
    drawn = [signals.draw(name, rng, 20.0) for name in names]
    drawn += [signals.stalling(name, rng, 20.0) for name in signals.STALLS]
    for signal in drawn:
        t = np.linspace(signal.start_s, signal.end_s, 40_001)[:-1] + 0.00025
        assert signal.at(t).mean() * 20 == pytest.approx(signal.truth_j, rel=1e-3)
        starts, ends = signal.stalls
        assert signal.minibatch_s.sum() == pytest.approx(20.0)
        assert (starts[0], (ends >= starts).all()) == (signal.start_s, True)
        assert 0 <= signal.stall_j <= signal.truth_j + 1e-9


def test_bounds_run_and_a_seed_repeats_them():
    sensors = {"10 Hz": power_sensors.instants}
    first, again = (
        bounds.judge_all("energy", sensors, bounds.windows(rng, 1), bounds.energy_judged, rng)
        for rng in (np.random.default_rng(5), np.random.default_rng(5))
    )
    assert first.equals(again)
    cells = bounds.summed_up(first, ["what", "sensor", "signal"])
    assert set(cells.covered_pct) <= {0.0, 100.0}
    assert {row.unit for row in bounds.rows_of(cells)} == {"%"}
    assert bounds.wilson(190, 200) == pytest.approx((0.910, 0.973), abs=0.001)


@pytest.mark.parametrize(("factor", "least_pct", "most_pct"), [(1.0, 95, 100), (0.1, 0, 90)])
def test_windows_lie_within_their_bounds_and_too_small_ones_are_noticed(
    monkeypatch, factor, least_pct, most_pct
):
    bound_j = energy_error.bound_j
    monkeypatch.setattr(energy_error, "bound_j", lambda read: factor * bound_j(read))
    found = windows.judged(24, 7)
    assert set(found.sensor.value_counts()) == {24}
    bounded = found[found.bound_j.notna() & found.sensor.ne("RAPL")]  # it counts
    assert set(bounded.sensor) == {*windows.SENSORS} - {"RAPL", "jtop, 1 Hz"}
    holds_pct = 100 * (bounded.error_j.abs() <= bounded.bound_j).mean()
    assert least_pct <= holds_pct <= most_pct
