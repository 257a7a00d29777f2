"""PowerTrain: its networks, its training as torch has it, where transfer must help or must not."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models import powertrain
from epochwatt.prediction.models.powertrain import (
    BATCH,
    BY_ROW,
    CODE_FEW,
    CROSS_BOARD,
    DROPOUT,
    EPSILON,
    HIDDEN,
    KEPT_SCALER,
    LEAST_MODES,
    LOG,
    MAPE,
    METHOD,
    MSE,
    PAPER_SPLIT,
    SCRATCH,
    SCRATCH_BEST,
    Adam,
    Network,
    Parameters,
    Recipe,
    Rows,
    Scale,
    activations,
    dropout,
    gradient,
    new_last_layer,
    new_layers,
    reference_network,
    train,
)
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Reference

torch = pytest.importorskip("torch")

# -- networks --------------------------------------------------------------------------------------

MODES = np.array([[2, 800.0, 300.0, 600.0], [6, 1700.0, 900.0, 1600.0]])


@pytest.fixture(params=[False, True])
def network(request):
    scale = Scale(request.param, np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 5.0), 0.3, 0.01)
    return Network(new_layers(np.random.default_rng(1)), scale)


def test_a_stored_network_predicts_the_same_to_the_last_digit(network, tmp_path):
    network.save(tmp_path / "deep/network.npz")
    again = Network.load(tmp_path / "deep/network.npz")
    assert again.predict(MODES).tolist() == network.predict(MODES).tolist()
    data = json.dumps({name: np.asarray(a).tolist() for name, a in network.arrays().items()})
    assert (
        Network.of_arrays(json.loads(data)).predict(MODES).tolist() == again.predict(MODES).tolist()
    )


def test_scales_turn_values_into_outputs_and_back(network):
    values = np.array([0.2, 3.0])
    assert network.scale.values(network.scale.outputs(values)) == pytest.approx(values)


@pytest.mark.parametrize("content", [b"", b"PK\3\4 cut short", b"something else"])
def test_a_damaged_file_is_refused(content, tmp_path):
    (tmp_path / "network.npz").write_bytes(content)
    with pytest.raises(PredictionError, match=r"network\.npz"):
        Network.load(tmp_path / "network.npz")


def test_a_file_with_objects_is_never_executed(network, tmp_path):
    np.savez(tmp_path / "network.npz", **network.arrays() | {"mean": np.array([print], object)})
    with pytest.raises(PredictionError, match="no stored network"):
        Network.load(tmp_path / "network.npz")


def test_layers_that_do_not_fit_each_other_are_refused(network):
    first, second, *rest = network.layers
    with pytest.raises(PredictionError, match="layers"):
        Network.of_arrays(replace(network, layers=(second, first, *rest)).arrays())
    arrays = network.arrays()
    del arrays["sd"]
    with pytest.raises(PredictionError, match="sd"):
        Network.of_arrays(arrays)


# -- training --------------------------------------------------------------------------------------


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((n, 4)).astype(np.float32)
    return Rows(inputs, (5 + inputs[:, 0] + np.abs(inputs[:, 1])).astype(np.float32))


def torchs(parameters, batch, masks, loss):
    """Return the loss's slope in each parameter as torch has it, flat."""
    parts = [
        torch.tensor(part, requires_grad=True) for layer in parameters.layers for part in layer
    ]
    hidden = torch.tensor(batch.inputs)
    for place, mask in enumerate(masks):
        hidden = torch.relu(hidden @ parts[2 * place] + parts[2 * place + 1])
        hidden = hidden if mask is None else hidden * torch.tensor(mask)
    off = (hidden @ parts[-2] + parts[-1])[:, 0] - torch.tensor(batch.outputs)
    whole = (off / torch.tensor(batch.outputs)).abs() if loss == MAPE else off**2
    whole.mean().backward()
    return np.concatenate([part.grad.numpy().ravel() for part in parts])


@pytest.mark.parametrize("loss", [MSE, MAPE])
def test_gradient_is_torchs(loss):
    rng = np.random.default_rng(2)
    parameters, batch = Parameters.copy_of(new_layers(rng)), rows(BATCH)
    masks = dropout(BATCH, rng)
    slope = Parameters.copy_of(parameters.layers)
    gradient(parameters, batch, masks, loss, slope)
    assert slope.flat == pytest.approx(torchs(parameters, batch, masks, loss), rel=1e-3, abs=1e-6)


