"""Judge predictors: methods learn from the same draws of modes, and one frame holds their answers.

Draws part modes, never rows: epochs of one mode are nearly equal, so a split by row would test on
what it trained on. A `Trial` is one draw of the modes of one workload. `Answers` collects the
frame, with a row for each predicted mode: table, method, target, n_profiled, draw, mode (its row in
the table), truth, prediction, and low and high of the 90 % interval where the method states one,
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

KEYS = ["table", "method", "target", "n_profiled", "draw"]  # columns of each trial's answers
NONE = -1  # instead of a row of the table: no mode keeps the limit
OVER_W = 1.0  # a limit that is broken by more than that; A/L+1 of PowerTrain's paper
ROUNDING_W = 1e-9  # a mode whose power is the limit keeps it


class Split(NamedTuple):
    """Modes to train on, and the others."""

    train: tuple[Mode, ...]
    test: tuple[Mode, ...]


def split(modes: Sequence[Mode], train: Sequence[Mode]) -> Split:
    """Return the split that trains on `train` and tests on the rest.

    Raises PredictionError: a mode of `train` is not among `modes`, or none trains or tests.
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
    """Return one split per mode: it tests, all others train."""
    return [split(modes, [m for m in modes if m != mode]) for mode in modes]


def random_subsets(modes: Sequence[Mode], size: int, n_splits: int, seed: int) -> list[Split]:
    """Draw `n_splits` different splits that train on `size` modes; all where there are no more."""
    if comb(len(modes), size) <= n_splits:
        return [split(modes, train) for train in combinations(modes, size)]
    rng = np.random.default_rng(seed)
    subsets = dict[tuple[int, ...], None]()  # a set that keeps the order
    while len(subsets) < n_splits:
        subset = sorted(rng.choice(len(modes), size, replace=False).tolist())
        subsets[tuple(subset)] = None
    return [split(modes, [modes[number] for number in subset]) for subset in subsets]


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
    """Summarise absolute errors. Raises PredictionError: there are none."""
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
    places: Places  # rows of the table whose modes they are asked for
    draw: int  # number of the draw

    @classmethod
    def of(
        cls, table: Observations, train: Observations, test: Iterable[Mode], draw: int
    ) -> "Trial":
        """Build the trial that asks for those modes of `test` that the table has."""
        asked = set(test)
        places = np.flatnonzero([mode in asked for mode in table.mode_of_row])
        return cls(table, train, places, draw)

    @property
    def profiled(self) -> Places:
        """Rows of the table whose modes were profiled."""
        trained_on = set(self.train.mode_of_row)
        return np.flatnonzero([mode in trained_on for mode in self.table.mode_of_row])


class Answers:
    """Collects the frame: what predictors say of modes that they have not seen."""

    def __init__(self, intervals: bool = False) -> None:
        self.intervals = intervals
        self._keys: list[tuple[str, str, str, int, int]] = []
        self._columns: list[dict[str, NDArray[np.generic]]] = []  # of each key, by name

    def add(self, fitted: Mapping[str, Predictor], trial: Trial, method: str) -> None:
        """Record what the fitted predictor of each target says of a trial's modes."""
        modes = trial.table.modes[trial.places]
        for target, predictor in fitted.items():
            interval = predictor.interval(modes) if self.intervals else None
            unknown = np.full(len(modes), np.nan)
            low, high = interval or (unknown, unknown)
            n_profiled = len(trial.train.distinct())
            self._keys.append((trial.table.workload, method, target, n_profiled, trial.draw))
            truth = trial.table.values(target)[trial.places]
            columns = {"mode": trial.places, "truth": truth, "prediction": predictor.predict(modes)}
            self._columns.append({**columns, "low": low, "high": high})

    def frame(self) -> pd.DataFrame:
        """Return all answers, one row per predicted mode (columns: see the module)."""
        n_modes = [len(columns["mode"]) for columns in self._columns]
        keys = pd.DataFrame(self._keys, columns=KEYS)
        frame = keys.loc[np.repeat(np.arange(len(keys)), n_modes)].reset_index(drop=True)
        for name in ("mode", "truth", "prediction", "low", "high"):
            frame[name] = np.concatenate(
                [columns[name] for columns in self._columns] or [np.empty(0)]
            )
        frame["error_pct"] = absolute_errors_pct(frame["prediction"], frame["truth"])
        return frame


