"""`python -m benchmarks.profile_replays`: profiles judged on tables, for the documentation.

Writes benchmarks/tables/prediction/profile-replays.csv; some ten minutes of two cores.
"""

import csv
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.results import REPOSITORY
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.evaluation.profile_replays import (
    Answer,
    Summary,
    best_of_random,
    by_prediction,
    limits_of,
    replay_profiles,
    summarise,
    without_profiles,
)
from epochwatt.prediction.predictor import Reference
from epochwatt.prediction.profile.command import METHOD
from epochwatt.prediction.profile.replay import Played, Replayed, Simulated
from epochwatt.prediction.registry import load_method
from epochwatt.study.validation import validated
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.table import load_sweep

TABLE = REPOSITORY / "benchmarks/tables/prediction/profile-replays.csv"
TX1, TX2, TX2_LONG = "translucence-tx1-5000", "translucence-tx2-5000", "translucence-tx2-20000"
REFERENCES = {  # what PowerTrain learns all modes of, and by which of its readings
    TX1: (TX2, "powertrain_cross_board"),
    TX2: (TX2_LONG, "powertrain"),
    TX2_LONG: (TX2, "powertrain"),
}
ORIN = {"resnet": "simulated Orin, ResNet", "mobilenet": "simulated Orin, MobileNet"}
MAX_MINUTES = 30.0
N_RANDOM = (16, 25, 50)
N_POWERTRAIN = 50
HEAD = ["table", "modes", "strategy", "answers", "answered, %", "regret, %: median / 90th"]
HEAD += ["broken, %", "by over 1 W, %", "profiled", "minutes"]


def real(name: str) -> Played:
    """Return a bench that a public table plays."""
    (table,) = find_tables(name, REPOSITORY)
    return Replayed(table)


def simulated(model: str) -> Played:
    """Return a simulated AGX Orin in Fulcrum's 441 modes."""
    workload = {"model": model, "dataset_source": "official", "batch_size": 16, "num_workers": 4}
    entry = {"title": model, "backend": "twin", "device": "orin", "grid": "fulcrum-orin"}
    whole = validated(SweepEntry, {**entry, "workload": workload}, "the benchmark")
    sweep, _ = load_sweep(f"replay-{model}", whole, REPOSITORY)
    return Simulated(sweep, REPOSITORY)


def answers_of(name: str) -> tuple[Played, list[Answer]]:
    """Return a bench and what every strategy answers on it."""
    is_real = name in REFERENCES
    make = real if is_real else simulated
    bench = make(name)
    rows, reference = bench.table, None
    limits_w = limits_of(rows)
    answers = []
    benches = [bench.anew() for _ in limits_w]
    answers += replay_profiles(benches, load_method(METHOD), limits_w, MAX_MINUTES)
    for n in N_RANDOM:
        answers += best_of_random(bench, rows, n, limits_w)
    if is_real:
        other, powertrain = REFERENCES[name]
        (table,) = find_tables(other, REPOSITORY)
        reference = Reference(observations_of(table), is_other_board=table.key.device != bench.kind)
    else:
        other = next(model for model in ORIN if model != name)
        powertrain, reference = "powertrain", Reference(simulated(other).table)
    loaded = load_method(powertrain)
    answers += by_prediction(bench, rows, loaded, reference, N_POWERTRAIN, limits_w)
    return bench, answers + without_profiles(rows, bench.kind, limits_w)


def lines(name: str) -> list[list[str]]:
    """Return the rows of the table for one bench."""
    bench, answers = answers_of(name)
    place = [ORIN.get(name, name), str(len(bench.modes))]
    return [[*place, one.strategy, *_cells(one)] for one in summarise(bench.table, answers)]


def _cells(one: Summary) -> list[str]:
    regret = f"{one.regret_pct:.1f} / {one.regret_p90_pct:.1f}"
    if math.isnan(one.regret_pct):
        regret = "-"
    return [
        str(one.n_answers),
        f"{one.answered_pct:.0f}",
        regret,
        f"{one.broken_pct:.0f}",
        f"{one.over_1w_pct:.0f}",
        f"{one.n_profiled:.0f}",
        f"{one.minutes:.0f}",
    ]


def main() -> int:
    """Judge on all tables; write after each."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes that are started now
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        rows = [row for part in pool.map(lines, (*REFERENCES, *ORIN)) for row in part]
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
