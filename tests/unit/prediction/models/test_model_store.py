"""What `recommend` reads."""

import json

import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.models.model_store import load_fits


def test_fits_of_all_modes_are_read(planted, models):
    fits = load_fits(models(*planted(("lenet", "resnet"))))
    assert [fit.workload["model"] for fit in fits] == ["lenet", "resnet"]
    first = fits[0]
    assert first.runs == tuple(f"lenet-{letter}" for letter in "abcdefghij")
    assert "power_mode" not in first.workload
    assert (first.time.target, first.power.target) == ("time_s", "power_w")
    assert first.time.predict([[8, 1000, 500, 1000]]) == pytest.approx(28.0, rel=0.1)
    low, high = first.time.interval([[8, 1000, 500, 1000]])
    assert low < 28 < high


def test_power_is_none_where_it_was_not_measured(planted, models):
    (fit,) = load_fits(models(*planted(("lenet",), "abcd", energy=False)))
    assert fit.power is None


def test_nothing_fitted_says_what_makes_it(tmp_path):
    for backend, profile in (("twin", "host"), ("jetson", "jetson")):
        with pytest.raises(PredictionError, match="nothing was fitted yet\n  `make run`") as error:
            load_fits(tmp_path / backend)
        page = tmp_path / backend / "scores.html"
        assert str(error.value).endswith(
            f"`.venv/bin/snakemake --profile profiles/{profile} {page}`"
        )


def test_no_workload_of_two_modes_says_so(planted, models):
    paths, modes = planted(("lenet",), "a")
    with pytest.raises(PredictionError, match="has no fitted model: no workload was run") as error:
        load_fits(models(paths, modes))
    assert "DVFS off whose four numbers config/devices/ states\n" in str(error.value)


def test_another_form_is_refused(planted, models, edit_json):
    folder = models(*planted(("lenet",), "ab"))
    edit_json(folder / "epoch_time.json", lambda told: told.update(schema_version=0))
    with pytest.raises(PredictionError, match="schema version 0; this program reads 2"):
        load_fits(folder)
    assert json.loads((folder / "epoch_energy.json").read_text("utf-8"))["schema_version"] == 2
