"""Tables of results/powertrain/: those of all jobs joined, and what is made of several.

The transfer matrix says from which workload to which; the example is one power limit for one
workload, told in whole epochs.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from epochwatt.board.records.shapes import Document
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.transfer.config import PowertrainExample
from epochwatt.prediction.transfer.names import (
    OBSERVED,
    OF_JOBS,
    POWERTRAIN_ALL,
    TABLES,
    WITHOUT_DRAWS,
)
from epochwatt.tables import read_cells, write_table

DIGITS = 6  # of numbers; more would say nothing
# what the draws of one method share
TRIAL = ["provenance", "group", "device", "workload", "reference", "method", "n_profiled"]
TRANSFERRED = "powertrain"  # the method of the matrix
N_TRANSFERRED = 50  # profiled modes of it, as in the paper


def collect(folders: Iterable[str], example: Document, folder: Path) -> None:
    """Join the tables of all jobs; write them, the transfer matrix and the example to `folder`.

    `folders` are those of the jobs, `example` is `PowertrainExample` as plain values.
    """
    paths = list(folders)
    frames = {}
    for name in OF_JOBS:
        rows = [row for path in paths for row in read_cells(f"{path}/{name}.csv")]
        frames[name] = pd.DataFrame(rows, columns=list(TABLES[name]), dtype=object)
    frames["transfer"] = transfer_matrix(frames["errors"])
    frames["example"] = example_choices(
        frames["errors"], frames["choices"], PowertrainExample(**example)
    )
    for name, frame in frames.items():
        write_frame(folder, name, frame)


def write_frame(folder: Path, name: str, frame: pd.DataFrame) -> None:
    """Write a table of `names.TABLES`: numbers to six digits, nothing for what is not known."""

    def cell(value: Any) -> Any:
        if not isinstance(value, float):
            return value
        return None if pd.isna(value) else f"{value:.{DIGITS}g}"

    cells = frame.reindex(columns=list(TABLES[name])).astype(object).map(cell)
    content = f"table {name} of the study powertrain"
    write_table(folder / f"{name}.csv", content, TABLES[name], cells.to_numpy().tolist())


def reported(mapes: pd.DataFrame) -> str:
    """Choose the draw that the paper would report, of mean absolute errors by draw and target.

    Draws are sorted by the mean of their errors of time and of power; of ten it is the sixth, of n
    the one just above the middle. SOURCE: the lab's scripts (reporting rule of ten draws).
    """
    both = mapes[TIME] + mapes[POWER]
    order = sorted(both.index, key=lambda draw: (both[draw], int(draw)))
    return str(order[len(order) // 2])


def _mapes(errors: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    """Return mean absolute errors, %, by `TRIAL`: frames of a row per draw, a column per target."""
    return {
        key: part.pivot(index="draw", columns="target", values="mape_pct").astype(float)
        for key, part in errors.groupby(TRIAL, sort=False)
    }


def transfer_matrix(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the error of each workload from each reference: quartiles of its draws.

    On the diagonal stands the network that has seen all modes of the workload.
    """
    is_transfer = (errors["method"] == TRANSFERRED) & (
        errors["n_profiled"].astype(int) == N_TRANSFERRED
    )
    rows = []
    for key, mapes in _mapes(errors[is_transfer | (errors["method"] == POWERTRAIN_ALL)]).items():
        trial = dict(zip(TRIAL, key, strict=True))
        trial["reference"] = trial["reference"] or trial["workload"]
        low, middle, high = (mapes.quantile(share) for share in (0.25, 0.5, 0.75))
        rows += [
            {
                **trial,
                "target": target,
                "n_draws": len(mapes),
                "mape_pct": middle[target],
                "low_pct": low[target],
                "high_pct": high[target],
                "reported_pct": mapes[target][reported(mapes)],
            }
            for target in (TIME, POWER)
        ]
    return pd.DataFrame(rows)


def example_choices(
    errors: pd.DataFrame, choices: pd.DataFrame, example: PowertrainExample
) -> pd.DataFrame:
    """Return the optimum of one workload within one limit, and what each method chose.

    Of a method with draws the reported one of 50 profiled modes counts; of one without predictions
    the draw whose penalty is in the middle.
    """
    is_example = choices["limit_w"].astype(float) == example.limit_w
    own = choices[is_example & (choices["workload"] == example.workload)]
    if own.empty:
        return pd.DataFrame()
    mapes = _mapes(errors[errors["workload"] == example.workload])
    chosen = []
    for key, part in own.groupby(TRIAL, sort=False):
        *_, method, n_profiled = map(str, key)
        if method not in WITHOUT_DRAWS and int(n_profiled) != N_TRANSFERRED:
            continue
        if key in mapes:
            chosen.append(part[part["draw"] == reported(mapes[key])].iloc[0])
        else:
            penalties = pd.to_numeric(part["penalty_pct"]).fillna(float("inf"))
            order = penalties.argsort(kind="stable")
            chosen.append(part.iloc[order.iloc[len(part) // 2]])
    frame = pd.DataFrame(chosen, columns=choices.columns).assign(minibatches=example.minibatches)
    for name, time in (("epoch_s", "time_s"), ("predicted_epoch_s", "predicted_time_s")):
        frame[name] = example.minibatches * pd.to_numeric(frame[time])
    first = own.iloc[0]
    power_w = pd.to_numeric(first["best_power_w"])
    optimum = {name: first[name] for name in ("provenance", "workload", "device", "limit_w")} | {
        "method": OBSERVED,
        "minibatches": example.minibatches,
        "penalty_pct": 0.0,
        "epoch_s": example.minibatches * pd.to_numeric(first["best_time_s"]),
        "power_w": power_w,
        "over_w": power_w - example.limit_w,
    }
    return pd.concat([pd.DataFrame([optimum]).astype(object), frame.astype(object)])
