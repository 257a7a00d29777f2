"""`PlannedFit` and `PlannedRounds` on nodes in simulated time, in the environment that has Flower.

`test_flower.py` runs it there: Flower's pins exclude those of the checkout.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from epochwatt.errors import ConfigError
from epochwatt.integrations import flower
from epochwatt.integrations.flower import KEY, PlannedFit, PlannedRounds
from epochwatt.rounds.fleet import load_fleet, members_of

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # else there is no message
SAMPLES = {"a": 100, "b": 210, "c": 440}
MHZ = (100, 200, 400)
AROUND_S = 4.0


def fit_s(board, mhz):
    """Return what a table says of a fit: 10 s for 100 samples at the highest clock."""
    return SAMPLES[board] / 10 * 400 / mhz


def power_w(mhz):
    return 2 + 8 * (mhz / 400) ** 2


class Nodes:
    """Nodes as Flower's grid shows them; their time is simulated."""

    def __init__(self, boards):
        self.boards = dict(enumerate(boards, 100))  # node -> board
        self.slowness = dict.fromkeys(self.boards, 1.0)
        self.flags = dict.fromkeys(self.boards, "")
        self.dead, self.now_s, self._sent, self.asked = set(), 0.0, {}, []
        self.before_round = lambda number: None

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds

    def get_node_ids(self):
        return list(self.boards)

    def push_messages(self, messages):
        if not messages:  # nothing is evaluated
            return []
        number = messages[0].content[KEY]["round"]
        self.before_round(number)
        self.asked.append({m.metadata.dst_node_id: dict(m.content[KEY]) for m in messages})
        for message in messages:
            node = message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = f"{number}-{node}"
            took_s = fit_s(self.boards[node], message.content[KEY].get("cpu_mhz", 400))
            ready_s = self.now_s + AROUND_S + took_s * self.slowness[node]
            if node not in self.dead:
                self._sent[f"{number}-{node}"] = (ready_s, self._reply(message))
        return [m.metadata.message_id for m in messages]

    def pull_messages(self, ids):
        return [
            self._sent.pop(id_)[1]
            for id_, (ready_s, _) in sorted(self._sent.items(), reverse=True)
            if id_ in ids and ready_s <= self.now_s
        ]

    def _reply(self, message):
        node, order = message.metadata.dst_node_id, message.content[KEY]
        mhz = order.get("cpu_mhz", 400)
        took_s = fit_s(self.boards[node], mhz) * self.slowness[node]
        told = {
            "round": order["round"],
            "board": self.boards[node],
            "fit_s": took_s,
            "mode_set": True,
            "flags": self.flags[node],
            "energy_j": took_s * power_w(mhz),
        }
        weights = ArrayRecord([np.float32([0.1 * node, 1e8 / node])])
        metrics = MetricRecord({"num-examples": SAMPLES.get(self.boards[node], 50)})
        content = RecordDict({"arrays": weights, "metrics": metrics, KEY: ConfigRecord(told)})
        return Message(content, reply_to=message)


@pytest.fixture
def fleet(tmp_path):
    """Return a function that writes a fleet with a table for each board."""
    entries = []
    for board in SAMPLES:
        rows = [
            {
                "device": "board",
                "workload": "net",
                "task": "train",
                "batch_size": 10,
                "cpu_mhz": mhz,
                "time_s": fit_s(board, mhz) / SAMPLES[board] * 10,
                "power_w": power_w(mhz),
                "power_scope": "module",
            }
            for mhz in MHZ
        ]
        pd.DataFrame(rows).to_csv(tmp_path / f"{board}.csv", index=False)
        table = str(tmp_path / f"{board}.csv")
        entries.append({"name": board, "table": table, "samples": SAMPLES[board], "waiting_w": 1.5})
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump({"boards": entries, "engine_s": AROUND_S}))
    return path


@pytest.fixture
def run(fleet, tmp_path, monkeypatch):
    """Return a function that runs rounds on nodes; it gives the result and the log."""

    def run(nodes, n_rounds, **options):
        monkeypatch.setattr(flower, "time", nodes)
        n = len(nodes.boards)
        inside = FedAvg(fraction_evaluate=0.0, min_train_nodes=n, min_available_nodes=n)
        strategy = PlannedRounds(inside, fleet, tmp_path / "rounds.csv", **options)
        first = ArrayRecord([np.zeros(2, "float32")])
        result = strategy.start(nodes, first, num_rounds=n_rounds)
        return result, pd.read_csv(tmp_path / "rounds.csv", keep_default_na=True)

    return run


