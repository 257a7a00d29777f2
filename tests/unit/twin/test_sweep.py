"""Sweeps without events: what the events give on average, for any number of modes."""

import numpy as np
import pytest

from epochwatt.errors import EpochwattError
from epochwatt.twin.boards import number
from epochwatt.twin.epoch import epoch
from epochwatt.twin.run import setting_of, simulate, timeline
from epochwatt.twin.sweep import AGREE, AGREE_BALANCED, BALANCED, simulate_sweep

CLOCKS = ("cpu_mhz", "gpu_mhz", "emc_mhz")
DEVICES = ("agx", "nx", "nano", "orin")
MODELS = ("lenet", "mobilenet", "resnet")
N_MODES, EPOCHS = 20, 3


def random_modes(board, random, n):
    """Return n modes of a board, shape (n, 5); the simulation takes any clock between the ends."""
    clocks = [random.uniform(*getattr(board, name), n) for name in CLOCKS]
    return np.column_stack([random.integers(1, board.cores + 1, n), *clocks, np.ones(n)])


def in_mode(factors, mode):
    """Return a run's factors in another mode."""
    return {**factors, "power_mode_settings": dict(zip(("cores", *CLOCKS), mode, strict=False))}


def random_factors(factors_of, random):
    """Return a workload: medium, workers and mini-batch size as well."""
    return factors_of(
        device=str(random.choice(DEVICES)),
        model=str(random.choice(MODELS)),
        storage=str(random.choice(["ssd", "hdd", "sd"])),
        num_workers=int(random.choice([0, 4])),
        batch_size=int(random.choice([1, 4, 16, 32])),
        instance=str(random.choice(["d1", "d4"])),
        setup="",
    )


def of_events(factors, twin):
    """Return mean time and power of the steady mini-batches of a run's later epochs.

    Left out: the first ones, which the workers prepared before the loop came, and the last one,
    which may be smaller; whole rounds of the workers count. Power is that of the exact time line.
    """
    setting = setting_of(factors, twin)
    mean, workers = epoch(setting, twin.parameters), factors["num_workers"]
    means = []
    for each in simulate(factors, EPOCHS, twin)[1:]:
        n, first = len(each.times_s), 4 * workers
        last = n - 1 - (n - 1 - first) % max(workers, 1)
        rest = np.full(n, (each.e2e_s - each.times_s.sum()) / n)
        times_s = np.column_stack([each.times_s, rest])
        line = timeline(setting, mean, times_s, 1.0, twin.parameters)
        watts = line.parts_w.sum(axis=1)[line.computing.astype(int)].reshape(n, 4)
        steady_s = times_s[first:last]
        energy_j = (steady_s * watts[first:last]).sum()
        means.append((steady_s.sum() / (last - first), energy_j / steady_s.sum()))
    return np.mean(means, axis=0)


def is_balanced(setting, p):
    """Say whether the workers prepare mini-batches about as fast as the loop takes them."""
    stages = epoch(setting, p).stages
    prepared = number(stages.fetch_s + stages.preprocess_s) / max(number(setting.num_workers), 1)
    own = number(stages.handover_s + stages.copy_s + stages.compute_s + stages.loop_s)
    return bool(setting.num_workers) and abs(prepared / own - 1) < BALANCED


def test_as_the_events_have_it_in_random_modes(twin, factors_of):
    random = np.random.default_rng(17)
    seen = set()
    for _ in range(N_MODES):
        factors = random_factors(factors_of, random)
        board = twin.boards[factors["device"]]
        (mode,) = random_modes(board, random, 1)
        swept = simulate_sweep(np.array([mode]), factors, twin, twin.parameters)
        factors = in_mode(factors, mode)
        time_s, power_w = of_events(factors, twin)
        close = AGREE_BALANCED if is_balanced(setting_of(factors, twin), twin.parameters) else AGREE
        unit_power = board.units.get(factors["instance"], (1.0, 1.0))[1]
        assert swept.time_s[0] == pytest.approx(time_s, rel=close), factors
        assert swept.power_w[0] == pytest.approx(unit_power * power_w, rel=close), factors
        seen.add(factors["device"])
    assert seen == set(DEVICES)


def test_any_number_of_modes_at_once_is_each_by_itself(twin, factors_of):
    modes = random_modes(twin.boards["nx"], np.random.default_rng(5), 600)
    factors = factors_of(device="nx")
    swept = simulate_sweep(modes, factors, twin, twin.parameters)
    assert swept.time_s.shape == swept.power_w.shape == (600,)
    for i in (0, 255, 256, 599):
        one = simulate_sweep(modes[i : i + 1], factors, twin, twin.parameters)
        assert (one.time_s[0], one.power_w[0]) == (swept.time_s[i], swept.power_w[i])


@pytest.mark.parametrize(
    ("rows", "changes", "problem"),
    [
        ([[8, 2000, 1000, 2000, 0.5]], {}, "has its whole GPU on"),
        (np.empty((0, 5)), {}, r"modes of shape \(0, 5\)"),
        ([[9, 2000, 1000, 2000, 1]], {}, "cannot have cores 9"),
        ([[8, 2000, 1000, 2000, 1]], {"device": "tx3"}, "know no 'tx3'"),
        ([[8, 2000, 1000, 2000, 1]], {"precision": "fp16"}, "precision fp16 is not simulated"),
    ],
)
def test_what_is_not_simulated_is_refused(twin, factors_of, rows, changes, problem):
    with pytest.raises(EpochwattError, match=problem):
        simulate_sweep(np.array(rows, float), {**factors_of(), **changes}, twin, twin.parameters)
