"""The study of rounds, on boards whose modes are planted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from epochwatt.columns import ROUND_COLUMNS
from epochwatt.rounds import study as rounds
from epochwatt.rounds.config import FederatedStudy
from epochwatt.rounds.plan import energy_j, fixed_round, least_energy_j, plan_round
from epochwatt.rounds.rules import RULES, Played, Task, plan_with_slack, play
from epochwatt.rounds.simulated import Catalogue, Known, draw_fleet, known_modes, predicted_modes
from epochwatt.rounds.study import compare
from epochwatt.rounds.trainings import TRAINED_BY, Planner, disturb, train

STUDY = FederatedStudy(
    **{"workload": "net", "devices": ["slow", "fast"], "fleets": [8], "data": ["equal"]},
    **{"samples": 4000, "model_mb": 10, "bandwidth_mbit_s": 100, "engine_s": 1},
    **{"waiting": ["governed"], "waiting_factors": [0.5, 1], "judged_fleet": 8},
    **{"judged_data": ["equal"], "draws": 2, "modes": 30},
)


def planted():
    """Two kinds of boards, the second four times as fast; power falls with the clock's square."""
    clocks = np.linspace(0.2, 1, 9)
    grid = np.array([(4, 1000 * c, 1000 * g, 2000) for c in clocks for g in clocks])
    share = 0.2 * grid[:, 1] / 1000, 0.8 * grid[:, 2] / 1000
    time_s = 0.1 * (0.2 / (grid[:, 1] / 1000) + 0.8 / (grid[:, 2] / 1000))
    power_w = 3 + 10 * (share[0] ** 2 + share[1] ** 2)
    waiting_w = np.full(len(grid), 2.0)
    n = len(grid)
    modes = np.column_stack([grid, np.ones(n), np.zeros(n)])
    return Catalogue(
        "governed",
        ("slow", "fast"),
        (np.arange(n), np.arange(n, 2 * n)),
        np.array([n - 1, 2 * n - 1]),
        np.concatenate([modes, modes]),
        np.concatenate([time_s, time_s / 4]),
        np.concatenate([power_w, 2 * power_w]),
        np.concatenate([waiting_w, 2 * waiting_w]),
    )


CATALOGUE = planted()
KNOWN = known_modes(CATALOGUE)


@pytest.mark.parametrize("seed", range(20))
def test_a_best_plan_needs_no_other_than_the_useful_modes(seed):
    rng, n = np.random.default_rng(seed), 40
    modes = Known(np.arange(n), *rng.uniform(1, 9, (3, n)), np.zeros(n))
    useful = modes.useful()
    assert len(useful.rows) < n
    whole, few = [
        draw_fleet(CATALOGUE, STUDY, 5, "lognormal_0.5", seed).clients([known] * 5)
        for known in (modes, useful)
    ]
    latest_s = max(client.end_s().min() for client in whole) * 1.5
    costs = [energy_j(clients, plan_round(clients, latest_s=latest_s)) for clients in (whole, few)]
    assert costs[1] == pytest.approx(costs[0])


def test_fleets_are_those_of_their_seed_and_have_the_samples_that_are_asked():
    for data in ("equal", "proportional", "lognormal_0.5", "dirichlet_5"):
        one, again = (draw_fleet(CATALOGUE, STUDY, 200, data, 3) for _ in range(2))
        assert (one.minibatches == again.minibatches).all()
        assert one.minibatches.mean() == pytest.approx(4000 / 16, rel=0.01)
    fits_s = draw_fleet(CATALOGUE, STUDY, 200, "proportional", 0).fits_s(one.strongest)
    assert fits_s.max() == pytest.approx(fits_s.min(), rel=0.03)


def test_every_rule_gives_each_board_a_mode_of_its_kind_and_none_beats_the_oracle():
    fleet = draw_fleet(CATALOGUE, STUDY, 8, "lognormal_0.5", 0)
    few = predicted_modes(CATALOGUE, STUDY, 0)
    played = {}
    for name, rule in RULES.items():
        choice = rule(Task(fleet, STUDY, KNOWN, few, 0))
        kinds = [CATALOGUE.rows[kind] for kind in fleet.kind]
        assert all(row in rows for row, rows in zip(choice.rows, kinds, strict=True)), name
        played[name] = play(fleet, choice)
    whole = [name for name in played if name not in ("fedcs", "plan_work")]
    in_time = [name for name in whole if played[name].end_s <= played["oracle"].end_s]
    assert played["oracle"].energy_j == min(played[name].energy_j for name in in_time)
    assert played["fedcs"].trained < played["plan"].trained == played["maxn"].trained
    assert played["plan"].energy_j < 0.9 * played["maxn"].energy_j
    per_sample = {name: played[name].energy_j / played[name].trained for name in played}
    assert per_sample["plan_work"] < per_sample["plan"]