def test_adam_is_torchs():
    start = np.linspace(-1, 1, 50, dtype=np.float32)
    slopes = np.random.default_rng(3).standard_normal((20, 50)).astype(np.float32)
    ours, theirs = start.copy(), torch.tensor(start, requires_grad=True)
    adam, torchs_adam = Adam(50), torch.optim.Adam([theirs], lr=1e-3, eps=EPSILON)
    for slope in slopes:
        adam.step(ours, slope)
        theirs.grad = torch.tensor(slope)
        torchs_adam.step()
    assert ours == pytest.approx(theirs.detach().numpy(), abs=1e-6)


def test_dropout_leaves_out_its_share_and_keeps_the_mean():
    for mask, share, n_units in zip(
        dropout(4000, np.random.default_rng(4)), DROPOUT, HIDDEN, strict=True
    ):
        if not share:
            assert mask is None
            continue
        assert mask.shape == (4000, n_units)
        assert np.mean(mask == 0) == pytest.approx(share, abs=0.005)
        assert mask.mean() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("loss", [MSE, MAPE])
def test_training_learns_repeatably_and_changes_all_layers(loss):
    learned, validation = rows(320), rows(40, seed=1)
    first, second = (
        train(new_layers(rng), learned, validation, rng, loss)
        for rng in (np.random.default_rng(5), np.random.default_rng(5))
    )
    start = new_layers(np.random.default_rng(5))
    off = activations(first, validation.inputs) - validation.outputs
    assert np.abs(off).mean() < 0.15 * np.ptp(validation.outputs)
    for one, same, before in zip(first, second, start, strict=True):
        assert one.weights.tolist() == same.weights.tolist()
        assert not np.allclose(one.weights, before.weights)


def test_the_best_epoch_is_kept_where_it_is_asked_for(monkeypatch):
    reached = iter([5.0, 1.0, 3.0, 2.0] * 2)
    seen = []

    def loss(answers, some, kind):
        seen.append(answers)
        return next(reached)

    monkeypatch.setattr(powertrain, "EPOCHS", 4)
    monkeypatch.setattr(powertrain, "_loss", loss)
    learned, validation = rows(64), rows(8, seed=1)
    for keeps_best, epoch in ((True, 1), (False, 3)):
        seen.clear()
        rng = np.random.default_rng(6)
        layers = train(new_layers(rng), learned, validation, rng, MSE, keeps_best)
        assert activations(layers, validation.inputs) == pytest.approx(seen[epoch], rel=1e-4)


def test_a_new_last_layer_leaves_the_others():
    layers = new_layers(np.random.default_rng(7))
    others = new_last_layer(layers, np.random.default_rng(8))
    assert [a is b for a, b in zip(layers, others, strict=True)] == [True, True, True, False]
    assert others[-1].weights.shape == (HIDDEN[-1], 1)


# -- methods ---------------------------------------------------------------------------------------

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
    monkeypatch.setattr(powertrain, "ROWS_PER_MODE", 8)
    powertrain._NETWORKS.clear()
    yield
    powertrain._NETWORKS.clear()


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
    monkeypatch.setattr(powertrain, "train", None)  # nothing may be trained from here on
    assert reference_network(REFERENCE, TIME, Recipe(keeps_scaler=True), tmp_path) is first
    powertrain._NETWORKS.clear()
    stored = reference_network(REFERENCE, TIME, Recipe(), tmp_path)
    assert stored.predict(GRID).tolist() == first.predict(GRID).tolist()
    monkeypatch.undo()
    monkeypatch.setattr(powertrain, "ROWS_PER_MODE", 1)
    path.write_bytes(b"damaged")
    powertrain._NETWORKS.clear()
    reference_network(REFERENCE, TIME, Recipe(), tmp_path)
    assert path.stat().st_size > 10_000


def test_modes_and_not_rows_are_split_unless_it_is_asked_for():
    def split(by_row):
        rng = np.random.default_rng(1)
        return powertrain._split(50, 40, CODE_FEW, by_row, rng)

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
