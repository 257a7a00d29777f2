"""Rounds of Flower whose boards end together: a mod of the ClientApp, a strategy around another.

::

    app = ClientApp(mods=[PlannedFit()])                      # on each board
    strategy = PlannedRounds(FedAvg(), "fleet.yaml", "rounds.csv")  # in the ServerApp
    strategy.start(grid, initial_arrays, num_rounds=20)

Flower (flwr 1.42 or newer; its message API) moves the weights, samples the clients, keeps them
alive and retries. Only the mode of each fit, and for how long a round is waited for, is ours.
"""

import csv
import math
import os
import platform
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from logging import WARNING
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from flwr.app import ConfigRecord, RecordDict
from flwr.common import log
from flwr.serverapp.strategy import Strategy

from epochwatt.board.training.mode_keeper import THIS_MACHINE, HeldMode
from epochwatt.columns import CLOCKS
from epochwatt.errors import ConfigError
from epochwatt.monitor import J_PER_WH, EpochMonitor
from epochwatt.rounds.law import JUMP, Measured, learned_client
from epochwatt.rounds.plan import Client, Round, earliest_end_s, energy_j, plan_round

KEY = "epochwatt"  # of our record in a message and its reply
POLL_S = 0.2  # between two looks for replies; Flower's own grid looks each 3 s
COLUMNS = (  # of the log, a row for each board of a round; empty: not planned, or not known
    *("round", "node", "board", "mode", "samples", "why"),
    *("planned_fit_s", "fit_s", "planned_end_s", "end_s", "planned_round_s", "round_s"),
    *("planned_fit_j", "energy_j", "energy_error_j", "power_scope", "planned_round_j", "flags"),
)


# -- on a board -----------------------------------------------------------------------------------


class PlannedFit:
    """A mod: each `train` message is done in the mode it asks for, and measured.

    A process outside the ClientApp sets the mode and puts the former one back, also when the
    ClientApp is killed. Where several clients share a machine one at a time has it: the others
    train in the mode they find and tell no energy, so none is counted twice.

    `board`: its name in the fleet, or a function of the `Context` that gives it; None: `board` of
    the SuperNode's `--node-config`, else the host's name
    `dvfs`: `on`: the mode limits the clocks; `off`: it pins them
    `monitor`: measures the fit, beside what else it may measure; None: one of its own
    `machine`: `module:function` that returns what is set, an `epochwatt.board.device` `Machine`
    """

    def __init__(
        self,
        board: "str | Callable[[Any], str] | None" = None,
        *,
        dvfs: str = "on",
        monitor: Optional[EpochMonitor] = None,
        machine: str = THIS_MACHINE,
    ) -> None:
        self._board, self._dvfs, self._monitor = board, dvfs, monitor
        self._machine = machine

    def __call__(self, message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
        """Train in the planned mode; return the reply with what was measured under `KEY`."""
        if message.metadata.message_type.partition(".")[0] != "train":
            return call_next(message, context)
        order = message.content.get(KEY, {})
        mode = {part: order[part] for part in CLOCKS if part in order}
        monitor = self._monitor or EpochMonitor("fit")
        with monitor._log_errors("the fit has no energy"):
            monitor._start()  # while the board is still in the mode it was found in
        held = HeldMode(mode, self._dvfs, self._machine)
        try:
            with _threads(mode):
                monitor.begin_window("fit")
                try:
                    reply = call_next(message, context)
                finally:
                    window = monitor.end_window("fit")
        finally:
            held.close()
            if self._monitor is None:
                monitor.close()
        flags = {*window.flags, *held.flags} | (set() if held.is_alone else {"power_elsewhere"})
        told: Dict[str, Any] = {
            "round": order.get("round", 0),
            "board": self._name(context),
            "fit_s": window.time,
            "mode_set": held.is_set,
            "flags": " ".join(sorted(flags)),
        }
        if held.is_alone:
            told.update(
                energy_j=window.total_energy,
                energy_error_j=window.energy_error,
                power_scope=window.scope,
            )
        if reply.has_content():
            known = {name: value for name, value in told.items() if value is not None}
            reply.content[KEY] = ConfigRecord(known)
        return reply

    def _name(self, context: Any) -> str:
        if callable(self._board):
            return str(self._board(context))
        return str(self._board or context.node_config.get("board") or platform.node())


@contextmanager
def _threads(mode: Dict[str, float]) -> Iterator[None]:
    """Let torch use the cores of a mode: it counted those of the mode in which it was loaded."""
    torch = sys.modules.get("torch")
    if torch is None or "cores" not in mode:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(int(mode["cores"]))
    try:
        yield
    finally:
        torch.set_num_threads(before)


# -- in the ServerApp -----------------------------------------------------------------------------


class PollingGrid:
    """A grid that looks for replies more often, sorts them by node and gives up when it is told.

    Floats add up to other bits in another order, so the sum of the weights depends on it.

    `give_up_s`: after so long a round goes on without the replies that are missing; None: never
    `ends_s`: node -> when its reply was there, since the messages were sent
    `took_s`: until all were there, or a round went on without
    """

    def __init__(self, grid: Any, on_late: Callable[[Any], None] = lambda reply: None) -> None:
        self._grid = grid
        self._on_late = on_late  # with a reply after its round, which is not aggregated
        self.give_up_s: Optional[float] = None
        self.ends_s: Dict[int, float] = {}
        self.took_s = 0.0
        self._missing: Set[str] = set()  # messages of former rounds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def send_and_receive(
        self, messages: Iterable[Any], *, timeout: Optional[float] = None
    ) -> List[Any]:
        """Send messages, return the replies that come in time, by node."""
        start_s = time.monotonic()
        limits_s = [limit_s for limit_s in (timeout, self.give_up_s) if limit_s is not None]
        waiting = {m for m in self._grid.push_messages(list(messages)) if m is not None}
        replies: List[Any] = []
        self.ends_s = {}
        while waiting:
            for reply in self._grid.pull_messages(waiting | self._missing):
                asked = reply.metadata.reply_to_message_id
                if asked in waiting:
                    waiting.remove(asked)
                    replies.append(reply)
                    self.ends_s[reply.metadata.src_node_id] = time.monotonic() - start_s
                elif asked in self._missing:
                    self._missing.remove(asked)
                    self._on_late(reply)
            if time.monotonic() - start_s >= min(limits_s, default=math.inf):
                break
            time.sleep(POLL_S if waiting else 0.0)
        self._missing |= waiting
        self.took_s = time.monotonic() - start_s
        return _by_node(replies)


