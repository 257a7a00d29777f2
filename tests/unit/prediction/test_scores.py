"""The job score_predictions, on a planted linear world."""

import csv

import pytest

from epochwatt.errors import EpochwattError
from epochwatt.prediction.scores import score_predictions, scores
from epochwatt.prediction.scoring import Priors
from epochwatt.prediction.workloads import benches, read_workloads


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_all_tables_are_written(planted, models, request):
    paths, modes = planted()
    folder = models(paths, modes)
    published = str(request.config.rootpath / "config/published")
    choices = str(folder / "power_modes.json")
    score_predictions(paths, modes, choices, published, [], str(folder))
    counted = {
        (row["fit"], row["statistic"], row["networks"], row["modes"]): row
        for row in read(folder / "statistics.csv")
        if row["target"] == "time_s"
    }
    row = counted["paper", "below 10 %", "all", "all"]
    assert (float(row["value"]), row["of"], row["agrees"]) == (40, "40", "yes")
    row = counted["paper", "below 10 %", "all", "not trained on"]
    assert (float(row["value"]), row["of"], row["agrees"]) == (24, "24", "yes")
    assert len(read(folder / "predictions.csv")) > 400
    every = [r for r in read(folder / "scores.csv") if r["learned_from"] == "every subset of four"]
    assert {(r["n_subsets"], r["n"]) for r in every} == {("210", str(210 * 6 * 4))}


def test_the_searchs_choice_has_no_error_and_costs_its_epochs(planted):
    (bench,) = benches(read_workloads(*planted(("lenet",), "abcde")))
    chosen = {"modes": {name: list(mode) for name, mode in bench.workloads["lenet"].modes.items()}}
    chosen["choices"] = {"paper": {"modes": ["a", "b", "c", "d"]}}
    rows = {(r["target"], r["fit"], r["learned_from"]): r for r in scores(bench, chosen)}
    row = rows["time_s", "paper", "the search's choice: a b c d"]
    assert row["worst_pct"] == pytest.approx(0, abs=1e-6)
    assert (row["n"], row["n_subsets"], row["networks"]) == (1, 1, "lenet")
    # 28, 26, 24 and 25 s in modes a to d; epoch 0 twice as long, then two more
    assert row["board_minutes_median"] == pytest.approx(4 * (28 + 26 + 24 + 25) / 60)


def test_models_on_a_prior_stand_among_them(planted):
    (bench,) = benches(read_workloads(*planted(("lenet",), "abcde")))
    modes = {name: list(mode) for name, mode in bench.workloads["lenet"].modes.items()}
    chosen = {"modes": modes, "choices": {}}

    def expect(workload):
        return Priors(lambda modes: 28e3 / modes[:, 2], lambda modes: modes[:, 1] / 100)

    def unknown(workload):
        raise EpochwattError("not simulated")

    fits = {row["fit"] for row in scores(bench, chosen, expect)}
    assert "on the twin's prior, by construction" in fits
    assert {row["fit"] for row in scores(bench, chosen, unknown)} < fits


def test_too_few_modes_have_no_score(planted):
    (bench,) = benches(read_workloads(*planted(("lenet",), "abcd")))
    modes = {name: list(mode) for name, mode in bench.workloads["lenet"].modes.items()}
    assert scores(bench, {"modes": modes, "choices": {}}) == []
