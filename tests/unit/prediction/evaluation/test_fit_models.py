"""The jobs that fit, on a planted linear world."""

import json

import numpy as np
import pytest

from epochwatt.prediction.data.workloads import read_workloads
from epochwatt.prediction.evaluation.fit_models import training_epochs
from epochwatt.prediction.selection.choose_power_modes import Chosen


def read(folder, name):
    return json.loads((folder / name).read_text("utf-8"))


def by_fit(workload):
    """Return (method, training set, target) -> JSON data of the fitted model."""
    return {(f["method"], f["learned_from"], f["target"]): f["model"] for f in workload["fits"]}


def test_planted_coefficients_come_back(planted, models, linear_world):
    slopes, constant, sizes, _ = linear_world
    folder = models(*planted())
    for workload in read(folder, "epoch_time.json")["workloads"]:
        scale, fits = sizes[workload["workload"]["model"]], by_fit(workload)
        for method, learned_from in (
            ("paper", "paper"),
            ("paper", "left_out"),
            ("paper_standardised", "paper_standardised"),
        ):
            coefficients = fits[method, learned_from, "time_s"]["coefficients"]
            assert coefficients == pytest.approx([*np.multiply(slopes, scale), constant * scale])
        all_modes = fits["physical", "all", "time_s"]["trained_on"]
        assert (all_modes[0], len(all_modes)) == ([8, 1000, 500, 1000, 1, 0], 10)


def test_planted_energy_comes_back_in_every_reading(planted, models, linear_world):
    for workload in read(models(*planted()), "epoch_energy.json")["workloads"]:
        fits = by_fit(workload)
        readings = {method for method, _, target in fits if target == "energy_wh"}
        assert len(readings) == 4
        for method in ("paper", "paper_observed_time"):
            fit = fits[method, "paper", "energy_wh"]
            assert fit["coefficients"] == pytest.approx(linear_world[-1], abs=1e-6)
            assert fit["networks"] == ["lenet", "mobilenet", "resnet"]


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


def test_without_energy_the_files_say_so(planted, models):
    for workload in read(models(*planted(energy=False)), "epoch_energy.json")["workloads"]:
        assert (workload["fits"], workload["missing"]) == ([], "energy was not measured")


def test_two_modes_have_physical_models_and_no_search(planted, models):
    (of,) = read(models(*planted(("lenet",), "af")), "epoch_time.json")["workloads"]
    assert {learned_from for _, learned_from, _ in by_fit(of)} == {"all"}
    assert len(by_fit(of)["physical", "all", "time_s"]["trained_on"]) == 2
    assert of["modes"] == {"a": [8, 1000, 500, 1000, 1, 0], "f": [8, 2000, 900, 1600, 1, 0]}


def test_a_mode_that_networks_name_differently_is_fitted(planted, models, edit_rows):
    """Resnet's mode d is called zz: the numbers count."""
    paths, modes = planted(setup="own")

    def renamed(row):
        row["power_mode"] = "zz" if row["power_mode"] == "d" else row["power_mode"]

    for path in paths:
        if "resnet" in path:
            edit_rows(path, renamed)
    folder = models(paths, modes)
    workloads = read(folder, "epoch_time.json")["workloads"]
    fits = [set(by_fit(workload)) for workload in workloads]
    assert fits[1:] == fits[:-1]
    energies = read(folder, "epoch_energy.json")["workloads"]
    trained_on = by_fit(energies[0])["paper", "paper", "energy_wh"]["trained_on"]
    assert trained_on == sorted(list(modes.values())[:10])


def test_energy_in_part_is_said_of_its_network(planted, models, edit_rows):
    paths, modes = planted()
    edit_rows(paths[13], lambda row: row.update(energy_paper_wh="", power_scope=""))
    workloads = read(models(paths, modes), "epoch_energy.json")["workloads"]
    reason = "energy was measured in 27 of 30 epochs after the first"
    others = f"mobilenet: {reason}"  # the paper's model is one for all networks
    assert [w["missing"] for w in workloads] == [others, reason, others, others]
