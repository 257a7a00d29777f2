"""Rows of predictions.csv, on a planted linear world and by hand."""

import pytest

from epochwatt.claims.number_sources import MEANT
from epochwatt.prediction.data.workloads import read_workloads
from epochwatt.prediction.evaluation.score_predictions import load_stored, predict_workload
from epochwatt.prediction.registry import load_methods
from epochwatt.published.numbers import MEANT_EPOCHS


@pytest.fixture
def rows(planted, models):
    """Rows of all workloads by target, method, training set, network and mode."""
    paths, modes = planted()
    fitted = load_stored(str(models(paths, modes)))
    told = [
        row
        for of in read_workloads(paths, modes)
        for row in predict_workload(of, fitted, load_methods()).to_dict("records")
    ]
    return {
        (r["target"], r["method"], r["learned_from"], r["model"], r["power_mode"]): r for r in told
    }


def test_linear_world_is_predicted_without_error(rows):
    chosen = ("paper", "left_out")
    paper = [row for key, row in rows.items() if key[1] == "paper" and key[2] in chosen]
    assert {(row["target"], row["learned_from"]) for row in paper} == {
        (target, learned_from)
        for target in ("time_s", "energy_wh")
        for learned_from in ("paper", "left_out")
    }
    assert len(paper) == 4 * 40
    assert max(row["mape_pct"] for row in paper) < 1e-6
    assert all(row["predicted"] == pytest.approx(row["observed"]) for row in paper)


def test_what_a_fit_has_learned_from_is_marked(rows):
    lenet = {
        k[4]: row["in_training_set"]
        for k, row in rows.items()
        if k[:4] == ("time_s", "paper", "paper", "lenet")
    }
    assert list(lenet) == list("abcdefghij")
    assert sum(lenet.values()) == 4
    energy = {
        k[3:]: row["in_training_set"]
        for k, row in rows.items()
        if k[:3] == ("energy_wh", "paper", "paper")
    }
    assert all(trains for (network, _), trains in energy.items() if network != "vgg11")
    assert {m: energy["vgg11", m] for m in lenet} == lenet  # through the model of its time


def test_models_with_intervals_state_bounds(rows):
    of = rows["energy_wh", "physical", "paper", "resnet", "f"]
    assert 0 < of["low"] < of["predicted"] < of["high"]
    assert rows["time_s", "paper", "paper", "resnet", "f"]["low"] is None
    assert (of["cores"], of["cpu_mhz"], of["device"], of["num_workers"]) == (8, 2000, "agx", 4)


def test_without_energy_only_time_is_predicted(planted, models):
    paths, modes = planted(("lenet", "resnet"), energy=False)
    fitted = load_stored(str(models(paths, modes)))
    told = [
        row
        for of in read_workloads(paths, modes)
        for row in predict_workload(of, fitted, load_methods()).to_dict("records")
    ]
    assert {row["target"] for row in told} == {"time_s"}


def test_a_second_name_of_a_mode_that_trains_trains_too(planted, models, beside):
    def renamed(row):
        row["power_mode"] += "2"

    paths, modes = beside(*planted(setup="own"), renamed)
    fitted = load_stored(str(models(paths, modes)))
    told = [
        row
        for of in read_workloads(paths, modes)
        for row in predict_workload(of, fitted, load_methods()).to_dict("records")
    ]
    trains = {
        (r["target"], r["method"], r["learned_from"], r["model"], r["power_mode"]): r[
            "in_training_set"
        ]
        for r in told
    }
    assert sum(trains.values()) > 100
    assert all(trains[*key, f"{mode}2"] == trains[*key, mode] for *key, mode in trains
               if not mode.endswith("2"))  # fmt: skip
    runs = {(row["model"], row["power_mode"]): row["run"] for row in told}
    assert (runs["lenet", "d"], runs["lenet", "d2"]) == ("lenet-d", "lenet-d-beside")


def test_epochs_are_those_that_claims_mean(planted, models, edit_rows):
    """Epochs 6 and later of a longer run take twice as long."""
    paths, modes = planted(("lenet", "resnet"), n_later=7)

    def slower(row):
        row["e2e_s"] = float(row["e2e_s"]) * (1 + (int(row["epoch"]) > MEANT_EPOCHS))

    edit_rows(paths[0], slower)
    fitted = load_stored(str(models(paths, modes)))
    (lenet, _) = read_workloads(paths, modes)
    rows = {
        (r["target"], r["method"], r["learned_from"], r["power_mode"]): r
        for r in predict_workload(lenet, fitted, load_methods()).to_dict("records")
    }
    assert rows["time_s", "paper", "paper", "a"]["observed"] == pytest.approx(28.0)
    assert MEANT["1+"] == (1, MEANT_EPOCHS) == (1, 5)
