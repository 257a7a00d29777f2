"""Models that the workflow stores: what is fitted, predicted with them, and read by `recommend`."""

import json

import numpy as np
import pytest

from epochwatt.claims.number_sources import MEANT
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.workloads import board_groups, read_workloads
from epochwatt.prediction.evaluation.fit_models import training_epochs
from epochwatt.prediction.evaluation.paper_procedure import paper_procedure
from epochwatt.prediction.evaluation.predict_modes import load_stored, predict_workload
from epochwatt.prediction.models.model_store import load_fitted
from epochwatt.prediction.registry import load_method, load_methods
from epochwatt.prediction.selection.choose_power_modes import Chosen
from epochwatt.published.numbers import MEANT_EPOCHS

PHYSICAL = load_method("physical")


def workloads_in(folder, name):
    return json.loads((folder / name).read_text("utf-8"))["workloads"]


def by_fit(workload):
    """Return (method, training set, target) -> JSON data of the fitted model."""
    return {(f["method"], f["learned_from"], f["target"]): f["model"] for f in workload["fits"]}


def predicted(paths, modes, folder):
    """Return rows by target, method, training set, network and mode."""
    stored, methods = load_stored(str(folder)), load_methods()
    rows = [
        row
        for workload in read_workloads(paths, modes)
        for row in predict_workload(workload, stored, methods).to_dict("records")
    ]
    names = ("target", "method", "learned_from", "model", "power_mode")
    return {tuple(row[name] for name in names): row for row in rows}


def test_a_linear_world_comes_back_and_is_predicted_without_error(planted, models, linear_world):
    slopes, constant, sizes, energies = linear_world
    world = planted()
    folder = models(*world)
    for workload in workloads_in(folder, "epoch_time.json"):
        scale, fits = sizes[workload["workload"]["model"]], by_fit(workload)
        for fit in (("paper", "paper"), ("paper", "left_out"), ("paper_standardised",) * 2):
            coefficients = fits[*fit, "time_s"]["coefficients"]
            assert coefficients == pytest.approx([*np.multiply(slopes, scale), constant * scale])
        all_modes = fits["physical", "all", "time_s"]["trained_on"]
        assert (all_modes[0], len(all_modes)) == ([8, 1000, 500, 1000, 1, 0], 10)
    for workload in workloads_in(folder, "epoch_energy.json"):
        fits = by_fit(workload)
        assert len({method for method, _, target in fits if target == "energy_wh"}) == 4
        for method in ("paper", "paper_observed_time"):
            fit = fits[method, "paper", "energy_wh"]
            assert fit["coefficients"] == pytest.approx(energies, abs=1e-6)
            assert fit["networks"] == ["lenet", "mobilenet", "resnet"]

    rows = predicted(*world, folder)
    chosen = ("paper", "left_out")
    paper = [row for key, row in rows.items() if key[1] == "paper" and key[2] in chosen]
    assert {row["target"] for row in paper} == {"time_s", "energy_wh"}
    assert len(paper) == 4 * 40
    assert max(row["mape_pct"] for row in paper) < 1e-6
    assert all(row["predicted"] == pytest.approx(row["observed"]) for row in paper)
    row = rows["energy_wh", "physical", "paper", "resnet", "f"]
    assert 0 < row["low"] < row["predicted"] < row["high"]
    assert (row["cores"], row["cpu_mhz"], row["device"], row["num_workers"]) == (8, 2000, "agx", 4)
    assert rows["time_s", "paper", "paper", "resnet", "f"]["low"] is None

    def trains(target, network):
        own = {k[4]: row for k, row in rows.items() if k[:4] == (target, *("paper",) * 2, network)}
        return {mode: row["in_training_set"] for mode, row in own.items()}

    lenet = trains("time_s", "lenet")
    assert (list(lenet), sum(lenet.values())) == (list("abcdefghij"), 4)
    assert all(all(trains("energy_wh", n).values()) for n in ("lenet", "mobilenet", "resnet"))
    assert trains("energy_wh", "vgg11") == lenet  # through the model of its time


def test_each_training_set_is_its_choice(planted):
    lenet, vgg11 = read_workloads(*planted(("lenet", "vgg11"), "abcd"))
    modes = {name: list(mode) for name, mode in lenet.modes.items()}
    names = {"paper": "a", "paper_standardised": "b", "designed": "c"}
    choices = {choice: {"modes": [name]} for choice, name in names.items()}
    choices["left_out"] = {"lenet": {"modes": ["d"]}}
    chosen = Chosen({}, {}, (), (), modes, "", choices)

    def trained(workload, learned_from):
        return training_epochs(workload, chosen, learned_from).distinct()

    for choice, name in names.items():
        assert trained(lenet, choice) == (lenet.modes[name],)
    assert trained(lenet, "left_out") == (lenet.modes["d"],)
    assert trained(vgg11, "left_out") == (lenet.modes["a"],)
    assert len(trained(lenet, "all")) == 4
    assert training_epochs(lenet, chosen, "published") is None


def test_without_energy_only_time_is_predicted_and_the_files_say_so(planted, models):
    world = planted(("lenet", "resnet"), "abcdef", energy=False)
    folder = models(*world)
    for workload in workloads_in(folder, "epoch_energy.json"):
        assert (workload["fits"], workload["missing"]) == ([], "energy was not measured")
    assert {target for target, *_ in predicted(*world, folder)} == {"time_s"}
    assert load_fitted(folder, PHYSICAL)[0].power is None
    (group,) = board_groups(read_workloads(*world))
    assert {target for target, *_ in paper_procedure(group).mape_pct} == {"time_s"}


def test_epochs_are_those_that_claims_mean(planted, models, edit_rows):
    """Epochs 6 and later of a longer run take twice as long."""
    paths, modes = planted(("lenet", "resnet"), n_later=7)

    def slower(row):
        row["e2e_s"] = float(row["e2e_s"]) * (1 + (int(row["epoch"]) > MEANT_EPOCHS))

    edit_rows(paths[0], slower)
    rows = predicted(paths, modes, models(paths, modes))
    assert rows["time_s", "paper", "paper", "lenet", "a"]["observed"] == pytest.approx(28.0)
    assert MEANT["1+"] == (1, MEANT_EPOCHS) == (1, 5)


# -- what `recommend` reads ------------------------------------------------------------------------


def test_fits_of_all_modes_are_read_and_other_forms_refused(planted, models, edit_json):
    folder = models(*planted(("lenet", "resnet"), "abcd"))
    first, second = load_fitted(folder, PHYSICAL)
    assert [fit.workload["model"] for fit in (first, second)] == ["lenet", "resnet"]
    assert first.runs == tuple(f"lenet-{letter}" for letter in "abcd")
    assert "power_mode" not in first.workload
    assert (first.time.target, first.power.target) == ("time_s", "power_w")
    assert first.time.predict([[8, 1000, 500, 1000]]) == pytest.approx(28.0, rel=0.1)
    low, high = first.time.interval([[8, 1000, 500, 1000]])
    assert low < 28 < high
    edit_json(folder / "epoch_time.json", lambda content: content.update(schema_version=0))
    with pytest.raises(PredictionError, match="models of another schema version") as caught:
        load_fitted(folder, PHYSICAL)
    assert (caught.value.found, caught.value.allowed) == ("0", "5")
