"""How far off are methods beside PowerTrain's networks, from the same modes of real sweeps?

`python -m benchmarks.methods [CASE ...]` fits each method to the same random sets of modes of each
sweep, asks for all other modes, and writes results/methods/{case}.json; where the sweep is not to
be had it says so. `python -m benchmarks.tables` makes tables of them. Choices of the new methods
were made on the cases of `TUNED` (docs/reference/benchmarks/prediction-methods.md).
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
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
from epochwatt.prediction.evaluation.sweep_scores import OVER_W, RANDOM
from epochwatt.prediction.harness import absolute_errors_pct
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Method, Predictor, Reference
from epochwatt.prediction.recommend.recommend import safe_mode
from epochwatt.prediction.registry import load_method
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.mode_table import ModeTable

OUT = REPOSITORY / "results/methods"
LIMITS = np.linspace(0.1, 0.9, 25)  # quantiles of the observed power
MAX_RISK = 0.05
OURS = ("physical", "gaussian_process", "utilisation", "utilisation_transfer")
NETWORKS = ("powertrain", "powertrain_log")


@dataclass(frozen=True)
class Case:
    """One sweep, and how it is judged.

    Attributes
    ----------
    sweep : its name
    reference : sweep of the reference; empty: another workload of the same sweep
    sizes : how many modes are profiled
    n_draws : sets of them, of each workload
    every : of many workloads this one, and so on
    only : part of the name of the workload
    networks : PowerTrain's methods that can be fitted here
    """

    sweep: str
    reference: str = ""
    sizes: tuple[int, ...] = (10, 50)
    n_draws: int = 10
    every: int = 1
    only: str = ""
    networks: tuple[str, ...] = NETWORKS


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


@dataclass
class Answers:
    """What one method answered from so many modes, one array for each draw.

    Attributes
    ----------
    errors_pct : absolute, of the observed value, by target
    held : whether intervals of 90 % hold, by target
    over_w, regret_pct : of the mode that is chosen within each limit; NaN: no answer
    """

    errors_pct: dict[str, list[Numbers]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, list[Numbers]] = field(default_factory=lambda: defaultdict(list))
    over_w: list[Numbers] = field(default_factory=list)
    regret_pct: list[Numbers] = field(default_factory=list)

    def add(self, more: "Answers") -> None:
        """Append the answers of further draws."""
        for ours, theirs in ((self.errors_pct, more.errors_pct), (self.held, more.held)):
            for target, arrays in theirs.items():
                ours[target] += arrays
        self.over_w += more.over_w
        self.regret_pct += more.regret_pct


Clusters = list[tuple[int, int, NDArray[np.intp]]]  # workload, draw, places of the modes


def units(case: Case) -> list[Unit]:
    """Return a unit for each workload of a case. Raises EpochwattError: the sweep is not here."""
    tables = find_tables(case.sweep, REPOSITORY)
    theirs = find_tables(case.reference, REPOSITORY) if case.reference else tables
    wanted = [table for table in tables if case.only in table.key.workload]
    found = []
    for table in wanted[:: case.every]:
        some, _ = units_of([table])
        others = [other for other in theirs if other.key != table.key]
        found += [_with_reference(unit, others) for unit in some]
    return found


def _with_reference(unit: Unit, tables: Sequence[ModeTable]) -> Unit:
    """Return the unit with the largest table as its reference; of as large ones the first."""
    table = max(tables, key=lambda table: len(table.rows))
    is_other_board = table.key.device != unit.device
    reference = Reference(observations_of(table), is_other_board)
    return replace(unit, references=(reference,), cache=REPOSITORY / ".cache")


def answers(case: Case, size: int) -> tuple[dict[str, Answers], Clusters]:
    """Return what each method answers from so many modes."""
    methods = {name: load_method(name) for name in (*OURS, *case.networks)}
    found: dict[str, Answers] = {name: Answers() for name in methods}
    clusters: Clusters = []
    for place, unit in enumerate(units(case)):
        usable = {n: m for n, m in methods.items() if set(unit.knobs) <= set(m.parts)}
        for trial in draws_of(unit, size, RANDOM, case.n_draws):
            rest = np.isin(np.arange(len(trial.table.modes)), trial.places)
            own = {name: Answers() for name in usable}
            try:
                for name, method in usable.items():
                    _answer(unit, method, trial.train, trial.table, rest, own[name])
            except PredictionError:  # of a time that is the same in all modes: left out for all
                continue
            clusters.append((place, trial.draw, trial.places))
            for name, one in own.items():
                found[name].add(one)
    return {name: one for name, one in found.items() if one.errors_pct}, clusters


def _answer(
    unit: Unit,
    method: Method,
    train: Observations,
    table: Observations,
    rest: NDArray[np.bool_],
    answered: Answers,
) -> None:
    fitted: dict[str, Predictor] = {}
    for target in (TIME, POWER) if unit.has_power else (TIME,):
        context = Context(target, reference=unit.reference_of(train), cache=unit.cache)
        fitted[target] = predictor = method.fit(train, context)
        observed = getattr(table, target)[rest]
        asked = table.modes[rest]
        answered.errors_pct[target].append(absolute_errors_pct(predictor.predict(asked), observed))
        if (interval := predictor.interval(asked)) is not None:
            low, high = interval
            answered.held[target].append((low <= observed) & (observed <= high))
    if POWER in fitted:
        _choose(table, fitted, answered)


def _choose(table: Observations, fitted: Mapping[str, Predictor], answered: Answers) -> None:
    """Choose the fastest mode within each limit: at a risk, or by what is expected."""
    limits_w = np.quantile(table.power_w, LIMITS)
    places = [_place(table.modes, fitted, float(limit_w)) for limit_w in limits_w]
    best_s = np.array([table.time_s[table.power_w <= limit_w].min() for limit_w in limits_w])
    chosen = np.array([0 if place is None else place for place in places])
    is_none = np.array([place is None for place in places])
    over_w = np.where(is_none, np.nan, table.power_w[chosen] - limits_w)
    answered.over_w.append(over_w)
    answered.regret_pct.append(np.where(is_none, np.nan, 100 * (table.time_s[chosen] / best_s - 1)))


def _place(modes: Numbers, fitted: Mapping[str, Predictor], limit_w: float) -> int | None:
    time, power = fitted[TIME], fitted[POWER]
    if power.interval(modes[:1]) is not None:
        try:
            return safe_mode(time, power, modes, limit_w, MAX_RISK).place
        except PredictionError:  # no mode is safe enough
            return None
    within = np.flatnonzero(power.predict(modes) <= limit_w)
    return int(within[time.predict(modes)[within].argmin()]) if len(within) else None


def rows(name: str, case: Case, size: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each method and target: errors and intervals, with power also choices."""
    found, clusters = answers(case, size)
    weights = _weights(clusters)
    shared = {"case": name, "sweep": case.sweep, "n_profiled": size, "n_draws": case.n_draws}
    shared["n_workloads"] = len({place for place, _, _ in clusters})
    for target in (TIME, POWER):
        some = {name: one for name, one in found.items() if target in one.errors_pct}
        errors = {name: np.concatenate(one.errors_pct[target]) for name, one in some.items()}
        medians = {name: quantiles(one, weights, (0.5,))[0] for name, one in errors.items()}
        for method, answered in some.items():
            own = errors[method]
            row = {"target": target, "method": method, "p90_pct": float(np.quantile(own, 0.9))}
            row |= _bounded("median_pct", float(np.median(own)), medians[method])
            for network in set(case.networks) & some.keys():
                ratio = float(np.median(own) / np.median(errors[network]))
                row |= _bounded(f"over_{network}", ratio, medians[method] / medians[network])
            if answered.held:
                row["held_pct"] = 100 * float(np.concatenate(answered.held[target]).mean())
            if target == POWER:
                row |= _choices(answered)
            yield shared | row


