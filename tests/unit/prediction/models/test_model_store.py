"""What `recommend` reads."""

import json

import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.models.model_store import load_fitted
from epochwatt.prediction.registry import load_method

PHYSICAL = load_method("physical")


def test_fits_of_all_modes_are_read(planted, models):
    fits = load_fitted(models(*planted(("lenet", "resnet"))), PHYSICAL)
    assert [fit.workload["model"] for fit in fits] == ["lenet", "resnet"]
    first = fits[0]
    assert first.runs == tuple(f"lenet-{letter}" for letter in "abcdefghij")
    assert "power_mode" not in first.workload
    assert (first.time.target, first.power.target) == ("time_s", "power_w")
    assert first.time.predict([[8, 1000, 500, 1000]]) == pytest.approx(28.0, rel=0.1)
    low, high = first.time.interval([[8, 1000, 500, 1000]])
    assert low < 28 < high


def test_power_is_none_where_it_was_not_measured(planted, models):
    (fit,) = load_fitted(models(*planted(("lenet",), "abcd", energy=False)), PHYSICAL)
    assert fit.power is None


def test_method_that_learns_from_four_modes_only_is_refused(tmp_path):
    with pytest.raises(PredictionError, match="learns from a few modes only") as caught:
        load_fitted(tmp_path, load_method("paper"))
    assert caught.value.where == "--method paper"


def test_nothing_fitted_names_what_makes_it(tmp_path):
    for backend, profile in (("twin", "host"), ("jetson", "jetson")):
        with pytest.raises(PredictionError, match="is missing: nothing was fitted yet") as caught:
            load_fitted(tmp_path / backend, PHYSICAL)
        page = tmp_path / backend / "scores.html"
        command = f".venv/bin/snakemake --profile profiles/{profile} {page}"
        assert caught.value.do == f"`make run` or `{command}`"


def test_no_workload_of_two_modes_is_refused(planted, models):
    paths, modes = planted(("lenet",), "a")
    with pytest.raises(PredictionError, match="has no model of method physical: no workload was"):
        load_fitted(models(paths, modes), PHYSICAL)


def test_another_form_is_refused(planted, models, edit_json):
    folder = models(*planted(("lenet",), "ab"))
    edit_json(folder / "epoch_time.json", lambda content: content.update(schema_version=0))
    with pytest.raises(PredictionError, match="models of another schema version") as caught:
        load_fitted(folder, PHYSICAL)
    assert (caught.value.found, caught.value.allowed) == ("0", "5")
    assert json.loads((folder / "epoch_energy.json").read_text("utf-8"))["schema_version"] == 5
