"""Rows of results/sweeps/scores.csv: how far methods are off on mode tables, and how sure that is.

One row for each statistic: `value`, and `low` and `high`, the central 95 % of a bootstrap. It
resamples what the errors depend on: draws of profiled modes and, crossed with them, predicted modes
where a workload stands alone; workloads where several are pooled. All methods of a comparison share
the resamples, so that a ratio of two methods has an interval of its own. No interval is corrected
for the number of comparisons.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import Numbers
from epochwatt.prediction.evaluation.sweep_names import (
    BROKEN,
    BROKEN_SHARE,
    BROKEN_W,
    BY_WORKLOAD,
    HELD,
    LEFT_OUT,
    MEDIAN,
    NO_ANSWER,
    OVER_SHARE,
    OVER_W,
    P90,
    RECOMMENDED,
    REGRET,
    REGRET_P90,
    TO_BEST,
    TO_PAPER,
    WIDTH,
)
from epochwatt.prediction.evaluation.sweep_trials import Choices, Places, Trials
from epochwatt.prediction.evaluation.sweep_units import Unit
from epochwatt.prediction.names import REFERENCE, TARGETS

N_BOOTSTRAP = 400
SURE = (0.025, 0.975)  # bounds of all bootstrap intervals

Row = dict[str, Any]


class Sample(NamedTuple):
    """Resamples of what errors depend on."""

    weights: Numbers  # (b, n), how often each predicted mode counts
    of_draws: Numbers | None  # (b, d), how often each draw counts; None: there is one


def rows_of(
    unit: Unit, trials: Trials, learned_from: str, n_profiled: int, n_draws: int
) -> list[Row]:
    """Return the rows of one unit, one way to choose modes and one number of them."""
    place = {
        **{"sweep": unit.sweep, "provenance": unit.provenance, "device": unit.device},
        **{"workload": unit.workload, "n_workloads": len(unit.tables), "n_modes": unit.n_modes},
        **{"knobs": " ".join(unit.knobs), "power_scope": unit.power_scope},
        **{"learned_from": learned_from, "n_profiled": n_profiled, "n_draws": n_draws},
    }
    sample = _resample(unit, trials)
    rows = [
        *(row for target in TARGETS for row in _of_target(unit, trials, target, sample)),
        *(
            row
            for name, one in trials.choices.items()
            for row in _of_choices(name, one, sample.of_draws)
        ),
        *(
            {"method": name, "target": "", "statistic": LEFT_OUT, "note": why}
            for name, why in trials.left_out.items()
        ),
    ]
    return [place | row for row in rows]


def _resample(unit: Unit, trials: Trials) -> Sample:
    rng = np.random.default_rng(0)
    tables = trials.choice_table
    if unit.is_pooled:
        of_table = _counts(rng, len(unit.tables))
        return Sample(of_table[:, trials.table], of_table[:, tables])
    _, mode = np.unique(trials.mode, return_inverse=True)
    of_mode = _counts(rng, int(mode.max()) + 1)[:, mode]
    if (n_draws := len(tables)) == 1:
        return Sample(of_mode, None)
    of_draw = _counts(rng, n_draws)
    return Sample(of_draw[:, trials.draw] * of_mode, of_draw)


def _counts(rng: np.random.Generator, n: int) -> Numbers:
    """Return how often each of n is drawn in n draws with replacement, shape (b, n)."""
    return rng.multinomial(n, np.full(n, 1 / n), N_BOOTSTRAP).astype(float)


def quantiles(values: Numbers, weights: Numbers, shares: Sequence[float]) -> Numbers:
    """Return quantiles of n values for each of b sets of weights, shape (len(shares), b).

    The least value up to which a share of the weight lies; NaN where all weights are zero.
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[:, order], axis=1)
    whole = total[:, -1]
    bounds = np.empty((len(shares), len(weights)))
    for row, share in zip(bounds, shares, strict=True):
        places = (total < (share * whole)[:, None]).sum(1)
        row[:] = values[order][np.minimum(places, len(values) - 1)]
    bounds[:, whole == 0] = np.nan
    return bounds


