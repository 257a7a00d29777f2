"""Rows of statistics.csv: statistics that SIGMETRICS 2023 gives of its predictions, on ours.

Each over all modes, as in the paper, and over the modes outside the training set. A row with a
printed number has the criterion of its take-away. Counts are compared as shares, since fewer modes
lie outside the training set. Criteria are for the paper's own models.
"""

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.names import (
    ENERGY,
    LEFT_OUT,
    PUBLISHED,
    REFERENCE,
    SEARCHED,
    STANDARDISED,
    TIME,
)
from epochwatt.prediction.selection.choose_power_modes import (
    PAPER,
    PLACE,
    REPRESENTATIVE,
    named_modes,
)
from epochwatt.published.numbers import Measurement

DEVICE = "agx"  # that the paper predicts for
ALL: tuple[str, ...] = ()  # networks
EFIJ, TAKE_AWAY = "".join(REPRESENTATIVE), "T5.7.1a"

Row = dict[str, Any]


class Statistic(NamedTuple):
    """A number of the paper, or one that a take-away rests on."""

    title: str  # in words
    target: str  # time_s or energy_wh
    networks: tuple[str, ...]  # whose predictions; none: of all
    value: Callable[[Sequence[float]], float]  # of their MAPE, %
    # `>=`, `<=` or `>`, and the value it is compared with; None: as printed
    criterion: tuple[str, float | None]
    published: str  # id in config/published/measurements.csv; empty: not printed
    n_published: int = 0  # how many predictions the paper counts; 0: no count
    has_slack: bool = False  # whether the take-away allows some points beyond the value


def _below(limit: float) -> Callable[[Sequence[float]], float]:
    return lambda mape: float(sum(one < limit for one in mape))


def _above(limit: float) -> Callable[[Sequence[float]], float]:
    return lambda mape: float(sum(one > limit for one in mape))


_LARGER = ("mobilenet", "resnet", "vgg11")
STATISTICS = (  # sections 5.7, 5.7.2 and 5.7.3; criteria: take-aways 5.7.2 and 5.7.3
    Statistic("below 10 %", TIME, ALL, _below(10), (">=", None), "S5.7.2-01", 40),
    Statistic("above 15 %", TIME, ("lenet",), _above(15), ("<=", None), "S5.7.2-02", 10),
    Statistic("above 15 %", TIME, _LARGER, _above(15), ("<=", 0.0), "", 30),
    Statistic("below 10 %", TIME, ("vgg11",), _below(10), (">=", None), "S5.7.2-03", 10),
    Statistic("mean MAPE, %", TIME, ALL, statistics.fmean, ("<=", None), "S5.7-02"),
    Statistic("worst MAPE, %", TIME, ALL, max, ("", None), ""),
    Statistic("worst MAPE, %", ENERGY, ("resnet",), max, ("<=", 25.0), "S5.7.3-01", has_slack=True),
    Statistic(
        "worst MAPE, %", ENERGY, ("mobilenet",), max, ("<=", 25.0), "S5.7.3-02", has_slack=True
    ),
    Statistic("worst MAPE, %", ENERGY, ("lenet",), max, (">", 25.0), "S5.7.3-03"),
    Statistic("least MAPE, %", ENERGY, ("vgg11",), min, (">=", None), "S5.7.3-04"),
    Statistic("worst MAPE, %", ENERGY, ("vgg11",), max, ("<=", None), "S5.7.3-05"),
    Statistic("median MAPE, %", ENERGY, ("vgg11",), statistics.median, (">", 25.0), "S5.7.3-06"),
    Statistic("mean MAPE, %", ENERGY, ALL, statistics.fmean, ("", None), ""),
)