def test_what_is_compared_is_counted_by_hand():
    base = Played(*(10.0, np.array([10.0, 4]), np.array([9.0, 3]), np.array([90.0, 30])), *(2, 6))
    slow = Played(*(10.0, np.array([10.0, 9]), np.array([9.0, 8]), np.array([90.0, 20])), *(2, 3))
    assert base.energy_j == 120 + 2 * (1 + 7)
    row = compare(slow, base)
    per_sample = ((110 + 2 * 3) / 3) / (136 / 6)
    assert row["saved_pct"] == pytest.approx(100 * (1 - per_sample))
    assert row["rests_on_waiting_pct"] == pytest.approx(100 * 10 / 20)
    assert (row["longer_pct"], row["trained_pct"]) == (0, 50)
    assert row["early_pct"] == pytest.approx(5)
    assert row["apart_pct"] == pytest.approx(10)
    assert row["waiting_time_pct"] == pytest.approx(5)


def test_least_energy_by_deadlines_is_that_of_the_best_plan_for_each():
    fleet = draw_fleet(CATALOGUE, STUDY, 6, "lognormal_0.5", 1)
    clients = fleet.clients(fleet.of_kinds(KNOWN))
    earliest_s = max(client.end_s().min() for client in clients)
    ends_s = earliest_s * np.array([0.9, 1, 1.1, 1.5, 2, 5])
    least_j = least_energy_j(clients, ends_s)
    assert np.isnan(least_j[0])
    for end_s, cost_j in zip(ends_s[1:], least_j[1:], strict=True):
        assert cost_j == pytest.approx(energy_j(clients, plan_round(clients, latest_s=end_s)))
    assert np.isnan(least_energy_j(clients, ends_s[:1])).all()


def test_slack_leaves_as_few_late_as_asked_and_slows_nobody():
    fleet = draw_fleet(CATALOGUE, STUDY, 60, "lognormal_0.5", 2)
    clients = fleet.clients(fleet.of_kinds(KNOWN))
    chosen = plan_with_slack(clients, STUDY)
    slowest = max(clients, key=lambda client: client.end_s().min())
    end_s = float(slowest.end_s().min())
    assert fixed_round(clients, chosen).end_s == pytest.approx(end_s)
    rng, late = np.random.default_rng(0), 0
    others = [(c, k) for c, k in zip(clients, chosen, strict=True) if c is not slowest]
    for _ in range(1000):
        noise = np.exp(fleet.spread * rng.standard_normal(len(others)))
        fits_s = np.array([c.fit_s[k] for c, k in others]) * noise
        late += bool((fits_s + fleet.around_s > end_s).any())
    assert late / 1000 < 0.2  # those that are nearly as slow have less slack


def test_trainings_lose_less_when_they_are_planned_anew():
    study = STUDY.model_copy(update={"judged_fleet": 40})
    fleet = draw_fleet(CATALOGUE, study, 40, "equal", 0)
    quiet, wild = (
        {rule: train(Planner(fleet, study, KNOWN, rule), happens) for rule in TRAINED_BY}
        for happens in (disturb(fleet, study.training, is_wild, 1) for is_wild in (False, True))
    )
    assert all(totals.lost == 0 for totals in quiet.values())
    assert quiet["plan_again"].energy_j < quiet["maxn"].energy_j
    assert wild["plan_again"].lost < wild["plan_once"].lost
    assert wild["oracle"].lost <= wild["plan_again"].lost


def test_tables_have_the_columns_that_are_described():
    frames = [
        pd.DataFrame(judge(CATALOGUE, STUDY, KNOWN))
        for judge in (
            rounds.judge_rounds,
            rounds.judge_deadlines,
            rounds.timeline,
            rounds.judge_trainings,
        )
    ]
    described = {column.name for column in ROUND_COLUMNS}
    described |= {"provenance", "board", "device", "mode", "samples", "power_w"}
    assert {name for frame in frames for name in frame.columns} <= described
    assert all((frame.provenance == "simulated").all() for frame in frames)
    summary = rounds.summarise(frames[0], ["boards", "data", "waiting_factor", "rule"])
    assert (summary.draws == 2).all()
    assert set(summary[summary.waiting_factor.eq(1)].rule) == set(RULES)
    plan = summary[summary.waiting_factor.eq(1) & summary.rule.eq("plan")].iloc[0]
    assert plan.saved_p10_pct <= plan.saved_pct <= plan.saved_p90_pct


def test_waiting_costs_what_the_factor_says():
    fleet = draw_fleet(CATALOGUE, STUDY, 4, "equal", 0)
    half = replace(fleet, waiting_factor=0.5)
    choice = RULES["maxn"](Task(fleet, STUDY, KNOWN, KNOWN, 0))
    assert play(half, choice).waiting_j == pytest.approx(play(fleet, choice).waiting_j / 2)
