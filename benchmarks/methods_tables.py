"""Tables of the documentation on methods beside PowerTrain's networks, of results/methods/."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.methods import CASES, OURS, OUT, TUNED
from epochwatt.prediction.evaluation.sweep_scores import TITLES, short
from epochwatt.prediction.names import POWER, TIME

Table = list[list[str]]
Row = Mapping[str, Any]

NEXT = OUT / "next.json"
HOLD, LEAST_MODES = (85, 95), 10  # %, and from how many modes on
WANTED = 0.7  # of the error of the better network
NEW = OURS[2:]  # the methods that are judged by it
NOT_CARRIED = ("opml19-tx2",)  # no licence: its tables are not passed on


def read(folder: Path = OUT) -> list[Row]:
    """Return the rows of all cases that were judged, in the order of the cases."""
    paths = [folder / f"{name}.json" for name in CASES]
    return [row for path in paths if path.is_file() for row in json.loads(path.read_text("utf-8"))]


def next_table(path: Path = NEXT) -> Table:
    """Return errors from modes chosen one after the other (`benchmarks.next_modes`)."""
    table = [["sweep", "how 25 modes are chosen", "median, %", "90th percentile, %"]]
    for row in json.loads(path.read_text("utf-8")):
        cells = [f"{row[f'{of}_pct']:.1f} ± {row[f'{of}_se']:.1f}" for of in ("median", "p90")]
        table.append([_title(row["case"]), row["way"], *cells])
    return table


def method_tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Return by name the tables of some rows, the header first."""
    judged = list(_judged(rows))
    return {
        **{TITLES[target]: _errors(judged, target) for target in (TIME, POWER)},
        "held": _held(judged),
        "inside": _inside(judged),
        "risk": _risk(judged),
        "goal": _goal(judged),
    }


Judged = tuple[str, int, str, dict[str, Row]]  # case, modes, target, method -> its row


def _judged(rows: Sequence[Row]) -> Iterator[Judged]:
    for case, size, target in dict.fromkeys(
        (row["case"], row["n_profiled"], row["target"]) for row in rows
    ):
        some = {
            row["method"]: row
            for row in rows
            if (row["case"], row["n_profiled"], row["target"]) == (case, size, target)
        }
        yield case, size, target, some


def _title(case: str) -> str:
    """Return the name of a case with its marks: seen while choices were made; not carried."""
    marks = "*" * (case in TUNED) + "†" * (CASES[case].sweep in NOT_CARRIED)
    return f"{case}{marks}"


def _networks(some: Mapping[str, Row]) -> list[Row]:
    """Return the rows of PowerTrain's networks: that of the paper, and a variant."""
    order = CASES[next(iter(some.values()))["case"]].networks
    return [some[name] for name in order if name in some]


def _network(some: Mapping[str, Row]) -> Row | None:
    """Return the row of the better one; None: there is none."""
    return min(_networks(some), key=lambda row: row["median_pct"], default=None)


def _first(some: Mapping[str, Row]) -> Row | None:
    """Return the row of the paper's network, as far as it can be had; None: there is none."""
    return next(iter(_networks(some)), None)


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    parts = [short(row[f"median_pct{end}"]) for end in ("", "_low", "_high")]
    return f"{parts[0]} ({parts[1]} to {parts[2]})"


def _errors(judged: Sequence[Judged], target: str) -> Table:
    """Return median errors with their intervals, and the ratio to the better network."""
    head = ["sweep", "modes", "PowerTrain", "its variant", *OURS]
    table = [[*head, *(f"{name} over the better network" for name in NEW)]]
    for case, size, of_target, some in judged:
        if of_target != target:
            continue
        network = _network(some)
        named = [f"{_cell(row)}{_variant(row)}" for row in _networks(some)] or ["-", "-"]
        cells = [_cell(some.get(name)) for name in OURS]
        ratios = [_ratio(some.get(name), network) for name in NEW]
        table.append([_title(case), str(size), *named, *cells, *ratios])
    return table


def _variant(row: Row) -> str:
    """Return which variant it is, where that is not the paper's."""
    name = str(row["method"]).removeprefix("powertrain").strip("_").replace("_", " ")
    return f", {name}" if name else ""


def _ratio(row: Row | None, network: Row | None) -> str:
    if row is None or network is None:
        return "-"
    name = f"over_{network['method']}"
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    mark = ", met" if _is_met(row, network) else ", not met"
    return f"{value:.2f} ({low:.2f} to {high:.2f}){mark}"


def _is_met(row: Row, network: Row) -> bool:
    """Return whether the error is so much lower, and the intervals lie apart."""
    is_apart = row["median_pct_high"] < network["median_pct_low"]
    return bool(is_apart and row["median_pct"] <= WANTED * network["median_pct"])


def _goal(judged: Sequence[Judged]) -> Table:
    """Return in how many comparisons the goal is met, with and without the sweeps seen before."""
    table = [["target", "method", "network", "all sweeps", "those held out", "not met"]]
    against = {"PowerTrain": _first, "the better one": _network}
    for target in (TIME, POWER):
        for name in NEW:
            for title, chosen in against.items():
                met = {
                    (case, size): _is_met(some[name], network)
                    for case, size, of_target, some in judged
                    if of_target == target and name in some and (network := chosen(some))
                }
                held_out = [is_met for (case, _), is_met in met.items() if case not in TUNED]
                missed = [f"{case} from {n}" for (case, n), is_met in met.items() if not is_met]
                counts = [f"{sum(of)} of {len(of)}" for of in (list(met.values()), held_out)]
                table.append([TITLES[target], name, title, *counts, ", ".join(missed) or "-"])
    return table


def _held(judged: Sequence[Judged]) -> Table:
    """Return what intervals of 90 % hold, %."""
    table = [["sweep", "modes", "target", *OURS]]
    for case, size, target, some in judged:
        shares = [some[name].get("held_pct") if name in some else None for name in OURS]
        cells = ["-" if share is None else f"{share:.0f}" for share in shares]
        table.append([_title(case), str(size), TITLES[target], *cells])
    return table


def _inside(judged: Sequence[Judged]) -> Table:
    """Return how often intervals of 90 % hold what they should, from ten modes on."""
    low, high = HOLD
    table = [["method", "comparisons", f"hold {low} to {high} %", "least, %", "most, %"]]
    for name in OURS:
        shares = [
            round(some[name]["held_pct"])
            for _, size, _, some in judged
            if size >= LEAST_MODES and "held_pct" in some.get(name, {})
        ]
        if shares:
            n_inside = sum(low <= share <= high for share in shares)
            ends = [str(of(shares)) for of in (min, max)]
            table.append([name, str(len(shares)), str(n_inside), *ends])
    return table


def _risk(judged: Sequence[Judged]) -> Table:
    """Return how choices within limits of power turn out, a row for each method."""
    head = ["sweep", "modes", "method", "answered, %", "slower than the best, %"]
    table = [[*head, "limit exceeded, %", "by over 1 W, %"]]
    columns = ("answered_pct", "regret_pct", "over_pct", "over_1w_pct")
    for case, size, target, some in judged:
        network = _network(some)
        shown = {name: some[name] for name in NEW if name in some}
        shown |= {network["method"]: network} if network else {}
        for name, row in shown.items():
            if target == POWER and "regret_pct" in row:
                cells = [f"{row[column]:.0f}" for column in columns]
                table.append([_title(case), str(size), name, *cells])
    return table
