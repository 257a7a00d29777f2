"""What a simulated board expects in each mode: the closed form, for many modes at once."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, PredictionError, as_rows
from epochwatt.prediction.models.twin_prior import priors
from epochwatt.twin.boards import Clocks
from epochwatt.twin.predicted import Question, answer_each
from epochwatt.twin.twin import load_twin

LENET = {
    **{"device": "agx", "model": "lenet", "dataset": "mnist", "storage": "ssd", "num_workers": 4},
    **{"batch_size": 16, "dataset_scale": 1.0, "cache_policy": "kept"},
}


@pytest.fixture(scope="module")
def twin(request, network_counts):
    return load_twin(request.config.rootpath / "config/twin", [network_counts("lenet")])


def test_a_gated_gpu_is_not_simulated(twin):
    prior = priors(LENET, twin, twin.parameters)["time_s"]
    with pytest.raises(PredictionError, match="has its whole GPU on") as caught:
        prior(as_rows([Mode(8, 2265.6, 1377, 2133, 0.5)]))
    assert caught.value.found.endswith("50 % of the GPU on")


def test_each_mode_has_the_closed_forms_answer(twin, named):
    clocks = {"agx": {name: Clocks(*mode[:4]) for name, mode in named.items()}}
    asked = {name: Question("agx", "lenet", "ssd", 4, 16, name) for name in named}
    (told,) = answer_each(asked.values(), replace(twin, modes=clocks), [twin.parameters])
    time, power = priors(LENET, twin, twin.parameters).values()
    modes = np.array(list(named.values()))
    assert time(modes) == pytest.approx([told[asked[name]]["e2e_s"] for name in named])
    assert power(modes) == pytest.approx([told[asked[name]]["power_w"] for name in named])


def test_all_modes_of_a_board_at_once(twin, agx):
    modes = agx.all_modes()
    expected = priors(LENET, twin, twin.parameters)["time_s"]
    all_s = expected(modes)
    assert all_s.shape == (29232,)
    assert (all_s > 0).all()
    some = np.arange(0, len(modes), 2111)
    assert all_s[some] == pytest.approx([expected(modes[[n]])[0] for n in some])


def test_what_is_not_simulated_is_said(twin, modes):
    with pytest.raises(EpochwattError, match="the simulated boards know no 'vgg11'"):
        priors({**LENET, "model": "vgg11"}, twin, twin.parameters)["time_s"]
    with pytest.raises(EpochwattError, match="cannot have cores 9"):
        priors(LENET, twin, twin.parameters)["power_w"](
            np.array([modes[0]._replace(cores=9)], float)
        )
