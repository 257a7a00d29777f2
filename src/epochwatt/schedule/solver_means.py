"""Summarise the solvers of the study: means over sets of jobs and draws, least and most."""

from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from epochwatt.tables import read_frame, write_frame

_GROUPS = ["provenance", "jobs", "solver"]
SUMMED = ("answered_pct", "kept_pct", "loss_mean_pct", "n_profiles", "board_minutes")  # of scores
SUMMARY_COLUMNS = (
    *(*_GROUPS, "n_rows", "n_profiles", "board_minutes"),
    *("kept_pct", "kept_least_pct", "kept_most_pct"),
    *("loss_pct", "loss_least_pct", "loss_most_pct", "late_pct", "kept_p99_pct"),
)


def write_summary(scores: Path, arrivals: Path, path: Path) -> None:
    """Write summary.csv of scores.csv and arrivals.csv."""
    summary = summarised(read_frame(scores), read_frame(arrivals))
    write_frame(path, "solvers of schedules, in short", summary)


def summarised(scores: pd.DataFrame, arrivals: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return `SUMMARY_COLUMNS` of each kind of jobs and solver: means over sets of jobs and draws.

    `kept`: solvable problems with an answer that keeps its budgets. `loss`: mean distance of these
    answers to the best. `late`: requests that random arrivals leave late, and `kept_p99`: plans
    that answer 99 % of them in time; missing for solvers whose plans were not played.
    """
    answered = scores[scores["answered_pct"].notna()]
    kept_pct = answered["answered_pct"] * answered["kept_pct"] / 100
    groups = answered.assign(kept_pct=kept_pct).groupby(_GROUPS, sort=False)
    spread = {"pct": _mean, "least_pct": "min", "most_pct": "max"}
    summary = groups.agg(
        n_rows=("n_profiles", "size"),
        n_profiles=("n_profiles", _mean),
        board_minutes=("board_minutes", _mean),
        **{f"kept_{name}": ("kept_pct", function) for name, function in spread.items()},
        **{f"loss_{name}": ("loss_mean_pct", function) for name, function in spread.items()},
    )
    if arrivals is not None:
        played = arrivals[arrivals["arrivals"] == "poisson"].groupby(_GROUPS)
        summary = summary.join(played[["late_pct", "kept_p99_pct"]].agg(_mean))
    return summary.reset_index().reindex(columns=list(SUMMARY_COLUMNS))


def _mean(values: "pd.Series[float]") -> float:
    """Return the mean of what is known, rounded once; NaN: nothing is."""
    known = values.dropna()
    return fmean(known) if len(known) else np.nan
