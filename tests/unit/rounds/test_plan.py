"""Plans of rounds against every combination of the choices of small fleets."""

import itertools

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.rounds.plan import Client, Round, energy_j, fixed_round, n_samples, plan_round


def fleet(rng, has_equal_choices=False):
    clients = []
    for name in range(rng.integers(1, 5)):
        n = int(rng.integers(1, 7))
        values = rng.uniform(1, 10, (2, n))
        if has_equal_choices:  # equal ends, equal costs, no power of waiting
            values = values.round()
        waiting_w = rng.uniform(0, 5, n).round(int(has_equal_choices) - 1 + 2)
        spread, around_s = rng.uniform(0, 0.1, n), float(rng.uniform(0, 2))
        trained = rng.integers(1, 9, n).astype(float)
        count = int(rng.integers(1, 4))
        clients.append(
            Client(str(name), values[0], 5 * values[1], waiting_w, trained, around_s, spread, count)
        )
    return clients


def every_round(clients, latest_s, z):
    for choices in itertools.product(*(range(len(client.fit_s)) for client in clients)):
        ends_s = [client.end_s(z)[k] for client, k in zip(clients, choices, strict=True)]
        if max(ends_s) <= latest_s:
            yield Round(float(max(ends_s)), choices)


@pytest.mark.parametrize("seed", range(60))
def test_no_other_round_is_better(seed):
    rng = np.random.default_rng(seed)
    clients, z = fleet(rng, seed % 3 == 0), float(rng.uniform(0, 2))
    latest_s = max(client.end_s(z).min() for client in clients) * rng.uniform(1, 3)
    rounds = [*every_round(clients, latest_s, z)]
    costs_j = np.array([energy_j(clients, one) for one in rounds])
    per_sample_j = costs_j / [n_samples(clients, one) for one in rounds]
    budget_j = float(rng.choice(costs_j))

    plan = plan_round(clients, "energy", latest_s, z=z)
    assert energy_j(clients, plan) == pytest.approx(costs_j.min())
    by_sample = plan_round(clients, "energy_per_sample", latest_s, z=z)
    of_it = energy_j(clients, by_sample) / n_samples(clients, by_sample)
    assert of_it == pytest.approx(per_sample_j.min())
    earliest = plan_round(clients, "time", latest_s, budget_j * (1 + 1e-9), z)
    within_s = [r.end_s for r, cost in zip(rounds, costs_j, strict=True) if cost <= budget_j]
    assert earliest.end_s == pytest.approx(min(within_s))
    for planned in (plan, by_sample, earliest):
        pairs = zip(clients, planned.choices, strict=True)
        assert max(c.end_s(z)[k] for c, k in pairs) <= planned.end_s * (1 + 1e-8)
        assert planned.end_s <= latest_s


def test_what_nobody_can_keep_is_said():
    slow = Client("slow", *np.array([[9.0], [9.0], [1.0], [1.0]]))
    fast = Client("fast", *np.array([[1.0], [1.0], [1.0], [1.0]]))
    with pytest.raises(ConfigError, match="within 8 s") as raised:
        plan_round([fast, slow], latest_s=8.0)
    assert "slow needs 9 s" in str(raised.value)
    with pytest.raises(ConfigError, match="at most 10 J") as raised:
        plan_round([fast, slow], "time", budget_j=10.0)
    assert "18 J at least" in str(raised.value)
    assert fixed_round([fast, slow], [0, 0]) == Round(9.0, (0, 0))
