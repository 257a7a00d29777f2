"""What a board's sensors would have told: rails, counters, and the energy between the readings."""

import numpy as np
import pytest

from epochwatt.board.telemetry.rails import TOTAL, ModulePower
from epochwatt.epochs.energy import trapezoid
from epochwatt.twin.model.epoch import epoch, first_cluster
from epochwatt.twin.simulation.sensors import PERIOD_S, Timeline, sources, timeline

BOARDS = ("agx", "nx", "nano", "orin")


def number(value):
    return float(np.squeeze(value))


def times_of(setting, mean, n=None):
    """Return wait, copy, compute and the rest of each mini-batch, all alike."""
    stages, n = mean.stages, n or setting.n_minibatches
    wait_s = number(mean.stall_s) / setting.n_minibatches - number(stages.copy_s)
    row = [wait_s, *(number(s) for s in (stages.copy_s, stages.compute_s, stages.loop_s))]
    return np.tile(row, (n, 1))


@pytest.fixture
def told(setting, twin):
    """Return a function that makes the samples of an epoch from 100 s on; and its time line."""

    def make(*names, seed=1, factor=1.0, n=None, **changes):
        given, p = setting(*names, **changes), twin.parameters
        mean = epoch(given, p)
        times_s = times_of(given, mean, n)
        random = np.random.default_rng(seed)
        found = sources(given, mean, times_s, 100.0, factor, random, p)
        return {s.name: s for s in found}, timeline(given, mean, times_s, factor, p)

    return make


# -- the time line -------------------------------------------------------------------------------


def test_power_is_a_step_that_counts_from_its_left_end_on():
    line = Timeline(
        np.array([0.0, 1.0, 3.0, 4.0]),
        np.array([[1.0, 0.0], [1.0, 4.0]]),
        np.array([False, True, False]),
    )
    found = line.at(np.array([0.0, 0.5, 1.0, 2.9, 3.0, 4.0]))
    assert found.sum(axis=1).tolist() == [1.0, 1.0, 5.0, 5.0, 1.0, 1.0]
    assert line.energy_j == 1.0 + 2 * 5.0 + 1.0


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize("model", ["lenet", "mobilenet", "resnet"])
def test_the_energy_of_the_time_line_is_that_of_the_closed_form(setting, twin, name, model):
    given, p = setting(name, model), twin.parameters
    mean = epoch(given, p)
    line = timeline(given, mean, times_of(given, mean), 1.0, p)
    assert line.bounds_s[-1] == pytest.approx(number(mean.e2e_s))
    assert line.energy_j == pytest.approx(3600 * number(mean.energy_wh), rel=1e-6)


# -- samples against the exact time line ---------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 4])
@pytest.mark.parametrize(
    "names", [("agx", "mobilenet"), ("nx", "mobilenet"), ("agx", "lenet"), ("nano", "lenet")]
)
def test_the_sampled_energy_agrees_with_the_exact_one(told, names, workers):
    errors, n_within = [], 0
    for seed in range(60):
        found, line = told(*names, seed=seed, num_workers=workers)
        twin = found["twin"]
        power_w = twin.values[:, twin.columns.index(TOTAL)]
        energy = trapezoid(twin.t_s, power_w, 100.0, 100.0 + line.bounds_s[-1])
        errors.append(100 * (energy.energy_j / line.energy_j - 1.0))
        n_within += abs(errors[-1]) <= energy.error_pct
        assert energy.flags == frozenset()
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(60)  # no bias
    assert np.std(errors) < 3
    assert n_within >= 54  # the bound is told to hold in 95 of 100


# -- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
def test_rails_add_up_to_the_modules_power_as_on_the_board(told, twin, name):
    found, line = told(name, "mobilenet", n=100)
    board, rows = twin.boards[name], found["twin"]
    module = ModulePower(board.kind, list(board.rails))
    assert rows.columns == module.columns
    assert rows.total == TOTAL == rows.columns[-1]
    assert rows.scope == "module"
    for row in rows.values.tolist():
        assert module.row(row[:-1])[-1] == pytest.approx(row[-1])
    assert module.contradiction is None
    exact_w = line.at(rows.t_s - 100.0).sum(axis=1)
    assert rows.values[:, -1] == pytest.approx(exact_w, rel=6 * twin.parameters["noise_reading"])
    assert len(set(rows.values[:, -1].tolist())) == rows.t_s.size  # a stuck sensor repeats itself


def test_there_are_rows_at_both_bounds_and_at_one_instant_a_period(told):
    found, line = told("agx", "lenet")
    end_s = float(line.bounds_s[-1])
    starts = []
    for source in found.values():
        t_s = source.t_s - 100.0
        assert source.period_s == PERIOD_S
        assert (t_s[0], t_s[-1]) == (0.0, pytest.approx(end_s))
        assert np.floor(t_s[1:-1] + 1e-9).tolist() == list(range(int(end_s)))
        assert (np.diff(t_s) >= 0).all()
        assert source.values.shape == (t_s.size, len(source.columns))
        starts.append(t_s[1])
    assert len(set(starts)) == 3  # each source has instants of its own


def test_counters_and_clocks_are_the_means_of_the_epoch(setting, twin, told):
    given = setting("nx", "mobilenet", medium="hdd", cold=True)
    mean = epoch(given, twin.parameters)
    found, _ = told("nx", "mobilenet", medium="hdd", cold=True)
    host = dict(zip(found["host"].columns, found["host"].values[-1], strict=True))
    board = dict(zip(found["board"].columns, found["board"].values[-1], strict=True))
    e2e_s, read_mib = number(mean.e2e_s), given.n_samples * given.samples.file_bytes / 2**20
    assert host["read_mib_s"] == pytest.approx(read_mib / e2e_s)
    assert host["read_iops"] == pytest.approx(8 * read_mib / e2e_s)  # 128 KiB a request
    assert host["cpu_util_pct"] == pytest.approx(100 * number(mean.cpu_busy_s) / e2e_s / 6)
    assert 0 < host["ram_used_mib"] <= given.board.ram_mib
    assert board["gpu_util_pct"] == pytest.approx(100 * number(mean.gpu_busy_s) / e2e_s)
    assert 0 < board["emc_util_pct"] < 100
    clocks = (host["cpu0_mhz"], board["gpu_mhz"], board["emc_mhz"])
    assert clocks == given.clocks[1:]


def test_a_cluster_is_at_its_top_while_one_of_its_cores_works(setting, twin):
    """The busier the cores, the less time a cluster is below its peak; polling does not count."""

    def below_pct(model, **changes):
        given = setting("agx", model, dvfs=True)
        mean = epoch(given, twin.parameters)._replace(**changes)
        return 100.0 * (1.0 - number(first_cluster(given, mean)[0]))

    assert below_pct("lenet", main_work_s=0.0, beside_s=0.0) == 100.0
    assert below_pct("lenet", main_work_s=1e9, beside_s=0.0) == pytest.approx(75.0)  # 2 of 8 cores
    assert below_pct("lenet", main_work_s=1e9, beside_s=1e9) == 0.0
    told = {model: below_pct(model) for model in ("lenet", "mobilenet", "resnet")}
    assert told["lenet"] < told["resnet"]
    assert told["mobilenet"] < told["resnet"] - 10.0
