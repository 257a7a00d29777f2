"""The jobs predict_modes and score_predictions, on a planted linear world."""

import pytest

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.workloads import board_groups, read_workloads
from epochwatt.prediction.evaluation import score_predictions as job
from epochwatt.prediction.evaluation.predict_modes import predict_modes
from epochwatt.prediction.evaluation.score_predictions import score_predictions
from epochwatt.prediction.names import TARGETS
from epochwatt.prediction.registry import load_methods
from epochwatt.prediction.selection.choose_power_modes import Chosen
from epochwatt.tables import read_cells

METHODS = load_methods()


def scores(group, chosen, simulate=None):
    return job.scores(group, chosen, METHODS.values(), simulate).to_dict("records")


def is_paper(row):
    return (row["method"], row["learned_from"]) == ("paper", "paper")


@pytest.fixture
def scored(models, request):
    """Return a function that fits and scores some runs; gives the folder."""

    def make(paths, modes):
        folder = models(paths, modes)
        published = str(request.config.rootpath / "config/published")
        choices = str(folder / "power_modes.json")
        predict_modes(paths, modes, choices, published, str(folder))
        score_predictions(paths, modes, choices, [], str(folder))
        return folder

    return make


def test_the_searchs_choice_has_no_error_and_costs_its_epochs(planted):
    (group,) = board_groups(read_workloads(*planted(("lenet",), "abcde")))
    chosen = chosen_of(group, paper=["a", "b", "c", "d"])
    rows = {(r["target"], r["method"], r["learned_from"]): r for r in scores(group, chosen)}
    row = rows["time_s", "paper", "the search's choice: a b c d"]
    assert row["worst_pct"] == pytest.approx(0, abs=1e-6)
    assert (row["n"], row["n_subsets"], row["networks"]) == (1, 1, "lenet")
    # 28, 26, 24 and 25 s in modes a to d; epoch 0 twice as long, then two more
    assert row["board_minutes_median"] == pytest.approx(4 * (28 + 26 + 24 + 25) / 60)


def test_a_network_that_is_not_simulated_is_left_out_of_models_on_a_prior_alone(planted):
    (group,) = board_groups(read_workloads(*planted(("lenet", "resnet"), "abcde")))

    def expect(workload):
        if workload.name == "resnet":
            raise EpochwattError("the simulated boards know no 'resnet'\n  networks: lenet")
        return {"time_s": lambda m: 28e3 / m[:, 2], "power_w": lambda m: m[:, 1] / 100}

    rows = scores(group, chosen_of(group), expect)
    found = {(row["networks"], row["left_out"]) for row in rows if row["by_construction"]}
    assert found == {("lenet", "resnet: the simulated boards know no 'resnet'")}
    on_prior = {(row["method"], row["target"]) for row in rows if row["by_construction"]}
    assert on_prior == {("twin_prior", target) for target in TARGETS}
    plain = [row for row in rows if not row["by_construction"]]
    assert plain == scores(group, chosen_of(group))
    assert {(row["networks"], row["left_out"]) for row in plain} == {("lenet resnet", "")}


def test_too_few_modes_have_no_score(planted):
    (group,) = board_groups(read_workloads(*planted(("lenet",), "abcd")))
    assert scores(group, chosen_of(group)) == []


def chosen_of(group, **choices):
    """Return a group as in power_modes.json."""
    first = next(iter(group.workloads.values()))
    modes = {name: list(mode) for name, mode in first.modes.items()}
    choices = {name: {"modes": of} for name, of in choices.items()}
    return Chosen(group.factors, {}, (), (), modes, "", choices)


def test_energy_that_is_missing_in_part_leaves_its_network_out(planted, scored, edit_rows):
    paths, modes = planted(("lenet", "resnet"), "abcde")

    def change(row):
        if row["epoch"] == "3":
            row |= {"energy_paper_wh": "", "power_scope": ""}

    edit_rows(paths[3], change)  # lenet, d
    folder = scored(paths, modes)
    said = "lenet: energy was measured in 14 of 15 epochs after the first"
    for row in read_cells(folder / "scores.csv"):
        of_time = row["target"] == "time_s"
        assert row["left_out"] == ("" if of_time else said)
        assert row["networks"].startswith("lenet") == of_time
        assert float(row["worst_pct"]) < 1000
    rows = read_cells(folder / "predictions.csv")
    assert {row["model"] for row in rows if row["target"] == "energy_wh"} == {"resnet"}
    assert not [row for row in rows if "nan" in row.values()]


def test_runs_of_the_2023_scripts_are_a_group_of_their_own(planted, scored, beside):
    """Their energy is ten times as high: counted by the wrong models it would be far off."""

    def imported(row):
        row["imported"] = "scripts-2023"
        row["e2e_s"] = 3 * float(row["e2e_s"])
        row["energy_paper_wh"] = row["energy_paper_wh"] and 10 * float(row["energy_paper_wh"])

    folder = scored(*beside(*planted(("lenet", "resnet"), "abcde"), imported))
    predictions = [row for row in read_cells(folder / "predictions.csv") if is_paper(row)]
    assert max(float(row["mape_pct"]) for row in predictions) < 1e-6
    for row in predictions:
        assert row["board_group"] == str(int(row["run"].endswith("-beside")))
    counted = [
        (row["board_group"], row["n_predictions"])
        for row in read_cells(folder / "statistics.csv")
        if is_paper(row)
        and (row["statistic"], row["networks"], row["modes"]) == ("below 10 %", "all", "all")
    ]
    assert counted == [("0", "10"), ("1", "10")]
    assert {row["board_group"] for row in read_cells(folder / "scores.csv")} == {"0", "1"}
