"""The law of a round, on real rounds of others and on made-up ones."""

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.rounds.law import Line, Measured, RoundLaw, fit_line, learned_client, round_s
from epochwatt.rounds.plan import Client

# SOURCE: github.com/tuananhngh/FL-G5K-EnergyConsumption at 9b215db, Flower on ten AGX Xavier:
# strategy, local epochs, rounds, trainings, and mean seconds of these, from the stamps in its logs
FL_G5K = [
    ("fedavg", 1, 300, 5, 7552.14),
    ("fedavg", 3, 100, 6, 4036.87),
    ("fedadam", 1, 300, 5, 7648.16),
    ("fedadam", 3, 100, 5, 4048.76),
    ("fedadagrad", 1, 300, 5, 7628.88),
    ("fedadagrad", 3, 100, 5, 4056.36),
    ("fedyogi", 1, 300, 5, 7649.68),
    ("fedyogi", 3, 100, 5, 4061.96),
]
WARM_UP_S = 9.5  # of the first round, in its logs
FIT_J = {1: 122.0, 3: 425.0}  # mean energy of a fit, as its notebooks print it: all there is of it


def test_real_rounds_of_one_strategy_foretell_those_of_others():
    laws = {}
    for strategy in dict.fromkeys(row[0] for row in FL_G5K):
        _, epochs, rounds, _, total_s = zip(*(r for r in FL_G5K if r[0] == strategy), strict=True)
        laws[strategy] = fit_line(epochs, total_s, rounds, True, WARM_UP_S)
    for line in laws.values():
        for _, epochs, rounds, _, total_s in FL_G5K:
            expected_s = WARM_UP_S + rounds * line.at(epochs)
            assert expected_s == pytest.approx(total_s, rel=0.02)
    # as the data folder states it for all: 9.5 s + rounds x (17.5 + 7.65 E) s
    _, epochs, rounds, _, total_s = zip(*FL_G5K, strict=True)
    line = fit_line(epochs, total_s, rounds, True, WARM_UP_S)
    assert line[:3] == pytest.approx((17.5, 7.65, 9.5), rel=0.02)


def test_energy_of_real_fits_of_one_length_does_not_foretell_another():
    """10 % is not reached: 1 epoch takes less than a third of 3, so the fixed part is negative."""
    of_one, of_three = (fit_line(epochs, FIT_J[epochs]) for epochs in FIT_J)
    assert of_one.at(3) / FIT_J[3] == pytest.approx(0.86, abs=0.005)
    assert of_three.at(1) / FIT_J[1] == pytest.approx(1.16, abs=0.005)


def test_energy_of_real_fits_is_a_line_that_never_ends_below_zero():
    line = fit_line([*FIT_J], [*FIT_J.values()])
    assert line.at([1, 3]) == pytest.approx([122, 425])
    assert line.at(5) == pytest.approx(728)
    assert line.at(0.1) == pytest.approx(12.2)


def test_the_warm_up_of_first_rounds_is_told_apart():
    n, first = np.array([10, 10, 10, 20, 20, 20]), np.array([1, 0, 0, 1, 0, 0])
    line = fit_line(n, 2 + 0.5 * n + 4 * first, has_first=first)
    assert line[:3] == pytest.approx((2, 0.5, 4))
    assert line.at(30, is_first=True) == pytest.approx(21)
    assert line.spread == pytest.approx(0, abs=1e-6)
    with pytest.raises(ConfigError, match="warm-up"):
        fit_line([10, 20], [11, 16], has_first=True)
    with pytest.raises(ConfigError, match="no line"):
        fit_line([], [])
    assert fit_line([10, 10], [5, 5]).at(20) == pytest.approx(10)  # proportional


def test_how_much_fits_vary_is_known():
    rng = np.random.default_rng(0)
    n = rng.integers(10, 100, 400)
    line = fit_line(n, (3 + 0.2 * n) * np.exp(0.05 * rng.standard_normal(400)))
    assert line.spread == pytest.approx(0.05, rel=0.1)
    assert line.at(50) == pytest.approx(13, rel=0.02)


def test_a_round_ends_when_the_server_asks():
    fast = RoundLaw(Line(1, 0.1), Line(0, 2), 3.0, poll_s=3, start_s=2, transfer_s=0.5)
    slow = RoundLaw(Line(1, 0.3), evaluation_s=5)
    assert fast.end_s(100) == pytest.approx(1.5 + 2 + 11 + 0.5)
    assert fast.energy_j(100, 33.0) == pytest.approx(200 + 3 * (33 - 11))
    assert round_s([fast, slow], [100, 100]) == pytest.approx(31 + 5)
    assert round_s([fast, slow], [100, 100], server_poll_s=3) == pytest.approx(33 + 5)


def test_measured_rounds_correct_a_client_but_the_first_does_not():
    client = Client("a", np.array([10.0, 20]), np.array([300.0, 200]), np.ones(2), np.ones(2))
    warm = Measured(0, fit_s=40, end_s=60, is_first=True)
    assert learned_client(client, [warm]) is client
    throttled = [Measured(1, 30, 34, 250.0, 2.0), Measured(1, 32, 36, 260.0, 2.0)]
    learned = learned_client(client, [warm, *throttled])
    assert learned.fit_s == pytest.approx([15.5, 31])
    assert learned.fit_j == pytest.approx([1.275 * 300, 255])
    assert learned.around_s == pytest.approx(4)
    assert learned.waiting_w == pytest.approx(2)
    cooled = learned_client(client, [*throttled, Measured(1, 20, 24)])
    assert cooled.fit_s == pytest.approx([10, 20])  # it has jumped, so the last is believed
    no_sensor = learned_client(client, [Measured(0, 12, 15)])
    assert no_sensor.fit_j == pytest.approx([360, 240])
