"""What the prediction models say, as predicates ask for it."""

import csv
import json

import numpy as np
import pytest

from epochwatt.claims.predictions import predicted, read_predictions
from epochwatt.twin.boards import Clocks

ABOUT = {"setup": "sigmetrics2023", "device": "agx", "instance": "d1", "storage": "ssd"}
ABOUT |= {"num_workers": 4, "batch_size": 16, "cache_policy": "kept", "imported": ""}


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes predictions of board groups that differ from ABOUT."""

    def write(*differing, first=0):
        groups = [*differing[:first], {}, *differing[first:]]
        rows = [
            {**ABOUT, **about, "board_group": n, "model": "vgg11", "power_mode": "b",
             "target": target, "method": method, "learned_from": "paper",
             "mape_pct": mape if about == {} else 1.0}
            for n, about in enumerate(groups)
            for target, method, mape in (("time_s", "paper", 7.5), ("energy_wh", "paper", 40.0),
                                      ("time_s", "log", 99.0))
        ]  # fmt: skip
        with open(tmp_path / "predictions.csv", "w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, list(rows[first * 3]), extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        found = [
            {"factors": {**ABOUT, **about},
             "data": {"vgg11": {"dataset_scale": about.get("dataset_scale", 1.0)}},
             "choices": {"paper": {"modes": ["a"] if about else ["e", "f", "i", "j"]}}}
            for about in groups
        ]  # fmt: skip
        path = tmp_path / "power_modes.json"
        path.write_text(json.dumps({"board_groups": found}), encoding="utf-8")
        return str(tmp_path)

    return write


def test_only_runs_that_predicates_mean_are_read(folder, terms):
    found = read_predictions(folder({"num_workers": 0}, {"setup": "own"}), terms)
    assert found == {
        ("time_mape_pct", "agx", "vgg11", "b"): 7.5,
        ("energy_mape_pct", "agx", "vgg11", "b"): 40.0,
        ("best_mode_set", "agx", "", ""): "efij",
    }


@pytest.mark.parametrize("first", [0, 2])
def test_a_measured_group_goes_before_an_imported_one(folder, terms, first):
    others = ({"imported": "scripts-2023"}, {"dataset_scale": 0.25})
    found = read_predictions(folder(*others, first=first), terms)
    assert found["time_mape_pct", "agx", "vgg11", "b"] == 7.5
    assert found["best_mode_set", "agx", "", ""] == "efij"


def test_the_same_is_worked_out_from_epochs(epochs, terms):
    """Times linear in the GPU clock, and nothing else differs: no error, ties in all modes."""
    modes = {
        name: Clocks(*np.array([8.0, 2000.0, 500.0 + 100 * n, 1600.0]))
        for n, name in enumerate("abcdef")
    }
    rows = []
    for n, model in enumerate(("lenet", "mobilenet", "resnet", "vgg11"), 1):
        for name, clocks in modes.items():
            time_s = n * (200 - 0.1 * float(clocks.gpu_mhz))
            told = {"e2e_s": time_s, "energy_paper_wh": 0.01 * time_s}
            rows += epochs({"model": model, "power_mode": name}, {"e2e_s": 999.0}, told, told)
    found = predicted(rows, {"agx": modes}, terms)
    errors = [value for key, value in found.items() if key[0].endswith("_pct")]
    assert len(errors) == 2 * 4 * 6
    assert max(errors) < 1e-6
    assert len(found["best_mode_set", "agx", "", ""]) == 4
    assert predicted(rows[:9], {"agx": modes}, terms) == {}  # one network: no search
