"""Which published changes are red: those that a claim of the panel fails by, and no others."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import same_color

from epochwatt.figures.common.brackets import Bracket, draw_brackets
from epochwatt.figures.common.failing import LABEL, failing, handle, redden, unsized

RED, BLACK = "#B2182B", "#000000"


@pytest.fixture
def modes(job_of, made_up):
    """Return a function that gives the job of Fig. 9, of LeNet with a time of an epoch by mode."""

    def make(**e2e_s):
        paths = [
            made_up({}, {"e2e_s": s}, power_mode=mode, setup="sigmetrics2023")
            for mode, s in e2e_s.items()
        ]
        return job_of("fig09", *paths)

    return make


def wrong(job):
    """Return the modes of the changes of E2E that fail; the claim asks for -13.5 % from d to e."""
    found = failing(job, "fig09a", job.related("e2e_s"), job.epoch_table())
    return [[side["power_mode"] for side in one.relation.sides] for one in found]


def test_a_change_that_a_claim_fails_by_is_wrong(modes):
    assert wrong(modes(d=100.0, e=98.0)) == [["d", "e"]]


def test_a_change_that_its_claim_bears_out_is_not(modes):
    assert wrong(modes(d=100.0, e=75.0)) == []


def test_nothing_is_wrong_where_a_run_is_missing(modes):
    job = modes(d=100.0)
    assert job.related("e2e_s") == []
    assert wrong(job) == []


def test_a_change_that_no_claim_of_the_panel_is_of_stays_as_it_is(modes):
    job = modes(d=100.0, e=98.0)
    job.panels["fig09a"]["claims"] = ["T5.6.4a"]
    assert wrong(job) == []


@pytest.fixture
def axes():
    figure, axes = plt.subplots(layout="constrained")
    axes.bar([0, 1, 2], [3.0, 2.0, 1.0])
    yield axes
    plt.close(figure)


def test_bracket_of_a_wrong_change_gets_red_with_its_text_and_no_other(modes, axes):
    job = modes(d=100.0, e=98.0)
    (change,) = job.related("e2e_s")
    brackets = [
        Bracket(0, 1, [f"E2E {change.sentence}"], True),
        Bracket(1, 2, ["E2E -1 %, here -2.0 %"], True),
    ]
    draw_brackets(axes, brackets, BLACK)
    redden(axes, brackets, [change], RED)
    colours = {line.get_xdata()[0]: line.get_color() for line in axes.lines}
    assert same_color(colours[0], RED)
    assert same_color(colours[1], BLACK)
    texts = {" ".join(text.get_text().split()): text.get_color() for text in axes.texts}
    assert texts == {f"E2E {change.sentence}": RED, "E2E -1 %, here -2.0 %": BLACK}


def test_legend_says_what_red_is():
    entry = handle(RED)
    assert entry.get_label() == LABEL
    assert same_color(entry.get_facecolor(), RED)


def test_a_change_of_which_a_claim_asks_for_the_printed_size_or_more_is_not_sized(modes):
    job = modes(d=100.0, e=75.0, f=90.0)
    assert unsized(job, "fig09a", job.related("e2e_s")) == {"RS5.6.5-04"}


def test_a_printed_bound_and_a_printed_size_that_claims_ask_for_are_sized(modes):
    job = modes(m=100.0, g=99.0, e=90.0, f=95.0)
    changes = job.related("compute_s")
    assert {"RS5.6.6-12", "RS5.6.6-04"} <= {one.relation.id for one in changes}
    assert unsized(job, "fig09a", changes) == set()
    job.panels["fig09a"]["claims"] = []
    assert "RS5.6.6-12" in unsized(job, "fig09a", changes)
