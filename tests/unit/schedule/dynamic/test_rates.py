"""Arrivals at rates that change: counted, and cut into slots."""

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.schedule.config import Changing, Rates
from epochwatt.schedule.dynamic.slots import arrivals_of, at_rates


def test_steady_arrivals_are_as_many_as_the_rates_say():
    arrivals = arrivals_of(Rates(steps=[(20, 0.25), (10, 1)]), 4.0, 10.0, None)
    assert arrivals.n_slots == 3
    assert arrivals.times_s[:3] == pytest.approx([1, 2, 3])
    assert np.diff(arrivals.times_s)[-5:] == pytest.approx(0.25)
    assert arrivals.rates_per_s == pytest.approx([1, 1, 4], abs=0.11)  # one at a border
    assert len(arrivals.times_s) == 60


def test_random_arrivals_are_so_on_average_and_always_the_same():
    rates = np.repeat([5.0, 50.0], 50)
    one, again, other = (at_rates(rates, 10.0, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.times_s, again.times_s)
    assert len(one.times_s) != len(other.times_s)
    assert one.rates_per_s[:50].mean() == pytest.approx(5, rel=0.1)
    assert one.rates_per_s[50:].mean() == pytest.approx(50, rel=0.05)
    gaps_s = np.diff(one.times_s[one.times_s > 500])
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.05)  # exponential


def test_a_day_is_lowest_at_its_ends_and_highest_in_its_middle():
    rates = arrivals_of(Rates(day=(1 / 9, 2400)), 9.0, 100.0, None).rates_per_s
    assert rates[[0, -1]] == pytest.approx(1, abs=0.1)
    assert rates[11:13] == pytest.approx(9, abs=0.1)


def test_a_recorded_trace_is_taken_as_it_is(tmp_path):
    (tmp_path / "trace").write_text("# s\n0.5\n3\n9\n21\n", "utf-8")
    arrivals = arrivals_of(Rates(file="trace"), 1.0, 10.0, 0, tmp_path)
    assert arrivals.times_s.tolist() == [0.5, 3, 9, 21]
    assert arrivals.rates_per_s == pytest.approx([0.3, 0.1, 0.1])  # without any: as with one
    with pytest.raises(ConfigError, match="two slots"):
        arrivals_of(Rates(file="trace"), 1.0, 30.0, 0, tmp_path)
    (tmp_path / "trace").write_text("3\n1\n", "utf-8")
    with pytest.raises(ConfigError, match="trace"):
        arrivals_of(Rates(file="trace"), 1.0, 10.0, 0, tmp_path)


@pytest.mark.parametrize(
    "given", [{}, {"steps": [(9, 2)]}, {"day": [1]}, {"day": (1, 60), "file": "x"}]
)
def test_rates_that_cannot_be_are_refused(given):
    with pytest.raises(ValueError, match=r"one of: steps|at most 1|two numbers"):
        Rates(**given)


def test_clocks_have_to_settle_within_a_slot():
    jobs = {"train": "a", "infer": "b", "max_power_w": 1, "max_latency_s": 1, "peak_per_s": 1}
    with pytest.raises(ValueError, match="settle within a slot"):
        Changing(slot_s=10, switch_s=[1, 11], jobs=[jobs], rates={"x": Rates(day=(1, 60))})
