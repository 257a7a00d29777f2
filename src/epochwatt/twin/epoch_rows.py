"""Compute rows of simulated runs and idle powers (`epochs.csv`, `idle.csv`) in closed form.

The event simulation gives the same rows through simulated sensors and collected records; here
they are computed without either, and for any parameters. The take-aways are judged on it again
(`claims/held_out.py`). Times and powers vary between epochs and boards as there
(`epoch.draw_spread`); within an epoch nothing does, so that medians over time are means. The
sampler's errors are missing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from epochwatt import columns
from epochwatt.epochs.table import EpochRow
from epochwatt.twin.boards import Array, Values, number
from epochwatt.twin.epoch import Epoch, Setting, draw_spread, first_cluster
from epochwatt.twin.power import STATE, idle_w
from epochwatt.twin.predicted import QUANTITIES, Quantity, Question, answer_each
from epochwatt.twin.twin import Twin

TIMES = ("e2e_s", "stall_s", "compute_s", "overhead_s", "fetch_s", "preprocess_s")
SCOPE = "module"


def _cached_pct(setting: Setting, e: Epoch, p: Values) -> Array:
    """Return the share of the data set that an epoch finds cached, %; 100: it lies in memory."""
    if not setting.samples.file_bytes:
        return np.asarray(100.0)
    return np.asarray(0.0) if setting.cold else QUANTITIES["cached_pct"](setting, e, p)


def _first_cluster(setting: Setting, e: Epoch) -> tuple[Array, Array]:
    """Return `first_cluster`; clocks that are pinned do not change."""
    return first_cluster(setting, e) if setting.dvfs else (np.asarray(1.0), e.clocks.cpu_mhz)


SIMULATED_COLUMNS: dict[str, Quantity] = {
    **{name: QUANTITIES[name] for name in ("e2e_s", "stall_s", "compute_s", "overhead_s")},
    "fetch_s": lambda s, e, p: e.fetch_s,
    "preprocess_s": lambda s, e, p: e.preprocess_s,
    "n_minibatches": lambda s, e, p: np.asarray(s.n_minibatches),
    "n_samples": lambda s, e, p: np.asarray(s.n_samples),
    "power_mean_w": QUANTITIES["power_w"],
    "cpu_util_pct": QUANTITIES["cpu_util_pct"],
    "cpu_util_median_pct": QUANTITIES["cpu_util_pct"],
    "gpu_util_pct": QUANTITIES["gpu_util_pct"],
    "gpu_util_median_pct": QUANTITIES["gpu_util_pct"],
    "read_iops": QUANTITIES["iops"],
    "cached_pct": _cached_pct,
    # no columns of epochs.csv: clocks, of the first cluster of cores two and their shares of time
    "cpu_mhz": lambda s, e, p: e.clocks.cpu_mhz,
    "cpu_mhz_pct": lambda s, e, p: 100.0 * _first_cluster(s, e)[0],
    "cpu_else_mhz": lambda s, e, p: _first_cluster(s, e)[1],
    "gpu_mhz": lambda s, e, p: e.clocks.gpu_mhz,
    "emc_mhz": lambda s, e, p: e.clocks.emc_mhz,
}


def runs_of(rows: Iterable[EpochRow]) -> list[list[EpochRow]]:
    """Return the rows of each run, in order."""
    runs: dict[str, list[EpochRow]] = defaultdict(list)
    for row in rows:
        runs[row["run"]].append(row)
    return list(runs.values())


def epoch_rows_of_each(
    runs: Sequence[Sequence[EpochRow]], twin: Twin, draws: Sequence[Values], seeds: Iterable[int]
) -> Iterator[list[dict[str, Any]]]:
    """Yield, for each draw of parameters, a row for each epoch of each run.

    `runs`: of each simulated run, its rows of `epochs.csv`, of which factors and epochs count;
    `seeds`: of each draw; another one is another spread between epochs

    Raises EpochwattError: a board, network or power mode that is not simulated.
    """
    questions_of_runs = [_questions(rows) for rows in runs]
    questions = [q for run_questions in questions_of_runs for q in run_questions]
    answers_of_draws = answer_each(questions, twin, draws, SIMULATED_COLUMNS)
    for p, seed, answers in zip(draws, seeds, answers_of_draws, strict=True):
        epochs: list[dict[str, Any]] = []
        for rows, run_questions in zip(runs, questions_of_runs, strict=True):
            factors = {name: rows[0][name] for name in ("run", *columns.FACTOR_NAMES)}
            random = np.random.default_rng([seed, *rows[0]["run"].encode()])
            board = twin.boards[factors["device"]]
            spread = draw_spread(factors, len(rows), board, random, p)
            for row, q, time, power in zip(rows, run_questions, *spread, strict=True):
                means = answers[q]
                numbers = {**means, **{name: means[name] * float(time) for name in TIMES}}
                numbers["power_mean_w"] *= float(power)
                numbers["energy_wh"] = numbers["power_mean_w"] * numbers["e2e_s"] / 3600.0
                numbers["energy_paper_wh"] = numbers["energy_wh"]  # misses no second
                validity = {"epoch": row["epoch"], "valid": True, "power_scope": SCOPE}
                epochs.append({**factors, **validity, **numbers})
        yield epochs


def _questions(rows: Sequence[EpochRow]) -> list[Question]:
    """Return the configuration of each epoch of a run; epoch 0 finds nothing cached."""
    f = rows[0]  # its factors
    settings = {name: f[name] for name in Question._fields[:7]}
    settings |= {"scale": float(f["dataset_scale"]), "setup": f["setup"]}
    first = Question(**settings, cold=True)
    later = first._replace(cold=f["cache_policy"] == "dropped")
    return [first if row["epoch"] == 0 else later for row in rows]


def idle_rows(rows: Iterable[EpochRow], twin: Twin, p: Values) -> list[EpochRow]:
    """Return rows of `idle.csv` with their power simulated anew with other parameters."""
    idles: list[EpochRow] = []
    for row in rows:
        board = twin.boards[row["device"]]
        clocks = twin.clocks(row["device"], row["power_mode"])
        power_w = idle_w(board, STATE[row["state"]], clocks, row["power_scope"], p)
        idles.append({**row, "power_w": number(power_w)})
    return idles
