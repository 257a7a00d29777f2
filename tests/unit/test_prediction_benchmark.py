"""The benchmark of predictions: what it counts, and what it says of measured modes."""

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import measured, prediction
from benchmarks.results import REPOSITORY, Result
from epochwatt.prediction.modes import Mode
from epochwatt.prediction.scoring import Priors
from epochwatt.twin.load import load_twin


@pytest.fixture(scope="module")
def folder():
    if not measured.FOLDER.is_dir():
        pytest.skip(f"no {measured.FOLDER} beside the repository")
    return measured.FOLDER


@pytest.fixture(scope="module")
def twin():
    return load_twin(REPOSITORY / "config/twin", {})


def test_share_inside_equals_the_one_worked_out_by_hand():
    """Of 0 to 100 the middle nine tenths are 5 to 95: they hold two of four values."""
    sample = np.repeat(np.arange(101.0)[:, None], 4, axis=1)
    assert prediction._inside(sample, np.array([4.0, 5.0, 95.0, 96.0])) == (2, 4)


def test_coverage_is_judged_at_equal_cost_over_all_truths():
    held = {
        ("twin", "all", "random", "time_s", "log"): (9, 10),
        ("other", "all", "e f i j", "time_s", "log"): (8, 10),
        ("other", "all", "chosen, at any cost", "time_s", "log"): (0, 10),
    }
    (row,) = prediction._rows(held)
    assert row.values == [85.0]
    assert row.met


def test_error_of_a_line_is_median_p90_and_worst():
    line = prediction.Line("twin", "all", "random", "time_s", "log", np.arange(11.0), (1.0,))
    assert line.cell() == "5.0 / 9 / 10"


def test_training_modes_are_not_tested(modes):
    split = prediction._split(modes[:4], modes)
    assert split.train == modes[:4]
    assert split.test == modes[4:]


@pytest.fixture
def modes():
    return tuple(Mode(8, 1000.0, 500.0 + n, 1600.0) for n in range(10))


def test_prior_is_worked_out_once_for_each_mode(modes):
    asked = []

    def prior(rows):
        asked.extend(rows.tolist())
        return rows[:, 2]

    remembered = prediction._remembered(Priors(prior, prior)).power
    for _ in range(2):
        assert remembered(np.array(modes)).tolist() == [mode.gpu_mhz for mode in modes]
    assert len(asked) == len(modes)


def test_measured_modes_are_skipped_with_a_sentence(twin, tmp_path):
    told = prediction.measured_text(twin, tmp_path / "none")
    assert told == ["", f"Measured by others: skipped, there is no folder {tmp_path / 'none'}."]


def test_command_hands_the_folder_on(monkeypatch, capsys, tmp_path):
    told = []

    def run(quick, folder):
        told.append((quick, folder))
        return Result([])

    monkeypatch.setattr(prediction, "run", run)
    assert command.main(["prediction", "--quick", "--measured", str(tmp_path)]) == 0
    assert command.main(["prediction", "--quick"]) == 0
    assert told == [(True, tmp_path), (True, measured.FOLDER)]


def test_measured_modes_have_the_numbers_of_their_tables(folder):
    """Mode 0 of the generic kernel: 8 cores, MAXN, 0.12687 s, 32,986.6 mW."""
    yolo = measured.yolo(folder)["YOLOv3, generic kernel"]
    assert yolo.distinct()[0] == Mode(8, 2265.6, 1377.0, 2133.0)
    assert (yolo.time_s[0], yolo.power_w[0]) == (0.12687, 32986.6 / 1e3)
    assert len(yolo.distinct()) == 7
    assert {len(of.distinct()) for of in measured.krai(folder).values()} == {5}
    assert {len(of.distinct()) for of in measured.tx2(folder).values()} == {52}


def test_mode_of_10_w_is_read_in_three_ways(folder):
    listed = measured.yolo(folder)
    six, halved = measured.without_gated_mode(listed), measured.with_half_the_clock(listed)
    assert {len(of.distinct()) for of in six.values()} == {6}
    clocks = [of.modes[:, 2].min() for of in (*listed.values(), *halved.values())]
    assert clocks == [522.0, 522.0, 261.0, 261.0]


def test_simulated_power_of_a_busy_gpu_has_the_shape_of_the_measured_one(folder, twin):
    """The calibration has not seen the table: no level is asked of it, only the order."""
    prior = measured.busy_power(twin.boards["agx"], twin.parameters)
    for of in measured.without_gated_mode(measured.yolo(folder)).values():
        expected = prior(of.modes)
        assert np.corrcoef(np.log(expected), np.log(of.power_w))[0, 1] > 0.9


def test_tables_of_measured_modes_say_what_they_are(folder, twin):
    text = "\n".join(prediction.measured_text(twin, folder))
    assert "inference, not training" in text
    for name in ("YOLOv3, rt kernel, 6 modes", "YOLOv3, rt kernel, halved", "TX2, vgg19"):
        assert f"| {name} | all but one" in text
