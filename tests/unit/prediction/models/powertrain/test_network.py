"""Networks as files and as JSON data."""

import json
from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.models.powertrain.network import Network, Scale
from epochwatt.prediction.models.powertrain.train import new_layers

MODES = np.array([[2, 800.0, 300.0, 600.0], [6, 1700.0, 900.0, 1600.0]])


@pytest.fixture(params=[False, True])
def network(request):
    scale = Scale(request.param, np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 5.0), 0.3, 0.01)
    return Network(new_layers(np.random.default_rng(1)), scale)


def test_a_stored_network_predicts_the_same_to_the_last_digit(network, tmp_path):
    network.save(tmp_path / "deep/network.npz")
    again = Network.load(tmp_path / "deep/network.npz")
    assert again.predict(MODES).tolist() == network.predict(MODES).tolist()
    data = json.dumps({name: np.asarray(a).tolist() for name, a in network.arrays().items()})
    assert (
        Network.of_arrays(json.loads(data)).predict(MODES).tolist() == again.predict(MODES).tolist()
    )


def test_scales_turn_values_into_outputs_and_back(network):
    values = np.array([0.2, 3.0])
    assert network.scale.values(network.scale.outputs(values)) == pytest.approx(values)


@pytest.mark.parametrize("content", [b"", b"PK\3\4 cut short", b"something else"])
def test_a_damaged_file_is_refused(content, tmp_path):
    (tmp_path / "network.npz").write_bytes(content)
    with pytest.raises(PredictionError, match=r"network\.npz"):
        Network.load(tmp_path / "network.npz")


def test_a_file_with_objects_is_never_executed(network, tmp_path):
    np.savez(tmp_path / "network.npz", **network.arrays() | {"mean": np.array([print], object)})
    with pytest.raises(PredictionError, match="no stored network"):
        Network.load(tmp_path / "network.npz")


def test_layers_that_do_not_fit_each_other_are_refused(network):
    first, second, *rest = network.layers
    with pytest.raises(PredictionError, match="layers"):
        Network.of_arrays(replace(network, layers=(second, first, *rest)).arrays())
    arrays = network.arrays()
    del arrays["sd"]
    with pytest.raises(PredictionError, match="sd"):
        Network.of_arrays(arrays)
