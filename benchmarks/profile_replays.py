"""`python -m benchmarks.profile_replays`: profiles judged on tables, for the documentation.

A table in which every mode was measured plays the board, limit after limit. Beside `epochwatt
profile` stand who has run every mode, the best of modes profiled at random, what PowerTrain chooses
by its predictions, the board's preset modes, and MAXN. All are judged by repeats of a mode that
they have not seen; by one that is drawn where the table has none. Writes
benchmarks/tables/prediction/profile-replays.csv; some half an hour of two cores. Of it, names of
tables make their rows anew, and `profile` those of `epochwatt profile` and of every mode.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.results import REPOSITORY, write_tables
from benchmarks.synthetic_truth import EPOCH_SD, SHARES, of_another_kind
from epochwatt.board.device.kinds import KINDS
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import PROCESSES
from epochwatt.prediction.harness import (
    NONE,
    OVER_W,
    Places,
    best_profiled,
    fastest_within,
    random_subsets,
)
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.prediction.profile.bench import Played, replayed
from epochwatt.prediction.profile.bench import simulated as simulated_board
from epochwatt.prediction.profile.search import (
    ENDLESS_S,
    MAX_RISK,
    MOST_REPEATS,
    Goal,
    Profile,
    search,
)
from epochwatt.prediction.recommend.board_tables import board_of_kind
from epochwatt.prediction.registry import RECOMMENDED, load_method
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
WORLDS = tuple(f"synthetic board {number}" for number in range(1, 6))
N_WORLD_MODES, WORK_S = 500, 20.0
N_SHOWN, N_UNSEEN = MOST_REPEATS, 20  # repeats of each of their modes
WORLD_SEED = 2611  # on which nothing was chosen
N_LIMITS, N_LIMITS_MADE = 13, 5  # of simulated boards
LIMITS = (0.05, 0.95)  # quantiles of the table's power between which the limits lie
MAX_MINUTES = 30.0
N_RANDOM, N_POWERTRAIN, N_DRAWS = (16, 25, 50), 50, 3
RATHER = 0.5  # share of broken repeats, from which on an answer does not keep its limit
HEAD = ["table", "modes", "judged by", "strategy", "answers", "answered, %"]
HEAD += ["regret, %: median / 90th", "broken, %", "by over 1 W, %", "runs", "minutes"]


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


def world(number: int, seed: int = WORLD_SEED, sd: float = EPOCH_SD) -> Played:
    """Return a board of another kind than any model, each mode of which was run some times.

    `sd`: of its repeats, relative
    """
    modes = board_of_kind(KINDS["agx_xavier"]).all_modes()
    names, rng = list(SHARES), np.random.default_rng((seed, number))
    drawn = of_another_kind(names, Mode(*modes[-1]), number + 1, seed)[number]
    truth = drawn[number % len(names)]
    modes = modes[np.sort(rng.choice(len(modes), N_WORLD_MODES, replace=False))]
    time_s = truth.time(modes)
    time_s *= WORK_S / np.median(time_s)  # an epoch of these worlds would fill the half hour
    values = np.stack([time_s, truth.power(modes)], axis=1)[:, None]
    noise = rng.standard_normal((len(modes), N_SHOWN + N_UNSEEN, 2))
    bench = Played(modes, list(values * np.exp(sd * noise)), n_kept=N_UNSEEN)
    bench.title, bench.kind, bench.provenance = (
        "a synthetic board",
        KINDS["agx_xavier"].name,
        "simulated",
    )
    bench.processes, bench.work = PROCESSES, "run"
    return bench


def bench_of(name: str) -> Played:
    """Return the bench of a name of `REFERENCES`, `ORIN` or `WORLDS`."""
    if name in WORLDS:
        return world(WORLDS.index(name))
    return real(name) if name in REFERENCES else simulated(name)


def judged(bench: Played, limit_w: float, place: int, strategy: str) -> dict[str, object]:
    """Return how an answer under a limit does in repeats that were not shown, beside the best."""
    row: dict[str, object] = {"strategy": strategy, "place": place, "limit_w": limit_w}
    row["minutes"] = bench.spent_s() / 60
    if place == NONE:
        return row
    unseen, are_there = bench.unseen(Mode(*bench.modes[place].tolist()))
    best = int(fastest_within(bench.time_s, bench.power_w, np.array([limit_w]))[0])
    over_w = unseen[:, 1] - limit_w
    row |= {"broken": (over_w > 0).mean(), "over_1w": (over_w > OVER_W).mean()}
    return row | {
        "regret_pct": 100 * (unseen[:, 0].mean() / bench.time_s[best] - 1),
        "repeats": are_there,
    }


def profiled(
    bench: Played, method: Method, limits_w: Numbers, max_minutes: float, max_risk: float = MAX_RISK
) -> pd.DataFrame:
    """Return what `epochwatt profile` answers to each limit, each on a bench of its own."""
    rows = []
    for limit_w in limits_w.tolist():
        goal = Goal("time", limit_w, 60 * max_minutes, max_risk)
        profile = Profile(bench.anew(), goal, method)
        search(profile)
        row = judged(profile.bench, limit_w, answer_of(profile), f"profile, risk {max_risk:g}")  # type: ignore[arg-type]
        rows.append(row | {"runs": len(profile.ran)})
    return pd.DataFrame(rows)


def answer_of(profile: Profile) -> int:
    """Return the place of a profile's answer among the modes of its bench, or `NONE`."""
    return NONE if profile.best is None else profile.bench.place(profile.best.mode)  # type: ignore[attr-defined]


