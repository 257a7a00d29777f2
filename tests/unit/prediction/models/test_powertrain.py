"""PowerTrain: training as torch has it, where transfer must help and where not, what is refused."""

from itertools import product

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models import powertrain
from epochwatt.prediction.models.powertrain import (
    BATCH,
    CROSS_BOARD,
    EPSILON,
    LEAST_MODES,
    MAPE,
    METHOD,
    MSE,
    SCRATCH,
    SCRATCH_BEST,
    Adam,
    PowerTrain,
    Recipe,
    Rows,
    activations,
    dropout,
    gradient,
    layers_of,
    new_numbers,
    reference_network,
    train,
)
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Reference

torch = pytest.importorskip("torch")

# -- training --------------------------------------------------------------------------------------


def some_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((n, 4)).astype(np.float32)
    return Rows(inputs, (5 + inputs[:, 0] + np.abs(inputs[:, 1])).astype(np.float32))


def torchs(layers, batch, masks, loss):
    """Return the loss's slope in each number as torch has it, flat."""
    parts = [torch.tensor(part, requires_grad=True) for layer in layers for part in layer]
    hidden = torch.tensor(batch.inputs)
    for number, mask in enumerate(masks):
        hidden = torch.relu(hidden @ parts[2 * number] + parts[2 * number + 1])
        hidden = hidden if mask is None else hidden * torch.tensor(mask)
    off = (hidden @ parts[-2] + parts[-1])[:, 0] - torch.tensor(batch.outputs)
    whole = (off / torch.tensor(batch.outputs)).abs() if loss == MAPE else off**2
    whole.mean().backward()
    return np.concatenate([part.grad.numpy().ravel() for part in parts])


@pytest.mark.parametrize("loss", [MSE, MAPE])
def test_gradient_is_torchs(loss):
    rng = np.random.default_rng(2)
    numbers, batch, masks = new_numbers(rng), some_rows(BATCH), dropout(BATCH, rng)
    layers, slope = layers_of(numbers.astype(np.float32)), np.zeros(len(numbers), np.float32)
    gradient(layers, batch, masks, loss, layers_of(slope))
    assert slope == pytest.approx(torchs(layers, batch, masks, loss), rel=1e-3, abs=1e-6)


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


@pytest.mark.parametrize("loss", [MSE, MAPE])
def test_training_learns_repeatably_and_changes_all_layers(loss):
    learned, validation, start = some_rows(320), some_rows(40, seed=1), new_numbers(seeded(5))
    first, second = (train(start, learned, validation, seeded(5), loss) for _ in range(2))
    off = activations(layers_of(first), validation.inputs) - validation.outputs
    assert np.abs(off).mean() < 0.15 * np.ptp(validation.outputs)
    assert first.tolist() == second.tolist()
    for layer, before in zip(layers_of(first), layers_of(start), strict=True):
        assert not np.allclose(layer.weights, before.weights)


def seeded(seed):
    return np.random.default_rng(seed)


# -- methods ---------------------------------------------------------------------------------------

CORES, CPU = (2, 4, 6, 8), (500, 1000, 1500, 2200)
GPU, EMC = (150, 300, 500, 800, 1300), (600, 1100, 1600)
GRID = np.array(list(product(CORES, CPU, GPU, EMC)), float)  # 240 modes


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
TAUGHT = Reference(REFERENCE)


def errors(method, rows, n, n_seeds=3):
    """Return the median errors of time in the modes that were not profiled, %, by draw."""
    found = []
    for seed in range(n_seeds):
        is_seen = np.zeros(len(rows.modes), bool)
        is_seen[np.random.default_rng(seed).choice(len(rows.modes), n, replace=False)] = True
        model = method.fit(rows.rows(is_seen), Context(TIME, reference=TAUGHT))
        rest = rows.rows(~is_seen)
        found.append(100 * np.median(np.abs(model.predict(rest.modes) / rest.time_s - 1)))
    return found


@pytest.fixture
def quick(monkeypatch):
    """A fifth of the steps: enough where the signs matter and not the sizes."""
    monkeypatch.setattr(powertrain, "ROWS_PER_MODE", 8)
    powertrain._NETWORKS.clear()
    yield
    powertrain._NETWORKS.clear()


@pytest.mark.thorough
def test_transfer_helps_where_workloads_differ_by_smooth_factors_alone(quick):
    alike, another = (
        [errors(method, rows, 30) for method in (METHOD, SCRATCH_BEST)] for rows in (ALIKE, ANOTHER)
    )
    assert np.median(alike[0]) < 0.75 * np.median(alike[1])
    assert min(another[0]) > 20
    assert np.median(another[0]) > 0.8 * np.median(another[1])


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


@pytest.mark.parametrize(
    "change",
    [
        {"centre": np.array([print], object)},  # never executed
        {"numbers": np.ones(7)},
        {"spread": None},
        b"PK\3\4 cut short",
    ],
)
def test_a_damaged_file_and_one_of_something_else_are_refused(change, tmp_path):
    four, path = np.ones(4), tmp_path / "deep/network.npz"
    network = PowerTrain(TIME, GRID, new_numbers(seeded(1)), False, four, four, 0.0, 1.0)
    network.save(path)
    assert PowerTrain.load(path).predict(GRID).tolist() == network.predict(GRID).tolist()
    if isinstance(change, bytes):
        path.write_bytes(change)
    else:
        np.savez(path, **{k: v for k, v in (vars(network) | change).items() if v is not None})
    with pytest.raises(PredictionError, match=r"network\.npz|stored network"):
        PowerTrain.load(path)


@pytest.mark.parametrize("method", [METHOD, SCRATCH])
def test_too_few_modes_and_constant_power_are_refused(method):
    few = ALIKE.rows(np.arange(len(GRID)) < LEAST_MODES - 1)
    with pytest.raises(PredictionError, match="3 distinct power modes"):
        method.fit(few, Context(TIME, reference=TAUGHT))
    constant = workload("flat", law(GRID), np.full(len(GRID), 7.5))
    with pytest.raises(PredictionError, match=r"power_w of 7\.5 in all 240 modes"):
        method.fit(constant, Context(POWER, reference=TAUGHT))


CARD = np.column_stack([GRID[:, :2], np.full((240, 2), 1000), np.ones(240), np.arange(100, 340)])
FEW = REFERENCE.rows(np.isin(np.arange(len(GRID)), (0, 16, 80, 130, 239)))


@pytest.mark.parametrize(
    ("reference", "method", "problem"),
    [
        (None, METHOD, "none was given"),
        (Reference(workload("card", law(GRID), modes=CARD)), CROSS_BOARD, "of gpu_mhz, emc_mhz"),
        (Reference(REFERENCE, is_other_board=True), METHOD, "another board"),
        (Reference(FEW), METHOD, "5 distinct power modes"),
    ],
)
def test_references_that_say_nothing_are_refused(reference, method, problem):
    with pytest.raises(PredictionError, match=problem):
        method.fit(ALIKE, Context(TIME, reference=reference))
