"""The benchmark of predictions: what it counts, and what it says of measured modes."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import measured, prediction
from benchmarks.results import REPOSITORY
from benchmarks.synthetic_truth import World
from epochwatt.board.device.kinds import KINDS
from epochwatt.prediction.data.modes import Mode, as_rows
from epochwatt.prediction.recommend.board_tables import board_of_kind
from epochwatt.prediction.recommend.recommend import Estimate
from epochwatt.twin.twin import load_twin


@pytest.fixture(scope="module")
def folder():
    return measured.FOLDER


@pytest.fixture(scope="module")
def twin():
    return load_twin(REPOSITORY / "config/twin", [])


def test_tables_and_coverage_of_made_up_answers():
    """Over all truths, modes and profilings; errors are median / 90th percentile / worst."""
    place = (prediction.NAMED_MODES, "e f i j", "time_s", "log")
    index = pd.MultiIndex.from_tuples([("twin", *place)] * 11, names=prediction.KEYS)
    others = [(*key, prediction.ALL_MODES, "e f i j", target, "log") for key in (("twin",),)
              for target in prediction.TARGETS]  # fmt: skip
    named = [("twin", *place[:2], target, "log") for target in ("power_w", "energy_wh")]
    rest = pd.MultiIndex.from_tuples([*others, *named], names=prediction.KEYS)
    errors = pd.concat([pd.Series(np.arange(11.0), index), pd.Series(1.0, rest)])
    minutes = pd.DataFrame(
        {"truth": "twin", "modes": place[0], "profiled": place[1], "minutes": [1, 3]}
    )
    held = pd.DataFrame({"target": "time_s", "method": "log", "held": [True, True, False],
                         "truth": ["twin", "other", "other"], "modes": place[0],
                         "profiled": place[1]})  # fmt: skip
    (row,) = prediction.coverage_rows(held)
    assert row.median == pytest.approx(200 / 3)
    assert not row.met
    made = prediction.simulated_tables(errors, minutes, held)
    assert made["simulated-time-named-modes"].twin.tolist() == ["5.0 / 9 / 10"]
    assert made["simulated-profiling-minutes"].twin.tolist() == ["1 / 2 / 3"]
    assert made["simulated-intervals"]["time, log"].tolist() == ["100 / 50"]


@pytest.fixture
def modes():
    return tuple(Mode(8, 1000.0, 500.0 + n, 1600.0) for n in range(10))


@pytest.mark.parametrize(
    ("true_s", "true_w", "told"),
    [
        (100.0, 9.0, (1, True, 0.9)),
        (105.0, 10.5, (1.05, True, 1.05)),
        (89.0, 9.0, (0.89, False, 0.9)),
    ],
)
def test_answers_are_held_against_the_truth(monkeypatch, modes, true_s, true_w, told):
    """Of ten modes that draw 10 W; it answers another one, with 100 s, 90 to 110."""
    answer = Mode(4, 1000.0, 900.0, 1600.0)
    asked = {}

    def recommend(board, time, power, objective, budgets):
        asked.update(budgets)
        return SimpleNamespace(mode=answer, estimates={"epoch_s": Estimate(100, 90, 110)})

    def world_of(known, new):
        return lambda rows: np.where(as_rows(rows)[:, 0] == answer.cores, new, known)

    monkeypatch.setattr(prediction, "recommend", recommend)
    world = World("one", world_of(200.0, true_s), world_of(10.0, true_w))
    board = board_of_kind(KINDS["agx_xavier"])
    bench = prediction.Bench(board, None, modes, modes[:4], [], {})
    *found, wrong_way = prediction.answer(bench, world, seed=0).values()
    assert found == pytest.approx(told, rel=0.02)
    assert 0 <= wrong_way < 0.02  # the same time in all modes, off by 1 %
    assert asked == {"power_w": pytest.approx(10, rel=0.02)}


def test_measured_modes_have_the_numbers_of_their_tables(folder):
    """Mode 0 of the generic kernel: 8 cores, MAXN, 0.12687 s, 32,986.6 mW."""
    yolo = measured.yolo(folder)["YOLOv3, generic kernel"]
    assert yolo.distinct()[0] == Mode(8, 2265.6, 1377.0, 2133.0)
    assert (yolo.time_s[0], yolo.power_w[0]) == (0.12687, 32986.6 / 1e3)
    assert len(yolo.distinct()) == 7
    assert yolo.processes == 1
    assert {of.processes for of in measured.krai(folder).values()} == {8}
    assert {len(of.distinct()) for of in measured.krai(folder).values()} == {5}


def test_simulated_power_of_a_busy_gpu_has_the_shape_of_the_measured_one(folder, twin):
    """The calibration has not seen the table: no level is asked of it, only the order."""
    prior = measured.busy_power(twin.boards["agx"], twin.parameters)
    for of in measured.without_gated_mode(measured.yolo(folder)).values():
        expected = prior(of.modes)
        assert np.corrcoef(np.log(expected), np.log(of.power_w))[0, 1] > 0.9