def of(log, number, board):
    return log[(log["round"] == number) & (log["board"] == board)].iloc[0]


def test_from_the_second_round_on_boards_end_together_and_fits_are_as_planned(run):
    nodes = Nodes("abc")
    _, log = run(nodes, 3)
    assert "cpu_mhz" not in nodes.asked[0][100]  # the first is as they are found
    for asked in nodes.asked[1:]:
        assert [asked[n]["cpu_mhz"] for n in sorted(asked)] == [100, 200, 400]
    planned = log[log["round"] > 1]
    np.testing.assert_allclose(planned["fit_s"], planned["planned_fit_s"])
    np.testing.assert_allclose(planned["energy_j"], planned["planned_fit_j"])
    np.testing.assert_allclose(planned["end_s"], planned["planned_end_s"], atol=2 * flower.POLL_S)
    assert planned["end_s"].between(44, 48 + 2 * flower.POLL_S).all()
    assert of(log, 2, "a")["why"] == "a is new; b is new; c is new"
    assert pd.isna(of(log, 3, "a")["why"])


def test_a_board_that_slows_or_throttles_changes_the_next_plan(run):
    nodes = Nodes("abc")

    def change(number):
        nodes.slowness[101] = 1.9 if number >= 4 else 1.0
        nodes.flags[101] = "throttled" if number == 4 else ""

    nodes.before_round = change
    _, log = run(nodes, 6, patience_s=60.0)
    asked = [round_of[101]["cpu_mhz"] for round_of in nodes.asked[1:]]
    assert asked == [200, 200, 200, 400, 400]
    assert of(log, 5, "a")["why"] == "b throttles; b takes 1.9 times as long"
    assert of(log, 5, "b")["planned_fit_s"] == pytest.approx(39.9) == of(log, 5, "b")["fit_s"]


def test_a_board_that_leaves_is_waited_for_once_and_comes_back(run):
    nodes = Nodes("abc")

    def change(number):
        nodes.dead = {102} if number in (3, 4) else set()

    nodes.before_round = change
    _, log = run(nodes, 7, patience_s=5.0)
    assert of(log, 3, "a")["round_s"] == pytest.approx(48 + 5, abs=0.5)
    assert log[(log["board"] == "c") & log["round"].isin((3, 4))]["fit_s"].isna().all()
    assert of(log, 4, "a")["why"] == "c is missing"
    assert of(log, 4, "b")["planned_round_s"] == pytest.approx(25, abs=0.5)  # without c
    # its fit of round 5 ends after that round, in round 6: from 7 on it is waited for again
    assert of(log, 7, "a")["why"] == "c is late"
    assert of(log, 7, "b")["planned_round_s"] == pytest.approx(48, abs=0.5)
    assert of(log, 7, "c")["end_s"] == pytest.approx(48, abs=0.5)


def test_a_fit_that_ends_after_its_round_is_learned_from_and_counted_once(run):
    nodes = Nodes("abc")
    nodes.before_round = lambda number: nodes.slowness.update({101: 4.0 if number == 3 else 1.0})
    _, log = run(nodes, 7, patience_s=5.0)
    of_three = log[(log["round"] == 3) & (log["board"] == "b")]
    assert list(of_three["energy_j"].notna()) == [False, True]
    assert of_three.iloc[1]["flags"] == "late"
    assert log["energy_j"].notna().sum() == 7 * 3
    assert of(log, 7, "b")["planned_fit_s"] == pytest.approx(42)  # it was slow, and is no more


def test_replies_are_averaged_in_the_order_of_nodes(run):
    result, _ = run(Nodes("abc"), 2)
    replies = [(n, s) for n, s in zip((100, 101, 102), SAMPLES.values(), strict=True)]
    total, expected = sum(SAMPLES.values()), None
    for node, n_samples in replies:
        term = np.float32([0.1 * node, 1e8 / node]) * (n_samples / total)
        expected = term if expected is None else expected + term
    (weights,) = [value.numpy() for value in result.arrays.values()]
    assert weights.tobytes() == expected.tobytes()


