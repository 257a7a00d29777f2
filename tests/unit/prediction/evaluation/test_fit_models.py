"""The jobs that fit, on a planted linear world."""

import json

import numpy as np
import pytest

from epochwatt.prediction.evaluation.fit_models import training_modes


def read(folder, name):
    return json.loads((folder / name).read_text("utf-8"))


def test_planted_coefficients_come_back(planted, models, linear_world):
    slopes, constant, sizes, _ = linear_world
    folder = models(*planted())
    for told in read(folder, "epoch_time.json")["workloads"]:
        scale = sizes[told["workload"]["model"]]
        for fit in ("paper", "paper_left_out", "paper_standardised"):
            coefficients = told["fits"][fit]["model"]["coefficients"]
            assert coefficients == pytest.approx([*np.multiply(slopes, scale), constant * scale])
        assert told["all_modes"]["trained_on"][0] == [8, 1000, 500, 1000, 1]
        assert len(told["all_modes"]["trained_on"]) == 10


def test_planted_energy_comes_back_in_every_reading(planted, models, linear_world):
    (bench,) = read(models(*planted()), "epoch_energy.json")["benches"]
    assert len(bench["fits"]) == 4
    for name in ("paper", "paper_observed_time"):
        fit = bench["fits"][name]
        assert [*fit["coefficients"], fit["intercept_wh"]] == pytest.approx(
            linear_world[-1], abs=1e-6
        )
        assert fit["networks"] == ["lenet", "mobilenet", "resnet"]


def test_each_fit_learns_from_its_own_choice():
    one = {"modes": ["a"]}
    choice = {"paper": one, "paper_standardised": {"modes": ["b"]}, "designed": {"modes": ["c"]}}
    choice |= {"left_out": {"lenet": {"modes": ["d"]}}}
    lenet, other = (training_modes(choice, name) for name in ("lenet", "vgg11"))
    assert (lenet["paper_left_out"], other["paper_left_out"]) == (["d"], ["a"])
    assert (lenet["paper_standardised"], lenet["physical_designed"]) == (["b"], ["c"])
    assert "paper_published_modes" not in lenet
    assert training_modes({}, "lenet") == {}


def test_without_energy_the_files_say_so(planted, models):
    told = read(models(*planted(energy=False)), "epoch_energy.json")
    assert told["benches"][0]["fits"] == {}
    networks = ("lenet", "mobilenet", "resnet")
    said = "; ".join(f"{name}: energy was not measured" for name in networks)
    assert told["benches"][0]["missing"] == said
    for of in told["workloads"]:
        assert (of["all_modes"], of["missing"]) == (None, "energy was not measured")


def test_two_modes_have_physical_models_and_no_search(planted, models):
    (of,) = read(models(*planted(("lenet",), "af")), "epoch_time.json")["workloads"]
    assert of["fits"] == {}
    assert len(of["all_modes"]["trained_on"]) == 2
    assert of["modes"] == {"a": [8, 1000, 500, 1000, 1], "f": [8, 2000, 900, 1600, 1]}


def test_a_mode_that_networks_name_differently_is_fitted(planted, models, edit_rows):
    """Resnet's mode d is called zz: the numbers count."""
    paths, modes = planted(setup="own")

    def renamed(row):
        row["power_mode"] = "zz" if row["power_mode"] == "d" else row["power_mode"]

    for path in paths:
        if "resnet" in path:
            edit_rows(path, renamed)
    folder = models(paths, modes)
    assert all(len(of["fits"]) == 6 for of in read(folder, "epoch_time.json")["workloads"])
    (bench,) = read(folder, "epoch_energy.json")["benches"]
    assert bench["fits"]["paper"]["trained_on"] == list(modes.values())[:10]


def test_energy_in_part_is_said_of_its_network(planted, models, edit_rows):
    paths, modes = planted()
    edit_rows(paths[13], lambda row: row.update(energy_paper_wh="", power_scope=""))
    told = read(models(paths, modes), "epoch_energy.json")
    said = "energy was measured in 27 of 30 epochs after the first"
    assert told["benches"][0]["missing"] == f"mobilenet: {said}"
    assert [of["missing"] for of in told["workloads"]] == ["", said, "", ""]