def rows_of_group(
    group: Mapping[str, Any],
    predictions: Iterable[Mapping[str, Any]],
    printed: Mapping[str, Measurement],
    slack_pp: float,
    papers: Collection[str] = (REFERENCE,),
) -> list[Row]:
    """Return the statistics of a board group: of its choice of modes, then of its predictions."""
    place = {name: group["factors"][name] for name in PLACE}
    searched = set(named_modes(group).values())
    by_mode = {
        (*_fit(row), row["model"], Mode(*(row[k] for k in Mode._fields))): row
        for row in predictions
    }
    rows = [row for (*_, mode), row in by_mode.items() if mode in searched]
    counted = []
    for fit in dict.fromkeys(map(_fit, rows)):
        of_fit = [row for row in rows if _fit(row) == fit]
        for statistic in STATISTICS:
            for row in _counted(statistic, of_fit) if statistic.target == fit[0] else ():
                compared = _compared(statistic, row, place, printed, slack_pp)
                row |= {"is_paper": row["method"] in papers} | compared
                if not row["is_paper"]:
                    row.pop("agrees", None)
                counted.append({**place, **row})
    return [{**place, **row} for row in _of_choice(group)] + counted


def _fit(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["target"], row["method"], row["learned_from"]


def _counted(statistic: Statistic, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return a statistic of a fit: over all modes, and over those outside its training set."""
    if statistic.networks:
        if set(statistic.networks) - {row["model"] for row in rows}:
            return []
        rows = [row for row in rows if row["model"] in statistic.networks]
    new = [row for row in rows if not row["in_training_set"]]
    return [
        {
            "target": statistic.target,
            "method": rows[0]["method"],
            "learned_from": rows[0]["learned_from"],
            "statistic": statistic.title,
            "networks": " ".join(statistic.networks) or "all",
            "modes": modes,
            "value": statistic.value([row["mape_pct"] for row in some]),
            "n_predictions": len(some) if statistic.n_published else "",
        }
        for modes, some in (("all", rows), ("not trained on", new))
        if some
    ]


def _compared(
    statistic: Statistic,
    row: Row,
    place: Row,
    printed: Mapping[str, Measurement],
    slack_pp: float,
) -> Row:
    """Return the published value, and whether ours agrees."""
    if (place["setup"], place["device"]) != (PAPER, DEVICE) or not statistic.criterion[0]:
        return {}
    fact = printed.get(statistic.published)
    sign, limit = statistic.criterion
    limit = fact.value if limit is None and fact is not None else limit
    assert limit is not None
    limit += slack_pp * statistic.has_slack
    n_published, value = statistic.n_published, row["value"]
    ours = value / row["n_predictions"] if n_published else value
    theirs = limit / n_published if n_published else limit
    agrees = {">=": ours >= theirs, "<=": ours <= theirs, ">": ours > theirs}[sign]
    return {
        "published": "" if fact is None else fact.value,
        "n_published": n_published or "",
        "published_id": statistic.published,
        "ratio_to_published": value / fact.value if fact is not None and not n_published else "",
        "criterion": f"{sign} {limit:g}" + (f" of {n_published}" if n_published else ""),
        "agrees": "yes" if agrees else "no",
    }


def _of_choice(group: Mapping[str, Any]) -> list[Row]:
    """Return results of the search for four modes: the choice, its ties, the rank of e f i j."""
    choices = group["choices"]
    if not choices:
        return []
    left_out = {f"{LEFT_OUT}: {name}": choice for name, choice in choices[LEFT_OUT].items()}
    searches = {SEARCHED: choices[SEARCHED], STANDARDISED: choices[STANDARDISED], **left_out}
    is_paper = PUBLISHED in choices and group["factors"]["device"] == DEVICE
    shared: Row = {"target": TIME, "method": REFERENCE, "networks": "all", "modes": "all"}
    shared["is_paper"] = True
    rows: list[Row] = []
    for learned_from, choice in searches.items():
        search = {**shared, "learned_from": learned_from}
        modes = "".join(choice["modes"])
        row = {**search, "statistic": "chosen modes", "value": modes}
        row["n_subsets"] = choice["n_subsets"]
        if is_paper and learned_from not in left_out:
            row |= {"published": EFIJ, "published_id": TAKE_AWAY, "criterion": f"= {EFIJ}"}
            row["agrees"] = "yes" if modes == EFIJ else "no"
        rows += [row, {**search, "statistic": "tied within 1 %", "value": " ".join(choice["ties"])}]
    if is_paper:
        choice = choices[PUBLISHED]
        search = {**shared, "learned_from": SEARCHED}
        row = {**search, "statistic": f"rank of {EFIJ}", "value": choice["rank"]}
        row |= {"n_subsets": choice["n_subsets"], "published": 1, "published_id": TAKE_AWAY}
        rows.append(row)
    return rows
