"""Explanations: shares add up, planted worlds are seen through, hidden work has no share."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted_runs import ONE_KNOB, fit, kernels

from epochwatt.epochs.bottleneck import ARITHMETIC, BELOW_ROOF, COMPUTE_PARTS, LAUNCHES, MEMORY
from epochwatt.roofline.explain import (
    CONSTANT,
    FITTED,
    LAWS,
    REST,
    Observed,
    Roof,
    explain,
    least_compute_s,
    least_s,
    next_steps,
    sentence,
)
from epochwatt.roofline.model import Ceilings, EnergyCosts

CEILINGS = Ceilings(1e12, 1e11, 1e-5)  # ridge: 10 FLOP per byte
COSTS = EnergyCosts(1e-11, 5e-11, 8.0)


def seen(work, roof, slower=1.0, n=10, workers=2, energy_j=None, **parts):
    """Return what a run in a planted world would be seen to take."""
    compute_s = slower * n * least_compute_s(work, 16, roof)
    times = {"wait_s": 0.0, "copy_s": 0.0, "overhead_s": 0.0} | {
        name: value for name, value in parts.items() if name not in ("fetch_s", "preprocess_s")
    }
    loading = {name: parts[name] for name in ("fetch_s", "preprocess_s") if name in parts}
    e2e_s = compute_s + sum(times.values())
    return Observed(
        n, 16, workers, e2e_s, compute_s=compute_s, energy_j=energy_j, **times, **loading
    )


@given(
    st.lists(st.tuples(st.floats(0, 1e10), st.floats(1, 1e9)), min_size=1, max_size=12),
    st.sampled_from(["cpu", "gpu"]),
    st.floats(0.2, 10.0),
    st.floats(0.0, 10.0),
    st.floats(0.1, 100.0),
)
def test_shares_add_up_to_the_epoch_and_its_energy(each, processor, slower, wait_s, power_w):
    work, roof = kernels(*each), Roof(processor, CEILINGS, COSTS)
    run = seen(work, roof, slower, wait_s=wait_s, copy_s=0.1, overhead_s=0.2)
    run = replace(run, energy_j=power_w * run.e2e_s)
    found = explain(work, run, roof)
    assert sum(found.time_s.values()) == pytest.approx(run.e2e_s)
    assert sum(found.energy_j.values()) == pytest.approx(run.energy_j)
    assert min([*found.time_s.values(), *found.energy_j.values()]) >= 0
    for part in COMPUTE_PARTS:
        grouped = sum(group.time_s[part] for group in found.groups.values())
        assert grouped == pytest.approx(found.time_s[part])


@pytest.mark.parametrize("processor", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("each", "limit"), [((1e10, 1e6), ARITHMETIC), ((1e6, 1e9), MEMORY), ((1e3, 1e3), LAUNCHES)]
)
def test_a_planted_limit_is_named(processor, each, limit):
    work, roof = kernels(*[each] * 50), Roof(processor, CEILINGS)
    found = explain(work, seen(work, roof, slower=1.25, n=10000), roof)
    assert found.bottleneck == ("compute", limit)
    assert found.roof_share == pytest.approx(0.8)
    assert found.time_s[BELOW_ROOF] == pytest.approx(0.2 * sum(found.time_s.values()))
    assert sentence(found).startswith(f"Bound by compute, its limit is {limit}: {limit} ")


@pytest.mark.parametrize(
    ("each", "slower", "wait_s", "words"),
    [
        ((1e10, 1e6), 400.0, 0.0, ("far below the roof", "mostly arithmetic")),
        ((1e9, 1e6), 1.0, 5.0, ("Bound by the loader", "100 %")),
        ((1e9, 1e6), 1.0, 0.5, ("Too short",)),
    ],
)
def test_the_sentence_says_what_holds_it_back(each, slower, wait_s, words):
    work, roof = kernels(each), Roof("gpu", CEILINGS)
    text = sentence(explain(work, seen(work, roof, slower, wait_s=wait_s), roof))
    assert all(word in text for word in words)


def test_launches_that_a_gpu_hides_have_no_share_and_those_of_a_cpu_do():
    work = kernels(*[(1e9, 1e3)] * 100)  # 1 ms each, launched within 10 us
    on_gpu, on_cpu = (least_s(work, 1, Roof(name, CEILINGS)) for name in ("gpu", "cpu"))
    assert on_gpu[LAUNCHES].sum() == pytest.approx(1e-5)  # the first
    assert on_cpu[LAUNCHES].sum() == pytest.approx(100e-5)
    assert on_gpu[ARITHMETIC].sum() == on_cpu[ARITHMETIC].sum() == pytest.approx(0.1)


@given(st.lists(st.tuples(st.floats(0, 1e10), st.floats(1, 1e9)), min_size=1, max_size=20))
def test_a_gpu_needs_no_less_than_its_launches_or_its_kernels(each):
    work = kernels(*each)
    roof_s = CEILINGS.roof_s(work.flops(1), work.bytes(1))
    least = least_compute_s(work, 1, Roof("gpu", CEILINGS))
    assert least >= max(roof_s.sum(), CEILINGS.launch_s * len(each)) * (1 - 1e-12)
    assert least <= (roof_s.sum() + CEILINGS.launch_s * len(each)) * (1 + 1e-12)


def test_planted_energies_are_split_and_what_is_too_much_is_scaled():
    work, roof = kernels((1e12, 1e9)), Roof("gpu", CEILINGS, COSTS)
    run = seen(work, roof, n=1, overhead_s=1.0)
    parts = {ARITHMETIC: 10.0, MEMORY: 0.05, CONSTANT: 8.0 * run.e2e_s}
    found = explain(work, replace(run, energy_j=sum(parts.values()) + 3.0), roof)
    assert found.energy_j == pytest.approx({**parts, REST: 3.0})
    half = explain(work, replace(run, energy_j=sum(parts.values()) / 2), roof)
    assert half.energy_scale == pytest.approx(0.5)
    assert half.energy_j[CONSTANT] == pytest.approx(parts[CONSTANT] / 2)
    assert explain(work, run, roof).energy_j == {}


# -- the next mode up ----------------------------------------------------------------------------


TWO_KNOBS = [fit(), fit(2000.0, 1000.0), fit(1000.0, 1000.0, 1600.0), fit(2000.0, 500.0, 1600.0)]


@pytest.mark.parametrize(("modes", "basis"), [(ONE_KNOB, FITTED), (TWO_KNOBS, LAWS)])
@pytest.mark.parametrize(
    ("each", "knob"), [((1e10, 1e6), "gpu_mhz"), ((1e6, 1e9), "emc_mhz"), ((1e3, 1e3), "cpu_mhz")]
)
def test_only_the_knob_of_the_limit_helps(modes, basis, each, knob):
    work, here = kernels(*[each] * 200), modes[0]
    run = seen(work, Roof("gpu", here.ceilings), slower=1.5)
    steps = {step.knob: step for step in next_steps(work, run, here, modes)}
    assert {step.basis for step in steps.values()} == {basis}
    for name, step in steps.items():
        expected = 0.5 if name == knob else 1.0
        assert step.e2e_s / run.e2e_s == pytest.approx(expected, abs=0.03), name


def test_what_the_loader_holds_back_is_not_helped_by_the_gpu_but_by_the_cpu():
    work, here = kernels(*[(1e10, 1e6)] * 20), ONE_KNOB[0]
    run = seen(work, Roof("gpu", here.ceilings), n=10)
    loading_s = 3 * run.compute_s
    run = replace(run, wait_s=loading_s - run.compute_s, e2e_s=loading_s, fetch_s=loading_s)
    run = replace(run, preprocess_s=loading_s)  # two workers: half of each worker's time
    steps = {step.knob: step for step in next_steps(work, run, here, ONE_KNOB)}
    assert steps["gpu_mhz"].e2e_s == pytest.approx(run.e2e_s)
    assert steps["cpu_mhz"].e2e_s == pytest.approx(0.75 * run.e2e_s)
