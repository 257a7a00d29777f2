"""How far off are methods beside PowerTrain's networks, from the same modes of real sweeps?

`python -m benchmarks.methods [CASE ...]` fits each method to the same random sets of modes of each
sweep, asks for all other modes, and writes results/methods/{case}.json; where the sweep is not to
be had it says so. Choices of the new methods were made on the cases of `TUNED`
(docs/reference/benchmarks/prediction-methods.md). `python -m benchmarks.tables` tabulates them.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.results import REPOSITORY
from epochwatt.board.records import files
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.score_sweeps import (
    N_BOOTSTRAP,
    SURE,
    Unit,
    draws_of,
    quantiles,
    units_of,
)
from epochwatt.prediction.evaluation.sweep_scores import RANDOM
from epochwatt.prediction.harness import (
    NONE,
    OVER_W,
    ROUNDING_W,
    Answers,
    Trial,
    choices_frame,
    fastest_within,
)
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Predictor, Reference
from epochwatt.prediction.recommend.recommend import safe_mode
from epochwatt.prediction.registry import load_method
from epochwatt.sweeps.find import find_tables

OUT = REPOSITORY / "results/methods"
LIMITS = np.linspace(0.1, 0.9, 25)  # quantiles of the observed power
MAX_RISK = 0.05
OURS = ("physical", "gaussian_process", "utilisation", "utilisation_transfer", "stacked")
NETWORKS = ("powertrain", "powertrain_log")


@dataclass(frozen=True)
class Case:
    """One sweep, and how it is judged."""

    sweep: str
    reference: str = ""  # sweep of the reference; empty: another workload of the same sweep
    sizes: tuple[int, ...] = (10, 50)  # how many modes are profiled
    n_draws: int = 10  # sets of them, of each workload
    every: int = 1  # of many workloads this one, and so on
    only: str = ""  # part of the name of the workload
    networks: tuple[str, ...] = NETWORKS  # PowerTrain's methods that can be fitted here


TUNED = ("tx1", "tx2-20000")
CASES = {
    "tx1": Case(
        "translucence-tx1-5000",
        "translucence-tx2-5000",
        networks=("powertrain_cross_board", "powertrain_scratch_best"),
    ),
    "tx2-20000": Case("translucence-tx2-20000", "translucence-tx2-5000", (10, 25)),
    "tx2-5000": Case("translucence-tx2-5000", "translucence-tx2-20000"),
    "gv100-dgemm": Case("ali-gv100", only="dgemm", sizes=(10, 25)),
    "gv100-stream": Case("ali-gv100", only="stream", sizes=(10, 25)),
    "a100": Case("ali-a100", sizes=(10,), every=6),
    "tx2-kernels": Case("energy-time-fairness-tx2", sizes=(5,), n_draws=5, every=9),
    "zeus-v100": Case("zeus-v100", sizes=(4,), n_draws=5, networks=()),
    "zeus-rtx6000": Case("zeus-rtx6000", sizes=(4,), n_draws=5, networks=()),
    **{
        f"opml19-{size}": Case("opml19-tx2", only=f"{size}x{size}", sizes=(10, 25))
        for size in (200, 400, 600, 800)
    },
}


def units(case: Case) -> list[Unit]:
    """Return a unit for each workload of a case; its reference is the largest other table.

    Raises EpochwattError: the sweep is not here.
    """
    tables = find_tables(case.sweep, REPOSITORY)
    theirs = find_tables(case.reference, REPOSITORY) if case.reference else tables
    found = []
    for table in [table for table in tables if case.only in table.key.workload][:: case.every]:
        others = [other for other in theirs if other.key != table.key]
        other = max(others, key=lambda table: len(table.rows))  # of as large ones the first
        for unit in units_of([table])[0]:
            is_other_board = other.key.device != unit.device
            references = (Reference(observations_of(other), is_other_board),)
            found.append(replace(unit, references=references, cache=REPOSITORY / ".cache"))
    return found


def judged(name: str, case: Case, size: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each method and target: errors and intervals, with power also choices."""
    methods = {name: load_method(name) for name in (*OURS, *case.networks)}
    frames: list[pd.DataFrame] = []
    choices: dict[str, list[pd.DataFrame]] = {}
    clusters: list[tuple[int, Trial]] = []  # number of the workload, what was drawn
    for place, unit in enumerate(units(case)):
        for trial in draws_of(unit, size, RANDOM, case.n_draws):
            answers, chosen = Answers(intervals=True), {}
            try:
                for method in methods.values():
                    if set(unit.knobs) <= set(method.parts):
                        reference = unit.reference_of(trial.train)
                        fitted = {
                            target: method.fit(
                                trial.train, Context(target, reference=reference, cache=unit.cache)
                            )
                            for target in ((TIME, POWER) if unit.has_power else (TIME,))
                        }
                        answers.add(fitted, trial, method.name)
                        if POWER in fitted:
                            chosen[method.name] = _choices(trial.table, fitted)
            except PredictionError:  # of a time that is the same in all modes: left out for all
                continue
            clusters.append((place, trial))
            frames.append(answers.frame())
            for method_name, frame in chosen.items():
                choices.setdefault(method_name, []).append(frame)
    found, weights = pd.concat(frames), _weights(clusters)
    shared = {"case": name, "sweep": case.sweep, "n_profiled": size, "n_draws": case.n_draws}
    shared["n_workloads"] = len({place for place, _ in clusters})
    for target, of_target in found.groupby("target", sort=False):
        errors = {str(m): part.error_pct.to_numpy() for m, part in of_target.groupby("method")}
        medians = {name: quantiles(one, weights, (0.5,))[0] for name, one in errors.items()}
        for method_name, part in of_target.groupby("method", sort=False):
            own, resampled = errors[str(method_name)], medians[str(method_name)]
            row = {"target": target, "method": method_name, "p90_pct": float(np.quantile(own, 0.9))}
            row |= _bounded("median_pct", float(np.median(own)), resampled)
            for network in set(case.networks) & errors.keys():
                ratio = float(np.median(own) / np.median(errors[network]))
                row |= _bounded(f"over_{network}", ratio, resampled / medians[network])
            if len(bound := part.dropna(subset="low")):
                row["held_pct"] = 100 * float(bound.truth.between(bound.low, bound.high).mean())
            if target == POWER:
                row |= _choices_row(pd.concat(choices[str(method_name)]))
            yield shared | row


