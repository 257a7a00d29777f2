"""A simulated run: the same each time, the closed form on average, any size, clear refusals."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import FACTORS

from epochwatt.board.telemetry.rails import TOTAL
from epochwatt.errors import EpochwattError
from epochwatt.twin.model.epoch import epoch
from epochwatt.twin.model.loader import Stages, steady_wait_s, waits_s
from epochwatt.twin.simulation import run
from epochwatt.twin.simulation.run import setting_of, simulate

CLOCKS = ("cpu_mhz", "gpu_mhz", "emc_mhz")


def number(value):
    return float(np.squeeze(value))


@pytest.fixture(scope="module")
def still(twin, quiet):
    """The simulated boards without any spread."""
    return replace(twin, parameters=quiet)


def plain(epochs):
    """Return epochs as values that can be compared."""
    return json.dumps(
        [
            [
                *(value for value in each[:-1] if not isinstance(value, np.ndarray)),
                each.times_s.tolist(),
                *([s.name, s.t_s.tolist(), s.values.tolist()] for s in each.sources),
            ]
            for each in epochs
        ]
    )


# -- the same run is the same ---------------------------------------------------------------------


def test_seeds_are_those_of_the_first_simulations():
    """A factor that is added later must not change simulated numbers: name it in `YOUNGER`."""
    assert run._seeds(FACTORS)[:6] == [178, 238, 190, 21, 124, 195]
    later = {"task": "train", "precision": "fp32", "compile": "off", "container": "none"}
    assert run._seeds({**FACTORS, **later}) == run._seeds(FACTORS)
    assert run._seeds({**FACTORS, "imported": "logs"})[:6] != [178, 238, 190, 21, 124, 195]


def test_the_same_factors_give_the_same_epochs_in_whatever_order_they_are_told(twin, factors_of):
    factors = factors_of(dataset_scale=0.05)
    mode = factors["power_mode_settings"]
    turned = {
        **dict(reversed(factors.items())),
        "power_mode_settings": dict(reversed(mode.items())),
    }
    assert plain(simulate(factors, 3, twin)) == plain(simulate(turned, 3, twin))
    assert plain(simulate(factors, 3, twin)) == plain(
        simulate(json.loads(json.dumps(factors)), 3, twin)
    )


def test_units_differ_as_the_paper_prints_it_whatever_the_run(twin, still, factors_of):
    """SIGMETRICS 2023, 5.4.2: within 1 % on AGX; NX d4 is 5.4 % slower, Nano d4 and d5 7.8 %."""
    quiet = replace(twin, parameters=still.parameters)

    def told(device, instance, seed=0):
        factors = factors_of(device, dataset_scale=0.05, instance=instance, seed=seed)
        found = simulate(factors, 1, quiet)[0]
        power = found.sources[0]
        return found.e2e_s, power.values[:, power.columns.index(TOTAL)].mean()

    for device, slow, factor in (("nx", "d4", 1.054), ("nano", "d5", 1.078)):
        assert told(device, slow)[0] == pytest.approx(factor * told(device, "d1")[0])
        assert told(device, "d2")[0] == told(device, "d1")[0]
    agx = [told("agx", f"d{n}")[0] for n in range(1, 6)]
    assert len(set(agx)) == 5
    assert 1.0 < max(agx) / min(agx) <= 1.01
    assert told("agx", "d2")[1] != told("agx", "d1")[1]
    assert told("agx", "d2", seed=5)[0] == pytest.approx(told("agx", "d2")[0])
    assert told("agx", "of my own")[0] == told("agx", "d1")[0]


# -- against the closed form ----------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 2, 4, 8])
@pytest.mark.parametrize(
    ("device", "model", "storage"),
    [
        ("agx", "lenet", "ssd"),
        ("agx", "resnet", "ssd"),
        ("nano", "lenet", "sd"),
        ("agx", "mobilenet", "hdd"),
        ("nx", "mobilenet", "hdd"),
    ],
)
def test_without_spread_events_and_closed_form_agree(
    still, factors_of, device, model, storage, workers
):
    factors = factors_of(
        device, model, storage=storage, num_workers=workers, cache_policy="dropped"
    )
    mean = epoch(setting_of(factors, still, cold=True), still.parameters)
    found = simulate(factors, 2, still)[1]
    assert found.e2e_s == pytest.approx(number(mean.e2e_s), rel=0.01)
    stall_s = found.times_s[:, :2].sum()
    assert stall_s == pytest.approx(number(mean.stall_s), abs=0.01 * found.e2e_s)
    assert found.fetch_s == pytest.approx(number(mean.fetch_s), rel=0.01)
    assert found.preprocess_s == pytest.approx(number(mean.preprocess_s), rel=0.01)


@pytest.mark.parametrize("workers", [0, 1, 2, 4, 8])
@pytest.mark.parametrize(
    ("device", "model"),
    [("agx", "lenet"), ("agx", "resnet"), ("agx", "mobilenet"), ("nx", "mobilenet")],
)
def test_with_spread_they_agree_within_two_per_cent(twin, factors_of, device, model, workers):
    factors = factors_of(device, model, storage="hdd", num_workers=workers, cache_policy="dropped")
    closed_s = number(epoch(setting_of(factors, twin, cold=True), twin.parameters).e2e_s)
    played_s = np.mean([each.e2e_s for each in simulate(factors, 4, twin)])
    assert 0.995 * closed_s < played_s < 1.02 * closed_s


def excess(twin, ratio, workers=8, n=8000):
    """Return by how much events take longer than the closed form, of 1, at a ratio of workers' time
    to the loop's, with the spread of the simulation.
    """
    sigma = twin.parameters["noise_preprocess"]
    noise = np.exp(sigma * np.random.default_rng(2).standard_normal((n, 1)) - sigma**2 / 2)
    none, rest_s = np.zeros((n, 1)), np.ones((n, 1))
    told = Stages(none, workers * ratio * noise, none, none, rest_s, none)
    mean = Stages(0.0, workers * ratio, 0.0, 0.0, 1.0, 0.0)
    played_s = waits_s(told, workers, 2, np.zeros(1)).mean() + 1.0
    return played_s / (float(steady_wait_s(mean, workers)) + 1.0) - 1.0


@settings(max_examples=40)
@given(
    device=st.sampled_from(["agx", "nx", "nano", "orin"]),
    model=st.sampled_from(["lenet", "mobilenet", "resnet"]),
    batch_size=st.integers(1, 64),
    workers=st.integers(0, 12),
    shares=st.tuples(*[st.floats(0, 1)] * 3),
    clock=st.integers(0, 2),
    higher=st.floats(0, 1),
)
def test_raising_a_clock_never_slows_a_run(
    still, factors_of, device, model, batch_size, workers, shares, clock, higher
):
    board = still.boards[device]

    def e2e_s(told):
        limits = [getattr(board, name) for name in CLOCKS]
        mhz = [low + s * (high - low) for s, (low, high) in zip(told, limits, strict=True)]
        mode = {"cores": board.cores, **dict(zip(CLOCKS, mhz, strict=True))}
        factors = factors_of(
            device,
            model,
            **{"batch_size": batch_size, "num_workers": workers, "storage": "hdd"},
            **{"dataset_scale": 0.01, "power_mode_settings": mode},
        )
        return [each.e2e_s for each in simulate(factors, 2, still)]

    raised = [*shares[:clock], shares[clock] + higher * (1 - shares[clock]), *shares[clock + 1 :]]
    for slow_s, fast_s in zip(e2e_s(shares), e2e_s(raised), strict=True):
        assert fast_s <= 1.001 * slow_s


# -- caches ---------------------------------------------------------------------------------------


def test_only_the_first_epoch_is_cold_where_the_cache_is_kept(still, factors_of):
    kept, dropped = (
        simulate(factors_of("agx", "mobilenet", storage="hdd", cache_policy=policy), 3, still)
        for policy in ("kept", "dropped")
    )
    assert [each.cached_before_pct for each in kept] == [0.0, 100.0, 100.0]
    assert [each.cached_before_pct for each in dropped] == [0.0, 0.0, 0.0]
    assert kept[1].e2e_s < 0.95 * kept[0].e2e_s
    assert kept[0].e2e_s == dropped[0].e2e_s == dropped[1].e2e_s
    assert (kept[1].fetch_s, kept[2].e2e_s) == (0.0, kept[1].e2e_s)


# -- sizes of every kind --------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 4, 16])
@pytest.mark.parametrize(
    ("scale", "batch_size"), [(0.25, 16), (0.0001, 16), (0.001, 1000), (0.001, 7), (1e-9, 64)]
)
def test_any_size_has_all_its_mini_batches(twin, factors_of, workers, scale, batch_size):
    factors = factors_of(
        "nx", "mobilenet", num_workers=workers, dataset_scale=scale, batch_size=batch_size
    )
    factors["prefetch_factor"] = 2 if workers else None
    for found in simulate(factors, 2, twin):
        assert found.n_samples == max(1, round(23080 * scale))
        assert len(found.times_s) == -(-found.n_samples // batch_size)
        assert np.isfinite(found.times_s).all()
        assert (found.times_s > 0).all()
        assert found.e2e_s > found.times_s.sum()
        for source in found.sources:
            assert (source.t_s[0], source.t_s[-1]) == (
                found.t_start_s,
                found.t_start_s + found.e2e_s,
            )


def test_governors_slow_a_run_and_tell_their_clocks(still, factors_of):
    pinned, chosen = (
        simulate(factors_of("agx", "lenet", dvfs=dvfs), 1, still)[0] for dvfs in ("off", "on")
    )
    assert chosen.e2e_s > pinned.e2e_s
    board = {s.name: s for s in chosen.sources}["board"]
    assert board.values[0, board.columns.index("gpu_mhz")] < 1377


# -- what it costs --------------------------------------------------------------------------------


def lines_run(factors, twin):
    """Return how many lines of the loader's event loop one epoch takes."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.endswith("twin/model/loader.py"):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        simulate(factors, 1, twin)
    finally:
        sys.settrace(before)
    return count


