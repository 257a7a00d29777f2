"""The registry of prediction methods, and one's own in config/predictors.yaml."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.maintenance.fingerprint import modules_behind
from epochwatt.prediction.harness import predictors
from epochwatt.prediction.models import powertrain
from epochwatt.prediction.names import REFERENCE, TARGETS
from epochwatt.prediction.predictor import Reference
from epochwatt.prediction.registry import (
    METHODS,
    RECOMMENDED,
    load_method,
    load_methods,
    method_modules,
)

PAGE = Path(__file__).parents[3] / "docs/how-to/add-a-predictor.md"
CODE, ROW = (
    re.search(f"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
    for language in ("python", "yaml")
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Return a function that writes config/predictors.yaml; the page's mean.py is in src/."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/mean.py").write_text(f"{CODE}\nNUMBER = 7\n")
    (tmp_path / "config").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "src")
    monkeypatch.delitem(sys.modules, "mean", raising=False)

    def write(text):
        (tmp_path / "config/predictors.yaml").write_text(text)
        return tmp_path

    return write


def varied(observations):
    """Return them with a power that goes with the GPU's clock."""
    return replace(observations, power_w=10 + observations.modes[:, 2] / 100)


@pytest.mark.parametrize("name", METHODS)
def test_methods_predict_known_targets_as_they_are_stored(name, plant, modes, agx, monkeypatch):
    """Time and power follow another law than any method's. Intervals hold numbers above zero."""
    monkeypatch.setattr(powertrain, "ROWS_PER_MODE", 2)  # networks of few steps
    method = load_method(name)
    assert set(method.targets) <= set(TARGETS)
    assert method.name == name
    whole = varied(plant((0.4, 0.3, 0.1, 0.2, 0.0), deviation=0.05, power_w=20))
    seen, reference = whole.only(modes[:6]), Reference(whole)
    priors = dict.fromkeys(method.targets, lambda rows: 1e5 / rows[:, 2])
    fitted = predictors(method, seen, [seen], priors, intervals=True, reference=reference)
    every = agx.all_modes()[::997]
    for target, predictor in fitted.items():
        values, interval = predictor.predict(every), predictor.interval(every)
        assert np.isfinite(values).all()
        assert values.shape == (len(every),)
        if interval is not None:
            assert (interval[0] > 0).all()
            assert (interval[0] <= interval[1]).all()
        if method.needs_prior or target not in method.targets:
            continue  # a prior is a function, and such a method is scored only
        again = method.load(json.loads(json.dumps(predictor.to_json())))
        assert again.target == target
        assert again.trained_on.tolist() == predictor.trained_on.tolist()
        assert again.predict(every) == pytest.approx(values, rel=1e-12)
        for bounds in zip(again.interval(every) or (), interval or (), strict=True):
            assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)


def test_the_reference_and_the_recommended_method_are_registered():
    assert load_method(REFERENCE).is_paper
    assert load_method(RECOMMENDED).predicts == TARGETS


def test_the_method_of_the_page_is_one_file_and_one_row(root, plant, modes):
    path = root(ROW)
    methods = load_methods(path)
    assert list(methods) == [*METHODS, "mean"]
    observations = plant((0.4, 0.3, 0.1, 0.2, 0.0), power_w=20).only(modes[:4])
    fitted = predictors(methods["mean"], observations)
    mean_s = observations.time_s.mean()
    assert fitted["time_s"].predict(modes) == pytest.approx([mean_s] * len(modes))
    assert fitted["energy_wh"].predict(modes) == pytest.approx([mean_s * 20 / 3600] * len(modes))
    again = methods["mean"].load(json.loads(json.dumps(fitted["power_w"].to_json())))
    assert again.predict(modes).tolist() == [20] * len(modes)
    assert again.trained_on.tolist() == fitted["power_w"].trained_on.tolist()


def test_a_module_that_an_own_method_imports_counts(root, monkeypatch):
    """Jobs depend on it as on the method itself."""
    path = root(ROW)
    (path / "src/mean.py").write_text("import mine\n")
    (path / "src/mine.py").write_text("NUMBER = 7\n")
    monkeypatch.chdir(path)
    assert modules_behind(*method_modules(path)) >= {"mean", "mine"}


@pytest.mark.parametrize(
    ("text", "problem", "fields"),
    [
        ("paper: {method: mean.METHOD}", "belongs to a method", {"do": "give your method"}),
        ("own: {method: mean.NUMBER}", "is not a prediction method", {"found": "int"}),
        ("own: {method: mean.MISSING}", "is not there", {}),
        ("own: {method: missing_module.METHOD}", "cannot be imported", {}),
        ("own: {method: METHOD}", "predictors.yaml: own.method is 'METHOD'", {}),
        ("own: {methd: mean.METHOD}", "unknown key 'own.methd'", {}),
        ("- own", "holds no mapping", {}),
    ],
)
def test_wrong_rows_are_refused(root, text, problem, fields):
    with pytest.raises(ConfigError) as caught:
        load_methods(root(text))
    assert problem in str(caught.value)
    for name, start in fields.items():
        assert getattr(caught.value, name).startswith(start)


def test_a_module_that_is_no_python_is_named_with_its_line(root, tmp_path, monkeypatch):
    (tmp_path / "unfinished_method.py").write_text("def fit(:", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be imported .*unfinished_method.py, line 1"):
        load_methods(root("own: {method: unfinished_method.METHOD}"))


def test_unknown_method_lists_those_there_are(tmp_path):
    with pytest.raises(ConfigError, match="unknown method 'papr'") as caught:
        load_method("papr", tmp_path)
    assert caught.value.allowed == list(METHODS)