@dataclass
class _Node:
    """A node: its board, and what it measured."""

    board: str
    member: Any  # rounds.fleet.Member of its board
    client: Client  # as its table has it
    rounds: List[Measured] = field(default_factory=list)
    latest: int = 0  # round of its latest fit
    has_missed: bool = False  # its latest round, and was not heard of since


@dataclass
class _Order:
    """A node's part of a round."""

    row: Dict[str, Any]  # of the log
    asked: Dict[str, Any] = field(default_factory=dict)  # mode, mini-batches, samples
    choice: Optional[int] = None  # of the planner's client; None: it is not planned


class PlannedRounds(Strategy):
    """A strategy around another: it plans each board's mode so that a round's fits end together.

    A node's first fit is in the mode it was found in: it tells its board's name, and it warms up.
    From then on each round is planned anew from the fleet's tables, scaled by what the node's
    latest fits took. So a board that throttles, slows, leaves or comes back changes the next plan.

    `strategy`: Flower's, of `flwr.serverapp.strategy`
    `fleet`: YAML file as of `epochwatt rounds`
    `log_file`: CSV to which each round is appended, a row for each board (`COLUMNS`)
    `objective`, `deadline_s`, `max_energy_wh`: as of `epochwatt rounds`
    `patience_s`: after its planned end a round goes on without the replies that are missing; None:
    half of its planned time, and 10 s

    Raises ConfigError: the fleet is wrong, or cannot keep deadline or budget.
    """

    def __init__(
        self,
        strategy: Any,
        fleet: "str | os.PathLike[str]",
        log_file: "str | os.PathLike[str]",
        *,
        objective: Any = "energy",
        deadline_s: Optional[float] = None,
        max_energy_wh: Optional[float] = None,
        patience_s: Optional[float] = None,
    ) -> None:
        from epochwatt.rounds.fleet import load_fleet, members_of

        self.strategy, self.patience_s = strategy, patience_s
        self._log_file = os.fspath(log_file)
        self._objective, self._deadline_s = objective, deadline_s
        self._budget_j = math.inf if max_energy_wh is None else J_PER_WH * max_energy_wh
        self._members = {m.client.name: m for m in members_of(load_fleet(Path(fleet)))}
        self._plan([member.client for member in self._members.values()])
        self._grid = PollingGrid(None)  # until `start`
        self._nodes: Dict[int, _Node] = {}
        self._orders: Dict[int, _Order] = {}  # of this round
        self._missing: Dict[Tuple[int, int], _Order] = {}  # round and node -> not answered yet
        self._late: Set[int] = set()  # nodes that answered a former round in this one
        self._evaluation_s = 0.0  # the longest
        self._whys: List[str] = []  # the next plan is another one

    def start(self, grid: Any, *arguments: Any, **named: Any) -> Any:
        """Run the rounds, as `Strategy.start`."""
        self._grid = PollingGrid(grid, on_late=self._learn_late)
        return super().start(self._grid, *arguments, **named)

    def summary(self) -> None:
        """Log the configuration of the strategy inside."""
        self.strategy.summary()

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> List[Any]:
        """Give each message of the strategy inside the mode of its node."""
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        end_s = self._order(server_round, [m.metadata.dst_node_id for m in messages])
        for message in messages:
            asked = {"round": server_round, **self._orders[message.metadata.dst_node_id].asked}
            message.content = RecordDict({**message.content, KEY: ConfigRecord(asked)})
        self._give_up_after(end_s if self._orders.keys() <= self._nodes.keys() else None)
        return messages

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> Any:
        """Learn from the replies, log the round, and let the strategy inside aggregate them."""
        replies, ends_s, late = list(replies), self._grid.ends_s, self._late
        self._late = set()
        told = {
            reply.metadata.src_node_id: dict(reply.content.pop(KEY))
            for reply in replies
            if reply.has_content() and KEY in reply.content
        }
        for node_id, order in self._orders.items():
            order.row["round_s"] = self._grid.took_s
            if node_id in told:
                self._learn(node_id, order, told[node_id], ends_s.get(node_id))
            else:
                self._missing[server_round, node_id] = order
                self._miss(node_id, is_heard=node_id in late)
            self._log(order)
        return self.strategy.aggregate_train(server_round, _by_node(replies))

    def configure_evaluate(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
        """Return the messages of the strategy inside; evaluations so far limit the wait."""
        self._give_up_after(self._evaluation_s or None)
        return self.strategy.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Any]) -> Any:
        """Let the strategy inside aggregate the replies."""
        self._evaluation_s = max([self._evaluation_s, *self._grid.ends_s.values()])
        return self.strategy.aggregate_evaluate(server_round, _by_node(replies))

    def _give_up_after(self, end_s: Optional[float]) -> None:
        if end_s is not None:
            end_s += 0.5 * end_s + 10.0 if self.patience_s is None else self.patience_s
        self._grid.give_up_s = end_s

    def _plan(self, clients: List[Client]) -> Round:
        """Return the best round; ConfigError: none keeps deadline or budget."""
        latest_s = self._deadline_s
        if latest_s is None:
            latest_s = earliest_end_s(clients) if self._objective == "energy" else math.inf
        return plan_round(clients, self._objective, latest_s, self._budget_j)

    def _order(self, server_round: int, node_ids: List[int]) -> Optional[float]:
        """Plan a round of these nodes into `_orders`; return its end, None: no node is known.

        Nobody waits for a node that has missed the round before: it is to be as fast as it can.
        """
        whys, self._whys = self._whys, []
        node_ids = sorted(node_ids)
        self._orders = {n: _Order({"round": server_round, "node": n}) for n in node_ids}
        known = {n: self._nodes[n] for n in node_ids if n in self._nodes}
        clients = {n: learned_client(node.client, node.rounds) for n, node in known.items()}
        chosen = {n: int(client.end_s().argmin()) for n, client in clients.items()}
        awaited = {n: c for n, c in clients.items() if not known[n].has_missed} or clients
        round_of: Dict[str, Any] = {}
        if awaited:
            list_of = list(awaited.values())
            try:
                planned = self._plan(list_of)
            except ConfigError as error:
                log(WARNING, "round %d ends as early as it can: %s", server_round, error)
                whys.append(error.problem)
                planned = plan_round(list_of, "energy", earliest_end_s(list_of))
            chosen.update(zip(awaited, planned.choices))
            round_of = {
                "planned_round_s": planned.end_s,
                "planned_round_j": energy_j(list_of, planned),
                "why": "; ".join(whys),
            }
        for n, client in clients.items():
            member, k = known[n].member, chosen[n]
            order, mode = self._orders[n], member.modes[k]
            order.asked = {part: getattr(mode, part) for part in member.parts if part in CLOCKS}
            order.asked.update(minibatches=member.minibatches[k], samples=int(client.n_samples[k]))
            order.choice = k
            order.row.update(
                round_of,
                board=client.name,
                mode=mode.of_parts(member.parts),
                samples=int(client.n_samples[k]),
                planned_fit_s=float(client.fit_s[k]),
                planned_fit_j=float(client.fit_j[k]),
                planned_end_s=float(client.end_s()[k]),
            )
        return planned.end_s if awaited else None

    def _miss(self, node_id: int, is_heard: bool) -> None:
        """Note that a node gave no reply; `is_heard`: to a former round, so it is only late."""
        node = self._nodes.get(node_id)
        if node is not None and node.has_missed == is_heard:
            node.has_missed = not is_heard
            self._whys.append(f"{node.board} is {'late' if is_heard else 'missing'}")

    def _learn(
        self, node_id: int, order: _Order, told: Dict[str, Any], end_s: Optional[float]
    ) -> None:
        """Note what a node tells of a fit; `end_s`: None: it came too late."""
        order.row.update({name: told[name] for name in COLUMNS if name in told}, end_s=end_s)
        board = told["board"]
        if node_id not in self._nodes:
            member = self._members.get(board)
            if member is None:
                log(WARNING, "the fleet has no board %s: it trains as it is", board)
                return
            if [n.board for n in self._nodes.values()].count(board) == member.client.count:
                log(WARNING, "more nodes are called %s than the fleet has", board)
            self._nodes[node_id] = _Node(board, member, replace(member.client, count=1))
            self._whys.append(f"{board} is new")
        node = self._nodes[node_id]
        if node.has_missed and end_s is not None:
            node.has_missed = False
            self._whys.append(f"{board} is back")
        is_old, node.latest = told["round"] <= node.latest, max(told["round"], node.latest)
        if is_old:
            return
        if order.choice is None or not told["mode_set"]:
            if end_s is not None:  # nothing else is known of the next
                node.client = replace(node.client, around_s=end_s - told["fit_s"])
            return
        before = learned_client(node.client, node.rounds)
        if end_s is None:
            end_s = told["fit_s"] + before.around_s
        node.rounds.append(Measured(order.choice, told["fit_s"], end_s, told.get("energy_j")))
        after = learned_client(node.client, node.rounds)
        change = after.fit_s[order.choice] / before.fit_s[order.choice]
        if "throttled" in told["flags"].split():
            self._whys.append(f"{board} throttles")
        if not 1 / JUMP <= change <= JUMP:
            self._whys.append(f"{board} takes {change:.3g} times as long")

    def _learn_late(self, reply: Any) -> None:
        """Learn from a fit that ended after its round, and log it; its weights are not used."""
        if not (reply.has_content() and KEY in reply.content):
            return
        told, node_id = dict(reply.content[KEY]), reply.metadata.src_node_id
        order = self._missing.pop((told.get("round", 0), node_id), None)
        if order is not None:
            self._late.add(node_id)
            told["flags"] = " ".join([*told["flags"].split(), "late"])
            self._learn(node_id, order, told, None)
            self._log(order)

    def _log(self, order: _Order) -> None:
        is_new = not os.path.exists(self._log_file)
        with open(self._log_file, "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(order.row)


def _by_node(replies: Iterable[Any]) -> List[Any]:
    return sorted(replies, key=lambda reply: reply.metadata.src_node_id)
