"""`python -m benchmarks.profile_replays`: profiles judged on tables, for the documentation.

A table in which every mode was measured plays the board, limit after limit. Beside `epochwatt
profile` stand the best of modes profiled at random, what PowerTrain chooses by its predictions, the
board's preset modes, and MAXN. All are judged by what the table says of the mode that they answer
with. Writes benchmarks/tables/prediction/profile-replays.csv; some ten minutes of two cores.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd

from benchmarks.results import REPOSITORY, write_tables
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.harness import (
    NONE,
    OVER_W,
    Places,
    best_profiled,
    choices_frame,
    fastest_within,
    random_subsets,
)
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.prediction.profile.bench import Played, replayed
from epochwatt.prediction.profile.bench import simulated as simulated_board
from epochwatt.prediction.profile.command import METHOD
from epochwatt.prediction.profile.search import Goal, Profile, search
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import stock_choices, strongest
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
N_LIMITS = 25
SHARES = (0.05, 0.95)  # quantiles of the table's power between which the limits lie
MAX_MINUTES = 30.0
N_RANDOM, N_POWERTRAIN, N_DRAWS = (16, 25, 50), 50, 10
HEAD = ["table", "modes", "strategy", "answers", "answered, %", "regret, %: median / 90th"]
HEAD += ["broken, %", "by over 1 W, %", "profiled", "minutes"]


def real(name: str) -> Played:
    """Return a bench that a public table plays."""
    (table,) = find_tables(name, REPOSITORY)
    return replayed(table)


def simulated(model: str) -> Played:
    """Return a simulated AGX Orin in Fulcrum's 441 modes."""
    workload = {"model": model, "dataset_source": "official", "batch_size": 16, "num_workers": 4}
    entry = {"title": model, "backend": "twin", "device": "orin", "grid": "fulcrum-orin"}
    whole = validated(SweepEntry, {**entry, "workload": workload}, "the benchmark")
    sweep, _ = load_sweep(f"replay-{model}", whole, REPOSITORY)
    return simulated_board(sweep, REPOSITORY)


def answers(
    rows: Observations,
    limits_w: Numbers,
    places: Places,
    strategy: str,
    n_profiled: float = 0,
    minutes: float | Numbers = 0.0,
) -> pd.DataFrame:
    """Return what a strategy answers to each limit, beside what it took."""
    frame = choices_frame(rows, limits_w, places)
    return frame.assign(strategy=strategy, n_profiled=n_profiled, minutes=minutes)


def profiled(bench: Played, method: Method, limits_w: Numbers, max_minutes: float) -> pd.DataFrame:
    """Return what `epochwatt profile` answers to each limit, each on a bench of its own."""
    profiles = [
        Profile(bench.anew(), Goal("time", limit_w, 60 * max_minutes), method)
        for limit_w in limits_w.tolist()
    ]
    for profile in profiles:
        search(profile)
    places = [NONE if p.best is None else bench.place(p.best.mode) for p in profiles]
    frame = answers(bench.table, limits_w, np.array(places), f"profile, {method.name}")
    minutes = [profile.spent_s / 60 for profile in profiles]
    return frame.assign(n_profiled=[len(profile.ran) for profile in profiles], minutes=minutes)


def from_random(
    bench: Played,
    limits_w: Numbers,
    n: int,
    method: Method | None = None,
    reference: Reference | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield answers from modes profiled at random: the best of them, or the best by prediction."""
    rows = bench.table
    for split in random_subsets(rows.distinct(), n, N_DRAWS, seed=0):
        places = np.array([bench.place(mode) for mode in split.train])
        minutes = sum(bench.expected_s(float(s)) for s in rows.time_s[places]) / 60
        if method is None:
            chosen = best_profiled(rows, places, limits_w)
            yield answers(rows, limits_w, chosen, f"best of {n} random modes", n, minutes)
        else:
            train = rows.only(split.train)
            fitted = predictors(method, train, [train], reference=reference)
            time_s, power_w = (fitted[target].predict(rows.modes) for target in (TIME, POWER))
            chosen = fastest_within(time_s, power_w, limits_w)
            yield answers(rows, limits_w, chosen, f"{method.name}, {n} random modes", n, minutes)


def without_profiles(bench: Played, limits_w: Numbers) -> Iterator[pd.DataFrame]:
    """Yield answers of MAXN, and of the preset modes where they are known of the device."""
    rows = bench.table
    try:
        yield answers(rows, limits_w, np.full(len(limits_w), strongest(rows)), "MAXN")
        yield answers(rows, limits_w, stock_choices(rows, bench.kind, limits_w), "preset modes")
    except PredictionError:  # of this board none is known
        return


def all_answers(name: str, bench: Played, limits_w: Numbers) -> pd.DataFrame:
    """Return what every strategy answers on a bench."""
    if name in REFERENCES:
        other, powertrain = REFERENCES[name]
        (table,) = find_tables(other, REPOSITORY)
        reference = Reference(observations_of(table), is_other_board=table.key.device != bench.kind)
    else:
        other = next(model for model in ORIN if model != name)
        powertrain, reference = "powertrain", Reference(simulated(other).table)
    loaded = load_method(powertrain)
    return pd.concat(
        [
            profiled(bench, load_method(METHOD), limits_w, MAX_MINUTES),
            *(frame for n in N_RANDOM for frame in from_random(bench, limits_w, n)),
            *from_random(bench, limits_w, N_POWERTRAIN, loaded, reference),
            *without_profiles(bench, limits_w),
        ]
    )


def summary(part: pd.DataFrame) -> list[str]:
    """Return the cells of one strategy: regret is that of the answers that keep their limit."""
    given = part[part["place"] != NONE]
    over_w = given["over_w"]
    regret = given["penalty_pct"][over_w <= 0]
    quantiles = [f"{regret.quantile(share):.1f}" for share in (0.5, 0.9)] if len(regret) else ["-"]
    return [
        str(len(part)),
        f"{100 * len(given) / len(part):.0f}",
        " / ".join(quantiles),
        f"{100 * (over_w > 0).mean():.0f}",
        f"{100 * (over_w > OVER_W).mean():.0f}",
        f"{part['n_profiled'].mean():.0f}",
        f"{part['minutes'].mean():.0f}",
    ]


def lines(name: str) -> list[list[str]]:
    """Return the rows of the table for one bench."""
    bench = (real if name in REFERENCES else simulated)(name)
    limits_w = np.quantile(bench.table.power_w, np.linspace(*SHARES, N_LIMITS))
    place = [ORIN.get(name, name), str(len(bench.modes))]
    by_strategy = all_answers(name, bench, limits_w).groupby("strategy", sort=False)
    return [[*place, str(strategy), *summary(part)] for strategy, part in by_strategy]


def main() -> int:
    """Judge on all tables; write after each."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes that are started now
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        rows = [row for part in pool.map(lines, (*REFERENCES, *ORIN)) for row in part]
    write_tables(TABLE.parent, {TABLE.stem: pd.DataFrame(rows, columns=HEAD)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