def test_work_grows_with_mini_batches_and_not_with_simulated_seconds(twin, factors_of):
    def count(**told):
        return lines_run(factors_of("agx", "resnet", **told), twin)

    one, two, four = (count(dataset_scale=scale) for scale in (0.1, 0.2, 0.4))
    assert four - two == pytest.approx(2 * (two - one), rel=0.01)
    assert count(dataset_scale=0.1, mode="gpu114") == one  # ten times as many seconds
    short, long = (
        simulate(factors_of("agx", "resnet", mode, dataset_scale=0.1), 1, twin)[0]
        for mode in ("g", "gpu114")
    )
    assert long.e2e_s > 5 * short.e2e_s
    assert long.times_s.shape == short.times_s.shape


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"device": "tx2"},
            "know no 'tx2'\n  allowed: boards agx, nx, nano, orin; networks .*lenet",
        ),
        ({"model": "alexnet"}, "know no 'alexnet'"),
        ({"dataset": "svhn"}, "know no 'svhn'.*\n.*data sets mnist, gld23k, cifar10"),
        ({"storage": "tape"}, "'tape' is simulated\n  allowed: ssd, hdd, sd, emmc"),
        ({"power_mode_settings": {"cores": 8}}, "g of agx has no cpu_mhz\n  do: "),
        (
            {"power_mode_settings": {**dict.fromkeys(CLOCKS, 5000.0), "cores": 8}},
            "cpu_mhz 5000\n  allowed: 115.2 to 2265.6",
        ),
    ],
)
def test_a_run_that_cannot_be_simulated(twin, factors_of, change, said):
    with pytest.raises(EpochwattError, match=said):
        simulate({**factors_of(), **change}, 1, twin)
