"""Compute the rows that figures and pages of PowerTrain show; nothing here draws."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from epochwatt.claims.beside_paper import each_draw_once
from epochwatt.figures.common.vega import Cells

Row = Mapping[str, str]
QUARTILES = (25, 50, 75)
PERCENTILES = (5, 25, 50, 75, 95)
PROFILED = "50"  # modes, as in the paper
MATRIX = "transfer-matrix"  # a group that has no other method to stand beside
ALL = ("powertrain_all",)  # methods that profile all modes
SHARES = {"over_pct": "broken (A/L)", "over_1w_pct": "broken by more than 1 W (A/L+1)"}


def learning_rows(errors: Sequence[Row], target: str) -> list[Cells]:
    """Return median and quartiles over draws: a row per workload, reference, method, number.

    Parameters
    ----------
    errors : rows of errors.csv, of one provenance
    target : time_s or power_w
    """
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in each_draw_once(errors):
        if row["target"] == target and row["mape_pct"]:
            key = tuple(row[k] for k in ("workload", "device", "method", "reference"))
            groups.setdefault((*key, row["n_profiled"]), []).append(float(row["mape_pct"]))
    rows = []
    for (name, device, method, reference, n), values in groups.items():
        low, middle, high = np.percentile(values, QUARTILES)
        rows.append(
            {
                "workload": name,
                "device": device,
                "method": method,
                "reference": reference,
                "n_profiled": n,
                "quantity": f"{target}_mape_pct",
                "value": float(f"{middle:.5g}"),
                "low": float(f"{low:.5g}"),
                "high": float(f"{high:.5g}"),
                "n_draws": len(values),
                "source": "ours",
            }
        )
    return rows


def limit_rows(choices: Sequence[Row], penalties: Sequence[Row]) -> list[Cells]:
    """Return a row per workload and method: percentiles of penalties, shares of broken limits."""
    boxes = _collected(choices, ("penalty_pct",))
    shares = _collected(penalties, (*SHARES, "n_limits", "n_answered", "excess_area_pct"))
    rows = []
    for key in shares:
        name, device, method, reference = key
        values = boxes.get(key, {}).get("penalty_pct", [])
        ends = np.percentile(values, PERCENTILES).tolist() if values else [None] * 5
        middle = {column: _median(shares[key][column]) for column in (*SHARES, "excess_area_pct")}
        n_limits, n_answered = (sum(shares[key][name]) for name in ("n_limits", "n_answered"))
        rows.append(
            {
                **{"workload": name, "device": device, "method": method, "reference": reference},
                "quantity": "penalty_pct",
                "value": _rounded(ends[PERCENTILES.index(50)]),
                **{f"p{p}": _rounded(end) for p, end in zip(PERCENTILES, ends, strict=True)},
                **{column: _rounded(value) for column, value in middle.items()},
                "unanswered_pct": _rounded(100 * (1 - n_answered / n_limits)) if n_limits else "",
                "n_draws": len(shares[key]["n_limits"]),
                "source": "ours",
            }
        )
    return rows


def _collected(
    rows: Iterable[Row], columns: Sequence[str]
) -> dict[tuple[str, ...], dict[str, list[float]]]:
    """Return workload, device, method, reference -> column -> numbers of all rows."""
    numbers: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in each_draw_once(rows):
        if row["n_profiled"] in ("", "0", PROFILED) or row["method"] in ALL:
            key = tuple(row[k] for k in ("workload", "device", "method", "reference"))
            mine = numbers.setdefault(key, {column: [] for column in columns})
            for column in columns:
                if row[column] not in ("", "nan"):
                    mine[column].append(float(row[column]))
    return numbers


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _rounded(value: float | None) -> float | str:
    return "" if value is None else float(f"{value:.4g}")
