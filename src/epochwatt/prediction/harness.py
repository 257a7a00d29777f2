"""Judge predictors: methods learn from the same draws of modes, and one frame holds their answers.

Draws part modes, never rows: epochs of one mode are nearly equal, so a split by row would test on
what it trained on. A `Trial` is one draw of the modes of one workload. `Answers` collects the
frame, with a row for each predicted mode: table, method, target, n_profiled, draw, mode (its place
in the table), truth, prediction, and low and high of the 90 % interval where the method states one,
and `error_pct`, absolute and of the observed value.

`choices_frame` judges the mode that is chosen within each power limit by what was observed in it.
Its time penalty is that over the fastest mode that keeps the limit; it is below zero where the
limit was broken, so it says nothing without the shares of broken limits. SOURCE: PowerTrain (FGCS
2024), its optimisation under power limits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.times_power import Priors, predictors
from epochwatt.prediction.predictor import Method, Predictor
from epochwatt.prediction.selection.choose_power_modes import N_EPOCHS

Places = NDArray[np.intp]

NONE = -1  # in place of a place: no mode keeps the limit
OVER_W = 1.0  # a limit that is broken by more than that; A/L+1 of PowerTrain's paper
ROUNDING_W = 1e-9  # a mode whose power is the limit keeps it


class Split(NamedTuple):
    """Modes to train on, and the others."""

    train: tuple[Mode, ...]
    test: tuple[Mode, ...]


def split(modes: Sequence[Mode], train: Sequence[Mode]) -> Split:
    """Return the split that trains on `train` and tests on the rest.

    Raises PredictionError: a mode of `train` is not among `modes`, or none is left.
    """
    if unknown := [mode for mode in train if mode not in modes]:
        raise PredictionError(f"nothing was observed under {unknown[0]}")
    rest = tuple(mode for mode in modes if mode not in train)
    if not train or not rest:
        raise PredictionError(
            f"{len(train)} of {len(modes)} modes to train on",
            allowed="one or more, and not all of them",
        )
    return Split(tuple(train), rest)


def leave_one_mode_out(modes: Sequence[Mode]) -> list[Split]:
    """Return one split per mode, which alone tests."""
    return [split(modes, [m for m in modes if m != mode]) for mode in modes]


def random_subsets(modes: Sequence[Mode], size: int, n_splits: int, seed: int) -> list[Split]:
    """Return `n_splits` different random subsets, or every one where there are no more."""
    n = len(modes)
    if comb(n, size) <= n_splits:
        return [split(modes, train) for train in combinations(modes, size)]
    rng, drawn = np.random.default_rng(seed), dict[tuple[int, ...], None]()
    while len(drawn) < n_splits:
        drawn[tuple(sorted(rng.choice(n, size, replace=False).tolist()))] = None
    return [split(modes, [modes[place] for place in places]) for places in drawn]


class Score(NamedTuple):
    """Absolute errors of predictions, % of the observed value."""

    n: int
    median_pct: float
    p90_pct: float
    worst_pct: float


def absolute_errors_pct(predicted: ArrayLike, observed: ArrayLike) -> Numbers:
    """Return 100 |predicted - observed| / observed."""
    truth = np.asarray(observed, float)
    return 100 * np.abs(np.asarray(predicted, float) - truth) / truth


def mape_pct(predicted: ArrayLike, observed: ArrayLike) -> float:
    """Return the mean absolute percentage error."""
    return float(absolute_errors_pct(predicted, observed).mean())


def score(errors_pct: ArrayLike) -> Score:
    """Return the median, the 90th percentile and the worst of absolute errors."""
    errors = np.asarray(errors_pct, float)
    if not errors.size:
        raise PredictionError("no prediction to score")
    median, p90 = np.quantile(errors, [0.5, 0.9])
    return Score(errors.size, float(median), float(p90), float(errors.max()))


@dataclass(frozen=True, eq=False)
class Trial:
    """One draw of a workload's modes: what methods learn from, and what they are asked."""

    table: Observations  # one row per mode
    train: Observations  # what methods see of the profiled modes
    places: Places  # of the modes of the table that they are asked for
    draw: int

    @classmethod
    def of(
        cls, table: Observations, train: Observations, test: Iterable[Mode], draw: int
    ) -> "Trial":
        """Return a trial that asks for the modes of `test` that the table has."""
        asked = set(test)
        places = np.flatnonzero([mode in asked for mode in table.mode_of_row])
        return cls(table, train, places, draw)

    @property
    def profiled(self) -> Places:
        """Places of the modes of the table that were profiled."""
        seen = set(self.train.mode_of_row)
        return np.flatnonzero([mode in seen for mode in self.table.mode_of_row])


class Answers:
    """Collects the frame: what predictors say of modes that they have not seen."""

    def __init__(self, intervals: bool = False) -> None:
        self.intervals = intervals
        self._keys: list[tuple[str, str, str, int, int]] = []
        self._columns: list[tuple[ArrayLike, ...]] = []

    def add(self, fitted: Mapping[str, Predictor], trial: Trial, method: str) -> None:
        """Ask the predictor of each target for the modes of a trial."""
        modes, name = trial.table.modes[trial.places], trial.table.workload
        for target, predictor in fitted.items():
            interval = predictor.interval(modes) if self.intervals else None
            low, high = interval if interval is not None else [np.full(len(modes), np.nan)] * 2
            truth = trial.table.values(target)[trial.places]
            key = (name, method, target, len(trial.train.distinct()), trial.draw)
            self._keys.append(key)
            self._columns.append((trial.places, truth, predictor.predict(modes), low, high))

    def frame(self) -> pd.DataFrame:
        """Return all answers."""
        names = ["table", "method", "target", "n_profiled", "draw"]
        keys = pd.DataFrame(self._keys, columns=names)
        sizes = [np.size(columns[0]) for columns in self._columns]
        frame = keys.loc[np.repeat(np.arange(len(keys)), sizes)].reset_index(drop=True)
        columns = list(zip(*self._columns, strict=True)) or [([],)] * 5
        for name, parts in zip(
            ("mode", "truth", "prediction", "low", "high"), columns, strict=True
        ):
            frame[name] = np.concatenate(parts)
        frame["error_pct"] = absolute_errors_pct(frame["prediction"], frame["truth"])
        return frame


