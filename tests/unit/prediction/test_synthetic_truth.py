"""Truths to try models on: seeded, physical, and of two kinds that share nothing."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import synthetic_truth as worlds
from benchmarks.synthetic_truth import SHARES, observed, of_another_kind, of_the_twin
from epochwatt.counting.count_workload import write_workload
from epochwatt.prediction.data.modes import Mode, as_rows
from epochwatt.twin.inputs.twin import load_twin
from epochwatt.twin.validation.cross_validation_fits import load_refits

STRONGEST = Mode(8, 2265.6, 1377, 2133)
LENET = {
    **{"device": "agx", "model": "lenet", "dataset": "mnist", "storage": "ssd", "num_workers": 4},
    **{"batch_size": 16, "dataset_scale": 1.0, "cache_policy": "kept"},
}
CLOCKS = st.tuples(
    st.integers(1, 8), st.floats(115, 2265.6), st.floats(114, 1377), st.floats(204, 2133)
)


@pytest.fixture(scope="module")
def twin(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("counts") / "lenet.json"
    write_workload({"model": "lenet"}, str(path))
    return load_twin(request.config.rootpath / "config/twin", [str(path)])


@pytest.fixture(scope="module")
def refits(request, twin):
    return load_refits(request.config.rootpath / "config/twin", twin.parameters)


def by_hand(drawn, mode):
    """Return time and power of one mode, written out with numbers."""
    x = [mode.gpu_mhz / 1377, mode.emc_mhz / 2133, mode.cpu_mhz / 2265.6]

    def queueing(cores):
        return (1 + (5 / cores) ** drawn.queue) ** (1 / drawn.queue)

    parts = [
        share * (clock + k) / (clock * (1 + k))
        for share, clock, k in zip(drawn.shares, x, drawn.saturation, strict=True)
    ]
    parts[2] *= queueing(mode.cores) / queueing(8)
    time = sum(part**drawn.overlap for part in parts) ** (1 / drawn.overlap) + drawn.fixed
    dynamic = sum(
        watts * part / time * clock**a
        for watts, part, clock, a in zip(drawn.watts, parts, x, drawn.exponents, strict=True)
    )
    return time, dynamic


def test_another_kind_is_the_equations_of_its_docstring():
    drawn = worlds._Drawn(
        shares=np.array([0.5, 0.2, 0.3]),
        saturation=np.array([2.0, 10.0, 5.0]),
        queue=2.0,
        overlap=3.0,
        fixed=0.05,
        whole_s=100.0,
        watts=np.array([15.0, 3.0, 5.0]),
        exponents=np.array([2.0, 1.0, 2.5]),
        base_w=4.0,
        leak=0.1,
    )
    mode = Mode(2, 1190.4, 675.75, 1331.2)
    (time, dynamic), (_, at_best) = by_hand(drawn, mode), by_hand(drawn, STRONGEST)
    rows = as_rows([mode])
    assert worlds._relative_time(drawn, STRONGEST, rows)[0] == pytest.approx([time])
    power_w = 4 + dynamic * (1 + 0.1 * dynamic / at_best)
    assert worlds._power_w(drawn, STRONGEST, rows) == pytest.approx([power_w])


@given(CLOCKS, CLOCKS, st.sampled_from(sorted(SHARES)), st.integers(0, 50))
def test_more_of_everything_is_never_slower(one, other, network, seed):
    ((world,),) = of_another_kind([network], STRONGEST, 1, seed)
    less, more = np.minimum(one, other), np.maximum(one, other)
    slow_s, fast_s = world.time(as_rows([less, more]))
    assert slow_s >= fast_s * (1 - 1e-12)
    assert (world.power(as_rows([less, more])) > 0).all()


def test_another_kind_shares_no_equation():
    """Neither the simulated boards' nor the models' terms are within its reach."""
    tree = ast.parse(Path(worlds.__file__).read_text("utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported.isdisjoint(
        {"epochwatt.prediction.models.features", "epochwatt.twin.model.epoch"}
    )
    own = {"_world", "_relative_time", "_clocks", "_queueing", "_power_w"}
    used = {
        name.id
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in own
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    }
    assert used.isdisjoint({"priors", "parameter_draws"})


def test_same_seed_gives_the_same_world_another_one_another(modes):
    rows = as_rows(modes)
    again = [of_another_kind(["lenet"], STRONGEST, 2, seed) for seed in (3, 3, 4)]
    times = [[world.time(rows).tolist() for (world,) in draws] for draws in again]
    assert times[0] == times[1]
    assert times[0][0] != times[0][1]
    assert times[0] != times[2]


def test_worlds_of_the_twin_spread_as_the_folds_do(twin, refits, modes):
    rows = as_rows(modes)

    def times(widened):
        draws = of_the_twin([LENET], twin, refits, 12, 0, widened)
        return np.log([world.time(rows) for (world,) in draws])

    nothing, once, thrice = times(0.0), times(1.0), times(3.0)
    assert np.ptp(nothing, axis=0) == pytest.approx(np.zeros(len(modes)), abs=1e-12)
    assert (once.std(0) > 0).all()
    assert (thrice.std(0) > 2 * once.std(0)).all()


def test_epochs_are_off_by_about_one_per_cent(modes):
    ((world,),) = of_another_kind(["resnet"], STRONGEST, 1, 0)
    seen = observed(world, modes, 200, 0)
    off = np.log(seen.time_s / np.repeat(world.time(as_rows(modes)), 200))
    assert off.std() == pytest.approx(0.01, rel=0.05)
    assert abs(off.mean()) < 4 * 0.01 / math.sqrt(len(off))
    assert seen.epoch.tolist()[:3] == [0, 1, 2]
    assert (observed(world, modes, 200, 0).time_s == seen.time_s).all()
    assert (observed(world, modes, 200, 1).time_s != seen.time_s).all()
