"""Energy from a counter: its difference, and how far the ends may be off."""

import numpy as np
import pytest

from epochwatt.epochs.energy import counted


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


def test_an_exact_counter_of_steady_power_is_off_by_little():
    t = np.arange(0.0, 100.0, 0.1)
    found = counted(t, 10.0 * t, 1.0, 99.0)
    assert found.energy_j == pytest.approx(980.0)
    assert 0 < found.error_pct < 0.5