def cross_validate(
    methods: Iterable[Method],
    observations: Sequence[Observations],
    splits: Iterable[Split],
    priors: Mapping[str, Priors] | None = None,
) -> pd.DataFrame:
    """Fit methods to the training modes of each split and predict its test modes.

    Returns the frame of `Answers`; `draw` is the number of the split. Each method sees epochs 1 and
    2 of the training modes and nothing else; the mean over all epochs of a mode after the first is
    predicted. There are no rows of power and energy for workloads without power, and none of
    workloads without the `priors` (by workload) that a method needs.
    """
    methods, answers = list(methods), Answers()
    profiled = [rows.after_first(N_EPOCHS) for rows in observations]
    means = [rows.after_first().per_mode() for rows in observations]
    for draw, (train, test) in enumerate(splits):
        training = [rows.only(train) for rows in profiled]
        for rows, mean in zip(training, means, strict=True):
            trial = Trial.of(mean, rows, test, draw)
            own_priors = (priors or {}).get(rows.workload, {})
            for method in methods:
                if own_priors or not method.needs_prior:
                    answers.add(predictors(method, rows, training, own_priors), trial, method.name)
    return answers.frame()


def board_minutes(observations: Observations, modes: Iterable[Mode]) -> float:
    """Return the board time that profiling these modes takes, minutes: epochs 0 to 2 of each."""
    rows = observations.only(set(modes))
    return float(rows.time_s[rows.epoch <= N_EPOCHS].sum() / 60)


def fastest_within(time_s: Numbers, power_w: Numbers, limits_w: Numbers) -> Places:
    """Return which of n modes is the fastest within each power limit (k,), `NONE` where none is.

    Of equally fast modes the one of least power counts.
    """
    by_power = np.lexsort((time_s, power_w))  # ascending
    fastest_s = np.minimum.accumulate(time_s[by_power])  # of all modes up to this power
    is_faster = np.append(True, fastest_s[1:] < fastest_s[:-1])  # than all modes of less power
    fastest = by_power[np.maximum.accumulate(np.where(is_faster, np.arange(len(by_power)), 0))]
    n_within = np.searchsorted(power_w[by_power], np.asarray(limits_w) + ROUNDING_W, side="right")
    return np.where(n_within > 0, fastest[np.maximum(n_within, 1) - 1], NONE)


def best_profiled(rows: Observations, profiled: Places, limits_w: Numbers) -> Places:
    """Return the row of the fastest profiled mode within each power limit (k,), or `NONE`.

    `profiled` are rows of the table `rows`; times and powers are the observed ones.
    """
    fastest = fastest_within(rows.time_s[profiled], rows.power_w[profiled], limits_w)
    return np.where(fastest == NONE, NONE, profiled[fastest])


def choices_frame(rows: Observations, limits_w: Numbers, places: Places) -> pd.DataFrame:
    """Compare the mode chosen within each power limit (k,) with the fastest one that keeps it.

    `places` (k,) are rows of the table `rows`. Columns: limit_w, place, time_s, power_w,
    best_time_s, best_power_w, penalty_pct, over_w, as observed; NaN where the place is `NONE`, and
    of the best mode where none keeps the limit.
    """
    frame = pd.DataFrame({"limit_w": limits_w, "place": places})
    best = fastest_within(rows.time_s, rows.power_w, limits_w)
    for prefix, modes in (("", places), ("best_", best)):
        for target in ("time_s", "power_w"):
            frame[prefix + target] = np.where(modes == NONE, np.nan, rows.values(target)[modes])
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
    """Summarise the choices (`choices_frame`) of one method over all its power limits.

    Raises PredictionError: fewer than two limits, or limits that do not ascend.
    """
    limits_w = choices["limit_w"].to_numpy()
    if len(limits_w) < 2 or not (np.diff(limits_w) > 0).all():
        raise PredictionError("limits that do not ascend", allowed="two or more, ascending")
    over_w = choices["over_w"].fillna(0.0).to_numpy()
    n_answered = int(choices["power_w"].notna().sum())

    def broken_pct(tolerance_w: float) -> float:
        n_broken = int((over_w > tolerance_w + ROUNDING_W).sum())
        return 100 * n_broken / n_answered if n_answered else np.nan

    excess = np.trapezoid(np.maximum(over_w, 0), limits_w) / np.trapezoid(limits_w, limits_w)
    return Judgement(
        n_limits=len(limits_w),
        n_answered=n_answered,
        penalty_pct=float(choices["penalty_pct"].median()),
        over_pct=broken_pct(0.0),
        over_1w_pct=broken_pct(OVER_W),
        excess_area_pct=float(100 * excess),
    )