def of_every_mode(bench: Played, limits_w: Numbers) -> pd.DataFrame:
    """Return what `epochwatt profile` answers once every mode was run as often as it is shown.

    From these runs alone: what the scatter of repeats leaves to any search.
    """
    played, places = bench.anew(), range(len(bench.modes))
    profile = Profile(played, Goal("time", None, ENDLESS_S), load_method(RECOMMENDED))
    for number in range(max(map(bench.n_shown, places))):
        shown = [Mode(*bench.modes[n].tolist()) for n in places if bench.n_shown(n) > number]
        profile.ran += played.measure(shown)
    rows = []
    for limit_w in limits_w.tolist():
        profile.goal = replace(profile.goal, max_power_w=limit_w)
        rows.append(judged(played, limit_w, answer_of(profile), "every mode as often as shown"))
    return pd.DataFrame(rows).assign(runs=len(profile.ran))


def from_random(
    bench: Played,
    limits_w: Numbers,
    n: int,
    method: Method | None = None,
    reference: Reference | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield answers from modes profiled at random: the best of them, or the best by prediction."""
    for split in random_subsets(bench.table.distinct(), n, N_DRAWS, seed=0):
        played = bench.anew()
        seen = played.observations(list(played.measure(split.train)))
        places = np.array([bench.place(mode) for mode in seen.mode_of_row])
        strategy = f"best of {n} random modes"
        if method is None:
            chosen = best_profiled(seen, np.arange(n), limits_w)
            chosen = np.where(chosen == NONE, NONE, places[chosen])
        else:
            fitted = predictors(method, seen, [seen], reference=reference)
            expected = [fitted[target].predict(bench.modes) for target in (TIME, POWER)]
            chosen = fastest_within(*expected, limits_w)
            strategy = f"{method.name}, {n} random modes"
        pairs = zip(limits_w.tolist(), chosen.tolist(), strict=True)
        yield pd.DataFrame([judged(played, *pair, strategy) for pair in pairs]).assign(runs=n)


def without_profiles(bench: Played, limits_w: Numbers) -> Iterator[pd.DataFrame]:
    """Yield answers of MAXN, and of the preset modes where they are known of the device."""
    ways: dict[str, Callable[[], Places]] = {
        "MAXN": lambda: np.full(len(limits_w), strongest(bench.table)),
        "preset modes": lambda: stock_choices(bench.table, bench.kind, limits_w),
    }
    for strategy, choose in ways.items():
        try:
            places = choose()
        except PredictionError:  # of this board none is known
            return
        pairs = zip(limits_w.tolist(), places.tolist(), strict=True)
        rows = [judged(bench.anew(), *pair, strategy) for pair in pairs]
        yield pd.DataFrame(rows).assign(runs=0)


def reference_of(name: str, bench: Played) -> tuple[Reference, str]:
    """Return what PowerTrain learns all modes of, and by which of its readings."""
    other, powertrain = REFERENCES[name]
    (table,) = find_tables(other, REPOSITORY)
    is_other_board = table.key.device != bench.kind
    return Reference(observations_of(table), is_other_board), powertrain


def all_answers(name: str, bench: Played, limits_w: Numbers) -> Iterator[pd.DataFrame]:
    """Yield what every strategy answers on a bench, `epochwatt profile` first."""
    yield profiled(bench, load_method(RECOMMENDED), limits_w, MAX_MINUTES)
    yield of_every_mode(bench, limits_w)
    for n in N_RANDOM:
        yield from from_random(bench, limits_w, n)
    if name not in WORLDS:
        if name in REFERENCES:
            reference, powertrain = reference_of(name, bench)
        else:
            other = next(model for model in ORIN if model != name)
            powertrain, reference = "powertrain", Reference(simulated(other).table)
        loaded = load_method(powertrain)
        yield from from_random(bench, limits_w, N_POWERTRAIN, loaded, reference)
    yield from without_profiles(bench, limits_w)


def summary(part: pd.DataFrame) -> list[str]:
    """Return the cells of one strategy: regret is that of the answers that keep their limit."""
    given = part[part["place"] != NONE]
    regret = given["regret_pct"][given["broken"] < RATHER]
    quantiles = [f"{regret.quantile(share):.1f}" for share in (0.5, 0.9)] if len(regret) else ["-"]
    return [
        str(len(part)),
        f"{100 * len(given) / len(part):.0f}",
        " / ".join(quantiles),
        f"{100 * given['broken'].mean():.0f}",
        f"{100 * given['over_1w'].mean():.0f}",
        f"{part['runs'].mean():.0f}",
        f"{part['minutes'].mean():.0f}",
    ]


def lines(name: str, of_profile: bool = False) -> pd.DataFrame:
    """Return the rows of the table for one bench, or the first two kinds of them alone."""
    bench = bench_of(name)
    n_limits = N_LIMITS_MADE if name in ORIN else N_LIMITS
    limits_w = np.quantile(bench.power_w, np.linspace(*LIMITS, n_limits))
    answers = islice(all_answers(name, bench, limits_w), 2 if of_profile else None)
    rows = []
    for strategy, part in pd.concat(answers).groupby("strategy", sort=False):
        share = 100 * part["repeats"].dropna().astype(float).mean()
        by = "drawn noise" if not share > 0 else f"other repeats ({share:.0f} %)"
        rows.append(
            [ORIN.get(name, name), str(len(bench.modes)), by, str(strategy), *summary(part)]
        )
    print(*rows, sep="\n", flush=True)
    return pd.DataFrame(rows, columns=HEAD)


def in_two_processes(
    judge: Callable[[Any], pd.DataFrame], boards: Iterable[object]
) -> pd.DataFrame:
    """Return the rows of all boards."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes that are started now
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return pd.concat(pool.map(judge, boards))


def main(names: list[str]) -> int:
    """Judge on all tables, or on those that are named, and put their rows in place."""
    everywhere, of_profile = (*REFERENCES, *ORIN, *WORLDS), "profile" in names
    asked = [name for name in everywhere if name in names] or everywhere
    made = in_two_processes(partial(lines, of_profile=of_profile), asked)
    before = pd.read_csv(TABLE, dtype=str, keep_default_na=False)
    rows = pd.concat([made, before]).drop_duplicates(["table", "strategy"])
    titles = [ORIN.get(name, name) for name in everywhere]
    rows = rows.sort_values("table", key=lambda cells: cells.map(titles.index), kind="stable")
    write_tables(TABLE.parent, {TABLE.stem: rows})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
