"""The main paper's choice of four modes."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.selection.choose_power_modes import (
    common_modes,
    n_fixed,
    rank_subsets,
    ties,
    without_network,
)


@pytest.fixture
def networks(plant):
    """Three different networks, with noise."""
    shares = [(0.6, 0.2, 0.1, 0.1, 0), (0.2, 0.2, 0.4, 0.2, 0), (0.3, 0.5, 0.1, 0, 0.1)]
    return [plant(of, deviation=0.01, seed=n, whole=99 * 3**n) for n, of in enumerate(shares)]


def test_four_modes_fix_four_of_five_coefficients(modes, efij):
    assert n_fixed(efij) == 4
    assert n_fixed(modes) == 5


def brute_force(networks, size):
    """Return the summed RMSE of each subset, by normal equations over places of modes."""
    found = {}
    for places in combinations(range(10), size):
        total = 0.0
        for of in networks:
            x = np.array([of.modes[n] for n in places])
            y = np.array([of.time_s[n] for n in places])
            slopes = np.linalg.pinv(x - x.mean(0), rcond=1e-9).dot(y - y.mean())
            residuals = (of.modes - x.mean(0)).dot(slopes) + y.mean() - of.time_s
            total += (sum(r * r for r in residuals) / len(residuals)) ** 0.5
        found[places] = total
    return found


def test_search_equals_brute_force_written_another_way(networks, modes):
    ranked = rank_subsets(networks)
    expected = brute_force(networks, 4)
    assert len(ranked) == len(expected) == 210
    found = {tuple(modes.index(mode) for mode in of.modes): of.total_s for of in ranked}
    assert found == pytest.approx(expected, rel=1e-6)
    assert found.keys() == expected.keys()
    assert [of.total_s for of in ranked] == sorted(of.total_s for of in ranked)
    assert ranked[0].total_s == pytest.approx(sum(ranked[0].rmse_s))


def test_ties_lie_within_the_tolerance(networks):
    ranked = rank_subsets(networks)
    assert ties(ranked, 0.0) == [of for of in ranked if of.total_s == ranked[0].total_s]
    near = ties(ranked, 0.1)
    assert near == ranked[: len(near)]
    assert near[-1].total_s <= 1.1 * ranked[0].total_s < ranked[len(near)].total_s


def test_networks_are_compared_under_the_modes_they_share(networks, modes):
    one = networks[0].only(modes[:6])
    assert common_modes([networks[1], one], 4) == modes[:6]
    with pytest.raises(PredictionError, match="6 power modes in common\n  allowed: 7 or more"):
        common_modes([networks[1], one], 7)


@pytest.mark.parametrize("standardise", [False, True])
def test_search_equals_scikit_learn_with_uneven_epochs(networks, modes, standardise):
    """The second network has one epoch of some modes and three of others."""
    rng = np.random.default_rng(1)
    n_epochs = [1, 3, 2, 1, 2, 3, 1, 2, 1, 3]
    rows = [mode for mode, n in zip(modes, n_epochs, strict=True) for _ in range(n)]
    mean_s = dict(zip(modes, networks[1].time_s, strict=True))
    uneven = observations_from_rows(
        "uneven", rows, [mean_s[m] * (1 + 0.02 * rng.normal()) for m in rows]
    )
    for subset in rank_subsets([networks[0], uneven], standardise=standardise):
        for of, rmse_s in zip([networks[0], uneven], subset.rmse_s, strict=True):
            train = of.only(subset.modes)
            differs = np.ptp(train.modes, axis=0) > 0
            scale = np.where(differs, train.modes.std(0), 1) if standardise else 1
            fit = LinearRegression(tol=1e-6).fit(train.modes / scale, train.time_s)
            errors_s = fit.predict(of.modes / scale) - of.time_s
            assert rmse_s == pytest.approx(np.sqrt(np.mean(errors_s**2)), rel=1e-6)


def test_ranking_without_a_network_is_that_of_the_others(networks):
    without = without_network(rank_subsets(networks), 1)
    others = rank_subsets([networks[0], networks[2]])
    assert [of.total_s for of in without] == pytest.approx([of.total_s for of in others])
    assert without[0].modes == others[0].modes
