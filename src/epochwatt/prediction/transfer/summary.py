"""Tables made of all jobs: from which workload to which, and one power limit in whole epochs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.transfer.config import PowertrainExample
from epochwatt.prediction.transfer.names import OBSERVED, POWERTRAIN_ALL, WITHOUT_DRAWS

Row = Mapping[str, Any]


class Trial(NamedTuple):
    """What the draws of one method share."""

    provenance: str
    group: str
    device: str
    workload: str
    reference: str
    method: str
    n_profiled: str


TRANSFERRED = "powertrain"  # the method of the matrix
N_TRANSFERRED = 50  # profiled modes of it, as in the paper
WHOLE_MODE = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")


def reported(time_pct: Mapping[str, float], power_pct: Mapping[str, float]) -> str:
    """Return the draw that the paper would report.

    Draws are sorted by the mean of their errors of time and of power; of ten it is the sixth, of n
    the one just above the middle. SOURCE: the lab's scripts (reporting rule of ten draws).
    """
    order = sorted(time_pct, key=lambda draw: (time_pct[draw] + power_pct[draw], int(draw)))
    return order[len(order) // 2]


def transfer_rows(errors: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the matrix: the error of each workload from each reference, over its draws.

    On the diagonal stands the network that has seen all modes of the workload.
    """
    grouped = _mapes(
        row
        for row in errors
        if row["method"] == POWERTRAIN_ALL
        or (row["method"] == TRANSFERRED and int(row["n_profiled"]) == N_TRANSFERRED)
    )
    return [
        _cell_of_matrix(
            trial, target, mapes, targets[target][reported(targets[TIME], targets[POWER])]
        )
        for trial, targets in grouped.items()
        for target, mapes in targets.items()
    ]


def _cell_of_matrix(
    trial: Trial, target: str, mapes: Mapping[str, float], of_reported: float
) -> dict[str, Any]:
    low, middle, high = np.quantile(list(mapes.values()), [0.25, 0.5, 0.75]).tolist()
    return {
        **trial._asdict(),
        **{"reference": trial.reference or trial.workload, "target": target},
        **{"n_draws": len(mapes), "mape_pct": middle, "low_pct": low, "high_pct": high},
        "reported_pct": of_reported,
    }


def _mapes(errors: Iterable[Row]) -> dict[Trial, dict[str, dict[str, float]]]:
    """Return trial -> target -> draw -> mean absolute error, %."""
    grouped: dict[Trial, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in errors:
        grouped[_trial(row)][row["target"]][str(row["draw"])] = float(row["mape_pct"])
    return grouped


def _trial(row: Row) -> Trial:
    return Trial(*(str(row[name]) for name in Trial._fields))


def example_rows(
    errors: Iterable[Row], choices: Sequence[Row], example: PowertrainExample
) -> list[dict[str, Any]]:
    """Return the optimum of one workload within one limit, and what each method chose.

    Of a method with draws the reported one of 50 profiled modes counts; of one without predictions
    the draw whose penalty is in the middle.
    """
    examples = [
        row
        for row in choices
        if row["workload"] == example.workload and float(row["limit_w"]) == example.limit_w
    ]
    mapes = _mapes(row for row in errors if row["workload"] == example.workload)
    by_trial: dict[Trial, list[Row]] = defaultdict(list)
    for row in examples:
        by_trial[_trial(row)].append(row)
    rows = []
    for trial, some in by_trial.items():
        if trial.method not in WITHOUT_DRAWS and int(trial.n_profiled) != N_TRANSFERRED:
            continue
        chosen = _of_reported(some, mapes[trial]) if trial in mapes else _middle(some)
        rows.append(_in_epochs(chosen, example))
    if examples:
        rows.insert(0, _optimum(examples[0], example))
    return rows


def _of_reported(some: Sequence[Row], mapes: Mapping[str, Mapping[str, float]]) -> Row:
    draw = reported(mapes[TIME], mapes[POWER])
    return next(row for row in some if str(row["draw"]) == draw)


def _middle(some: Sequence[Row]) -> Row:
    def penalty(row: Row) -> float:
        value = _number(row["penalty_pct"])
        return np.inf if value is None else value

    return sorted(some, key=penalty)[len(some) // 2]


def _in_epochs(row: Row, example: PowertrainExample) -> dict[str, Any]:
    shared = ("provenance", "workload", "device", "limit_w", "method", "n_profiled", "draw")
    kept = (*shared, *WHOLE_MODE, "predicted_power_w", "power_w", "penalty_pct", "over_w")
    return {
        **{name: row.get(name) for name in kept},
        "minibatches": example.minibatches,
        "predicted_epoch_s": _times(row.get("predicted_time_s"), example.minibatches),
        "epoch_s": _times(row["time_s"], example.minibatches),
    }


def _optimum(row: Row, example: PowertrainExample) -> dict[str, Any]:
    shared = ("provenance", "workload", "device", "limit_w")
    power_w = _number(row["best_power_w"])
    return {
        **{name: row[name] for name in shared},
        **{"method": OBSERVED, "minibatches": example.minibatches, "penalty_pct": 0.0},
        **{"epoch_s": _times(row["best_time_s"], example.minibatches), "power_w": power_w},
        "over_w": None if power_w is None else power_w - example.limit_w,
    }


def _times(value: Any, factor: int) -> float | None:
    number = _number(value)
    return None if number is None else factor * number


def _number(value: Any) -> float | None:
    """Return a cell as a number; None of an empty one or NaN."""
    if value in (None, ""):
        return None
    number = float(value)
    return None if np.isnan(number) else number
