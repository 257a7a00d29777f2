"""Published relations: what they are here, and their words."""

import numpy as np
import pytest

from epochwatt.figures.common.published import (
    here_of,
    numbers_of,
    related,
    spread_pct,
)
from epochwatt.figures.common.runs import read_runs
from epochwatt.published.numbers import SPREADS

HDD = {"storage": "hdd", "model": "lenet"}


def runs_of(*paths):
    return read_runs(paths, [])


def test_change_between_two_runs_is_of_their_means_after_the_first_epoch(relations, made_up):
    alone = made_up({}, {"energy_paper_wh": 2.0}, {"energy_paper_wh": 4.0}, num_workers=0, **HDD)
    four = made_up({}, {"energy_paper_wh": 2.7}, num_workers=4, **HDD)
    number_of = numbers_of(runs_of(alone, four))
    (found,) = related([relations["RS5.1.7-01"]], number_of, frozenset({"RS5.1.7-01"}))
    assert found.here == pytest.approx((-10.0,))
    assert found.seen_by_fit
    assert found.reading() == "-5.4 %, here -10.0 %"


def test_inference_with_the_same_settings_takes_no_part_in_a_relation(relations, made_up):
    alone, four = (made_up({}, {"energy_paper_wh": 2.0}, num_workers=w, **HDD) for w in (0, 4))
    infers = made_up({}, {"energy_paper_wh": 9.0}, num_workers=4, task="infer", **HDD)
    number_of = numbers_of(runs_of(alone, four, infers))
    (found,) = related([relations["RS5.1.7-01"]], number_of, frozenset())
    assert found.here == pytest.approx((0.0,))


def test_relation_without_one_of_its_runs_is_left_out(relations, made_up):
    number_of = numbers_of(runs_of(made_up(num_workers=0, **HDD)))
    assert related([relations["RS5.1.7-01"]], number_of, frozenset()) == []


def test_only_relations_of_the_metrics_asked_for(relations, made_up):
    number_of = numbers_of(
        runs_of(*(made_up({}, {"energy_paper_wh": 2.0}, num_workers=w, **HDD) for w in (0, 4)))
    )
    found = related(relations.values(), number_of, frozenset(), ["energy_wh"])
    assert [one.relation.id for one in found] == ["RS5.1.7-01"]
    assert related(relations.values(), number_of, frozenset(), ["compute_s"]) == []


def test_mean_of_changes_over_boards(relations):
    stands_for = {"agx": (10.0, 9.0), "nx": (10.0, 8.0), "nano": (10.0, 7.0)}

    def number_of(config, metric):
        assert metric == "e2e_s"
        return stands_for[config["device"]][config["num_workers"]]

    assert here_of(relations["RS5.1.4-03"], number_of) == pytest.approx((-20.0,))


def test_share_over_several_runs_is_from_the_lowest_to_the_highest(relations):
    relation = relations["RS5.6.2-02"]
    assert here_of(relation, lambda config, _: float(ord(config["power_mode"]))) == (97.0, 106.0)
    assert here_of(relation, lambda config, _: None) == ()


def test_spreads_of_boards():
    boards = [np.array([9.0, 10.0, 11.0]), np.array([10.0, 10.0, 12.0]), np.array([])]
    assert spread_pct(SPREADS[1], boards) == pytest.approx((30.0,))
    assert spread_pct(SPREADS[2], boards) == pytest.approx((20.0,))
    assert spread_pct(SPREADS[2], []) == ()
    zeros = [np.array([0.0, 0.0, 1.0])]
    assert spread_pct(SPREADS[1], zeros) == spread_pct(SPREADS[2], zeros) == ()
