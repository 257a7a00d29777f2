"""Rows of statistics.csv: what SIGMETRICS 2023 tells of its predictions, counted on ours.

Each with all modes, and without those that the fit has learned from: the paper counts all. Where a
number is printed it stands beside ours with the criterion of the take-away; counts are compared as
shares, since without the learned modes there are fewer. Criteria are for the paper's own models.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.models.model_store import ENERGY, TIME
from epochwatt.prediction.selection.choose_power_modes import (
    AS_PUBLISHED,
    PAPER,
    PUBLISHED,
    RAW,
    STANDARDISED,
    named_modes,
)
from epochwatt.published.numbers import Measurement

PLACE = ("backend", "setup", "device", "instance", "storage", "num_workers", "batch_size")
DEVICE = "agx"  # that the paper predicts for
ALL: tuple[str, ...] = ()  # networks
EFIJ, TAKE_AWAY = "".join(PUBLISHED), "T5.7.1a"
EPS_PP = 3.0  # points, as in config/claims.yaml: the slack of take-away 5.7.3a

Row = dict[str, Any]


class Statistic(NamedTuple):
    """One number that the paper tells, or a take-away rests on.

    Attributes
    ----------
    about : in words
    target : time_s or energy_wh
    networks : whose predictions; none: of all
    value : of their MAPE, %
    criterion : `>=`, `<=` or `>`, and the value it is compared with; None: as printed
    published : id in config/published/measurements.csv; empty: not printed
    of : how many predictions were counted; 0: no count
    """

    about: str
    target: str
    networks: tuple[str, ...]
    value: Callable[[Sequence[float]], float]
    criterion: tuple[str, float | None]
    published: str
    of: int = 0


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
    Statistic("worst MAPE, %", ENERGY, ("resnet",), max, ("<=", 25.0 + EPS_PP), "S5.7.3-01"),
    Statistic("worst MAPE, %", ENERGY, ("mobilenet",), max, ("<=", 25.0 + EPS_PP), "S5.7.3-02"),
    Statistic("worst MAPE, %", ENERGY, ("lenet",), max, (">", 25.0), "S5.7.3-03"),
    Statistic("least MAPE, %", ENERGY, ("vgg11",), min, (">=", None), "S5.7.3-04"),
    Statistic("worst MAPE, %", ENERGY, ("vgg11",), max, ("<=", None), "S5.7.3-05"),
    Statistic("median MAPE, %", ENERGY, ("vgg11",), statistics.median, (">", 25.0), "S5.7.3-06"),
    Statistic("mean MAPE, %", ENERGY, ALL, statistics.fmean, ("", None), ""),
)


def rows_of_bench(
    bench: Mapping[str, Any],
    predictions: Iterable[Mapping[str, Any]],
    printed: Mapping[str, Measurement],
) -> list[Row]:
    """Return the statistics of a bench: of its choice of modes, then of its predictions.

    Parameters
    ----------
    bench : as in power_modes.json
    predictions : its rows of predictions.csv; a mode of several names is counted once
    printed : config/published/measurements.csv, by id
    """
    place = {name: bench["about"][name] for name in PLACE}
    searched = set(named_modes(bench).values())
    by_mode = {
        (row["target"], row["fit"], row["model"], Mode(*(row[k] for k in Mode._fields))): row
        for row in predictions
    }
    own = [row for (*_, mode), row in by_mode.items() if mode in searched]
    fits = dict.fromkeys((row["target"], row["fit"]) for row in own)
    told = [
        row
        for target, fit in fits
        for statistic in STATISTICS
        if statistic.target == target
        for row in _counted(statistic, fit, own, place, printed)
    ]
    return [{**place, **row} for row in _of_choice(bench)] + told


def _counted(
    statistic: Statistic,
    fit: str,
    rows: Iterable[Mapping[str, Any]],
    place: Row,
    printed: Mapping[str, Measurement],
) -> list[Row]:
    """Return the rows of a statistic of a fit: of all modes, and of those it has not seen."""
    wanted = [row for row in rows if (row["target"], row["fit"]) == (statistic.target, fit)]
    if statistic.networks:
        if set(statistic.networks) - {row["model"] for row in wanted}:
            return []
        wanted = [row for row in wanted if row["model"] in statistic.networks]
    told = []
    for modes, kept in (
        ("all", wanted),
        ("not trained on", [row for row in wanted if not row["trains"]]),
    ):
        if kept:
            value = statistic.value([row["mape_pct"] for row in kept])
            about = {
                "target": statistic.target,
                "fit": fit,
                "statistic": statistic.about,
                "networks": " ".join(statistic.networks) or "all",
                "modes": modes,
                "value": value,
                "of": len(kept) if statistic.of else "",
            }
            told.append(
                {**place, **about, **_beside(statistic, fit, value, len(kept), place, printed)}
            )
    return told


def _beside(
    statistic: Statistic,
    fit: str,
    value: float,
    n: int,
    place: Row,
    printed: Mapping[str, Measurement],
) -> Row:
    """Return what is printed, and whether ours agrees."""
    if (place["setup"], place["device"]) != (PAPER, DEVICE) or not statistic.criterion[0]:
        return {}
    fact = printed.get(statistic.published)
    sign, limit = statistic.criterion
    limit = fact.value if limit is None and fact is not None else limit
    assert limit is not None
    ours, theirs = (value / n, limit / statistic.of) if statistic.of else (value, limit)
    agrees = {">=": ours >= theirs, "<=": ours <= theirs, ">": ours > theirs}[sign]
    told = {
        "published": "" if fact is None else fact.value,
        "published_of": statistic.of or "",
        "published_id": statistic.published,
        "times_published": value / fact.value if fact is not None and not statistic.of else "",
        "criterion": f"{sign} {limit:g}" + (f" of {statistic.of}" if statistic.of else ""),
    }
    return told | ({"agrees": "yes" if agrees else "no"} if fit.startswith("paper") else {})


def _of_choice(bench: Mapping[str, Any]) -> list[Row]:
    """Return what the search for four modes gave: the choice, what ties with it, e f i j's rank."""
    choices = bench["choices"]
    if not choices:
        return []
    left_out = {f"{RAW}, without {name}": of for name, of in choices["left_out"].items()}
    searches = {RAW: choices[RAW], STANDARDISED: choices[STANDARDISED], **left_out}
    is_paper = AS_PUBLISHED in choices and bench["about"]["device"] == DEVICE
    printed, told = {"published": EFIJ, "published_id": TAKE_AWAY, "criterion": f"= {EFIJ}"}, []
    for fit, found in searches.items():
        modes = "".join(found["modes"])
        about = {"target": TIME, "fit": fit, "networks": "all", "modes": "all"}
        row = {**about, "statistic": "chosen modes", "value": modes, "of": found["of"]}
        if is_paper and fit not in left_out:
            row |= {**printed, "agrees": "yes" if modes == EFIJ else "no"}
        told.append(row)
        told.append({**about, "statistic": "tied within 1 %", "value": " ".join(found["ties"])})
    if is_paper:
        found = choices[AS_PUBLISHED]
        about = {"target": TIME, "fit": RAW, "networks": "all", "modes": "all"}
        row = {**about, "statistic": f"rank of {EFIJ}", "value": found["rank"], "of": found["of"]}
        told.append({**row, "published": 1, "published_id": TAKE_AWAY})
    return told
