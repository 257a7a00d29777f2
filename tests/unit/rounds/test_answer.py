"""Fleets of files: what is read, refused and answered."""

import numpy as np
import pandas as pd
import pytest
import yaml

from epochwatt import columns
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.rounds.answer import Request, answer_lines, find_answer, table_of, write_table
from epochwatt.rounds.plan import energy_j

CLOCKS = (306, 612, 918)
SIMULATED = {"device": "orin", "workload": "resnet", "grid": "fulcrum-orin"}


@pytest.fixture
def ask(tmp_path):
    """Return a function that plans for boards of one measured table, changed as it is told."""
    table = tmp_path / "modes.csv"
    rows = [
        {
            "device": "agx_orin",
            "workload": "net",
            "task": "train",
            "batch_size": 10,
            "cores": 4,
            "cpu_mhz": 1000,
            "gpu_mhz": mhz,
            "emc_mhz": 2133,
            "time_s": 0.1 * 918 / mhz,
            "power_w": 5 + 25 * (mhz / 918) ** 2,
            "power_scope": "module",
        }
        for mhz in CLOCKS
    ]
    pd.DataFrame(rows).to_csv(table, index=False)

    def ask(*boards, request=None, **fleet):
        usual = {"table": str(table), "waiting_w": 2.0}
        path = tmp_path / "fleet.yaml"
        path.write_text(yaml.safe_dump({"boards": [usual | b for b in boards], **fleet}))
        return find_answer(Request(path, **request or {}))

    return ask


def test_a_board_with_little_data_runs_slowly(ask):
    answer = ask({"name": "much", "samples": 900}, {"name": "little", "samples": 300, "count": 2})
    table = table_of(answer).set_index("board")
    assert list(table["mode"]) == [
        "4 cores, CPU 1000, GPU 918, memory 2133 MHz",
        "4 cores, CPU 1000, GPU 306, memory 2133 MHz",
    ]
    assert answer.planned.end_s == pytest.approx(9.0)
    assert table.loc["little", "energy_j"] == pytest.approx(9 * (5 + 25 / 9))
    lines = answer_lines(answer)
    assert "3 boards, 1,500 samples" in lines[0]
    fast_j, slow_j = 9 * 30, 2 * (3 * 30 + 6 * 2)
    saved = 1 - energy_j(answer.clients, answer.planned) / (fast_j + slow_j)
    assert f"saves {100 * saved:.3g} %" in "\n".join(lines)


def test_transfers_the_engine_and_epochs_are_part_of_a_round(ask):
    board = {"name": "one", "samples": 95, "bandwidth_mbit_s": 80}
    answer = ask(board, model_mb=20, engine_s=3, local_epochs=2)
    assert answer.planned.end_s == pytest.approx(3 + 2 * 2 + 2 * 1.0)  # 10 mini-batches of 10
    assert table_of(answer)["samples"].item() == 190


def test_a_risk_leaves_slack_and_is_kept(ask):
    boards = [{"name": f"b{k}", "samples": 600 + k, "spread_pct": 5} for k in range(8)]
    answer = ask(*boards, request={"max_risk": 0.1})
    rng, late = np.random.default_rng(0), []
    for _ in range(4000):
        ends_s = [
            client.around_s + client.fit_s[k] * np.exp(client.spread[k] * rng.standard_normal())
            for client, k in zip(answer.clients, answer.planned.choices, strict=True)
        ]
        late.append(max(ends_s) > answer.planned.end_s)
    assert np.mean(late) <= 0.115
    row = table_of(answer)
    assert 1 - np.prod(1 - row["late"]) == pytest.approx(np.mean(late), abs=0.02)


def test_a_risk_without_a_spread_is_not_taken_for_none(ask):
    board = {"name": "one", "samples": 900}
    lines = answer_lines(ask(board, request={"max_risk": 0.1}))
    assert not any(line.startswith("Some board ends later in") for line in lines)
    known = answer_lines(ask(board | {"spread_pct": 5}, request={"max_risk": 0.1}))
    assert any(line.startswith("Some board ends later in 10 %") for line in known)


