"""Groupings beside the take-aways: who is held out with whom, and that nothing of it is left."""

import pytest

from epochwatt.published.folds import GROUPINGS, fold_of, groupings, judged, load_leaks


@pytest.fixture(scope="module")
def found(published, twin):
    return groupings(published, twin)


def test_every_judged_number_of_the_main_paper_is_in_one_fold_of_each_grouping(
    published, twin, found
):
    rows, leaks, facts = judged(twin), load_leaks(twin, published.facts()), published.facts()
    expected = {n for n, f in facts.items() if rows[n].is_simulable and f.paper[0] == "s"}
    assert found.keys() == GROUPINGS.keys()
    for grouping, folds in found.items():
        assert sum(len(fold.ids) for fold in folds.values()) == len(expected)
        assert fold_of(folds).keys() == expected
        assert all(name.startswith(f"{grouping} ") for name in folds)
        for fold in folds.values():  # what gives it away leaves with it
            assert fold.ids <= fold.removed
            values = {n for n in fold.removed if rows[n].judged_as != "bound"}
            assert not {i for k in leaks if k.ids & values for i in k.ids} - fold.removed


@pytest.mark.parametrize(
    ("grouping", "keys"),
    [("board", ["device"]), ("network", ["model"]), ("board_network", ["device", "model"])],
)
def test_no_number_of_what_is_left_out_is_seen(published, found, grouping, keys):
    facts = published.facts()

    def groups(fact):
        return {tuple(run.get(key) for key in keys) for run in fact.runs if keys[0] in run}

    for fold in found[grouping].values():
        own = set().union(*(groups(facts[name]) for name in fold.ids))
        kept = [f for n, f in facts.items() if n not in fold.removed and f.paper[0] == "s"]
        assert not [f.id for f in kept if groups(f) & own], fold.takeaway


def test_a_number_of_several_boards_is_left_out_with_all_of_them(found):
    together = found["board"]["board agx + nano + nx"]
    assert len(together.ids) == 1
    for alone in ("board agx", "board nx", "board nano"):
        assert together.ids <= found["board"][alone].removed
        assert found["board"][alone].ids <= together.removed
        assert not together.ids & found["board"][alone].ids
