"""Groupings beside the take-aways: who is held out with whom, and that nothing of it is left."""

import pytest

from epochwatt.published.folds import judged, load_leaks
from epochwatt.published.groupings import GROUPINGS, fold_of, groupings
from epochwatt.published.numbers import load_published, single


@pytest.fixture(scope="module")
def published(request):
    return load_published(request.config.rootpath / "config/published")


@pytest.fixture(scope="module")
def twin(request):
    return request.config.rootpath / "config/twin"


@pytest.fixture(scope="module")
def found(published, twin):
    return groupings(published, twin)


def runs(fact):
    sides = fact.sides
    return [config for side in sides for config in single(side)]


def test_every_judged_number_of_the_main_paper_is_in_one_fold_of_each_grouping(
    published, twin, found
):
    rows = judged(twin)
    expected = {
        name
        for name, fact in published.facts().items()
        if rows[name].is_simulable and fact.paper == "sigmetrics2023"
    }
    assert found.keys() == GROUPINGS.keys()
    for grouping, folds in found.items():
        assert sum(len(fold.ids) for fold in folds.values()) == len(expected)
        assert fold_of(folds).keys() == expected
        assert all(name.startswith(f"{grouping} ") for name in folds)
        assert all(fold.ids <= fold.removed for fold in folds.values())


@pytest.mark.parametrize("key", ["device", "model"])
def test_no_number_of_a_board_or_network_that_is_left_out_is_seen(published, found, key):
    grouping = {"device": "board", "model": "network"}[key]
    facts = published.facts()
    for fold in found[grouping].values():
        own = {run.get(key) for name in fold.ids for run in runs(facts[name])} - {None}
        kept = [f for n, f in facts.items() if n not in fold.removed and f.paper[0] == "s"]
        assert not [f.id for f in kept for run in runs(f) if run.get(key) in own], fold.takeaway


def test_no_pair_of_board_and_network_that_is_left_out_is_seen(published, found):
    facts = published.facts()

    def pairs(fact):
        return {(run.get("device"), run.get("model")) for run in runs(fact) if "device" in run}

    for fold in found["board_network"].values():
        own = set().union(*(pairs(facts[name]) for name in fold.ids))
        kept = [f for n, f in facts.items() if n not in fold.removed and f.paper[0] == "s"]
        assert not [f.id for f in kept if pairs(f) & own], fold.takeaway


def test_section_takes_all_its_takeaways(published, found):
    facts = published.facts()
    for name, fold in found["section"].items():
        section = name.split()[1]
        assert {n for n, f in facts.items() if f.takeaway.startswith(section)} <= fold.removed


def test_what_gives_a_group_away_leaves_with_it(published, twin, found):
    rows, leaks = judged(twin), load_leaks(twin, published.facts())
    for folds in found.values():
        for fold in folds.values():
            values = {n for n in fold.removed if rows[n].judged_as != "bound"}
            assert not {i for k in leaks if k.ids & values for i in k.ids} - fold.removed


def test_a_number_of_several_boards_is_left_out_with_all_of_them(found):
    together = found["board"]["board agx + nano + nx"]
    assert len(together.ids) == 1
    for alone in ("board agx", "board nx", "board nano"):
        assert together.ids <= found["board"][alone].removed
        assert found["board"][alone].ids <= together.removed
        assert not together.ids & found["board"][alone].ids
