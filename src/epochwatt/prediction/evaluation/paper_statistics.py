"""Rows of statistics.csv: statistics that SIGMETRICS 2023 gives of its predictions, on ours.

Each over all modes, as in the paper, and over the modes outside the training set. A row with a
printed number has the criterion of its take-away. Counts are compared as shares, since fewer modes
lie outside the training set. Criteria are for the paper's own models.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

import pandas as pd

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
from epochwatt.prediction.selection.choose_power_modes import PAPER, PLACE, REPRESENTATIVE, Chosen
from epochwatt.published.numbers import Measurement

DEVICE = "agx"  # that the paper predicts for
ALL: tuple[str, ...] = ()  # networks
EFIJ, TAKE_AWAY = "".join(REPRESENTATIVE), "T5.7.1a"

Row = dict[str, object]  # of statistics.csv; a column that a row has not is empty


class Statistic(NamedTuple):
    """A number of the paper, or one that a take-away rests on."""

    title: str
    target: str
    networks: tuple[str, ...]  # whose predictions; none: of all
    value: Callable[[Sequence[float]], float]  # of their MAPE, %
    # `>=`, `<=` or `>`, and the value it is compared with; None: as printed
    criterion: tuple[str, float | None]
    published: str  # id in config/published/measurements.csv; empty: not printed
    n_published: int = 0  # how many predictions the paper counts; 0: no count
    has_slack: bool = False  # whether the take-away allows some points beyond the value


def _count(is_so: Callable[[float], bool]) -> Callable[[Sequence[float]], float]:
    return lambda mape: float(sum(map(is_so, mape)))


_BELOW_10, _ABOVE_15 = _count(lambda pct: pct < 10), _count(lambda pct: pct > 15)


_LARGER = ("mobilenet", "resnet", "vgg11")
WORST, LEAST = "worst MAPE, %", "least MAPE, %"
STATISTICS = (  # sections 5.7, 5.7.2 and 5.7.3; criteria: take-aways 5.7.2 and 5.7.3
    Statistic("below 10 %", TIME, ALL, _BELOW_10, (">=", None), "S5.7.2-01", 40),
    Statistic("above 15 %", TIME, ("lenet",), _ABOVE_15, ("<=", None), "S5.7.2-02", 10),
    Statistic("above 15 %", TIME, _LARGER, _ABOVE_15, ("<=", 0.0), "", 30),
    Statistic("below 10 %", TIME, ("vgg11",), _BELOW_10, (">=", None), "S5.7.2-03", 10),
    Statistic("mean MAPE, %", TIME, ALL, fmean, ("<=", None), "S5.7-02"),
    Statistic(WORST, TIME, ALL, max, ("", None), ""),
    Statistic(WORST, ENERGY, ("resnet",), max, ("<=", 25.0), "S5.7.3-01", has_slack=True),
    Statistic(WORST, ENERGY, ("mobilenet",), max, ("<=", 25.0), "S5.7.3-02", has_slack=True),
    Statistic(WORST, ENERGY, ("lenet",), max, (">", 25.0), "S5.7.3-03"),
    Statistic(LEAST, ENERGY, ("vgg11",), min, (">=", None), "S5.7.3-04"),
    Statistic(WORST, ENERGY, ("vgg11",), max, ("<=", None), "S5.7.3-05"),
    Statistic("median MAPE, %", ENERGY, ("vgg11",), median, (">", 25.0), "S5.7.3-06"),
    Statistic("mean MAPE, %", ENERGY, ALL, fmean, ("", None), ""),
)


def rows_of_group(
    group: Chosen,
    predictions: pd.DataFrame,
    printed: Mapping[str, Measurement],
    slack_pp: float,
    papers: Collection[str] = (REFERENCE,),
) -> pd.DataFrame:
    """Return the statistics of a board group: of its choice of modes, then of its predictions.

    `predictions` are its rows of predictions.csv; a mode of several names is counted once.
    `printed` has config/published/measurements.csv by id, `slack_pp` is the tolerance of the
    take-aways, points, and `papers` are the methods that the paper's criteria are for.
    """
    place = {name: group.factors[name] for name in PLACE}
    is_compared = (place["setup"], place["device"]) == (PAPER, DEVICE)
    rows = _of_choice(group)
    if predictions.empty:
        return pd.DataFrame([{**place, **row} for row in rows], dtype=object)
    fit = ["target", "method", "learned_from"]
    searched = set(group.named_modes.values())
    is_searched = [Mode(*mode) in searched for mode in predictions[[*Mode._fields]].to_numpy()]
    kept = predictions[is_searched].drop_duplicates([*fit, "model", *Mode._fields], keep="last")
    for (target, method, learned_from), of_fit in kept.groupby(fit, sort=False):
        for statistic in STATISTICS:
            own = of_fit
            if statistic.networks:
                own = of_fit[of_fit["model"].isin(statistic.networks)]
            if statistic.target != target or set(statistic.networks) - set(own["model"]):
                continue
            new = own[~own["in_training_set"].astype(bool)]
            for modes, part in (("all", own), ("not trained on", new)):
                if part.empty:
                    continue
                value = statistic.value(part["mape_pct"].to_list())
                row: Row = {
                    **{"target": target, "method": method, "learned_from": learned_from},
                    "statistic": statistic.title,
                    "networks": " ".join(statistic.networks) or "all",
                    "modes": modes,
                    "value": value,
                    "n_predictions": len(part) if statistic.n_published else "",
                    "is_paper": method in papers,
                }
                if is_compared and statistic.criterion[0]:
                    compared = _compared(statistic, value, len(part), printed, slack_pp)
                    if not row["is_paper"]:
                        del compared["agrees"]
                    row |= compared
                rows.append(row)
    return pd.DataFrame([{**place, **row} for row in rows], dtype=object)


def _compared(
    statistic: Statistic, value: float, n: int, printed: Mapping[str, Measurement], slack_pp: float
) -> Row:
    """Return the published value, and whether ours of n predictions agrees."""
    fact = printed.get(statistic.published)
    sign, limit = statistic.criterion
    limit = fact.value if limit is None and fact is not None else limit
    assert limit is not None
    limit += slack_pp if statistic.has_slack else 0.0
    n_published = statistic.n_published
    ours = value / n if n_published else value
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


def _of_choice(group: Chosen) -> list[Row]:
    """Return results of the search for four modes: the choice, its ties, the rank of e f i j."""
    choices = group.choices
    if not choices:
        return []
    left_out = {f"{LEFT_OUT}: {name}": choice for name, choice in choices[LEFT_OUT].items()}
    searches = {SEARCHED: choices[SEARCHED], STANDARDISED: choices[STANDARDISED], **left_out}
    is_paper = PUBLISHED in choices and group.factors["device"] == DEVICE
    shared: Row = {"target": TIME, "method": REFERENCE, "networks": "all", "modes": "all"}
    shared["is_paper"] = True
    printed = {"published": EFIJ, "published_id": TAKE_AWAY, "criterion": f"= {EFIJ}"}
    rows: list[Row] = []
    for learned_from, choice in searches.items():
        search, modes = {**shared, "learned_from": learned_from}, "".join(choice["modes"])
        row = search | {"statistic": "chosen modes", "value": modes}
        row["n_subsets"] = choice["n_subsets"]
        if is_paper and learned_from not in left_out:
            row |= {**printed, "agrees": "yes" if modes == EFIJ else "no"}
        rows += [row, search | {"statistic": "tied within 1 %", "value": " ".join(choice["ties"])}]
    if is_paper:
        choice = choices[PUBLISHED]
        row = {**shared, "learned_from": SEARCHED, "statistic": f"rank of {EFIJ}"}
        row |= {"value": choice["rank"], "n_subsets": choice["n_subsets"]}
        rows.append(row | {"published": 1, "published_id": TAKE_AWAY})
    return rows
