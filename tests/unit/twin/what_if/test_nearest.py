"""How far a question lies from the published numbers."""

from pathlib import Path

import pytest

from epochwatt.published.numbers import load_published
from epochwatt.twin.calibration.queries import Question
from epochwatt.twin.inputs.power_modes import load_twin_with_modes
from epochwatt.twin.what_if import nearest

ROOT = Path(__file__).resolve().parents[4]
DEFAULT = Question("agx", "mobilenet", "ssd", 4, 16, "g")


@pytest.fixture(scope="module")
def published():
    return nearest.published_questions(ROOT)


@pytest.fixture(scope="module")
def twin():
    return load_twin_with_modes([], ROOT)


def test_published_questions_are_judged_rows_of_the_main_paper(published):
    facts = [fact for row in published.values() for fact in row]
    assert {fact.paper for fact in facts} == {nearest.MAIN_PAPER}
    assert "S5.2.2-04" in {fact.id for fact in published[DEFAULT]}
    assert "S5.1.2-01" not in {fact.id for fact in facts}  # a zero is not judged


def test_settings_without_a_published_number_are_listed_with_those_that_have_one(published):
    question = Question("nano", "lenet", "sd", 3, 16, "MAXN", scale=2.0)
    scope = {"device": "nano", "model": "lenet"}
    missing = nearest.unpublished(question, published, **scope)
    assert "loader workers 3 (only 0, 1, 4)" in missing
    assert "data set scale 2 (only 1)" in missing
    assert not [text for text in missing if text.startswith(("storage", "batch size", "DVFS"))]


def test_the_neighbour_differs_in_as_few_keys_as_can_be(published, twin):
    near = nearest.nearest(DEFAULT._replace(num_workers=5, dvfs="on"), published, twin)
    assert near._replace(num_workers=5, dvfs="on") == DEFAULT._replace(num_workers=5, dvfs="on")


def test_median_errors_are_of_one_board_and_of_what_was_held_out(tmp_path):
    path = tmp_path / nearest.VALIDATION
    path.parent.mkdir(parents=True)
    path.write_text(
        "published_id,class,device,held_out_error_pct\n"
        "A,time,agx,4\nB,time,agx,8\nC,time,agx,\nD,energy_power,agx,3\nE,time,nx,50\nF,share,agx,9\n"
        "G,hipcw_time,agx,99\n"
    )
    rows = nearest.validation(tmp_path)
    assert nearest.median_errors_pct(rows, "agx") == {"time": (6.0, 2), "energy_power": (3.0, 1)}


@pytest.mark.parametrize(
    ("name", "subject", "value"),
    [
        ("S5.1.1-07", "share of the data set in the page cache", "less than 6 %"),
        ("RS5.1.7-05", "energy of an epoch, change from workers 0 to workers 4", "-38.9 %"),
        ("RS5.3.1-03", "compute of a mini-batch, batch 32 over batch 16", "about 2 times"),
        ("RS5.6-03", "energy of an epoch, mode g over mode gpu114", "about 0.4 times"),
        (
            "RS5.6.2-02",
            "share of the base load (the idle board) in the energy, over mode a b c d e f g h i j",
            "about 20 to 45 %",
        ),
    ],
)
def test_published_numbers_are_described_in_words(name, subject, value):
    fact = load_published(ROOT / "config/published").facts()[name]
    assert (nearest.subject(fact), nearest.value(fact)) == (subject, value)


def test_all_published_numbers_that_may_be_shown_have_words(published):
    for facts in published.values():
        for fact in facts:
            assert fact.metric in nearest.METRICS
            assert fact.formula in ("", *nearest.FORMULAS)
