"""Where time and energy go per board and model, and which settings none beats."""

import pandas as pd
import pytest

from epochwatt.analysis.collect_study import read_epochs
from epochwatt.analysis.run_means import best_settings, run_means, workloads


@pytest.fixture
def means(checkout, write_epochs):
    """Return a function that gives the means of runs: (factors that differ, epochs) each."""

    def call(*runs):
        paths = [
            write_epochs(f"run-{n}", {**checkout.runs[0].factors, **factors}, *epochs)
            for n, (factors, epochs) in enumerate(runs)
        ]
        return run_means(read_epochs(paths))

    return call


def metered(e2e_s, energy_wh):
    """Return a run's two epochs: only the second counts."""
    return [
        {"e2e_s": 1000.0, "energy_wh": 1000.0, "power_scope": "module"},
        {"e2e_s": e2e_s, "energy_wh": energy_wh, "power_scope": "module", "power_mean_w": 9.0},
    ]


def test_means_are_those_of_valid_epochs_after_the_first(means):
    bad = {"e2e_s": 1000.0, "valid": False}
    (row,) = means(({}, [{"e2e_s": 100.0}, {"e2e_s": 4.0}, {"e2e_s": 6.0}, bad])).to_dict("records")
    assert (row["run"], row["e2e_s"], row["stall_s"], row["n_epochs"]) == ("run-0", 5.0, 1.5, 2)
    assert pd.isna(row["energy_wh"])


def test_each_run_counts_once_in_the_shares(means):
    """Stall is 1.5 of 4 s in one run, and 1.5 of 8 s in the other."""
    table = means(({}, [{}, {}, {}, {}]), ({"num_workers": 2}, [{}, {"e2e_s": 8.0}]))
    (told,) = workloads(table)
    assert told.n_runs == 2
    assert told.e2e_s == (4.0, 8.0)
    assert told.shares["stall"] == pytest.approx((1.5 / 4 + 1.5 / 8) / 2)
    assert sum(told.shares.values()) == pytest.approx(1.0)
    assert (told.energy_wh, told.power_w) == (None, None)


def test_power_seen_by_other_sensors_is_never_mixed(means):
    plug = [{**epoch, "power_scope": "socket"} for epoch in metered(4.0, 0.5)]
    found = workloads(means(({}, metered(4.0, 0.25)), ({"num_workers": 2}, plug)))
    assert [told.energy_wh for told in found] == [(0.25, 0.25), (0.5, 0.5)]


def test_settings_that_none_beats_are_the_front(means):
    table = means(
        ({"power_mode": "a"}, metered(4.0, 4.0)),
        ({"power_mode": "b"}, metered(8.0, 1.0)),
        ({"power_mode": "c"}, metered(8.0, 2.0)),
        ({"power_mode": "d"}, metered(6.0, 2.0)),
    )
    told = [(c.setting, c.e2e_s, c.energy_wh, c.n_runs) for c in best_settings(table)]
    assert told == [("mode a", 4.0, 4.0, 4), ("mode d", 6.0, 2.0, 4), ("mode b", 8.0, 1.0, 4)]


def test_a_run_without_energy_is_not_compared_with_metered_ones(means):
    table = means(
        ({}, metered(4.0, 1.0)),
        ({"num_workers": 1}, metered(5.0, 1.5)),
        ({"num_workers": 2}, metered(1.0, None)),
    )
    (best,) = best_settings(table)
    assert (best.setting, best.n_runs) == ("0 workers", 2)
