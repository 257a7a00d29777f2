"""Errors of models on modes they have not seen, and what the profiling costs."""

import numpy as np
import pytest

from benchmarks import measured
from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.data.observations import of_rows
from epochwatt.prediction.evaluation.cross_validation import (
    ENERGY_FITS,
    POWER_FITS,
    TIME_FITS,
    Priors,
    board_minutes,
    each,
    fits_with_priors,
    known_at,
    mape_pct,
    score,
    try_splits,
)
from epochwatt.prediction.evaluation.splits import leave_one_mode_out, random_subsets, split
from epochwatt.prediction.models.features import POWER
from epochwatt.prediction.models.intervals import coverage
from epochwatt.prediction.models.paper_time import fit_paper_time
from epochwatt.prediction.models.physical import fit_physical_time, fit_power

SHARES = (0.5, 0.25, 0.15, 0.1, 0.0)


@pytest.fixture
def epochs(plant, modes):
    """Three epochs of each mode; the first takes twice the time of the others. With power."""
    times = plant(SHARES).time_s
    watts = plant((0.1, 0.3, 0.1, 0.1, 0.1, 0.3), terms=POWER, whole=25).power_w
    n = len(modes)
    return of_rows(
        "resnet",
        modes * 3,
        [*(2 * times), *times, *times],
        [*watts, *watts, *watts],
        [0] * n + [1] * n + [2] * n,
    )


def test_mape_equals_the_one_worked_out_by_hand():
    """90 for 100 is 10 %, 30 for 20 is 50 %, 40 for 40 is none: 20 % on average."""
    assert mape_pct([90, 30, 40], [100, 20, 40]) == pytest.approx(20)


def test_score_equals_the_one_worked_out_by_hand():
    """Of 0, 1, ..., 10 the median is 5, nine tenths lie at or below 9, the worst is 10."""
    assert score(range(11)) == (11, 5.0, 9.0, 10.0)
    with pytest.raises(PredictionError, match="no prediction"):
        score([])


def test_cost_counts_the_first_epochs(epochs, efij):
    expected = 4 * epochs.only(efij).after_first(1).time_s.sum() / 60
    assert board_minutes(epochs, efij) == pytest.approx(expected)


def test_model_sees_the_later_epochs_of_the_training_modes_only(epochs, modes, efij):
    seen = []

    def fit(of):
        seen.append(of)
        return fit_paper_time(of)

    (trial,) = try_splits(each(fit), [epochs], [split(modes, efij)], "time_s")
    assert set(seen[0].distinct()) == set(efij)
    assert seen[0].epoch.min() == 1
    assert trial.workload == "resnet"
    assert len(trial.errors_pct) == 6
    test = epochs.only(set(modes) - set(efij)).after_first().per_mode()
    predicted = fit_paper_time(seen[0]).predict(test.modes)
    assert trial.errors_pct == pytest.approx(100 * abs(predicted / test.time_s - 1))


@pytest.mark.parametrize(
    ("target", "fits"),
    [("time_s", TIME_FITS), ("power_w", POWER_FITS), ("energy_wh", ENERGY_FITS)],
)
def test_physical_models_are_nearest_in_a_physical_world(epochs, modes, target, fits):
    splits = random_subsets(modes, 5, 12, seed=0)
    medians = {
        name: np.median(
            np.concatenate([t.errors_pct for t in try_splits(fit, [epochs], splits, target)])
        )
        for name, fit in fits.items()
    }
    assert min(medians, key=medians.get).startswith("physical")


def test_what_is_expected_up_to_a_factor_is_learned_from_one_mode(epochs, modes):
    """The prior has the shape of the truth, at another level."""
    truth = dict(
        zip(epochs.per_mode().distinct(), epochs.after_first().per_mode().time_s, strict=True)
    )
    watts = dict(zip(epochs.per_mode().distinct(), epochs.per_mode().power_w, strict=True))
    priors = Priors(
        lambda rows: 3 * np.array([truth[Mode(*row)] for row in rows.tolist()]),
        lambda rows: np.array([watts[Mode(*row)] for row in rows.tolist()]) / 2,
    )
    fits = fits_with_priors({"resnet": priors}, simulated=True)
    for target, on_prior in fits.items():
        name = next(name for name in on_prior if "prior" in name)
        trials = try_splits(on_prior[name], [epochs], [split(modes, modes[:1])], target)
        assert trials[0].errors_pct == pytest.approx(np.zeros(9), abs=1e-9)


def test_gains_on_simulated_truth_are_called_so():
    priors = {"resnet": Priors(np.ones_like, np.ones_like)}
    for simulated in (True, False):
        fits = fits_with_priors(priors, simulated)
        on_prior = [name for of in fits.values() for name in of if "prior" in name]
        assert len(on_prior) == 3
        assert [name.endswith("by construction") for name in on_prior] == [simulated] * 3


