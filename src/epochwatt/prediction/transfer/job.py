"""One job of study `powertrain`: methods that learn from the same draws of a workload's modes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.analysis.pareto import pareto_front
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.harness import (
    NONE,
    Answers,
    Places,
    best_profiled,
    choices_frame,
    fastest_within,
    judge,
    mape_pct,
    score,
)
from epochwatt.prediction.models.powertrain import (
    ROWS_PER_MODE,
    PowerTrain,
    Recipe,
    is_constant,
    reference_network,
)
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Predictor, Reference
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import stock_choices, strongest
from epochwatt.prediction.transfer.config import Job, PowertrainGroup
from epochwatt.prediction.transfer.names import (
    BASELINES,
    MAXN,
    OBSERVED,
    OF_JOBS,
    POWERTRAIN_ALL,
    RANDOM_FRONT,
    STOCK_MODES,
)
from epochwatt.prediction.transfer.summary import write_frame
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables

N_LIMITS = 34  # as many as from 17 to 50 W, where no limits are named
FRONT_PROFILED = 50  # most profiled modes of which fronts are kept: the paper's number
BOTH = (TIME, POWER)


def write_job(
    job: Mapping[str, str],
    group: Mapping[str, Any],
    workload: str,
    reference: str | None,
    folder: Path,
    cache: Path,
    say: Callable[[str], None] = print,
) -> None:
    """Run one job and write its tables, `names.OF_JOBS`, to a folder.

    Raises EpochwattError: a table that cannot be read or used (`run_job`), or written.

    Parameters
    ----------
    job, group : `config.Job` and `config.PowertrainGroup` as plain values
    workload, reference : paths of their tables of modes; None: no reference
    """
    table = _only(Path(workload))
    other = None if reference is None else _only(Path(reference))
    frames = run_job(Job(**job), PowertrainGroup(**group), table, other, cache, say=say)
    for name, frame in frames.items():
        write_frame(folder, name, frame)


def _only(path: Path) -> ModeTable:
    tables = read_mode_tables(path)
    if len(tables) > 1:
        raise ConfigError(
            f"a sweep of {len(tables)} workloads",
            where=str(path),
            allowed="one workload: its name stands for it in the tables",
        )
    return tables[0]


def run_job(
    job: Job,
    group: PowertrainGroup,
    table: ModeTable,
    reference: ModeTable | None = None,
    cache: Path | None = None,
    root: Path = Path(),
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, pd.DataFrame]:
    """Judge the methods of a group on a workload: the tables `names.OF_JOBS`.

    Raises EpochwattError: tables without power, too few modes, a part of the modes that a method
    does not know, a reference that a method cannot transfer from, a baseline that the table cannot
    have.
    """
    rows = observations_of(table)
    rows.need_energy()
    if is_constant(rows.power_w):
        raise PredictionError(
            f"power_w of {rows.power_w[0]:g} in all {len(rows.modes)} modes",
            where=rows.workload,
            allowed="powers that differ: no limit parts modes that all need the same",
        )
    if group.limits_w:
        limits_w = np.arange(group.limits_w[0], group.limits_w[1] + 1.0)
    else:
        limits_w = np.linspace(rows.power_w.min(), rows.power_w.max(), N_LIMITS)
    where = f"{job.group}: {job.workload}"
    methods = [
        load_method(name, root, "methods") for name in group.methods if name not in BASELINES
    ]
    for method in methods:
        _check(method, table, reference is not None, where)
    transfer = None
    if reference is not None:
        is_other_board = reference.key.device != table.key.device
        transfer = Reference(observations_of(reference), is_other_board)
    trials = _Trials(job, table, rows, limits_w)
    _without_draws(trials, group.methods, cache, say)
    n_modes = len(rows.modes)
    sizes = [n for n in group.n_profiled if n <= n_modes / 2]
    if group.n_profiled and not sizes:
        raise PredictionError(
            f"a table of {n_modes} modes",
            where=rows.workload,
            allowed=f"{2 * min(group.n_profiled)} or more: half of them are to be predicted",
        )
    of_fronts = max((n for n in sizes if n <= FRONT_PROFILED), default=0)
    for n_profiled in sizes:
        for draw in range(group.draws):
            # more profiled modes of a draw begin with the fewer ones
            profiled = np.random.default_rng(draw).permutation(n_modes)[:n_profiled]
            is_profiled = np.isin(np.arange(n_modes), profiled)
            few = rows.rows(is_profiled)
            for method in methods:
                fitted = predictors(method, few, [few], reference=transfer, cache=cache)
                trials.begin(method.name, n_profiled, draw, method.needs_reference)
                trials.predict({target: fitted[target] for target in BOTH}, is_profiled)
                expected = {target: fitted[target].mean(rows.modes) for target in BOTH}
                trials.choose(expected)
                if n_profiled == of_fronts:
                    trials.front(expected)
            if RANDOM_FRONT in group.methods:
                trials.begin(RANDOM_FRONT, n_profiled, draw)
                trials.chosen(best_profiled(rows, profiled, limits_w), {})
        say(f"{job.workload}: {group.draws} draws of {n_profiled} modes")
    return {
        name: pd.concat(frames) if frames else pd.DataFrame()
        for name, frames in trials.tables.items()
    }


def _check(method: Method, table: ModeTable, has_reference: bool, where: str) -> None:
    """Refuse a method that cannot answer for this workload at all."""
    if unknown := [part for part in table.varied() if part not in method.parts]:
        raise PredictionError(
            f"{method.name} does not know what {', '.join(unknown)} does", where=where
        )
    if not {*BOTH} <= {*method.predicts}:
        raise PredictionError(f"{method.name} does not predict time and power", where=where)
    if method.needs_reference and not has_reference:
        raise ConfigError(
            f"{method.name} transfers from a reference", where=where, do="name references"
        )


@dataclass
class _Trials:
    """The tables of a job as they grow."""

    job: Job
    table: ModeTable
    rows: Observations  # one per mode of the workload
    limits_w: Numbers  # (k,), ascending
    tables: dict[str, list[pd.DataFrame]] = field(
        default_factory=lambda: {name: [] for name in OF_JOBS}
    )
    _trial: dict[str, str | int] = field(default_factory=dict)  # columns that a trial's rows share

    def begin(self, method: str, n_profiled: int, draw: int, transfers: bool = False) -> None:
        """Begin a trial: what is added from now on is of it."""
        self._trial = {
            "provenance": self.table.key.provenance,
            "group": self.job.group,
            "reference": self.job.reference if transfers else "",
            "workload": self.job.workload,
            "device": self.table.key.device,
            **{"method": method, "n_profiled": n_profiled, "draw": draw},
        }

    def _add(self, name: str, frame: pd.DataFrame) -> None:
        self.tables[name].append(frame.assign(**self._trial))

    def predict(self, fitted: Mapping[str, Predictor], is_profiled: NDArray[np.bool_]) -> None:
        """Add the errors over all modes that were not profiled; over all where all were."""
        judged = np.ones_like(is_profiled) if is_profiled.all() else ~is_profiled
        answers = Answers()
        answers.add(fitted, self.rows.rows(judged), np.flatnonzero(judged), "", 0, 0)
        minutes = np.nan
        if self.table.key.work == "mini-batch":
            minutes = float(ROWS_PER_MODE * self.rows.time_s[is_profiled].sum() / 60)
        rows = []
        for target, part in answers.frame().groupby("target", sort=False):
            scored = score(part["error_pct"])
            rows.append(
                {
                    "target": target,
                    **{"n_judged": scored.n, "median_pct": scored.median_pct},
                    **{"p90_pct": scored.p90_pct, "minutes": minutes},
                    "mape_pct": mape_pct(part["prediction"], part["truth"]),
                }
            )
        self._add("errors", pd.DataFrame(rows))

    def choose(self, expected: Mapping[str, Numbers]) -> None:
        """Add the fastest mode by what is expected within each limit."""
        self.chosen(fastest_within(expected[TIME], expected[POWER], self.limits_w), expected)

    def chosen(self, places: Places, expected: Mapping[str, Numbers]) -> None:
        """Add the mode that was chosen within each limit, and what they come to over all."""
        choices = choices_frame(self.rows, self.limits_w, places)
        self._add("penalties", pd.DataFrame([judge(choices)]))
        is_mode = places != NONE
        modes = self._modes(places, expected).where(pd.Series(is_mode))
        self._add("choices", pd.concat([choices, modes], axis=1))

    def front(self, expected: Mapping[str, Numbers]) -> None:
        """Add the modes that no other beats in both expected time and power."""
        places = pareto_front(expected[TIME], expected[POWER])
        observed = {target: getattr(self.rows, target)[places] for target in BOTH}
        self._add("fronts", self._modes(places, expected).assign(**observed))

    def _modes(self, places: Places, expected: Mapping[str, Numbers]) -> pd.DataFrame:
        predicted = {f"predicted_{target}": values[places] for target, values in expected.items()}
        return pd.DataFrame(self.rows.modes[places], columns=Mode._fields).assign(**predicted)


def _without_draws(
    trials: _Trials, methods: Sequence[str], cache: Path | None, say: Callable[[str], None]
) -> None:
    """Judge what needs no draw: MAXN, presets, and the network that has seen all modes."""
    rows, n_modes = trials.rows, len(trials.rows.modes)
    if MAXN in methods:
        trials.begin(MAXN, 0, 0)
        trials.chosen(np.full(len(trials.limits_w), strongest(rows)), {})
    if STOCK_MODES in methods:
        trials.begin(STOCK_MODES, 0, 0)
        trials.chosen(stock_choices(rows, trials.table.key.device, trials.limits_w), {})
    if POWERTRAIN_ALL in methods:
        trials.begin(POWERTRAIN_ALL, n_modes, 0)
        networks = {
            target: PowerTrain(target, rows.modes, reference_network(rows, target, Recipe(), cache))
            for target in BOTH
        }
        trials.predict(networks, np.ones(n_modes, bool))
        expected = {target: network.predict(rows.modes) for target, network in networks.items()}
        trials.choose(expected)
        trials.front(expected)
        trials.begin(OBSERVED, n_modes, 0)
        trials.front({target: getattr(rows, target) for target in BOTH})
        say(f"{trials.job.workload}: a network of all {n_modes} modes")
