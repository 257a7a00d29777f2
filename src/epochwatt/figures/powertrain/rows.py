"""Compute the rows that figures and pages of PowerTrain show; nothing here draws."""

import pandas as pd

from epochwatt.claims.beside_paper import DRAW
from epochwatt.figures.frames import numbers

PROFILED = "50"  # modes, as in the paper
MATRIX = "transfer-matrix"  # a group that has no other method to stand beside
ALL = ("powertrain_all",)  # methods that profile all modes
SHARES = {"over_pct": "broken (A/L)", "over_1w_pct": "broken by more than 1 W (A/L+1)"}
KEY = ["workload", "device", "method", "reference"]


def learning_rows(errors: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return median and quartiles over draws: a row per `KEY` and number of profiled modes."""
    rows = _each_draw_once(errors)
    rows = rows[rows.target.eq(target) & rows.mape_pct.ne("")]
    rows = rows.assign(mape_pct=numbers(rows.mape_pct))
    draws = rows.groupby([*KEY, "n_profiled"], sort=False).mape_pct
    shown = {"value": 0.5, "low": 0.25, "high": 0.75}
    columns = {name: _rounded(draws.quantile(q), 5) for name, q in shown.items()}
    frame = pd.DataFrame(columns | {"n_draws": draws.size()}).reset_index()
    frame.insert(len(KEY) + 1, "quantity", f"{target}_mape_pct")
    return frame.assign(source="ours")


def limit_rows(choices: pd.DataFrame, penalties: pd.DataFrame) -> pd.DataFrame:
    """Return percentiles of penalties, and shares of broken limits: a row per `KEY`."""
    wanted = [*SHARES, "n_limits", "n_answered", "excess_area_pct"]
    rows = _from_fifty(penalties, wanted)
    groups = rows.groupby(KEY, sort=False)
    limits = groups[["n_limits", "n_answered"]].sum()
    boxes = _from_fifty(choices, ["penalty_pct"]).groupby(KEY, sort=False).penalty_pct
    ends = {f"p{p}": _rounded(boxes.quantile(p / 100)) for p in (5, 25, 50, 75, 95)}
    medians = {n: _rounded(groups[n].median()) for n in (*SHARES, "excess_area_pct")}
    unanswered = 100 * (1 - limits.n_answered / limits.n_limits.where(limits.n_limits.ne(0)))
    columns = {"value": ends["p50"], **ends, **medians, "unanswered_pct": _rounded(unanswered)}
    frame = pd.DataFrame(columns, index=limits.index).reset_index()
    frame.insert(len(KEY), "quantity", "penalty_pct")
    return frame.assign(n_draws=groups.n_limits.count().to_numpy(), source="ours")


def _each_draw_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without those of the same draw in another group, such as of another reference."""
    return rows.drop_duplicates([name for name in DRAW if name in rows]) if len(rows) else rows


def _from_fifty(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return numbers of the rows of methods that profile fifty modes, or a number of their own."""
    rows = _each_draw_once(rows)
    rows = rows[rows.n_profiled.isin(["", "0", PROFILED]) | rows.method.isin(ALL)]
    return rows.assign(**{name: numbers(rows[name]) for name in columns})


def _rounded(values: "pd.Series[float]", digits: int = 4) -> "pd.Series[float]":
    return values.map(lambda value: float(f"{value:.{digits}g}"))
