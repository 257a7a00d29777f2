"""What the models do on sweeps of others: errors, what intervals hold, and chosen modes' budgets.

A part of the benchmark `prediction`: its tables as text. Modes are profiled at random, all others
(`N_TEST` at most) are predicted; one row of cells for each sweep and number of profiled modes.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import sweeps
from benchmarks.results import markdown
from benchmarks.sweeps import Tables
from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.cross_validation import absolute_errors_pct, score
from epochwatt.prediction.evaluation.splits import Split, leave_one_mode_out
from epochwatt.prediction.models.physical import fit_physical_time, fit_power
from epochwatt.prediction.models.times_power import times_power
from epochwatt.prediction.predictor import Predictor
from epochwatt.prediction.recommend.recommend import choose

SEED = 5
N_PROFILED = (4, 10, 25)
N_WORKLOADS, N_TEST = 6, 40
N_TRIES = {4: 30, 10: 18, 25: 12}  # of a sweep, over its workloads
BUDGETS, N_ASKED = np.linspace(0.1, 0.9, 17), 8  # quantiles of power; sets of profiled modes
LEAST_CANDIDATES = 90
LEVEL = 0.9
HEAD = ["sweep", "profiled", *(f"{of}, held" for of in ("time", "power", "energy"))]
ERRORS = ["time, error", "power, error"]


class Tried(NamedTuple):
    """New modes of one fit, each (n,): what intervals hold, and absolute errors in %."""

    held: Mapping[str, Numbers]  # of time, power and energy; the last two where there is power
    errors_pct: Mapping[str, Numbers]


def sweeps_text(folder: Path) -> list[str]:
    """Return the tables; one sentence where the folder is absent."""
    if not folder.is_dir():
        return ["", f"Sweeps of others: skipped, there is no folder {folder}."]
    tables = sweeps.sweeps(folder)
    return [*_held_text(tables), *_orin_text(folder), *_budget_text(tables)]


def _held_text(by_sweep: Mapping[str, Tables]) -> list[str]:
    rows, means = [], []
    for name, tables in by_sweep.items():
        for n_profiled in N_PROFILED:
            if tried := list(_tried(tables, n_profiled)):
                rows.append([name, f"{n_profiled} modes", *_cells(tried)])
                means.append(_held(tried))
    whole = {of: [row[of] for row in means if of in row] for of in ("time", "power", "energy")}
    for what, of in (("mean", np.mean), ("least", np.min)):
        rows.append([f"**{what}**", "", *(f"{of(held):.0f}" for held in whole.values()), "", ""])
    what = "Sweeps of others: new modes that intervals of 90 % hold, in %; median / 90th percentile"
    return ["", f"{what} of errors in %", "", *markdown([*HEAD, *ERRORS], rows)]


def _tried(tables: Tables, n_profiled: int) -> Iterator[Tried]:
    rng = np.random.default_rng(SEED)
    names = [list(tables)[place] for place in rng.permutation(len(tables))[:N_WORKLOADS]]
    for name in names:
        modes = tables[name].distinct()
        for _ in range(max(N_TRIES[n_profiled] // len(names), 1)):
            order = [modes[place] for place in rng.permutation(len(modes))]
            train, test = order[:n_profiled], order[n_profiled : n_profiled + N_TEST]
            if test:
                yield _one(tables[name], Split(tuple(train), tuple(test)))


def _one(of: Observations, split: Split) -> Tried:
    own, test = of.only(split.train), of.only(split.test)
    time = fit_physical_time(own)
    errors = {"time": absolute_errors_pct(time.predict(test.modes), test.time_s)}
    held = {"time": _inside(time, test)}
    if not np.isnan(of.power_w).any():
        power = fit_power(own)
        errors["power"] = absolute_errors_pct(power.predict(test.modes), test.power_w)
        held["power"] = _inside(power, test)
        held["energy"] = _inside(times_power({"time_s": time, "power_w": power}), test)
    return Tried(held, errors)


def _inside(predictor: Predictor, test: Observations) -> Numbers:
    interval, values = predictor.interval(test.modes, LEVEL), getattr(test, predictor.target)
    assert interval is not None
    low, high = interval
    return np.asarray((low <= values) & (values <= high), float)


def _held(tried: Sequence[Tried]) -> dict[str, float]:
    """Return the share that is held, %, of what was measured."""
    return {
        of: 100 * float(np.concatenate([one.held[of] for one in tried]).mean())
        for of in tried[0].held
    }


def _cells(tried: Sequence[Tried]) -> list[str]:
    held = _held(tried)
    cells = [f"{held[of]:.0f}" if of in held else "-" for of in ("time", "power", "energy")]
    for of in ("time", "power"):
        if of in held:
            told = score(np.concatenate([one.errors_pct[of] for one in tried]))
            cells.append(f"{told.median_pct:.1f} / {told.p90_pct:.0f}")
        else:
            cells.append("-")
    return cells


def _orin_text(folder: Path) -> list[str]:
    """Return the table of Orin's stock modes, with and without the share of the GPU told."""
    rows = []
    for told in (False, True):
        for name, tables in sweeps.orin(folder, told).items():
            splits = ((of, split) for of in tables.values() for split in _all_but_one(of))
            tried = [_one(of, split) for of, split in splits]
            rows.append([name, "all but one", "given" if told else "not given", *_cells(tried)])
    what = "Stock modes of AGX Orin, of which two gate parts of the GPU off; clocks were not locked"
    head = [*HEAD[:2], "share of the GPU", *HEAD[2:], *ERRORS]
    return ["", what, "", *markdown(head, rows)]