def test_a_board_that_the_fleet_lacks_trains_as_it_is(run):
    SAMPLES["x"] = 50
    try:
        nodes = Nodes("abx")
        _, log = run(nodes, 3)
    finally:
        del SAMPLES["x"]
    assert all("cpu_mhz" not in asked[102] for asked in nodes.asked)
    assert log[log["board"] == "x"]["planned_fit_s"].isna().all()
    assert nodes.asked[2][100]["cpu_mhz"] == 200


def test_a_deadline_that_no_round_keeps(run, fleet, tmp_path):
    with pytest.raises(ConfigError, match="no round ends within 10 s"):
        PlannedRounds(FedAvg(), fleet, tmp_path / "log.csv", deadline_s=10.0)
    nodes = Nodes("abc")
    nodes.before_round = lambda number: nodes.slowness.update({102: 1.5 if number > 2 else 1.0})
    _, log = run(nodes, 4, deadline_s=50.0)
    assert "no round ends within 50 s" in of(log, 4, "a")["why"]
    assert of(log, 4, "a")["planned_round_s"] == pytest.approx(70, abs=0.5)


def test_its_log_corrects_the_tables_of_the_fleet(run, fleet, tmp_path):
    nodes = Nodes("abc")
    nodes.slowness[101] = 1.2
    run(nodes, 4)
    log = {"rounds": str(tmp_path / "rounds.csv")}
    fleet.write_text(yaml.safe_dump(yaml.safe_load(fleet.read_text()) | log))
    members = members_of(load_fleet(fleet))
    assert [member.slower for member in members] == pytest.approx([1, 1.2, 1])
    assert [member.n_fits for member in members] == [3, 3, 3]
    around_s = [member.client.around_s for member in members]
    assert around_s == pytest.approx([AROUND_S] * 3, abs=2 * flower.POLL_S)


class Held:
    """A keeper that notes what it is asked for."""

    def __init__(self, mode, dvfs, machine):
        self.mode, self.is_alone, self.is_set, self.flags = mode, Held.alone, True, ["throttled"]
        self.is_closed = False
        Held.last = self

    def close(self):
        self.is_closed = True


@pytest.fixture
def message(monkeypatch):
    monkeypatch.setattr(flower, "HeldMode", Held)
    Held.alone = True
    order = ConfigRecord({"round": 7, "cpu_mhz": 200, "gpu_mhz": 612.0, "samples": 10})
    content = RecordDict({"arrays": ArrayRecord([np.zeros(1)]), KEY: order})
    return Message(content, dst_node_id=5, message_type="train")


CONTEXT = Context(1, 5, {"board": "orin"}, RecordDict(), {})


def reply_to(message, context):
    return Message(RecordDict({"metrics": MetricRecord({"num-examples": 10})}), reply_to=message)


def test_a_fit_is_measured_in_the_mode_that_is_asked_for(message):
    reply = PlannedFit()(message, CONTEXT, reply_to)
    told = reply.content[KEY]
    assert Held.last.mode == {"cpu_mhz": 200, "gpu_mhz": 612.0}
    assert Held.last.is_closed
    assert (told["board"], told["round"], told["mode_set"]) == ("orin", 7, True)
    assert 0 < told["fit_s"] < 5
    assert "throttled" in told["flags"].split()


def test_a_client_that_is_not_alone_on_its_machine_tells_no_energy(message):
    Held.alone = False
    monitor = SimpleNamespace(
        begin_window=lambda name: None,
        end_window=lambda name: flower_window(),
        _start=lambda: None,
        _log_errors=flower.EpochMonitor("x")._log_errors,
    )
    told = PlannedFit(monitor=monitor)(message, CONTEXT, reply_to).content[KEY]
    assert "energy_j" not in told
    assert "power_elsewhere" in told["flags"].split()
    Held.alone = True
    told = PlannedFit(monitor=monitor)(message, CONTEXT, reply_to).content[KEY]
    assert (told["energy_j"], told["power_scope"]) == (9.0, "module")


def flower_window():
    from epochwatt import Window

    return Window("fit", 2.0, 9.0, 0.1, 4.5, "module", ())


def test_a_fit_that_fails_gives_its_mode_back(message):
    with pytest.raises(ZeroDivisionError):
        PlannedFit()(message, CONTEXT, lambda message, context: 1 / 0)
    assert Held.last.is_closed