def _of_target(unit: Unit, trials: Trials, target: str, sample: Sample) -> Iterator[Row]:
    medians: dict[str, tuple[float, Numbers]] = {}
    for method, answers in trials.answers.items():
        if target not in answers:
            continue
        errors = np.concatenate(answers[target].errors_pct)
        some = quantiles(errors, sample.weights, (0.5, 0.9))
        key = {"method": method, "target": target}
        medians[method] = _quantile(errors, 0.5), some[0]
        yield key | _row(MEDIAN, *medians[method])
        yield key | _row(P90, _quantile(errors, 0.9), some[1])
        if unit.is_pooled:
            yield key | _spread(errors, trials.table)
        if answers[target].held:
            held = np.concatenate(answers[target].held)
            shares = sample.weights @ held / _positive(sample.weights.sum(1))
            width = float(np.median(np.concatenate(answers[target].width_pct)))
            yield key | _row(HELD, 100 * float(held.mean()), 100 * shares)
            yield key | {"statistic": WIDTH, "value": width}
    yield from _ratios(target, medians)


def _quantile(values: Numbers, share: float) -> float:
    """Return the same of values that count alike."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def _spread(errors: Numbers, table: Places) -> Row:
    """Return the median of the medians of all workloads, and their quartiles as bounds."""
    medians = [float(np.median(errors[table == place])) for place in np.unique(table)]
    low, middle, high = np.quantile(medians, [0.25, 0.5, 0.75]).tolist()
    note = "bounds: quartiles of the workloads"
    return {"statistic": BY_WORKLOAD, "value": middle, "low": low, "high": high, "note": note}


def _ratios(target: str, medians: Mapping[str, tuple[float, Numbers]]) -> Iterator[Row]:
    """Yield how many times another method's median each one is: the paper's, and the best one's."""
    if not medians:
        return
    best = min(medians, key=lambda name: medians[name][0])
    for statistic, other in ((TO_PAPER, REFERENCE), (TO_BEST, best)):
        if other not in medians:
            continue
        value, some = medians[other]
        for method, (median, some_medians) in medians.items():
            if method != other:
                row = _row(
                    statistic, median / max(value, 1e-12), some_medians / np.maximum(some, 1e-12)
                )
                yield {"method": method, "target": target} | row | {"note": f"over {other}"}


def _of_choices(method: str, choices: Choices, of_draws: Numbers | None) -> Iterator[Row]:
    """Yield regret and broken budgets of all answers, over draws and budgets alike."""
    regret, over_w, over = (
        np.array(part) for part in (choices.regret_pct, choices.over_w, choices.over_share)
    )
    key: Row = {"method": method, "target": RECOMMENDED}
    answered = ~np.isnan(regret)
    yield key | _share(NO_ANSWER, ~answered, np.ones_like(answered), of_draws)
    if not answered.any():
        return
    some: Sequence[Numbers | None] = (None, None)
    if of_draws is not None:
        weights = np.repeat(of_draws, answered.sum(1), axis=1)
        some = list(quantiles(regret[answered], weights, (0.5, 0.9)))
    yield key | _row(REGRET, _quantile(regret[answered], 0.5), some[0])
    yield key | _row(REGRET_P90, _quantile(regret[answered], 0.9), some[1])
    rounding = 1e-9  # a mode whose power is the budget keeps it
    broken = {BROKEN: over > rounding, BROKEN_W: over_w > OVER_W, BROKEN_SHARE: over > OVER_SHARE}
    for statistic, is_so in broken.items():
        yield key | _share(statistic, is_so & answered, answered, of_draws)


def _share(
    statistic: str, is_so: NDArray[np.bool_], counts: NDArray[np.bool_], of_draws: Numbers | None
) -> Row:
    """Return the share of answers (d, b) that are so, %."""
    value = 100 * float(is_so.sum() / counts.sum())
    if of_draws is None:
        return _row(statistic, value, None)
    some = of_draws @ is_so.sum(1) / _positive(of_draws @ counts.sum(1))
    return _row(statistic, value, 100 * np.asarray(some))


def _positive(counts: Numbers) -> Numbers:
    return np.where(counts > 0, counts, np.nan)


def _row(statistic: str, value: float, some: Numbers | None) -> Row:
    """Return a row with the bounds of its resamples, where there are any."""
    row: Row = {"statistic": statistic, "value": value}
    if some is None or np.isnan(some).all():
        return row
    low, high = np.nanquantile(some, SURE).tolist()
    return row | {"low": low, "high": high}
