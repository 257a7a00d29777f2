"""Published configurations, answered many at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.errors import EpochwattError
from epochwatt.twin.calibration.queries import QUANTITIES, Question, answer, answer_each
from epochwatt.twin.model.epoch import epoch

AGX = Question("agx", "mobilenet", "hdd", 4, 16, "g")

QUESTIONS = st.builds(
    Question,
    device=st.just("agx"),
    model=st.sampled_from(["lenet", "mobilenet", "resnet"]),
    storage=st.sampled_from(["ssd", "hdd"]),
    num_workers=st.integers(0, 8),
    batch_size=st.sampled_from([1, 16]),
    power_mode=st.sampled_from(["g", "f", "k"]),
    dvfs=st.sampled_from(["off", "on"]),
    cold=st.booleans(),
    scale=st.sampled_from([1.0, 0.25]),
)


@given(st.lists(QUESTIONS, max_size=8))
def test_many_questions_are_answered_as_each_alone(twin, questions):
    found = answer(questions, twin, twin.parameters)
    assert set(found) == set(questions)
    for question, told in found.items():
        alone = answer([question], twin, twin.parameters)[question]
        assert set(told) == set(QUANTITIES)
        assert told == pytest.approx(alone)


@given(
    st.lists(QUESTIONS, min_size=1, max_size=6),
    st.lists(st.integers(0, 999), max_size=4),
)
def test_many_draws_are_answered_as_each_alone(twin, questions, seeds):
    p = twin.parameters
    draws = [p]  # some parameters are the same in all draws, as those put in by hand are
    for seed in seeds:
        factors = np.exp(np.random.default_rng(seed).normal(0, 0.1, len(p.fitted)))
        draws.append(p.moved({k: p[k] * f for k, f in zip(p.fitted, factors, strict=True)}))
    each = answer_each(questions, twin, draws, QUANTITIES)
    assert each == [answer(questions, twin, drawn) for drawn in draws]


def test_quantities_belong_together(twin, setting):
    told = answer([AGX], twin, twin.parameters)[AGX]
    given = setting("agx", "mobilenet", medium="hdd")
    mean = epoch(given, twin.parameters)
    assert told["e2e_s"] == pytest.approx(float(mean.e2e_s[0]))
    assert told["stall_s"] + told["compute_s"] + told["overhead_s"] == pytest.approx(told["e2e_s"])
    assert told["stall_ms_per_minibatch"] == pytest.approx(1e3 * told["stall_s"] / 1443)
    assert told["compute_ms_per_minibatch"] == pytest.approx(1e3 * told["compute_s"] / 1443)
    assert told["energy_wh"] == pytest.approx(told["power_w"] * told["e2e_s"] / 3600)
    assert told["stall_s/e2e_s"] == pytest.approx(100 * told["stall_s"] / told["e2e_s"])
    assert told["(stall_s+compute_s)/e2e_s"] == pytest.approx(
        100 * (told["stall_s"] + told["compute_s"]) / told["e2e_s"]
    )
    assert told["n_epochs_in_15h"] == pytest.approx(54000 / told["e2e_s"])
    assert told["gpu_freq_mhz"] == twin.modes["agx"]["g"].gpu_mhz
    for name in ("gpu_util_pct", "cpu_util_pct", "cached_pct", "baseload_wh/energy_wh"):
        assert 0 < told[name] <= 100


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"device": "tx2"}, "know no 'tx2'"),
        ({"model": "alexnet"}, "know no 'alexnet'"),
        ({"storage": "tape"}, "'tape' is simulated"),
        ({"power_mode": "z"}, "agx has no power mode 'z' with numbers\n  allowed: g, a, b"),
    ],
)
def test_a_question_that_has_no_answer(twin, change, said):
    with pytest.raises(EpochwattError, match=said):
        answer([AGX._replace(**change)], twin, twin.parameters)
