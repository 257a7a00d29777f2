"""Two sets of runs: pairs, ratios, intervals, verdicts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from epochwatt import columns
from epochwatt.analysis.compare import compare, compared_factors, find_runs, interval, verdict_of
from epochwatt.errors import EpochwattError

FACTORS = {
    **{"device": "nx", "instance": "d1", "model": "lenet", "dataset": "mnist"},
    **{"dataset_source": "official", "storage": "ssd", "power_mode": "15W"},
}
E2E = [{"e2e_s": 9.0}, {"e2e_s": 4.0}, {"e2e_s": 4.2}, {"e2e_s": 4.4}]


@pytest.fixture
def put(tmp_path, monkeypatch, write_epochs):
    """Return a function that writes a run into the working folder or another one."""
    monkeypatch.chdir(tmp_path)

    def write(run, *epochs, root=".", **factors):
        told = columns.with_defaults({"backend": "jetson", **FACTORS, **factors})
        return write_epochs(run, told, *(epochs or E2E), root=root)

    return write


def ratios(a, b, margin=0.05):
    """Return part -> its row of the only pair."""
    return {row.part: row for row in compare(find_runs(a), find_runs(b), margin) if row.part}


class TestPairs:
    """Who is compared with whom."""

    def test_simulated_and_measured_runs_meet_where_all_else_agrees(self, put):
        put("jetson-w0", num_workers=0, prefetch_factor=None)
        put("jetson-w2", num_workers=2)
        put("twin-w2", backend="twin", num_workers=2)
        put("twin-w4", backend="twin", num_workers=4)
        a, b = find_runs("jetson-*"), find_runs("twin-*")
        assert compared_factors(a, b) == {"backend": ("jetson", "twin")}
        rows = compare(a, b, 0.05)
        assert {(row.run_a, row.run_b) for row in rows if row.part} == {("jetson-w2", "twin-w2")}
        assert [(row.run_a, row.run_b, row.reason) for row in rows if not row.part] == [
            ("jetson-w0", "", "only in A"),
            ("", "twin-w4", "only in B"),
        ]

    def test_runs_of_two_folders_meet_their_namesakes(self, put):
        put("one", *E2E, root="before")
        put("one", *({"e2e_s": 2 * row["e2e_s"]} for row in E2E))
        assert compared_factors(find_runs("before/results"), find_runs("results")) == {}
        assert ratios("before/results", "results")["e2e"].ratio == pytest.approx(2.0)

    def test_a_run_with_two_partners_is_refused(self, put):
        put("one")
        put("two-a")
        put("two-b")
        with pytest.raises(EpochwattError, match="two runs of B have the same factors") as caught:
            compare(find_runs("one"), find_runs("two-*"), 0.05)
        assert caught.value.found == ["two-a", "two-b"]

    def test_a_set_without_runs_is_refused_and_says_what_makes_some(self, put):
        with pytest.raises(EpochwattError) as caught:
            find_runs("one")
        assert caught.value.found.startswith("no runs")
        put("one")
        with pytest.raises(EpochwattError, match=r"no run matches 'two-\*'") as caught:
            find_runs("two-*")
        assert caught.value.found == "one"


class TestRatios:
    """What a pair says."""

    def test_means_are_over_the_valid_epochs_after_the_first(self, put):
        put("a", {"e2e_s": 90.0}, {"e2e_s": 4.0}, {"e2e_s": 6.0}, {"e2e_s": 99.0, "valid": False})
        put("b", {"e2e_s": 90.0}, {"e2e_s": 10.0}, {"e2e_s": 10.0})
        row = ratios("a", "b")["e2e"]
        assert (row.a, row.b, row.ratio, row.n_epochs_a, row.n_epochs_b) == (5.0, 10.0, 2.0, 2, 2)

    def test_every_part_has_its_own_ratio(self, put):
        put("a", *([{"energy_wh": 2.0}] * 3))
        slow = {"wait_s": 2.5, "compute_s": 4.5, "e2e_s": 8.0, "energy_wh": 3.0}
        put("b", *([slow] * 3))
        told = {part: row.ratio for part, row in ratios("a", "b").items()}
        wanted = {"e2e": 2.0, "stall": 2.0, "compute": 2.0, "overhead": 2.0, "energy": 1.5}
        assert told == pytest.approx(wanted)

    @pytest.mark.parametrize(
        ("a", "b", "part", "verdict", "reason"),
        [
            ([{}, {}], E2E, "e2e", "not enough epochs", "one epoch has no spread"),
            ([{}], E2E, "e2e", "not enough epochs", "no valid epoch after the first"),
            (E2E, E2E, "energy", "not comparable", "no value in A"),
            (
                [{"energy_wh": 2.0, "power_scope": "module"}] * 3,
                [{"energy_wh": 3.0, "power_scope": "socket"}] * 3,
                *("energy", "not comparable", "energy of module against socket"),
            ),
            ([{"e2e_s": 3.75}] * 3, E2E, "overhead", "not comparable", "not above 0 in A"),
        ],
    )
    def test_what_has_no_interval(self, put, a, b, part, verdict, reason):
        put("a", *a)
        put("b", *b)
        row = ratios("a", "b")[part]
        assert (row.verdict, row.reason, row.low) == (verdict, reason, None)
        assert row.ratio == (pytest.approx(4.2 / 4.0) if "spread" in reason else None)


class TestInterval:
    """The ratio's interval, and what it says."""

    def test_is_welchs_where_spreads_are_small(self):
        rng = np.random.default_rng(1)
        a, b = 1 + 1e-4 * rng.standard_normal(5), 1 + 3e-4 * rng.standard_normal(9)
        told = stats.ttest_ind(b, a, equal_var=False).confidence_interval()
        assert np.log(interval(a, b)) == pytest.approx([told.low, told.high], rel=1e-3)

    def test_of_epochs_that_do_not_differ_has_no_width(self):
        assert interval(np.full(3, 2.0), np.full(2, 3.0)) == (1.5, 1.5)

    @given(
        st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8).map(np.array),
        st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8).map(np.array),
    )
    def test_holds_the_ratio_and_turns_over_with_the_sides(self, a, b):
        low, high = interval(a, b)
        assert low <= b.mean() / a.mean() * (1 + 1e-12)
        assert high >= b.mean() / a.mean() * (1 - 1e-12)
        turned = interval(b, a)
        assert math.isclose(turned[0] * high, 1.0, rel_tol=1e-9) or high == math.inf
        assert math.isclose(turned[1] * low, 1.0, rel_tol=1e-9) or low == 0.0

    @pytest.mark.parametrize(
        ("low", "high", "verdict"),
        [
            (0.96, 1.04, "equivalent"),
            (1 / 1.05, 1.05, "equivalent"),
            (1.06, 1.2, "different"),
            (0.5, 0.95, "different"),
            (1.01, 1.06, "not enough epochs"),
            (0.93, 1.04, "not enough epochs"),
        ],
    )
    def test_verdict_is_where_it_lies(self, low, high, verdict):
        assert verdict_of(low, high, 0.05) == verdict
