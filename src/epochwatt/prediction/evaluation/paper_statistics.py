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


def _below_10(mape_pct: Sequence[float]) -> float:
    return float(sum(pct < 10 for pct in mape_pct))


def _above_15(mape_pct: Sequence[float]) -> float:
    return float(sum(pct > 15 for pct in mape_pct))


_LARGER = ("mobilenet", "resnet", "vgg11")
WORST, LEAST = "worst MAPE, %", "least MAPE, %"
STATISTICS = (  # sections 5.7, 5.7.2 and 5.7.3; criteria: take-aways 5.7.2 and 5.7.3
    Statistic("below 10 %", TIME, ALL, _below_10, (">=", None), "S5.7.2-01", 40),
    Statistic("above 15 %", TIME, ("lenet",), _above_15, ("<=", None), "S5.7.2-02", 10),
    Statistic("above 15 %", TIME, _LARGER, _above_15, ("<=", 0.0), "", 30),
    Statistic("below 10 %", TIME, ("vgg11",), _below_10, (">=", None), "S5.7.2-03", 10),
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
    """Return the rows of statistics.csv of a board group: its choice of modes, its predictions.

    `predictions` are its rows of predictions.csv; a mode of several names is counted once.
    `printed` has config/published/measurements.csv by id, `slack_pp` is the tolerance of the
    take-aways, points, and `papers` are the methods that the paper's criteria are for.
    """
    place = {name: group.factors[name] for name in PLACE}
    is_compared = (place["setup"], place["device"]) == (PAPER, DEVICE)
    rows = _choice_rows(group)
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
            unseen = own[~own["in_training_set"].astype(bool)]
            for modes, counted in (("all", own), ("not trained on", unseen)):
                if counted.empty:
                    continue
                value = statistic.value(counted["mape_pct"].to_list())
                row: Row = {
                    "target": target,
                    "method": method,
                    "learned_from": learned_from,
                    "statistic": statistic.title,
                    "networks": " ".join(statistic.networks) or "all",
                    "modes": modes,
                    "value": value,
                    "n_predictions": len(counted) if statistic.n_published else "",
                    "is_paper": method in papers,
                }
                if is_compared and statistic.criterion[0]:
                    compared = _comparison(statistic, value, len(counted), printed, slack_pp)
                    if not row["is_paper"]:
                        del compared["agrees"]
                    row |= compared
                rows.append(row)
    return pd.DataFrame([{**place, **row} for row in rows], dtype=object)


def _comparison(
    statistic: Statistic, value: float, n: int, printed: Mapping[str, Measurement], slack_pp: float
) -> Row:
    """Compare a statistic over n predictions with its published value: columns of a row.

    Counts are compared as shares of the predictions.
    """
    published, n_published = printed.get(statistic.published), statistic.n_published
    sign, limit = statistic.criterion
    if limit is None:
        assert published is not None  # of a criterion as printed
        limit = published.value
    if statistic.has_slack:
        limit += slack_pp
    ours, theirs = (value / n, limit / n_published) if n_published else (value, limit)
    agrees = {">=": ours >= theirs, "<=": ours <= theirs, ">": ours > theirs}[sign]
    return {
        "published": "" if published is None else published.value,
        "n_published": n_published or "",
        "published_id": statistic.published,
        "ratio_to_published": value / published.value if published and not n_published else "",
        "criterion": f"{sign} {limit:g}" + (f" of {n_published}" if n_published else ""),
        "agrees": "yes" if agrees else "no",
    }


def _choice_rows(group: Chosen) -> list[Row]:
    """Return rows on the search for four modes: the choice, its ties, the rank of e f i j."""
    choices = group.choices
    if not choices:
        return []
    searches = {SEARCHED: choices[SEARCHED], STANDARDISED: choices[STANDARDISED]}
    searches |= {f"{LEFT_OUT}: {name}": choice for name, choice in choices[LEFT_OUT].items()}
    is_paper = PUBLISHED in choices and group.factors["device"] == DEVICE
    shared: Row = {"target": TIME, "method": REFERENCE, "networks": "all", "modes": "all"}
    shared["is_paper"] = True
    printed = {"published": EFIJ, "published_id": TAKE_AWAY, "criterion": f"= {EFIJ}"}
    rows: list[Row] = []
    for learned_from, choice in searches.items():
        search, modes = {**shared, "learned_from": learned_from}, "".join(choice["modes"])
        chosen = {"statistic": "chosen modes", "value": modes, "n_subsets": choice["n_subsets"]}
        if is_paper and learned_from in (SEARCHED, STANDARDISED):
            chosen |= {**printed, "agrees": "yes" if modes == EFIJ else "no"}
        ties = {"statistic": "tied within 1 %", "value": " ".join(choice["ties"])}
        rows += [search | chosen, search | ties]
    if is_paper:
        choice = choices[PUBLISHED]
        rank = {"statistic": f"rank of {EFIJ}", "value": choice["rank"]}
        rank |= {"n_subsets": choice["n_subsets"], "published": 1, "published_id": TAKE_AWAY}
        rows.append({**shared, "learned_from": SEARCHED, **rank})
    return rows
