"""The choice of four modes: on a planted linear world, and against fits written another way."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.data.workloads import board_groups, read_workloads
from epochwatt.prediction.selection.choose_power_modes import (
    choices,
    n_fixed,
    rank_subsets,
    ranked,
    search_of,
)
from epochwatt.tables import read_cells


def test_four_modes_that_fix_the_planted_world_predict_it_all_in_any_order_of_runs(planted):
    paths, modes = planted()
    for order in (paths, paths[::-1]):
        (group,) = board_groups(read_workloads(order, modes))
        search = search_of(group)
        assert search.networks == ("lenet", "mobilenet", "resnet")
        assert "".join(search.modes) == "abcdefghij"
        ranking = ranked(group, search)
        chosen = choices(group, search, ranking)
        paper = chosen["paper"]
        assert paper["total_s"] == pytest.approx(0, abs=1e-9)
        assert (paper["rank"], paper["n_subsets"], paper["n_fixed"]) == (1, 210, 4)
        assert chosen["published"]["modes"] == ["e", "f", "i", "j"]
        assert set(chosen["left_out"]) == {"lenet", "mobilenet", "resnet"}
        assert len(chosen["designed"]["modes"]) == 4
        assert ranking["paper"][-1].total_s > 1  # some subsets fix less


@pytest.mark.parametrize(
    ("networks", "letters", "problem"),
    [(("lenet",), "abcdef", "lenet: 6 power modes"), (("lenet", "resnet"), "abcd", "resnet: 4")],
)
def test_too_little_for_a_search_is_said_in_the_file(planted, models, networks, letters, problem):
    folder = models(*planted(networks, letters))
    (group,) = json.loads((folder / "power_modes.json").read_text("utf-8"))["board_groups"]
    assert problem in group["missing"]
    assert "a search needs 2 networks and 5 modes" in group["missing"]
    assert group["choices"] == {}
    assert (folder / "power_modes.csv").read_text("utf-8").strip() == ""


def test_files_have_every_subset_of_either_search_and_what_each_group_is_of(
    planted, models, beside
):
    def imported(row):
        row["imported"] = "scripts-2023"

    folder = models(*beside(*planted(("lenet", "resnet"), "abcde"), imported))
    groups = json.loads((folder / "power_modes.json").read_text("utf-8"))["board_groups"]
    assert [group["factors"]["imported"] for group in groups] == ["", "scripts-2023"]
    assert groups[0]["data"]["resnet"] == {
        **{"dataset": "some", "dataset_source": "official", "dataset_scale": 1.0}
    }
    rows = read_cells(folder / "power_modes.csv")
    assert [row["board_group"] for row in rows] == ["0"] * 10 + ["1"] * 10
    assert [row["search"] for row in rows[:10]] == ["paper"] * 5 + ["paper_standardised"] * 5
    assert [row["rank"] for row in rows[:5]] == list("12345")
    parts = [float(rows[4][f"rmse_{name}_s"]) for name in ("lenet", "resnet")]
    assert float(rows[4]["rmse_sum_s"]) == pytest.approx(sum(parts))


@pytest.fixture
def networks(plant):
    """Three different networks, with noise."""
    shares = [(0.6, 0.2, 0.1, 0.1, 0), (0.2, 0.2, 0.4, 0.2, 0), (0.3, 0.5, 0.1, 0, 0.1)]
    return [plant(of, deviation=0.01, seed=n, whole=99 * 3**n) for n, of in enumerate(shares)]


@pytest.mark.parametrize("standardise", [False, True])
def test_search_equals_scikit_learn_with_uneven_epochs(networks, modes, efij, standardise):
    """The second network has one epoch of some modes and three of others."""
    assert (n_fixed(efij), n_fixed(modes)) == (4, 5)
    rng = np.random.default_rng(1)
    n_epochs = [1, 3, 2, 1, 2, 3, 1, 2, 1, 3]
    rows = [mode for mode, n in zip(modes, n_epochs, strict=True) for _ in range(n)]
    mean_s = dict(zip(modes, networks[1].time_s, strict=True))
    uneven = observations_from_rows(
        "uneven", rows, [mean_s[m] * (1 + 0.02 * rng.normal()) for m in rows]
    )
    ranking = rank_subsets([networks[0], uneven], standardise=standardise)
    assert len(ranking) == 210
    assert [subset.total_s for subset in ranking] == sorted(subset.total_s for subset in ranking)
    for subset in ranking:
        for observed, rmse_s in zip([networks[0], uneven], subset.rmse_s, strict=True):
            train = observed.only(subset.modes)
            differs = np.ptp(train.modes, axis=0) > 0
            scale = np.where(differs, train.modes.std(0), 1) if standardise else 1
            fit = LinearRegression(tol=1e-6).fit(train.modes / scale, train.time_s)
            errors_s = fit.predict(observed.modes / scale) - observed.time_s
            assert rmse_s == pytest.approx(np.sqrt(np.mean(errors_s**2)), rel=1e-6)
