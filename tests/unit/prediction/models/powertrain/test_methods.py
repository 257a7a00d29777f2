"""PowerTrain on planted worlds: where transfer must help, where it must not, what is refused."""

import json
from itertools import product

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.powertrain import methods, recipe
from epochwatt.prediction.models.powertrain.methods import (
    BY_ROW,
    CROSS_BOARD,
    KEPT_SCALER,
    LEAST_MODES,
    LOG,
    METHOD,
    PAPER_SPLIT,
    SCRATCH,
    SCRATCH_BEST,
    reference_network,
)
from epochwatt.prediction.models.powertrain.recipe import Recipe
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Reference

CORES, CPU = (2, 4, 6, 8), (500, 1000, 1500, 2200)
GPU, EMC = (150, 300, 500, 800, 1300), (600, 1100, 1600)
GRID = np.array(list(product(CORES, CPU, GPU, EMC)), float)  # 240 modes
TRANSFERS = (METHOD, PAPER_SPLIT, BY_ROW, KEPT_SCALER, CROSS_BOARD, LOG)


def law(modes):
    """Time of a mini-batch, s, with bends that a few modes do not show."""
    cores, cpu, gpu, emc = modes.T
    return np.maximum(20 / gpu, 12 / emc) + 60 / (cpu * np.minimum(cores, 5)) + 0.005


def workload(name, time_s, power_w=None, modes=GRID):
    watts = 4 + modes[:, 2] / 100 + modes[:, 1] / 400 if power_w is None else power_w
    return observations_from_rows(name, modes, time_s, watts)


REFERENCE = workload("reference", law(GRID))
ALIKE = workload("alike", 1.6 * law(GRID) * (GRID[:, 2] / 500) ** -0.1)
ANOTHER = workload("another", 0.1 * np.exp(np.random.default_rng(9).uniform(-1, 1, len(GRID))))


def errors(method, target, rows, n, seed, reference=REFERENCE):
    """Return the median error of time in the modes that were not profiled, %."""
    is_seen = np.zeros(len(rows.modes), bool)
    is_seen[np.random.default_rng(seed).choice(len(rows.modes), n, replace=False)] = True
    model = method.fit(rows.rows(is_seen), Context(target, reference=Reference(reference)))
    observed = getattr(rows, target)[~is_seen]
    return float(100 * np.median(np.abs(model.predict(rows.modes[~is_seen]) / observed - 1)))


@pytest.fixture
def quick(monkeypatch):
    """A fifth of the steps: enough where the signs matter and not the sizes."""
    monkeypatch.setattr(recipe, "ROWS_PER_MODE", 8)
    methods._trained_once.cache_clear()
    yield
    methods._trained_once.cache_clear()


def test_transfer_helps_where_workloads_differ_by_smooth_factors(quick):
    transferred = [errors(METHOD, TIME, ALIKE, 30, seed) for seed in range(3)]
    scratch = [errors(SCRATCH_BEST, TIME, ALIKE, 30, seed) for seed in range(3)]
    assert np.median(transferred) < 0.75 * np.median(scratch)


def test_transfer_does_not_help_where_workloads_have_nothing_in_common(quick):
    transferred = [errors(METHOD, TIME, ANOTHER, 30, seed) for seed in range(3)]
    scratch = [errors(SCRATCH_BEST, TIME, ANOTHER, 30, seed) for seed in range(3)]
    assert min(transferred) > 20
    assert np.median(transferred) > 0.8 * np.median(scratch)


@pytest.mark.thorough
@pytest.mark.slow
def test_over_20_seeds_transfer_helps_at_50_modes_and_the_gap_closes_at_200():
    def medians(n, n_seeds):
        return [
            np.median([errors(method, TIME, ALIKE, n, seed) for seed in range(n_seeds)])
            for method in (METHOD, SCRATCH_BEST)
        ]

    transferred, scratch = medians(50, 20)
    assert transferred < 0.8 * scratch
    by_all, by_all_scratch = medians(200, 3)
    assert by_all_scratch - by_all < 0.5 * (scratch - transferred)