def _choices(table: Observations, fitted: Mapping[str, Predictor]) -> pd.DataFrame:
    """Choose the fastest mode within each limit: at a risk, or by what is expected."""
    limits_w = np.quantile(table.power_w, LIMITS)
    time, power = fitted[TIME], fitted[POWER]
    if power.interval(table.modes[:1]) is None:
        expected = time.predict(table.modes), power.predict(table.modes)
        return choices_frame(table, limits_w, fastest_within(*expected, limits_w))
    places = []
    for limit_w in limits_w.tolist():
        try:
            places.append(safe_mode(time, power, table.modes, limit_w, MAX_RISK).place)
        except PredictionError:  # no mode is safe enough
            places.append(NONE)
    return choices_frame(table, limits_w, np.array(places))


def _choices_row(choices: pd.DataFrame) -> dict[str, float]:
    answered = choices[choices.place.ne(NONE)]
    shares = {"answered_pct": len(answered) / len(choices)}
    if answered.empty:
        return {"answered_pct": 0.0}
    shares["over_pct"] = answered.over_w.gt(ROUNDING_W).mean()
    shares["over_1w_pct"] = answered.over_w.gt(OVER_W).mean()
    regret = {"regret_pct": float(answered.penalty_pct.median())}
    return regret | {name: 100 * float(share) for name, share in shares.items()}


def _bounded(name: str, value: float, resampled: Numbers) -> dict[str, float]:
    low, high = np.quantile(resampled, SURE).tolist()
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _weights(clusters: Sequence[tuple[int, Trial]]) -> Numbers:
    """Return how often each predicted mode counts in each resample, shape (b, n).

    Workloads are resampled where there are several; else draws and, crossed with them, modes.
    """
    rng = np.random.default_rng(0)

    def counts(of: NDArray[np.intp]) -> Numbers:
        n = int(of.max()) + 1
        return rng.multinomial(n, np.full(n, 1 / n), N_BOOTSTRAP).astype(float)[:, of]

    sizes = [len(trial.places) for _, trial in clusters]
    workload = np.repeat([place for place, _ in clusters], sizes)
    if workload.max():
        return counts(workload)
    of_draws = counts(np.repeat([trial.draw for _, trial in clusters], sizes))
    return of_draws * counts(np.concatenate([trial.places for _, trial in clusters]))


def main(names: Sequence[str]) -> int:
    """Judge cases, all of them where none is named; return how many could not be."""
    OUT.mkdir(parents=True, exist_ok=True)
    missing = 0
    for name in names or CASES:
        rows: list[dict[str, Any]] = []
        try:
            for size in CASES[name].sizes:
                rows += judged(name, CASES[name], size)
            files.write_json(str(OUT / f"{name}.json"), rows)
            print(name, flush=True)
        except EpochwattError as error:
            print(f"{name}: {error}", file=sys.stderr)
            missing += 1
    return missing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
