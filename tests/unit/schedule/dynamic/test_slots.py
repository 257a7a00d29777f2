"""What modes give in slots: as counted by hand, and as in one go."""

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.schedule.dynamic.slots import Arrivals, at_rates, play_slots


def test_steady_slots_train_as_the_formula_says_and_nobody_is_late(options):
    slots = play_slots(options([2.0, 8.0]), at_rates(np.array([2.0] * 3), 30.0, None), 3.0)
    stay = np.diagonal(slots.n_trained, axis1=1, axis2=2) / 30
    assert stay[1] == pytest.approx([30, 12], rel=0.02)
    # clocks settle for 3 of 30 s: nothing is trained in them
    assert slots.n_trained[1, 0, 1] == pytest.approx(0.9 * slots.n_trained[1, 1, 1], rel=0.03)
    assert slots.n_late.sum() == slots.over_s.sum() == 0
    assert slots.worst_s[1] == pytest.approx(np.array([[0.2, 0.2], [0.2, 0.05]]))


def test_an_overload_refuses_some_and_answers_others_late(options):
    slots = play_slots(options([2.0, 8.0]), at_rates(np.array([8.0] * 2), 30.0, None), 3.0)
    # 5 of 8 a second are served in the first mode, after a queue of ten: 2 s; all are late but the
    # first few
    assert slots.n_late[:, 0, 0] == pytest.approx([225, 225], rel=0.05)
    assert slots.worst_s[:, 0, 0] == pytest.approx(2.2, abs=0.2)
    assert slots.n_late[:, 1, 1].tolist() == [0, 0]


def test_a_slot_without_requests_is_all_training(options):
    arrivals = Arrivals(np.array([1.0, 2.0, 65.0]), 30.0, 3)
    slots = play_slots(options([2.0, 8.0]), arrivals, 3.0)
    assert slots.n_trained[1, 0, 0] == pytest.approx(30 / 0.02, rel=0.01)
    assert slots.worst_s[1].tolist() == [[0, 0], [0, 0]]


def test_slots_played_apart_sum_up_to_a_stream_played_in_one_go(options):
    apart = at_rates(np.full(4, 4.5), 300.0, 5)
    whole = apart._replace(slot_s=1200.0, n_slots=1)
    modes = options([2.0, 8.0])
    sums, once = play_slots(modes, apart, 3.0), play_slots(modes, whole, 3.0)
    assert sums.n_trained[:, 1, 1].sum() == pytest.approx(once.n_trained[0, 1, 1], rel=0.01)
    assert sums.n_late[:, 1, 1].sum() == pytest.approx(once.n_late[0, 1, 1], abs=3)
    assert sums.worst_s[:, 1, 1].max() == pytest.approx(once.worst_s[0, 1, 1])


def test_rates_that_no_mode_serves_are_refused(options):
    with pytest.raises(ConfigError, match="no mode serves 30 requests/s"):
        options([2.0, 30.0])
