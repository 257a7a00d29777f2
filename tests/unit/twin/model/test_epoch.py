"""An epoch in closed form: what it is made of, what it follows, and regimes nobody typed in."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.numbers import Clocks
from epochwatt.twin.model.epoch import epoch

BOARDS = ("agx", "nx", "nano", "orin")
MODELS = ("lenet", "mobilenet", "resnet")
CLOCKS = ("cpu_mhz", "gpu_mhz", "emc_mhz")
MEDIA = ("ssd", "hdd", "sd", "emmc")


def number(value):
    return float(np.squeeze(value))


def at_shares(setting, shares):
    """Return a setting with each clock at a share of its range, of 1."""
    board = setting.board
    limits = [getattr(board, clock) for clock in CLOCKS]
    mhz = [low + share * (high - low) for share, (low, high) in zip(shares, limits, strict=True)]
    return replace(setting, clocks=Clocks(board.cores, *mhz))


SETTINGS = {
    "device": st.sampled_from(BOARDS),
    "model": st.sampled_from(MODELS),
    "medium": st.sampled_from(MEDIA),
    "batch_size": st.integers(1, 64),
    "num_workers": st.integers(0, 16),
    "cold": st.booleans(),
}
SHARES = st.tuples(*[st.floats(0, 1)] * 3)


@given(**SETTINGS, shares=SHARES, clock=st.integers(0, 2), higher=st.floats(0, 1))
def test_raising_a_clock_never_slows_an_epoch(setting, quiet, shares, clock, higher, **keys):
    raised = list(shares)
    raised[clock] += higher * (1.0 - shares[clock])
    slow, fast = (epoch(at_shares(setting(**keys), told), quiet) for told in (shares, raised))
    assert number(fast.e2e_s) <= 1.001 * number(slow.e2e_s)


@given(**SETTINGS)
def test_an_epoch_is_stall_compute_and_overhead(setting, twin, **keys):
    found = epoch(setting(**keys), twin.parameters)
    assert number(found.e2e_s) == pytest.approx(
        number(found.stall_s + found.compute_s + found.overhead_s)
    )
    assert 0 < number(found.gpu_busy_s) <= number(found.compute_s)
    assert 0 < number(found.cpu_busy_s) <= found.clocks.cores * number(found.e2e_s) * (1 + 1e-12)
    assert number(found.power_w) > 0
    assert number(found.energy_wh) == pytest.approx(
        number(found.power_w) * number(found.e2e_s) / 3600
    )


@given(**{**SETTINGS, "num_workers": st.just(0)})
def test_without_workers_an_epoch_is_the_sum_of_its_stages(setting, twin, **keys):
    told = setting(**keys)
    found = epoch(told, twin.parameters)
    assert number(found.stages.handover_s) == 0.0
    one_s = sum(map(number, found.stages))
    assert number(found.e2e_s) == pytest.approx(told.n_minibatches * one_s, rel=1e-12)


@given(**SETTINGS)
def test_with_workers_it_is_what_the_slower_of_loop_and_workers_takes(setting, twin, **keys):
    keys["num_workers"] += 1
    told, p = setting(**keys), twin.parameters
    found = epoch(told, p)
    s = found.stages
    own_s = number(s.handover_s + s.copy_s + s.compute_s + s.loop_s)
    prepared_s = number(s.fetch_s + s.preprocess_s) / told.num_workers
    start_s = 1e-3 * p["worker_start_ms"] * told.num_workers
    expected_s = told.n_minibatches * max(own_s, prepared_s) + start_s
    assert number(found.e2e_s) == pytest.approx(expected_s)


@pytest.mark.parametrize("scale", [0.25, 0.5, 2, 4, 10])
def test_an_epoch_that_the_gpu_bounds_grows_with_the_data_set(setting, twin, scale):
    p = twin.parameters
    whole, scaled = (epoch(setting(model="resnet", scale=s), p) for s in (1, scale))
    assert number(whole.compute_s) > 0.9 * number(whole.e2e_s)
    assert number(scaled.e2e_s) == pytest.approx(scale * number(whole.e2e_s), rel=0.01)
    assert number(scaled.energy_wh) == pytest.approx(scale * number(whole.energy_wh), rel=0.01)


@pytest.mark.parametrize("dvfs", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_configurations_side_by_side_are_those_one_by_one(setting, modes, twin, model, dvfs):
    p, own = twin.parameters, list(modes["agx"].values())
    workers = [n % 5 for n in range(len(own))]
    clocks = Clocks(*np.array(own, dtype=float).T)
    base = setting(model=model, medium="hdd", cold=True, dvfs=dvfs)
    both = epoch(replace(base, clocks=clocks, num_workers=np.array(workers)), p)
    for n, (each, w) in enumerate(zip(own, workers, strict=True)):
        one = epoch(replace(base, clocks=each, num_workers=w), p)
        for name in ("e2e_s", "stall_s", "compute_s", "power_w", "cpu_busy_s", "fetch_s"):
            expected = number(getattr(one, name))
            assert np.broadcast_to(getattr(both, name), len(own))[n] == pytest.approx(expected)


@pytest.mark.parametrize("model", MODELS)
def test_governors_never_make_an_epoch_faster_and_spare_power(setting, twin, model):
    pinned, chosen = (
        epoch(setting(model=model, dvfs=dvfs), twin.parameters) for dvfs in (False, True)
    )
    assert number(chosen.e2e_s) >= number(pinned.e2e_s)
    assert number(chosen.power_w) <= number(pinned.power_w)


# -- sizes that do not fit, and what is refused --------------------------------------------------


def test_the_last_mini_batch_may_be_smaller(setting):
    told = setting(model="mobilenet")
    assert (told.n_samples, told.n_minibatches, told.n_first, told.n_last) == (23080, 1443, 16, 8)
    even = setting(model="lenet")
    assert (even.n_samples, even.n_minibatches, even.n_last) == (60000, 3750, 16)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"medium": "tape"}, r"'tape' is simulated\n  allowed: ssd, hdd, sd, emmc"),
        ({"batch_size": 0}, "batch size 0"),
        ({"scale": 0.0}, "scale 0"),
        ({"num_workers": -1}, "workers -1"),
        ({"clocks": {"gpu_mhz": 5000.0}}, r"gpu_mhz 5000\n  allowed: 114.75 to 1377"),
    ],
)
def test_a_configuration_that_cannot_be(setting, change, said):
    with pytest.raises(EpochwattError, match=said):
        setting(**change)


# -- regimes that come out by themselves ---------------------------------------------------------


def is_input_bound(told, p):
    """Say whether the loop waits for the workers, and not only for the hand-over."""
    s = epoch(told, p).stages
    own_s = number(s.handover_s + s.copy_s + s.compute_s + s.loop_s)
    return number(s.fetch_s + s.preprocess_s) / told.num_workers > 1.05 * own_s


def test_a_cached_data_set_hides_every_disk_on_agx_and_not_on_nx(setting, twin):
    p = twin.parameters
    told = {
        (device, medium): number(epoch(setting(device, "mobilenet", medium=medium), p).stall_s)
        for device in ("agx", "nx")
        for medium in ("ssd", "sd", "hdd")
    }
    assert len({told["agx", medium] for medium in ("ssd", "sd", "hdd")}) == 1
    in_line = [
        number(epoch(setting("nx", "mobilenet", medium=m, num_workers=0), p).stall_s)
        for m in ("ssd", "sd", "hdd")
    ]
    assert in_line == sorted(in_line)
    assert in_line[-1] > 1.5 * in_line[0]