def cross_validate(
    methods: Iterable[Method],
    observations: Sequence[Observations],
    splits: Iterable[Split],
    priors: Mapping[str, Priors] | None = None,
) -> pd.DataFrame:
    """Fit to the training modes of each split, the `draw`, and predict its test modes.

    Each method sees epochs 1 and 2 of the training modes and nothing else; the mean over a mode's
    later epochs is predicted. There are no rows of power and energy for workloads without power,
    and none of workloads without the priors that a method needs.
    """
    methods, answers = list(methods), Answers()
    profiled = [rows.after_first(N_EPOCHS) for rows in observations]
    means = [rows.after_first().per_mode() for rows in observations]
    for draw, parts in enumerate(splits):
        training = [rows.only(parts.train) for rows in profiled]
        for rows, mean in zip(training, means, strict=True):
            trial = Trial.of(mean, rows, parts.test, draw)
            expected = (priors or {}).get(rows.workload, {})
            for method in methods:
                if expected or not method.needs_prior:
                    answers.add(predictors(method, rows, training, expected), trial, method.name)
    return answers.frame()


def board_minutes(observations: Observations, modes: Iterable[Mode]) -> float:
    """Return how long a board works for a model: epochs 0 to 2 of each mode, minutes."""
    rows = observations.only(set(modes))
    return float(rows.time_s[rows.epoch <= N_EPOCHS].sum() / 60)


def fastest_within(time_s: Numbers, power_w: Numbers, limits_w: Numbers) -> Places:
    """Return the place of the fastest mode (n,) within each limit (k,), `NONE` where there is none.

    Of equally fast modes the one of least power counts.
    """
    order = np.lexsort((time_s, power_w))
    fastest = np.minimum.accumulate(time_s[order])
    is_faster = np.append(True, fastest[1:] < fastest[:-1])
    best = np.maximum.accumulate(np.where(is_faster, np.arange(len(order)), 0))
    n_within = np.searchsorted(power_w[order], np.asarray(limits_w) + ROUNDING_W, side="right")
    return np.where(n_within > 0, order[best[np.maximum(n_within, 1) - 1]], NONE)


def best_profiled(rows: Observations, profiled: Places, limits_w: Numbers) -> Places:
    """Return the fastest of the profiled modes that were observed within each limit (k,)."""
    places = fastest_within(rows.time_s[profiled], rows.power_w[profiled], limits_w)
    return np.where(places == NONE, NONE, profiled[places])


def choices_frame(rows: Observations, limits_w: Numbers, places: Places) -> pd.DataFrame:
    """Return what was observed in the mode (k,) that was chosen within each limit.

    Columns: limit_w, place, time_s, power_w, best_time_s, best_power_w, penalty_pct, over_w; NaN
    where the place is `NONE`, and of the best mode where none keeps the limit.
    """
    frame = pd.DataFrame({"limit_w": limits_w, "place": places})
    best = fastest_within(rows.time_s, rows.power_w, limits_w)
    for name, chosen in (("", places), ("best_", best)):
        for target in ("time_s", "power_w"):
            frame[f"{name}{target}"] = np.where(chosen == NONE, np.nan, rows.values(target)[chosen])
    frame["penalty_pct"] = 100 * (frame["time_s"] / frame["best_time_s"] - 1)
    frame["over_w"] = frame["power_w"] - frame["limit_w"]
    return frame


class Judgement(NamedTuple):
    """Choices of one method under several limits, by what was observed."""

    n_limits: int
    n_answered: int
    # median time penalty of the answered limits that some mode keeps; NaN: there is none. Never to
    # be shown without the two shares
    penalty_pct: float
    over_pct: float  # share of the answered limits that are broken; NaN: none is answered
    over_1w_pct: float  # by more than 1 W
    # area between the observed power and the limit where it is above, of the area below the limits;
    # limits without an answer count and add nothing. How the paper normalises it is not printed
    excess_area_pct: float


def judge(choices: pd.DataFrame) -> Judgement:
    """Judge the choices under limits that ascend. Raises PredictionError: they do not."""
    limits_w = choices["limit_w"].to_numpy()
    if len(limits_w) < 2 or not (np.diff(limits_w) > 0).all():
        raise PredictionError("limits that do not ascend", allowed="two or more, ascending")
    over_w = choices["over_w"].fillna(0.0).to_numpy()
    n_answered = int(choices["power_w"].notna().sum())
    over_pct, over_1w_pct = (
        100 * int((over_w > most + ROUNDING_W).sum()) / n_answered if n_answered else np.nan
        for most in (0.0, OVER_W)
    )
    excess = np.trapezoid(np.maximum(over_w, 0), limits_w) / np.trapezoid(limits_w, limits_w)
    penalty_pct = float(choices["penalty_pct"].median())
    return Judgement(
        len(limits_w), n_answered, penalty_pct, over_pct, over_1w_pct, float(100 * excess)
    )
