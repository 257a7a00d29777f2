"""The registry of prediction methods, and one's own in config/predictors.yaml."""

import json
import sys

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.prediction.evaluation.cross_validation import predictors
from epochwatt.prediction.names import REFERENCE, TARGETS
from epochwatt.prediction.registry import (
    METHODS,
    RECOMMENDED,
    load_method,
    load_methods,
    method_modules,
    own_method_files,
)

OWN = '''
"""A method of a user: the mean of what was observed."""

from dataclasses import dataclass

import numpy as np

from epochwatt.prediction.predictor import Method, Predictor


@dataclass(frozen=True, eq=False)
class Mean(Predictor):
    target: str
    trained_on: np.ndarray
    value: float

    def predict(self, modes):
        return np.full(len(modes), self.value)

    def to_json(self):
        return {**vars(self), "trained_on": self.trained_on.tolist()}


def fit(observations, context):
    value = float(getattr(observations, context.target).mean())
    return Mean(context.target, np.array(observations.distinct()), value)


def load(data):
    return Mean(**{**data, "trained_on": np.array(data["trained_on"])})


METHOD = Method("mean of all modes", ("time_s", "power_w"), fit, load)
NUMBER = 7
'''


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Return a function that writes config/predictors.yaml beside own_method.py: the checkout."""
    (tmp_path / "own_method.py").write_text(OWN)
    (tmp_path / "config").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_method", raising=False)

    def write(text):
        (tmp_path / "config/predictors.yaml").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize("name", METHODS)
def test_stored_predictors_predict_the_same(name, plant, modes, agx):
    """Time and power follow another law than any method's."""
    method = load_method(name)
    if method.needs_prior:
        return  # a prior is a function, and such a method is scored only
    observations = plant((0.4, 0.3, 0.1, 0.2, 0.0), deviation=0.05, power_w=20).only(modes[:6])
    every = agx.all_modes()[::997]
    for target, predictor in predictors(method, observations, [observations]).items():
        if target in method.targets:
            again = method.load(json.loads(json.dumps(predictor.to_json())))
            assert again.target == target
            assert again.trained_on.tolist() == predictor.trained_on.tolist()
            assert again.predict(every) == pytest.approx(predictor.predict(every), rel=1e-12)
            for bounds in zip(
                again.interval(every) or (), predictor.interval(every) or (), strict=True
            ):
                assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_methods_predict_known_targets_and_intervals_hold_the_prediction(name, plant, modes):
    method = load_method(name)
    assert set(method.targets) <= set(TARGETS)
    assert method.name == name
    observations = plant((0.4, 0.3, 0.1, 0.2, 0.0), deviation=0.05, power_w=20).only(modes[:4])
    priors = dict.fromkeys(method.targets, lambda rows: 1e5 / rows[:, 2])
    fitted = predictors(method, observations, [observations], priors, intervals=True)
    for predictor in fitted.values():
        values, interval = predictor.predict(modes), predictor.interval(modes)
        assert values.shape == (10,)
        assert np.isfinite(values).all()
        if interval is not None:
            assert (interval[0] <= interval[1]).all()
            assert (interval[0] > 0).all()


def test_the_reference_and_the_recommended_method_are_registered():
    assert load_method(REFERENCE).is_paper
    assert load_method(RECOMMENDED).predicts == TARGETS


def test_own_method_is_one_row(root):
    path = root("own_mean: {method: own_method.METHOD}\n")
    methods = load_methods(path)
    assert list(methods) == [*METHODS, "own_mean"]
    assert methods["own_mean"].title == "mean of all modes"
    files = [str(path / "config/predictors.yaml"), str(path / "own_method.py")]
    assert own_method_files(path) == files


def test_modules_of_methods_are_those_of_the_package():
    assert all(name.startswith("epochwatt.prediction.models.") for name in method_modules())


@pytest.mark.parametrize(
    ("text", "problem", "fields"),
    [
        ("paper: {method: own_method.METHOD}", "belongs to a method", {"do": "give your method"}),
        ("own: {method: own_method.NUMBER}", "is not a prediction method", {"found": "int"}),
        ("own: {method: own_method.MISSING}", "is not there", {}),
        ("own: {method: missing_module.METHOD}", "cannot be imported", {}),
        ("own: {method: METHOD}", "predictors.yaml: own.method is 'METHOD'", {}),
        ("own: {methd: own_method.METHOD}", "unknown key 'own.methd'", {}),
        ("- own", "holds no mapping", {}),
    ],
)
def test_wrong_rows_are_refused(root, text, problem, fields):
    with pytest.raises(ConfigError) as caught:
        load_methods(root(text))
    assert problem in str(caught.value)
    for name, start in fields.items():
        assert getattr(caught.value, name).startswith(start)


def test_unknown_method_lists_those_there_are(tmp_path):
    with pytest.raises(ConfigError, match="unknown method 'papr'") as caught:
        load_method("papr", tmp_path)
    assert caught.value.allowed == list(METHODS)


def test_a_file_of_comments_adds_nothing(root):
    assert list(load_methods(root("# none yet\n"))) == list(METHODS)