def test_what_a_table_lacks_is_predicted(ask):
    board = {"name": "one", "samples": 900, "grid": {"random": 200}}
    answer = ask(board, request={"deadline_s": 30.0, "max_risk": 0.2})
    assert "PREDICTED" in answer_lines(answer)[0]
    high_s = table_of(answer)["end_high_s"].item()
    assert high_s > table_of(answer)["end_s"].item()
    spread = ask(board | {"spread_pct": 30}, request={"deadline_s": 90.0, "max_risk": 0.2})
    both = np.hypot(answer.clients[0].spread, np.log(1.3))
    assert spread.clients[0].spread == pytest.approx(both)


def test_a_draw_of_modes_has_the_strongest(ask):
    """Else the round in the strongest modes, which plans are held against, is another one."""
    for board in (SIMULATED | {"table": None}, {}):
        answer = ask({"name": "one", "samples": 90, **board, "grid": {"random": 5}})
        assert len(answer.members[0].modes) == 6
        assert answer.strongest.end_s == pytest.approx(answer.clients[0].end_s().min(), rel=0.01)


def test_boards_that_may_choose_how_much_they_train(ask):
    boards = [{"name": "a", "samples": [100, 900]}, {"name": "b", "samples": 600}]
    answer = ask(*boards, request={"objective": "energy_per_sample"})
    assert table_of(answer).set_index("board").loc["a", "samples"] == 600  # as long as b


def test_the_table_of_a_plan_is_written(ask, tmp_path):
    answer = ask({"name": "one", "samples": 95})
    write_table(answer, tmp_path / "plan.csv")
    assert pd.read_csv(tmp_path / "plan.csv")["end_s"].item() == pytest.approx(1.0)


LOG_HEAD = "round,node,board,mode,samples,planned_fit_s,fit_s,end_s,energy_j,flags\n"
SLOW = '"4 cores, CPU 1000, GPU 306, memory 2133 MHz"'


def test_measured_rounds_correct_the_tables(ask, tmp_path):
    """Fits of node 2 take 1.5 times as long, of half the samples: 1.5 s around each."""
    log = tmp_path / "rounds.csv"
    rows = [f"{n},2,little,{SLOW},150,4.5,6.75,8.25,60,\n" for n in (2, 3)]
    rows += ["1,2,little,,,,3,4,20,\n", f"4,2,little,{SLOW},150,4.5,99,99,60,mode_not_met\n"]
    log.write_text(LOG_HEAD + "".join(rows))
    boards = ({"name": "much", "samples": 900}, {"name": "little", "samples": 300})
    bare, answer = ask(*boards), ask(*boards, rounds=str(log))
    much, little = answer.clients
    assert much.fit_s == pytest.approx(bare.clients[0].fit_s)
    assert little.fit_s == pytest.approx(1.5 * bare.clients[1].fit_s)
    assert little.around_s == pytest.approx(1.5)
    slow_w = 120 / 13.5  # of 300 samples
    assert little.fit_j[0] / little.fit_s[0] == pytest.approx(slow_w)
    assert table_of(answer)["power_w"][1] > slow_w
    assert little.spread == pytest.approx(np.log(1.5))
    assert table_of(answer)["mode"][1] != table_of(bare)["mode"][1]  # 306 MHz would end too late
    lines = answer_lines(answer)
    assert "CORRECTED by measured rounds" in lines[0]
    assert "2 measured fits of 1 board took 1.5 times what tables say." in lines


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", ["it is no log of rounds", "board", "PlannedRounds"]),
        (LOG_HEAD, ["no fit of a board of this fleet", "0 fits"]),
        (f"{LOG_HEAD}2,1,other,{SLOW},9,1,1,2,9,\n", ["1 fits of other"]),
        (f"{LOG_HEAD}2,1,one,GPU 7 MHz,9,1,1,2,9,\n", ["one has no mode GPU 7 MHz", "round 2"]),
        (f"{LOG_HEAD}2,1,one,{SLOW},9,1,fast,2,9,\n", ["a number of a fit is wrong", "fast"]),
        (None, ["rounds.csv"]),
    ],
)
def test_wrong_logs_of_rounds_are_refused(ask, tmp_path, text, told):
    log = tmp_path / "rounds.csv"
    if text is not None:
        log.write_text(text)
    with pytest.raises(ConfigError) as raised:
        ask({"name": "one", "samples": 90}, rounds=str(log))
    assert all(word in str(raised.value) for word in told), raised.value


