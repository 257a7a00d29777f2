"""Summarise the solvers of the study: means over sets of jobs and draws, least and most."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from epochwatt.tables import read_table, write_table

Row = Mapping[str, str]
COLUMNS = (
    *("provenance", "jobs", "solver", "n_rows", "n_profiles", "board_minutes"),
    *("kept_pct", "kept_least_pct", "kept_most_pct"),
    *("loss_pct", "loss_least_pct", "loss_most_pct", "late_pct", "kept_p99_pct"),
)


def write_summary(scores: Path, arrivals: Path, path: Path) -> None:
    """Write summary.csv (`COLUMNS`) of scores.csv and arrivals.csv."""
    tables = ([row for _, row in read_table(table)] for table in (scores, arrivals))
    cells = ([row[name] for name in COLUMNS] for row in summarised(*tables))
    write_table(path, "solvers of schedules, in short", COLUMNS, cells)


def summarised(scores: Iterable[Row], arrivals: Iterable[Row] = ()) -> list[dict[str, Any]]:
    """Return a row for each provenance, kind of jobs and solver.

    `kept`: solvable problems with an answer that keeps its budgets. `loss`: mean distance of these
    answers to the best. `late`: requests that random arrivals leave late, and `kept_p99`: plans
    that answer 99 % of them in time; empty for solvers whose plans were not played.
    """
    played = _grouped(row for row in arrivals if row["arrivals"] == "poisson")
    return [
        {
            **dict(zip(("provenance", "jobs", "solver"), key, strict=True)),
            "n_rows": len(some),
            "n_profiles": fmean(float(row["n_profiles"]) for row in some),
            "board_minutes": _mean(_numbers(some, "board_minutes")),
            **_spread("kept", list(map(_kept_pct, some))),
            **_spread("loss", _numbers(some, "loss_mean_pct")),
            **{
                name: _mean(_numbers(played.get(key, ()), name))
                for name in ("late_pct", "kept_p99_pct")
            },
        }
        for key, some in _grouped(row for row in scores if row["answered_pct"]).items()
    ]


def _grouped(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["provenance"], row["jobs"], row["solver"]), []).append(row)
    return groups


def _numbers(rows: Iterable[Row], column: str) -> list[float]:
    return [float(row[column]) for row in rows if row[column]]


def _kept_pct(row: Row) -> float:
    return float(row["answered_pct"]) * float(row["kept_pct"]) / 100


def _mean(values: Sequence[float]) -> float | str:
    return fmean(values) if values else ""


def _spread(name: str, values: Sequence[float]) -> dict[str, float | str]:
    least, most = (min(values), max(values)) if values else ("", "")
    return {
        f"{name}_pct": _mean(values),
        f"{name}_least_pct": least,
        f"{name}_most_pct": most,
    }
