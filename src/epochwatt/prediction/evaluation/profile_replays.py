"""Profiles judged on tables in which every mode was measured: how good, how often over the limit.

A table plays the board (`profile.replay`), limit after limit. Beside `epochwatt profile` stand the
best of modes profiled at random, what PowerTrain chooses by its predictions, the board's preset
modes, and MAXN. All are judged by what the table says of the mode that they answer with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.cross_validation import predictors
from epochwatt.prediction.evaluation.splits import random_subsets
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.prediction.profile.replay import Played
from epochwatt.prediction.profile.search import Goal, Profile, search
from epochwatt.prediction.transfer.baselines import stock_choices, strongest
from epochwatt.prediction.transfer.limits import NONE, Places, fastest_within

N_LIMITS = 25
SHARES = (0.05, 0.95)  # quantiles of the table's power between which the limits lie
N_DRAWS = 10
MAXN, PRESETS, BEST_OF = "MAXN", "preset modes", "best of {} random modes"


class Answer(NamedTuple):
    """What one strategy answers to one limit."""

    strategy: str
    draw: int  # of the modes that were profiled at random; 0: nothing is random
    limit_w: float
    place: int  # of the mode in the table; `NONE`: no answer
    # n_profiled, minutes: what it took; NaN: not known
    n_profiled: int
    minutes: float


@dataclass(frozen=True)
class Summary:
    """All answers of one strategy to one table."""

    strategy: str
    n_answers: int
    answered_pct: float  # of the limits
    # regret_pct, regret_p90_pct: time over that of the best mode within the limit, less one, of the
    # answers that keep it
    regret_pct: float
    regret_p90_pct: float
    # broken_pct, over_1w_pct: of the answers
    broken_pct: float
    over_1w_pct: float
    # n_profiled, minutes: mean
    n_profiled: float
    minutes: float


def limits_of(rows: Observations, n_limits: int = N_LIMITS) -> Numbers:
    """Return the limits of a table, W, shape (n_limits,)."""
    return np.quantile(rows.power_w, np.linspace(*SHARES, n_limits))


def replay_profiles(
    benches: Iterable[Played], method: Method, limits_w: Numbers, max_minutes: float
) -> list[Answer]:
    """Return what `epochwatt profile` answers to each limit, each on a bench of its own."""
    answers = []
    for bench, limit_w in zip(benches, limits_w.tolist(), strict=True):
        profile = Profile(bench, Goal("time", limit_w, 60 * max_minutes), method)
        search(profile)
        place = NONE if profile.best is None else bench.place(profile.best.mode)
        name, n_ran = f"profile, {method.name}", len(profile.ran)
        answers.append(Answer(name, 0, limit_w, place, n_ran, profile.spent_s / 60))
    return answers


def best_of_random(bench: Played, rows: Observations, n: int, limits_w: Numbers) -> list[Answer]:
    """Return the best of `n` modes that were profiled at random, for each draw and limit."""
    answers = []
    for draw, split in enumerate(random_subsets(rows.distinct(), n, N_DRAWS, seed=0)):
        profiled = np.array([bench.place(mode) for mode in split.train])
        places = fastest_within(rows.time_s[profiled], rows.power_w[profiled], limits_w)
        chosen = np.where(places == NONE, NONE, profiled[places])
        minutes = sum(bench.expected_s(float(s)) for s in rows.time_s[profiled]) / 60
        answers += _answers(BEST_OF.format(n), draw, limits_w, chosen, n, minutes)
    return answers


def by_prediction(
    bench: Played,
    rows: Observations,
    method: Method,
    reference: Reference | None,
    n: int,
    limits_w: Numbers,
) -> list[Answer]:
    """Return the mode that a method expects to be fastest within each limit, from `n` modes."""
    answers = []
    for draw, split in enumerate(random_subsets(rows.distinct(), n, N_DRAWS, seed=0)):
        train = rows.only(split.train)
        fitted = predictors(method, train, [train], reference=reference)
        time_s, power_w = (fitted[target].predict(rows.modes) for target in (TIME, POWER))
        chosen = fastest_within(time_s, power_w, limits_w)
        minutes = sum(bench.expected_s(float(s)) for s in train.time_s) / 60
        name = f"{method.name}, {n} random modes"
        answers += _answers(name, draw, limits_w, chosen, n, minutes)
    return answers


def without_profiles(rows: Observations, device: str, limits_w: Numbers) -> list[Answer]:
    """Return MAXN, and the preset modes where they are known of the device."""
    answers: list[Answer] = []
    try:
        places = np.full(len(limits_w), strongest(rows))
        answers += _answers(MAXN, 0, limits_w, places, 0, 0.0)
        answers += _answers(PRESETS, 0, limits_w, stock_choices(rows, device, limits_w), 0, 0.0)
    except PredictionError:  # of this board none is known
        pass
    return answers


def _answers(
    strategy: str, draw: int, limits_w: Numbers, places: Places, n: int, minutes: float
) -> list[Answer]:
    pairs = zip(limits_w.tolist(), places.tolist(), strict=True)
    return [Answer(strategy, draw, limit_w, place, n, minutes) for limit_w, place in pairs]


def summarise(rows: Observations, answers: Sequence[Answer]) -> list[Summary]:
    """Return a summary of each strategy, in the order of the answers."""
    names = dict.fromkeys(answer.strategy for answer in answers)
    return [_summary(rows, name, [a for a in answers if a.strategy == name]) for name in names]


def _summary(rows: Observations, name: str, answers: Sequence[Answer]) -> Summary:
    given = [answer for answer in answers if answer.place != NONE]
    places = np.array([answer.place for answer in given], np.intp)
    limits_w = np.array([answer.limit_w for answer in given])
    over_w = rows.power_w[places] - limits_w
    best = fastest_within(rows.time_s, rows.power_w, limits_w)
    regret = 100 * (rows.time_s[places] / rows.time_s[best] - 1)[over_w <= 0]

    def regret_at(quantile: float) -> float:
        return float(np.quantile(regret, quantile)) if len(regret) else np.nan

    return Summary(
        name,
        len(answers),
        100 * len(given) / len(answers),
        regret_at(0.5),
        regret_at(0.9),
        100 * float((over_w > 0).mean()) if given else np.nan,
        100 * float((over_w > 1).mean()) if given else np.nan,
        float(np.mean([answer.n_profiled for answer in answers])),
        float(np.mean([answer.minutes for answer in answers])),
    )