def _all_but_one(of: Observations) -> list[Split]:
    return leave_one_mode_out(of.distinct())


def _budget_text(by_sweep: Mapping[str, Tables]) -> list[str]:
    """Return how often the fastest mode within a budget of power breaks it, and what was stated."""
    rows = []
    for name, tables in by_sweep.items():
        for of in tables.values():
            if len(of.modes) >= LEAST_CANDIDATES and not np.isnan(of.power_w).any():
                rows += [[name, str(len(of.modes)), *_asked(of, n)] for n in N_PROFILED]
    what = "The fastest of a sweep's modes within a budget of power: 17 budgets, 8 sets of modes"
    head = ["sweep", "candidates", "profiled", "own risk, %", "stated, %", "broken, %"]
    times = ["over the budget by, %: median / 90th percentile", "over the best time, %: the same"]
    return ["", what, "", *markdown([*head, *times], rows)]


def _asked(of: Observations, n_profiled: int) -> list[str]:
    rng, told = np.random.default_rng(SEED), []
    for _ in range(N_ASKED):
        known = np.zeros(len(of.modes), bool)
        known[rng.permutation(len(known))[:n_profiled]] = True
        own = of.rows(known)
        models = [fit_physical_time(own), fit_power(own)]
        for budget_w in np.quantile(of.power_w, BUDGETS):
            try:
                told.append(_answer(of, models, float(budget_w)))
            except PredictionError:  # no mode is expected to keep it
                continue
    own_risk, stated, over, slower = np.array(told).T
    shares = [f"{100 * part.mean():.0f}" for part in (own_risk, stated, over > 1)]
    ratios = [
        " / ".join(f"{100 * (x - 1):.0f}" for x in np.quantile(part, [0.5, 0.9]))
        for part in (over, slower)
    ]
    return [str(n_profiled), *shares, *ratios]


def _answer(
    of: Observations, models: Sequence[Predictor], budget_w: float
) -> tuple[float, float, float, float]:
    """Return the chosen mode's own risk, the stated one, power over budget, time over the best."""
    choice = choose(models, of.modes, "time", {"power_w": budget_w})
    place = choice.place
    watts = models[1].sample(of.modes[place : place + 1])
    assert watts is not None
    best_s = of.time_s[of.power_w <= budget_w].min()
    return (
        float((watts > budget_w).mean()),
        choice.risks["power_w"],
        float(of.power_w[place] / budget_w),
        float(of.time_s[place] / best_s),
    )
