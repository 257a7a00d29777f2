"""Figure 10: observed beside predicted, with the error of each mode."""

import csv

import pytest
from panels import INVALID

from epochwatt.figures.sigmetrics2023.fig10 import draw


@pytest.fixture
def table(tmp_path):
    """Return a function that writes predictions: value and whether it trains, of each run."""

    def write(*runs):
        rows = [
            {"run": f"run-{n}", "target": target, "method": method, "learned_from": "paper",
             "predicted": value, "in_training_set": trains, "mape_pct": 100 * abs(value - 4) / 4}
            for n, (value, trains) in enumerate(runs)
            for target, method in (("time_s", "paper"), ("energy_wh", "paper"), ("time_s", "log"))
        ]  # fmt: skip
        with open(tmp_path / "predictions.csv", "w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return str(tmp_path / "predictions.csv")

    return write


def test_observed_predicted_and_the_error_over_the_papers_epochs(made_up, job_of, numbers, table):
    """Of epochs 1 to 5, one is not valid and one has no energy."""
    four = {"energy_paper_wh": 4.0}
    epochs = [four, four, INVALID, {}, *([four] * 6)]
    runs = [made_up(*epochs, power_mode=mode) for mode in "ab"]
    draw(job_of("fig10", *runs, predictions=table((5.0, True), (3.0, False))))
    columns = ("power_mode", "quantity", "value", "in_training_set", "n_epochs")
    assert numbers("fig10a", *columns) == [
        ("a", "e2e_s", "4.0", "True", "8"),
        ("a", "predicted_e2e_s", "5.0", "True", "8"),
        ("a", "mape_pct", "25.0", "True", "4"),
        ("b", "e2e_s", "4.0", "False", "8"),
        ("b", "predicted_e2e_s", "3.0", "False", "8"),
        ("b", "mape_pct", "25.0", "False", "4"),
    ]
    assert numbers("fig10b", "quantity", "value", "n_epochs")[:3] == [
        ("energy_paper_wh", "4.0", "7"),
        ("predicted_energy_paper_wh", "5.0", "7"),
        ("mape_pct", "25.0", "3"),
    ]


def test_runs_that_look_alike_have_predictions_of_their_own_and_vgg_none_of_energy(
    made_up, job_of, numbers, table
):
    """Two scales of one data set, in the same mode; another network that no model was fitted to."""
    runs = [made_up(power_mode=mode, dataset_scale=of) for of in (1.0, 0.5) for mode in "ab"]
    runs += [made_up(model="vgg11", power_mode=mode) for mode in "ab"]
    values = ((5.0, True), (3.0, False), (7.0, True), (9.0, False))
    draw(job_of("fig10", *runs, predictions=table(*values)))
    found = numbers("fig10a", "quantity", "value", "missing")
    assert [value for name, value, _ in found if name == "predicted_e2e_s"] == [
        *("5.0", "3.0", "7.0", "9.0", "", "")
    ]
    assert ("mape_pct", "", "no model was fitted") in found
    assert {model for (model,) in numbers("fig10a", "model")} == {"lenet", "vgg11"}
    assert {model for (model,) in numbers("fig10b", "model")} == {"lenet"}
    assert ("energy_paper_wh", "not measured") in numbers("fig10b", "quantity", "missing")