def _bounded(name: str, value: float, some: Numbers) -> dict[str, float]:
    low, high = np.quantile(some, SURE).tolist()
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _choices(answered: Answers) -> dict[str, float]:
    over_w, regret = np.concatenate(answered.over_w), np.concatenate(answered.regret_pct)
    there = ~np.isnan(over_w)
    if not there.any():
        return {"answered_pct": 0.0}
    return {
        "answered_pct": 100 * float(there.mean()),
        "regret_pct": float(np.median(regret[there])),
        "over_pct": 100 * float((over_w[there] > 1e-9).mean()),
        "over_1w_pct": 100 * float((over_w[there] > OVER_W).mean()),
    }


def _weights(clusters: Clusters) -> Numbers:
    """Return how often each predicted mode counts in each resample, shape (b, n).

    Workloads are resampled where there are several; else draws and, crossed with them, modes.
    """
    rng = np.random.default_rng(0)

    def counts(n: int) -> Numbers:
        return rng.multinomial(n, np.full(n, 1 / n), N_BOOTSTRAP).astype(float)

    sizes = [len(places) for _, _, places in clusters]
    workload, draw = (np.repeat([one[n] for one in clusters], sizes) for n in (0, 1))
    if workload.max():
        return counts(int(workload.max()) + 1)[:, workload]
    mode = np.concatenate([places for _, _, places in clusters])
    return counts(int(draw.max()) + 1)[:, draw] * counts(int(mode.max()) + 1)[:, mode]


def main(names: Sequence[str]) -> int:
    """Judge cases, all of them where none is named; return how many could not be."""
    OUT.mkdir(parents=True, exist_ok=True)
    missing = 0
    for name in names or CASES:
        case, judged = CASES[name], []
        try:
            for size in case.sizes:
                judged += list(rows(name, case, size))
                files.write_json(str(OUT / f"{name}.json"), judged)
                print(f"{name}: from {size} modes", flush=True)
        except EpochwattError as error:
            print(f"{name}: {error}", file=sys.stderr)
            missing += 1
    return missing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
