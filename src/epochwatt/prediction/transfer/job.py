"""One job of study `powertrain`: methods that learn from the same draws of a workload's modes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from epochwatt.analysis.pareto import pareto_front
from epochwatt.columns import Factors
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.harness import (
    NONE,
    Places,
    absolute_errors_pct,
    best_profiled,
    choices_frame,
    fastest_within,
    judge,
    score,
)
from epochwatt.prediction.models.powertrain import (
    ROWS_PER_MODE,
    Recipe,
    is_constant,
    reference_network,
)
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Predictor, Reference
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import stock_choices, strongest
from epochwatt.prediction.transfer.collect import write_frame
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
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables

N_LIMITS = 34  # as many as from 17 to 50 W, where no limits are named
FRONT_PROFILED = 50  # most profiled modes of which fronts are kept: the paper's number
BOTH = (TIME, POWER)

Say = Callable[[str], None]


def write_job(
    job: Mapping[str, str],
    group: Factors,
    workload: str,
    reference: str | None,
    folder: Path,
    cache: Path,
    say: Say = print,
) -> None:
    """Run one job and write its tables, `names.OF_JOBS`, to `folder`.

    `job`, `group`: `config.Job` and `config.PowertrainGroup` as plain values; `workload`,
    `reference`: paths of their tables of modes, None: no reference; `cache`: folder of networks.
    Raises EpochwattError: a table that cannot be read or used (`run_job`), or written.
    """

    def read(path: str) -> ModeTable:
        tables = read_mode_tables(Path(path))
        if len(tables) > 1:
            raise ConfigError(
                f"a sweep of {len(tables)} workloads",
                where=path,
                allowed="one workload: its name stands for it in the tables",
            )
        return tables[0]

    other = None if reference is None else read(reference)
    frames = run_job(Job(**job), PowertrainGroup(**group), read(workload), other, cache, say=say)
    for name, frame in frames.items():
        write_frame(folder, name, frame)


@dataclass(frozen=True)
class Answer:
    """Answers of one method, or baseline, from one draw of profiled modes."""

    method: str
    n_profiled: int = 0
    draw: int = 0
    reference: str = ""  # that it transfers from
    fitted: Mapping[str, Predictor] = field(default_factory=dict)  # by target; none: no errors
    profiled: Places = field(default_factory=lambda: np.empty(0, np.intp))
    # of the modes that it chooses, one within each limit; None: the fastest that it expects
    places: Places | None = None
    has_front: bool = False  # whether the front of what it expects is kept


def run_job(
    job: Job,
    group: PowertrainGroup,
    table: ModeTable,
    reference: ModeTable | None = None,
    cache: Path | None = None,
    root: Path = Path(),
    say: Say = lambda line: None,
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
    names = [name for name in group.methods if name not in BASELINES]
    methods = [load_method(name, root, "methods") for name in names]
    for method in methods:
        _check(method, table, reference is not None, f"{job.group}: {job.workload}")
    transfer = None
    if reference is not None:
        is_other_board = reference.key.device != table.key.device
        transfer = Reference(observations_of(reference), is_other_board)
    shared = {
        "provenance": table.key.provenance,
        "group": job.group,
        "workload": job.workload,
        "device": table.key.device,
    }
    is_timed = table.key.work == "mini-batch"
    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in OF_JOBS}

    def add(answer: Answer) -> None:
        names = ("method", "n_profiled", "draw", "reference")
        trial = shared | {name: getattr(answer, name) for name in names}
        for name, frame in _judged(answer, rows, limits_w, is_timed):
            tables[name].append(frame.assign(**trial))

    n_modes = len(rows.modes)
    for answer in _without_draws(group, table.key.device, rows, limits_w, cache):
        add(answer)
    if POWERTRAIN_ALL in group.methods:
        say(f"{job.workload}: a network of all {n_modes} modes")
    sizes = [n for n in group.n_profiled if n <= n_modes / 2]
    if group.n_profiled and not sizes:
        raise PredictionError(
            f"a table of {n_modes} modes",
            where=rows.workload,
            allowed=f"{2 * min(group.n_profiled)} or more: half of them are to be predicted",
        )
    front_size = max((n for n in sizes if n <= FRONT_PROFILED), default=0)
    for n_profiled in sizes:
        for draw in range(group.draws):
            # the modes of a small set are among those of a large one of the same draw
            profiled = np.random.default_rng(draw).permutation(n_modes)[:n_profiled]
            training = rows.rows(np.isin(np.arange(n_modes), profiled))
            for method in methods:
                fitted = predictors(method, training, [training], reference=transfer, cache=cache)
                answer = Answer(
                    method.name,
                    n_profiled,
                    draw,
                    reference=job.reference if method.needs_reference else "",
                    fitted={target: fitted[target] for target in BOTH},
                    profiled=profiled,
                    has_front=n_profiled == front_size,
                )
                add(answer)
            if RANDOM_FRONT in group.methods:
                best = best_profiled(rows, profiled, limits_w)
                add(Answer(RANDOM_FRONT, n_profiled, draw, places=best))
        say(f"{job.workload}: {group.draws} draws of {n_profiled} modes")
    return {
        name: pd.concat(frames) if frames else pd.DataFrame() for name, frames in tables.items()
    }


def _without_draws(
    group: PowertrainGroup, device: str, rows: Observations, limits_w: Numbers, cache: Path | None
) -> Iterator[Answer]:
    """Yield the answers that need no draw: MAXN, presets, and the network of all modes."""
    if MAXN in group.methods:
        yield Answer(MAXN, places=np.full(len(limits_w), strongest(rows)))
    if STOCK_MODES in group.methods:
        yield Answer(STOCK_MODES, places=stock_choices(rows, device, limits_w))
    if POWERTRAIN_ALL in group.methods:
        n_modes = len(rows.modes)
        networks = {t: reference_network(rows, t, Recipe(), cache) for t in BOTH}
        yield Answer(
            POWERTRAIN_ALL, n_modes, fitted=networks, profiled=np.arange(n_modes), has_front=True
        )
        yield Answer(OBSERVED, n_modes, has_front=True)


def _judged(
    answer: Answer, rows: Observations, limits_w: Numbers, is_timed: bool
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield name and rows of each table of `names.OF_JOBS` that an answer has rows in.

    The columns of the trial are not there yet. Errors are over all modes that were not profiled;
    over all where all were.
    """
    observed = {target: rows.values(target) for target in BOTH}
    expected = {target: fitted.mean(rows.modes) for target, fitted in answer.fitted.items()}
    if answer.method == OBSERVED:
        expected = observed

    def mode_columns(places: Places) -> pd.DataFrame:
        predicted = {f"predicted_{t}": values[places] for t, values in expected.items()}
        return pd.DataFrame(rows.modes[places], columns=Mode._fields).assign(**predicted)

    is_profiled = np.isin(np.arange(len(rows.modes)), answer.profiled)
    is_judged = np.ones_like(is_profiled) if is_profiled.all() else ~is_profiled
    minutes = float(ROWS_PER_MODE * rows.time_s[is_profiled].sum() / 60) if is_timed else np.nan
    errors = []
    for target, predictor in answer.fitted.items():
        predicted = predictor.predict(rows.modes[is_judged])
        errors_pct = absolute_errors_pct(predicted, observed[target][is_judged])
        scores = score(errors_pct)
        errors.append(
            {
                "target": target,
                "n_judged": scores.n,
                "median_pct": scores.median_pct,
                "p90_pct": scores.p90_pct,
                "mape_pct": errors_pct.mean(),
                "minutes": minutes,
            }
        )
    if errors:
        yield "errors", pd.DataFrame(errors)
    places = answer.places
    if answer.fitted:
        places = fastest_within(expected[TIME], expected[POWER], limits_w)
    if places is not None:
        choices = choices_frame(rows, limits_w, places)
        yield "penalties", pd.DataFrame([judge(choices)])
        chosen = mode_columns(places).where(pd.Series(places != NONE))
        yield "choices", pd.concat([choices, chosen], axis=1)
    if answer.has_front:
        front = pareto_front(expected[TIME], expected[POWER])
        yield "fronts", mode_columns(front).assign(**{t: v[front] for t, v in observed.items()})


def _check(method: Method, table: ModeTable, has_reference: bool, where: str) -> None:
    """Raise EpochwattError for a method that cannot answer for this workload at all."""
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