@pytest.mark.parametrize(
    ("boards", "told"),
    [
        ([{"name": "a", "samples": 0}], ["board a: samples is 0", "allowed: 1 or more", "do:"]),
        ([{"name": "a", "samples": [9, 3]}], ["board a: samples is [9, 3]"]),
        (
            [{"name": "a", "samples": 9}, {"name": "a", "samples": 8}],
            ["board a: 2 boards have this name", "`count`"],
        ),
        (
            [{"name": "a", "samples": 9, "table": None, "device": "orin"}],
            ["board a: it has no table", "no workload, grid", "do: add `table`"],
        ),
        (
            [{"name": "a", "samples": 9, "table": "nowhere.csv"}],
            ["board a: nowhere.csv cannot be read"],
        ),
        (
            [{"name": "a", "samples": 9, "table": None, **SIMULATED, "device": "orin.nano"}],
            ["board a: the simulator has no orin.nano", "agx", "do: give it a table"],
        ),
        (
            [{"name": "a", "samples": 9, "table": None, **SIMULATED, "grid": "all-xavier"}],
            ["board a: grid all-xavier is one of Jetson AGX Xavier"],
        ),
        ([{"name": "a", "samples": 9, "workload": "other"}], ["no such tables", "net"]),
        ([{"name": "a", "samples": 9, "modes": [{"gpu_mhz": 700}]}], ["no mode", "306, 612, 918"]),
        ([{"name": "a", "samples": 9, "modes": [{"gpu": 612}]}], ["'gpu'", *columns.CLOCKS]),
        ([{"name": "a", "samples": 9, "max_power_w": 3}], ["no mode", "7.778 W"]),
        ([{"name": "a", "samples": 9, "waiting_w": "governed"}], ["simulated board"]),
        ([{"name": "a", "samples": 9, "watts": 3}], ["watts"]),
        ([{"name": "a", "samples": "few"}], ["boards.0.samples is 'few'", "a whole number or"]),
        ([{"name": "a", "samples": 10**20}], ["boards.0.samples", "<= 1000000000000"]),
        ([{"name": "a", "samples": 9, "waiting_w": "low"}], ["waiting_w is 'low'", "'governed'"]),
        ([{"name": "a", "samples": 9, "waiting_w": np.inf}], ["waiting_w is inf"]),
        ([{"name": "a", "samples": 9, "modes": [{}]}], ["boards.0.modes.0 is {}"]),
        ([{"name": "a", "samples": 9, "grid": {"randon": 3}}], ["randon", "any_size"]),
    ],
)
def test_wrong_fleets_are_refused(ask, boards, told):
    with pytest.raises(EpochwattError) as raised:
        ask(*boards)
    assert all(word in str(raised.value) for word in told)


def test_a_deadline_nobody_can_keep(ask):
    with pytest.raises(ConfigError, match="no round ends within 5 s"):
        ask({"name": "one", "samples": 900}, request={"deadline_s": 5.0})
    with pytest.raises(ConfigError, match="a risk of"):
        ask({"name": "one", "samples": 900}, request={"max_risk": 0.7})