def test_without_a_prior_of_time_the_physical_model_tells_it(epochs, modes, efij):
    watts = dict(zip(epochs.per_mode().distinct(), epochs.per_mode().power_w, strict=True))
    prior = Priors(None, lambda rows: np.array([watts[Mode(*row)] for row in rows.tolist()]))
    fits = fits_with_priors({"resnet": prior}, simulated=False)
    assert list(fits["time_s"]) == list(TIME_FITS)
    (energy,) = try_splits(
        fits["energy_wh"]["time x power on the twin's prior"],
        [epochs],
        [split(modes, efij)],
        "energy_wh",
    )
    (time,) = try_splits(TIME_FITS["physical"], [epochs], [split(modes, efij)], "time_s")
    assert energy.errors_pct == pytest.approx(time.errors_pct, rel=1e-3)


def shown(fits, tables, splits_of, target):
    """Print each model's errors; return them."""
    scores = {}
    for name, of in tables.items():
        for model, fit in fits.items():
            trials = try_splits(fit, [of], splits_of(of.distinct()), target)
            scores[name, model] = told = score(np.concatenate([t.errors_pct for t in trials]))
            print(
                f"{target} {name:24} {model:34} n {told.n:4} median {told.median_pct:6.1f} "
                f"p90 {told.p90_pct:6.1f} worst {told.worst_pct:6.1f} %"
            )
    return scores


def held(tables, fit, splits_of):
    """Print how many modes the intervals of 90 % hold."""
    for name, of in tables.items():
        n_held, n_modes = coverage(fit, of, splits_of(of.distinct()))
        print(f"{name:24} {fit.__name__}: intervals of 90 % hold {n_held} of {n_modes}")


def test_real_modes_of_agx_xavier_left_out_one_by_one(yolo):
    """Inference, not training: YOLOv3 on AGX Xavier in its seven stock modes."""
    comparable = measured.without_gated_mode(yolo) | measured.with_gpu_share(yolo)
    tables = yolo | comparable
    scores = shown(TIME_FITS, tables, leave_one_mode_out, "time_s")
    shown(POWER_FITS, tables, leave_one_mode_out, "power_w")
    energy = shown(ENERGY_FITS, tables, leave_one_mode_out, "energy_wh")
    held(tables, fit_physical_time, leave_one_mode_out)
    held(tables, fit_power, leave_one_mode_out)
    for name in comparable:
        assert scores[name, "physical"].median_pct < scores[name, "paper"].median_pct / 2
        assert scores[name, "physical"].median_pct < 5
        ours, papers = "physical time x power", "paper, trained on predicted time"
        assert energy[name, ours].median_pct < energy[name, papers].median_pct


def test_real_modes_of_a_cpu(krai):
    """Inference on the CPU alone: the clocks of the GPU do nothing and move with the others."""
    scores = shown(TIME_FITS, krai, leave_one_mode_out, "time_s")
    assert all(told.n == 5 for told in scores.values())
    found = {key: (told.median_pct, told.worst_pct) for key, told in scores.items()}
    expected = {  # as in docs/explanation/prediction-accuracy.md
        ("ResNet-50, armnn", "paper"): (13.1, 140.3),
        ("ResNet-50, armnn", "log"): (5.8, 43.1),
        ("ResNet-50, armnn", "physical"): (5.8, 57.2),
        ("ResNet-50, tflite", "paper"): (18.0, 178.8),
        ("ResNet-50, tflite", "log"): (9.0, 34.7),
        ("ResNet-50, tflite", "physical"): (7.8, 50.9),
    }
    assert found.keys() == expected.keys()
    for key, (median, worst) in expected.items():
        assert found[key] == pytest.approx((median, worst), abs=0.06), key


def test_prior_that_is_known_is_worked_out_once(modes):
    asked = []

    def prior(rows):
        asked.append(len(rows))
        return rows[:, 2]

    rows = np.array(modes, float)
    known = known_at(Priors(None, prior), rows)
    assert known.time is None
    for some in (modes[3:5], modes[::-1]):
        assert known.power(np.array(some, float)).tolist() == [mode.gpu_mhz for mode in some]
    assert asked == [10]


def test_real_clocks_of_tx2(tx2):
    """Inference, not training: three networks on TX2, from four of 52 GPU and memory clocks."""
    scores = shown(TIME_FITS, tx2, leave_one_mode_out, "time_s")
    few = shown(TIME_FITS, tx2, lambda modes: random_subsets(modes, 4, 20, 0), "time_s")
    held(tx2, fit_physical_time, lambda modes: random_subsets(modes, 4, 5, 0))
    for name in tx2:
        assert scores[name, "physical"].median_pct < 10
        assert few[name, "physical"].median_pct < few[name, "paper"].median_pct / 3