@pytest.mark.parametrize("method", TRANSFERS)
@pytest.mark.parametrize("target", [pytest.param(TIME, marks=pytest.mark.thorough), POWER])
def test_stored_predictors_predict_the_same_and_fits_repeat(method, target, quick):
    context, seen = Context(target, reference=Reference(REFERENCE)), ALIKE.rows(GRID[:, 2] == 500)
    first, second = method.fit(seen, context), method.fit(seen, context)
    again = method.load(json.loads(json.dumps(first.to_json())))
    assert again.target == target
    assert first.predict(GRID).tolist() == second.predict(GRID).tolist()
    assert again.predict(GRID) == pytest.approx(first.predict(GRID), rel=1e-12)
    assert again.trained_on.tolist() == seen.modes.tolist()
    assert first.interval(GRID) is None


def test_a_reference_is_trained_once_and_read_from_its_folder(quick, tmp_path, monkeypatch):
    first = reference_network(REFERENCE, TIME, Recipe(), tmp_path)
    (path,) = tmp_path.iterdir()
    monkeypatch.setattr(methods, "train", None)  # nothing may be trained from here on
    assert reference_network(REFERENCE, TIME, Recipe(keeps_scaler=True), tmp_path) is first
    methods._trained_once.cache_clear()
    stored = reference_network(REFERENCE, TIME, Recipe(), tmp_path)
    assert stored.predict(GRID).tolist() == first.predict(GRID).tolist()
    monkeypatch.undo()
    monkeypatch.setattr(recipe, "ROWS_PER_MODE", 1)
    path.write_bytes(b"damaged")
    methods._trained_once.cache_clear()
    reference_network(REFERENCE, TIME, Recipe(), tmp_path)
    assert path.stat().st_size > 10_000


def test_modes_and_not_rows_are_split_unless_it_is_asked_for():
    def split(by_row):
        rng = np.random.default_rng(1)
        return methods._split(50, 40, recipe.CODE_FEW, by_row, rng)

    learned, validation = split(by_row=False)
    assert not set(learned) & set(validation)
    assert (len(learned), len(validation)) == (40 * 40, 10)
    learned, validation = split(by_row=True)
    assert len(set(learned) & set(validation)) > 45
    assert (len(learned), len(validation)) == (1600, 400)


def test_scalers_are_refitted_or_kept(quick):
    context, seen = Context(TIME, reference=Reference(REFERENCE)), ALIKE.rows(GRID[:, 2] > 500)
    refitted, kept = (method.fit(seen, context).network.scale for method in (METHOD, KEPT_SCALER))
    of_reference = reference_network(REFERENCE, TIME, Recipe()).scale
    assert kept.mean.tolist() == of_reference.mean.tolist()
    assert refitted.mean[2] > 1000 > of_reference.mean[2]


@pytest.mark.parametrize("method", [*TRANSFERS, SCRATCH, SCRATCH_BEST])
def test_too_few_modes_and_constant_power_are_refused(method):
    few = ALIKE.rows(np.arange(len(GRID)) < LEAST_MODES - 1)
    with pytest.raises(PredictionError, match="3 distinct power modes"):
        method.fit(few, Context(TIME, reference=Reference(REFERENCE)))
    constant = workload("flat", law(GRID), np.full(len(GRID), 7.5))
    with pytest.raises(PredictionError, match=r"power_w of 7\.5 in all 240 modes"):
        method.fit(constant, Context(POWER, reference=Reference(REFERENCE)))


def test_references_that_say_nothing_are_refused():
    def refused(reference, method=METHOD):
        with pytest.raises(PredictionError) as caught:
            method.fit(ALIKE, Context(TIME, reference=reference))
        return str(caught.value)

    assert "none was given" in refused(None)
    card = np.column_stack([*GRID.T[:2], np.full(len(GRID), 1000), np.full(len(GRID), 1000)])
    limited = np.column_stack([card, np.ones(len(GRID)), np.linspace(100, 300, len(GRID))])
    card_rows = workload("card", law(GRID), modes=limited)
    assert "nothing of gpu_mhz, emc_mhz" in refused(Reference(card_rows), CROSS_BOARD)
    assert "another board" in refused(Reference(REFERENCE, is_other_board=True))
    few = REFERENCE.rows(np.isin(np.arange(len(GRID)), (0, 16, 80, 130, 239)))
    assert "5 distinct power modes" in refused(Reference(few))


def test_another_board_teaches_where_the_method_crosses_boards(quick):
    faster = workload("another board", 0.5 * law(GRID))
    context = Context(TIME, reference=Reference(faster, is_other_board=True))
    seen = ALIKE.rows(np.arange(len(GRID)) % 8 == 0)
    predicted = CROSS_BOARD.fit(seen, context).predict(GRID)
    assert np.median(np.abs(predicted / ALIKE.time_s - 1)) < 0.25
