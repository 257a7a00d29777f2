"""The job choose_power_modes on a planted linear world."""

import csv
import json

import pytest

from epochwatt.prediction.data.workloads import board_groups, read_workloads
from epochwatt.prediction.selection.choose_power_modes import choices, ranked, search_of


@pytest.fixture
def group(planted):
    (found,) = board_groups(read_workloads(*planted()))
    return found


def test_search_is_the_papers_own(group):
    search = search_of(group)
    assert search.networks == ("lenet", "mobilenet", "resnet")
    assert "".join(search.modes) == "abcdefghij"
    assert search.missing == ""


def test_four_modes_that_fix_the_planted_world_predict_it_all(group):
    search = search_of(group)
    found = ranked(group, search)
    told = choices(group, search, found)
    assert told["paper"]["total_s"] == pytest.approx(0, abs=1e-9)
    assert (told["paper"]["rank"], told["paper"]["n_subsets"], told["paper"]["n_fixed"]) == (
        1,
        210,
        4,
    )
    assert told["published"]["modes"] == ["e", "f", "i", "j"]
    assert told["published"]["rank"] >= 1
    assert set(told["left_out"]) == {"lenet", "mobilenet", "resnet"}
    assert len(told["designed"]["modes"]) == 4
    worst = found["paper"][-1]
    assert worst.total_s > 1  # some subsets fix less


def test_on_other_setups_all_networks_count(planted):
    paths, modes = planted(("lenet", "vgg11"), "abcdef", setup="own")
    (group,) = board_groups(read_workloads(paths, modes))
    search = search_of(group)
    assert (search.networks, "".join(search.modes)) == (("lenet", "vgg11"), "abcdef")
    assert "published" not in choices(group, search, ranked(group, search))


@pytest.mark.parametrize(
    ("networks", "letters", "said"),
    [(("lenet",), "abcdef", "lenet: 6 power modes"), (("lenet", "resnet"), "abcd", "resnet: 4")],
)
def test_too_little_for_a_search_is_said_in_the_file(planted, models, networks, letters, said):
    folder = models(*planted(networks, letters))
    (told,) = json.loads((folder / "power_modes.json").read_text("utf-8"))["board_groups"]
    assert said in told["missing"]
    assert "a search needs 2 networks and 5 modes" in told["missing"]
    assert told["choices"] == {}
    assert (folder / "power_modes.csv").read_text("utf-8").strip() == ""


def test_ranking_has_every_subset_of_either_search(planted, models):
    folder = models(*planted())
    with open(folder / "power_modes.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["search"] for row in rows] == ["paper"] * 210 + ["paper_standardised"] * 210
    assert [row["rank"] for row in rows] == [str(n) for n in range(1, 211)] * 2
    last = rows[209]
    parts = [float(last[f"rmse_{name}_s"]) for name in ("lenet", "mobilenet", "resnet")]
    assert float(last["rmse_sum_s"]) == pytest.approx(sum(parts))


def renamed(row):
    row["power_mode"] = "zz"


def test_two_names_of_one_mode_are_one_mode(planted, beside):
    every = beside(*planted(setup="own"), renamed, lambda run: run.endswith("-d"))
    (group,) = board_groups(read_workloads(*every))
    search = search_of(group)
    assert "".join(search.modes) == "abcdefghij"
    assert choices(group, search, ranked(group, search))["paper"]["n_subsets"] == 210


def test_choice_does_not_hang_on_the_order_of_runs(planted):
    paths, modes = planted()
    (group,) = board_groups(read_workloads(paths[::-1], modes))
    search = search_of(group)
    assert "".join(search.modes) == "abcdefghij"
    told = choices(group, search, ranked(group, search))
    assert told["published"]["modes"] == ["e", "f", "i", "j"]


def test_file_says_what_each_group_is_of(planted, models, beside):
    def imported(row):
        row["imported"] = "scripts-2023"

    folder = models(*beside(*planted(("lenet", "resnet"), "abcde"), imported))
    told = json.loads((folder / "power_modes.json").read_text("utf-8"))["board_groups"]
    assert [group["factors"]["imported"] for group in told] == ["", "scripts-2023"]
    assert told[0]["data"]["resnet"] == {
        **{"dataset": "some", "dataset_source": "official", "dataset_scale": 1.0}
    }
    with open(folder / "power_modes.csv", newline="", encoding="utf-8") as handle:
        assert {row["board_group"] for row in csv.DictReader(handle)} == {"0", "1"}
