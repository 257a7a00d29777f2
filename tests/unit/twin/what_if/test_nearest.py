"""How far a question lies from the published numbers."""

from pathlib import Path

import pytest

from epochwatt.twin.calibration.power_modes import load_modes
from epochwatt.twin.calibration.queries import Question
from epochwatt.twin.what_if import nearest

ROOT = Path(__file__).resolve().parents[4]
DEFAULT = Question("agx", "mobilenet", "ssd", 4, 16, "g")


@pytest.fixture(scope="module")
def asked():
    return nearest.published_questions(ROOT)


@pytest.fixture(scope="module")
def modes():
    return load_modes(["agx", "nx", "nano", "orin"], ROOT)


def test_published_questions_are_judged_rows_of_the_main_paper(asked):
    facts = [fact for each in asked.values() for fact in each]
    assert {fact.paper for fact in facts} == {nearest.MAIN_PAPER}
    assert "S5.2.2-04" in {fact.id for fact in asked[DEFAULT]}
    assert "S5.1.2-01" not in {fact.id for fact in facts}  # a zero is not judged


def test_the_values_of_a_key_are_those_of_board_and_model(asked):
    assert nearest.values("num_workers", asked, device="nano", model="lenet") == [0, 1, 4]
    assert {"nx", "agx"} <= set(nearest.values("device", asked))
    assert nearest.values("model", asked, device="nano", model="vgg11") == []


def test_a_published_question_is_its_own_neighbour(asked, modes):
    found = nearest.nearest(DEFAULT, asked, modes)
    assert (found.question, found.differs) == (DEFAULT, ())
    assert found.facts == asked[DEFAULT]


def test_the_neighbour_differs_in_as_few_keys_as_can_be(asked, modes):
    found = nearest.nearest(DEFAULT._replace(num_workers=5, dvfs="on"), asked, modes)
    assert found.question.model == "mobilenet"
    assert set(found.differs) <= {"num_workers", "dvfs"}


def test_another_network_counts_most_and_another_board_is_none(asked, modes):
    unknown = nearest.nearest(DEFAULT._replace(model="generic"), asked, modes)
    assert unknown.differs == ("model",)
    assert unknown.question.device == "agx"
    assert nearest.nearest(DEFAULT._replace(device="other"), asked, modes) is None


def test_orin_rests_on_assumptions_only(asked):
    found = {d: nearest.only_assumed(d, asked, ROOT) for d in ("agx", "nx", "nano", "orin")}
    assert found == {"agx": False, "nx": False, "nano": False, "orin": True}


def test_without_a_cross_validation_there_are_no_rows(tmp_path):
    assert nearest.validation(tmp_path) == []


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
