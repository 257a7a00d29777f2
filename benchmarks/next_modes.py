"""Do modes that are chosen one after the other teach more than random ones?

`python -m benchmarks.next_modes`: from ten random modes on, the mode of which least is known is
profiled next, up to 25; beside as many random modes. Writes results/methods/next.json.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.methods import CASES, OUT, units
from epochwatt.board.records import files
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.score_sweeps import draws_of
from epochwatt.prediction.evaluation.sweep_scores import RANDOM
from epochwatt.prediction.harness import absolute_errors_pct
from epochwatt.prediction.names import TIME
from epochwatt.prediction.predictor import Context, Predictor
from epochwatt.prediction.registry import load_method

FIRST, LAST, N_DRAWS = 10, 25, 10
NAMES = ("tx1", "tx2-20000", "tx2-5000")


def grown(table: Observations, modes: Sequence[Mode]) -> list[Mode]:
    """Return the modes and those that are chosen after them."""
    profiled = list(modes)
    while len(profiled) < LAST:
        seen = table.only(profiled)
        _, sd = _fitted(seen).log_normal(table.modes)
        is_new = [mode not in profiled for mode in table.mode_of_row]
        profiled.append(table.mode_of_row[int(np.where(is_new, sd, -1.0).argmax())])
    return profiled


def _fitted(seen: Observations) -> Predictor:
    return load_method("utilisation").fit(seen, Context(TIME))


def errors_pct(table: Observations, profiled: Sequence[Mode]) -> tuple[float, float]:
    """Return median and 90th percentile of the errors of time in all other modes, %."""
    others = set(table.distinct()) - set(profiled)
    rest = table.only(others)
    predicted = _fitted(table.only(profiled)).predict(rest.modes)
    median, p90 = np.quantile(absolute_errors_pct(predicted, rest.time_s), [0.5, 0.9])
    return float(median), float(p90)


def main() -> int:
    """Judge the sweeps of `NAMES`."""
    judged = []
    for name in NAMES:
        (unit,) = units(replace(CASES[name], networks=()))
        (table,) = unit.tables
        ten, many = (
            [trial.train.distinct() for trial in draws_of(unit, size, RANDOM, N_DRAWS)]
            for size in (FIRST, LAST)
        )
        ways = {"random": many, "one after the other": [grown(table, modes) for modes in ten]}
        for way, sets in ways.items():
            errors = np.array([errors_pct(table, modes) for modes in sets])
            (median, p90), spread = errors.mean(0), errors.std(0, ddof=1) / np.sqrt(len(errors))
            row = {"case": name, "way": way, "n_draws": len(errors), "median_pct": median}
            judged.append(row | {"p90_pct": p90, "median_se": spread[0], "p90_se": spread[1]})
        print(name, flush=True)
    files.write_json(str(OUT / "next.json"), judged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
