"""Published numbers: which run they are of, what the fit has seen, what they are here."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from epochwatt.figures.common.published import (
    Mark,
    Plotted,
    draw_mark,
    here_of,
    idle_mark,
    mark,
    published_marks,
    spread_pct,
)
from epochwatt.figures.common.runs import read_runs
from epochwatt.published.numbers import SPREADS

TOLD = Mark(10.0, None, "id", "exact", seen_by_fit=True)
LENET = {"storage": "hdd", "model": "lenet"}


@pytest.fixture
def found(pytestconfig, made_up):
    """Return a function that gives the mark of a run of a paper for a backend; None: no mark."""
    folders = [str(pytestconfig.rootpath / name) for name in ("config/published", "config/twin")]

    def of(quantity, epoch_set="1+", paper="sigmetrics2023", backend="twin", **factors):
        factors = read_runs([made_up(**factors)], [])[0].factors
        return mark(published_marks(*folders, paper, backend), factors, quantity, epoch_set)

    return of


def plotted(quantity="energy_paper_wh", ours=20.0, **changes):
    return Plotted({"quantity": quantity, "value": ours}, TOLD._replace(**changes), "#000000")


@pytest.mark.parametrize(
    ("changes", "ours", "is_percentage", "is_off"),
    [
        ({}, [8.6, 11.4], False, False),
        ({}, [8.6, 11.6], False, True),  # the end of a range beyond 15 %
        ({}, [12.9], True, False),  # within 3 points
        ({}, [13.1], True, True),
        ({"qualifier": "at_least"}, [99.0], False, False),
        ({"value_hi": 20.0, "qualifier": "range"}, [22.9], False, False),
        ({"value": 0.0}, [0.0], False, False),
        ({"value": 0.0}, [0.1], False, True),
        ({"value": 0.0}, [0.1], True, False),
        ({}, [None], False, None),  # ours is missing: nothing is judged
        ({"id": "a fails"}, [10.0], False, True),  # a claim fails by it
    ],
)
def test_number_is_off_beyond_the_tolerance_or_where_a_claim_fails(
    changes, ours, is_percentage, is_off
):
    tolerances = {"NEAR": 15.0, "NEAR_PP": 3.0}
    printed, failing = TOLD._replace(**changes), frozenset({"fails"})
    assert printed.judged(ours, tolerances, failing, is_percentage=is_percentage).is_off is is_off


def test_mark_is_that_of_the_very_run_metric_epochs_and_paper(found):
    assert found("e2e_s", model="resnet").value == 349.0
    assert found("power_mean_w", model="resnet").value == 31.0
    assert found("e2e_s", "0", model="resnet") is None
    for other in ({"batch_size": 32}, {"instance": "d2"}, {"task": "infer"}, {"precision": "fp16"},
                  {"compile": "on"}, {"container": "podman"}):  # fmt: skip
        assert found("e2e_s", model="resnet", **other) is None
    nx = {"device": "nx", "model": "mobilenet", "power_mode": "15W", "num_workers": 1}
    assert found("stall_s", storage="hdd", **nx).value == 456.0
    assert found("stall_s", storage="hdd", paper="hipcw2021", **nx) is None


def test_value_counts_more_than_a_bound_and_two_bounds_are_a_range(found):
    one = found("stall_s", storage="hdd", num_workers=1)
    assert (one.value, one.qualifier) == (12.1, "exact")
    two = found("gpu_util_pct", dvfs="on")
    assert two[:4] == (14.0, 34.0, "S5.5.2-04 S5.5.2-05", "range")


def test_simulation_has_seen_what_it_is_fitted_to_and_measured_numbers_nothing(found):
    assert found("e2e_s", model="resnet").seen_by_fit
    assert not found("e2e_s", model="resnet", backend="jetson").seen_by_fit
    assert not found("cpu_below_peak_time_pct", model="resnet", dvfs="on").seen_by_fit


def test_idle_state_i_is_of_the_module_and_the_others_at_the_plug(pytestconfig):
    folders = [str(pytestconfig.rootpath / name) for name in ("config/published", "config/twin")]
    marks = published_marks(*folders, "sigmetrics2023", "twin")
    assert idle_mark(marks, "agx", "g", "i", "module").value == 7.527
    assert idle_mark(marks, "agx", "g", "i", "socket") is None
    assert idle_mark(marks, "nano", "MAXN", "iv", "socket").qualifier == "less_than"
    assert idle_mark(marks, "nano", "MAXN", "iv", "module") is None


@pytest.mark.parametrize(
    ("quantity", "about", "drawn"),
    [
        ("e2e_s", {}, [("d", 10.0)]),
        ("stall_s", {"qualifier": "approx"}, [("s", 10.0)]),
        ("stall_s", {"qualifier": "less_than"}, [("v", 10.0)]),
        ("stall_s", {"qualifier": "range", "value_hi": 15.0}, [("^", 10.0), ("v", 15.0)]),
    ],
)
@pytest.mark.parametrize("seen", [True, False])
def test_mark_is_filled_where_seen_and_an_arrow_where_a_bound(quantity, about, drawn, seen):
    figure, axes = plt.subplots()
    draw_mark(axes, 1.0, plotted(quantity, seen_by_fit=seen, **about))
    assert [(line.get_marker(), float(line.get_ydata()[0])) for line in axes.lines] == drawn
    assert {line.get_markerfacecolor() for line in axes.lines} == {"#000000" if seen else "white"}
    draw_mark(axes, 1.0, Plotted({"quantity": "e2e_s", "value": 1.0}, None, ""))
    assert len(axes.lines) == len(drawn)
    plt.close(figure)


@pytest.mark.parametrize(
    ("value", "about", "off"),
    [
        (10.9, {}, 9.0),
        (8.0, {}, -20.0),
        (None, {}, None),
        (3.0, {"value": 0.0}, None),
        (5.0, {"qualifier": "less_than"}, 0.0),
        (15.0, {"qualifier": "at_most"}, 50.0),
        (5.0, {"qualifier": "at_least"}, -50.0),
        (12.0, {"value_hi": 14.0, "qualifier": "range"}, 0.0),
        (21.0, {"value_hi": 14.0, "qualifier": "range"}, 50.0),
    ],
)
def test_deviation_counts_from_the_published_number_or_the_end_of_its_range(value, about, off):
    found = plotted(ours=value, **about).cells()["deviation_pct"]
    assert found == (None if off is None else pytest.approx(off))


# -- relations ------------------------------------------------------------------------------------


def test_change_between_two_runs_is_of_their_means_after_the_first_epoch(job_of, made_up):
    alone = made_up({}, {"energy_paper_wh": 2.0}, {"energy_paper_wh": 4.0}, num_workers=0, **LENET)
    four = made_up({}, {"energy_paper_wh": 2.7}, num_workers=4, **LENET)
    infers = made_up({}, {"energy_paper_wh": 9.0}, num_workers=4, task="infer", **LENET)
    (found,) = job_of("fig02", alone, four, infers).related("energy_wh")
    assert found.here == pytest.approx((-10.0,))
    assert found.seen_by_fit
    assert found.reading() == "-5.4 %, here -10.0 %"
    assert job_of("fig02", alone, four).related("compute_s") == []
    assert job_of("fig02", alone).related("energy_wh") == []  # without one of its runs


def test_mean_of_changes_over_boards_and_shares_over_several_runs(job_of):
    relations = {relation.id: relation for relation in job_of("fig02").relations}
    e2e_s = {"agx": (10.0, 9.0), "nx": (10.0, 8.0), "nano": (10.0, 7.0)}
    means = here_of(relations["RS5.1.4-03"], lambda c, _: e2e_s[c["device"]][c["num_workers"]])
    assert means == pytest.approx((-20.0,))
    shares = relations["RS5.6.2-02"]
    assert here_of(shares, lambda config, _: float(ord(config["power_mode"]))) == (97.0, 106.0)
    assert here_of(shares, lambda config, _: None) == ()


def test_spreads_of_boards():
    boards = [np.array([9.0, 10.0, 11.0]), np.array([10.0, 10.0, 12.0]), np.array([])]
    assert spread_pct(SPREADS[1], boards) == pytest.approx((30.0,))
    assert spread_pct(SPREADS[2], boards) == pytest.approx((20.0,))
    assert spread_pct(SPREADS[2], []) == ()
    zeros = [np.array([0.0, 0.0, 1.0])]
    assert spread_pct(SPREADS[1], zeros) == spread_pct(SPREADS[2], zeros) == ()
