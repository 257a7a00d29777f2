"""An epoch in closed form: what it is made of, what it follows, and regimes nobody typed in."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.errors import EpochwattError
from epochwatt.twin.boards import Clocks, number
from epochwatt.twin.epoch import cached_share, epoch

MODELS = ("lenet", "mobilenet", "resnet")
CLOCKS = ("cpu_mhz", "gpu_mhz", "emc_mhz")


def at_shares(setting, shares):
    """Return a setting with each clock at a share of its range, of 1."""
    board = setting.board
    limits = [getattr(board, clock) for clock in CLOCKS]
    mhz = [low + share * (high - low) for share, (low, high) in zip(shares, limits, strict=True)]
    return replace(setting, clocks=Clocks(board.cores, *mhz))


SETTINGS = {
    "device": st.sampled_from(("agx", "nx", "nano", "orin")),
    "model": st.sampled_from(MODELS),
    "medium": st.sampled_from(("ssd", "hdd", "sd", "emmc")),
    "batch_size": st.integers(1, 64),
    "num_workers": st.integers(0, 16),
    "cold": st.booleans(),
}


@given(
    **SETTINGS,
    shares=st.tuples(*[st.floats(0, 1)] * 3),
    clock=st.integers(0, 2),
    higher=st.floats(0, 1),
)
def test_raising_a_clock_never_slows_an_epoch(setting, quiet, shares, clock, higher, **keys):
    raised = list(shares)
    raised[clock] += higher * (1.0 - shares[clock])
    slow, fast = (epoch(at_shares(setting(**keys), s), quiet) for s in (shares, raised))
    assert number(fast.e2e_s) <= 1.001 * number(slow.e2e_s)


@given(**SETTINGS)
def test_epoch_is_the_sum_of_its_parts_and_what_the_slower_of_loop_and_workers_takes(
    setting, twin, **keys
):
    given_setting, p = setting(**keys), twin.parameters
    e = epoch(given_setting, p)
    assert number(e.e2e_s) == pytest.approx(number(e.stall_s + e.compute_s + e.overhead_s))
    assert 0 < number(e.gpu_busy_s) <= number(e.compute_s)
    assert 0 < number(e.cpu_busy_s) <= e.clocks.cores * number(e.e2e_s) * (1 + 1e-12)
    assert number(e.energy_wh) == pytest.approx(number(e.power_w) * number(e.e2e_s) / 3600)
    s, n, workers = e.stages, given_setting.n_minibatches, keys["num_workers"]
    own_s = number(s.handover_s + s.copy_s + s.compute_s + s.loop_s)
    prepared_s = number(s.fetch_s + s.preprocess_s)
    if workers:
        start_s = 1e-3 * p["worker_start_ms"] * workers
        expected_s = n * max(own_s, prepared_s / workers) + start_s
    else:
        assert number(s.handover_s) == 0.0
        expected_s = n * (own_s + prepared_s)
    assert number(e.e2e_s) == pytest.approx(expected_s)


@pytest.mark.parametrize(("model", "dvfs"), [("lenet", True), ("mobilenet", False)])
def test_configurations_side_by_side_are_those_one_by_one(setting, modes, twin, model, dvfs):
    p, own = twin.parameters, list(modes["agx"].values())
    workers = [n % 5 for n in range(len(own))]
    clocks = Clocks(*np.array(own, dtype=float).T)
    base = setting(model=model, medium="hdd", cold=True, dvfs=dvfs)
    both = epoch(replace(base, clocks=clocks, num_workers=np.array(workers)), p)
    for n, (each, w) in enumerate(zip(own, workers, strict=True)):
        alone = epoch(replace(base, clocks=each, num_workers=w), p)
        for name in ("e2e_s", "stall_s", "compute_s", "power_w", "cpu_busy_s", "fetch_s"):
            expected = number(getattr(alone, name))
            assert np.broadcast_to(getattr(both, name), len(own))[n] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"medium": "tape"}, r"'tape' is simulated\n  allowed: ssd, hdd, sd, emmc"),
        ({"batch_size": 0}, "batch size 0"),
        ({"scale": 0.0}, "scale 0"),
        ({"num_workers": -1}, "workers -1"),
        ({"clocks": {"gpu_mhz": 5000.0}}, r"gpu_mhz 5000\n  allowed: 114.75 to 1377"),
    ],
)
def test_configuration_that_cannot_be_is_refused(setting, change, message):
    with pytest.raises(EpochwattError, match=message):
        setting(**change)


def test_small_data_set_is_cached_on_nx_in_one_papers_set_up_and_not_in_the_other(setting, twin):
    def share(setup, **keys):
        asked = setting("nx", "mobilenet", medium="hdd", num_workers=0, setup=setup, **keys)
        return float(cached_share(asked, twin.parameters))

    assert share("hipcw2021", scale=0.25) == 1.0
    assert share("hipcw2021") > 0.6
    assert share("hipcw2021", scale=4.0) < 0.5
    assert share("my own") == share("sigmetrics2023") < 0.1
