"""Numbers of a table of epochs, as predicates ask for them; clocks are added from telemetry.

A clock is at its top where it is above a share of what the power mode sets: 95 % for the memory,
the margin of SIGMETRICS 2023, section 4.2; 90 % for the CPU, where its section 5.5.2 draws a line.
Of the CPU the first cluster that was sampled counts: the paper does not say which one Fig. 6d has.
"""

import math
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from epochwatt.board.records.run_folder import EpochRecord, RunFolder
from epochwatt.claims.tolerances import KEYWORDS
from epochwatt.claims.verdict import NotEvaluable, Percentage
from epochwatt.epochs import table
from epochwatt.epochs.board_flags import MET, Samples, pinned_mhz
from epochwatt.published.numbers import MEANT_EPOCHS, trains_as_published
from epochwatt.text import counted

HIPCW = "hipcw2021"
MEANT = {"0": (0, 0), "1+": (1, MEANT_EPOCHS)}  # first and last
KEY = ("setup", "device", "instance", "model", *KEYWORDS.values())
CPU_PEAK = 0.9  # of the mode's clock

Row = Mapping[str, Any]  # of epochs.csv or idle.csv, or factors of a run


def _quotient(numerator: str, denominator: str, factor: float) -> Callable[[Row], float]:
    return lambda row: factor * _float(row, numerator) / _float(row, denominator)


# metric -> what it is of an epoch's row; the others are columns of that name
DERIVED: dict[str, Callable[[Row], float]] = {
    "energy_wh": lambda row: _float(row, "energy_paper_wh"),  # as the papers summed theirs
    "power_w": lambda row: _float(row, "power_mean_w"),
    "iops": lambda row: _float(row, "read_iops"),
    "cpu_util_pct": lambda row: _float(row, "cpu_util_median_pct"),  # both papers: median over time
    "stall_ms_per_minibatch": _quotient("stall_s", "n_minibatches", 1e3),
    "compute_ms_per_minibatch": _quotient("compute_s", "n_minibatches", 1e3),
    "reads_per_sample": lambda row: (
        _float(row, "read_iops") * _float(row, "e2e_s") / _float(row, "n_samples")
    ),
}
PLAIN_METRICS = ("stall_s", "compute_s", "e2e_s", "preprocess_s", "cached_pct")
# From telemetry, not in epochs.csv: whoever has the samples adds them to the rows.
CLOCKS = ("gpu_freq_mhz", "emc_below_max_time_pct", "cpu_below_peak_time_pct")
METRICS = (*DERIVED, *PLAIN_METRICS, "gpu_util_pct", *CLOCKS)
ENERGIES = ("energy_wh", "power_w")
PREDICTED = ("time_mape_pct", "energy_mape_pct")
BEST = "best_mode_set"  # of a board, beside them


def _float(row: Row, column: str) -> float:
    """Return a number of a row; raises NotEvaluable where the cell is empty or NaN."""
    value = row.get(column)
    number = math.nan if value is None or value == "" else float(value)
    if math.isnan(number):
        raise NotEvaluable(f"{column} of run {row.get('run', '')}")
    return number


def read_rows(paths: Iterable[str | Path]) -> list[Row]:
    """Return the rows of several `epochs.csv`; raises RecordError as `epochs.table.read_rows`."""
    return [row for path in paths for row in table.read_rows(path)]


def statistic(metric: str, rows: Iterable[Row], epoch: str) -> float:
    """Average a metric over the valid epochs of one run: mean of set 0 or 1+, median of `all`.

    Raises NotEvaluable: no epoch of the set is valid, one lacks the metric, or power scopes differ.
    """
    rows = list(rows)
    chosen = [row for row in rows if _valid(row)]
    if epoch in MEANT:
        first, last = MEANT[epoch]
        chosen = [row for row in chosen if first <= int(row["epoch"]) <= last]
    elif epoch != "all":
        raise ValueError(f"epoch is {epoch!r}; allowed: 0, 1+, all")
    if not chosen:
        raise NotEvaluable(f"a valid epoch of the set {epoch} of {rows[0]['run']}")
    if metric in ENERGIES and len({row["power_scope"] for row in chosen}) > 1:
        raise NotEvaluable(f"one power scope in all epochs of {rows[0]['run']}")
    values = [of_epoch(metric, row) for row in chosen]
    value = statistics.median(values) if epoch == "all" else statistics.fmean(values)
    return Percentage(value) if metric.endswith("_pct") else value


def of_epoch(metric: str, row: Row) -> float:
    """Return a metric of one epoch; NotEvaluable where its row lacks it."""
    # HiPCW prints the median over time, the main paper the mean
    if metric == "gpu_util_pct" and row["setup"] == HIPCW:
        metric = "gpu_util_median_pct"
    return DERIVED[metric](row) if metric in DERIVED else _float(row, metric)


class EpochTable:
    """Epochs of runs of one backend; `inputs` collects the runs that were asked for and found.

    `epochs`: rows with `columns.RUN_EPOCH_COLUMNS`; those of `CLOCKS` may follow; inference and
    other arithmetic than the papers' is left out
    `idle`: rows with `columns.IDLE_COLUMNS`
    `predictions`: (metric, device, model, power mode) -> value; (best_mode_set, device, "", "") ->
    the letters of the best modes in order
    `power_modes`: device -> mode -> settings (cores, cpu_mhz, gpu_mhz, emc_mhz)
    """

    def __init__(
        self,
        epochs: Iterable[Row] = (),
        idle: Iterable[Row] = (),
        predictions: Mapping[tuple[str, str, str, str], Any] | None = None,
        power_modes: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
    ) -> None:
        self.epochs = [row for row in epochs if trains_as_published(row)]
        self.idle = list(idle)
        self.predictions = predictions or {}
        self.power_modes = power_modes or {}
        self.inputs: set[str] = set()
        self._runs: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(dict)
        for row in self.epochs:
            self._runs[key_of(row)].setdefault(row["run"], []).append(row)

    def number(self, metric: str, factors: Row, epoch: str) -> float:
        """Return a metric of a run: mean over its valid epochs, their median for `all`."""
        return statistic(metric, self.run(factors), epoch)

    def series(self, metric: str, factors: Row, n_epochs: int) -> list[float]:
        """Return a metric of each valid epoch after the first.

        Raises NotEvaluable: the run has fewer than `n_epochs`.
        """
        rows = self.run(factors)
        if len(rows) < n_epochs:
            lacking = counted(n_epochs - len(rows), "more epochs")
            raise NotEvaluable(f"{lacking} of {words(factors)}")
        return [of_epoch(metric, row) for row in rows if _valid(row) and int(row["epoch"]) >= 1]

    def run(self, factors: Row) -> list[Row]:
        """Return the rows of the one run with these factors, and note it in `inputs`.

        Raises NotEvaluable: there is no such run, or several.
        """
        runs = self._runs.get(key_of(factors), {})
        if len(runs) != 1:
            several = f" (several are there: {', '.join(sorted(runs))})" if runs else ""
            raise NotEvaluable(words(factors) + several)
        ((run, rows),) = runs.items()
        self.inputs.add(run)
        return rows

    def idle_w(self, factors: Row, state: str, scope: str) -> float:
        """Average the idle powers, W, of a board in a state (i to iv); NotEvaluable without one."""
        wanted = {k: factors[k] for k in ("device", "instance", "power_mode")}
        wanted |= {"state": state, "power_scope": scope}
        rows = [r for r in self.idle if all(r[k] == v for k, v in wanted.items())]
        values = [float(r["power_w"]) for r in rows if r["power_w"] not in ("", None)]
        if not values:
            raise NotEvaluable("idle power: " + " ".join(map(str, wanted.values())))
        return statistics.fmean(values)

    def predicted(self, metric: str, device: str, model: str, power_mode: str) -> Any:
        """Return a result of the prediction models; NotEvaluable where it is not among them."""
        try:
            return self.predictions[metric, device, model, power_mode]
        except KeyError:
            wish = " ".join(word for word in (metric, device, model, power_mode) if word)
            raise NotEvaluable(f"prediction: {wish}") from None


def _valid(row: Row) -> bool:
    return row["valid"] in (True, "true", "True")


def key_of(row: Row) -> tuple[Any, ...]:
    """Return the factors that tell the run of a row from others, numbers as floats."""
    numbers = ("num_workers", "batch_size", "dataset_scale")
    return tuple(
        float(row[name]) if name in numbers and row[name] is not None else row[name] for name in KEY
    )


def words(factors: Row) -> str:
    """Name the run with these factors in words, for messages."""
    f = factors.get
    parts = [
        *(f("setup"), f("device"), f("instance"), f("model"), f("storage")),
        f"w={f('num_workers')} bs={f('batch_size')} mode {f('power_mode')} dvfs={f('dvfs')}",
        "cache dropped" if f("cache_policy") == "dropped" else "",
        f"scale {factors['dataset_scale']:g}" if f("dataset_scale", 1) != 1 else "",
    ]
    return " ".join(["run", *(str(part) for part in parts if part)])


def with_clocks(rows: Iterable[Row], folders: Mapping[str, str]) -> list[Row]:
    """Add `CLOCKS`, from telemetry, to the rows of runs that were measured on a board.

    Raises RecordError: a record is missing or damaged.

    `folders`: run -> folder of its records; rows of other runs stay as they are
    """
    from epochwatt.epochs.telemetry import read_all  # here: what predicates ask for needs no numpy

    clocked: list[Row] = []
    for row in rows:
        if row["run"] in folders:
            record = RunFolder(*os.path.split(folders[row["run"]])).read(int(row["epoch"]))
            if board := record.meta.get("board"):
                top_mhz = pinned_mhz(board["power_mode"])
                row = {**row, **sampled_clocks(record, read_all(record), top_mhz)}
        clocked.append(row)
    return clocked


def sampled_clocks(
    record: EpochRecord, samples: Samples, top_mhz: Mapping[str, float]
) -> dict[str, float]:
    """Compute `CLOCKS` of one epoch from its samples; those without a sample are left out.

    `record`: says when it began and ended
    `samples`: source -> column -> float (n,)
    `top_mhz`: what the power mode sets: cpu_mhz, emc_mhz
    """
    import numpy as np

    from epochwatt.epochs.windows import window_mean

    window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    host, board = samples.get("host", {}), samples.get("board", {})
    cpu = next((c for c in host if c.startswith("cpu") and c.endswith("_mhz")), "")
    columns = {
        "gpu_freq_mhz": (board, "gpu_mhz", None),
        "emc_below_max_time_pct": (board, "emc_mhz", MET * top_mhz.get("emc_mhz", math.nan)),
        "cpu_below_peak_time_pct": (host, cpu, CPU_PEAK * top_mhz.get("cpu_mhz", math.nan)),
    }
    means = {}
    for name, (source, column, limit) in columns.items():
        if column in source:
            values = source[column]
            if limit is not None:  # 100 where the clock is below it, 0 where not; NaN: not known
                is_known = np.isfinite(values) & math.isfinite(limit)
                values = np.where(is_known, np.where(values < limit, 100.0, 0.0), math.nan)
            means[name] = window_mean(source["t_mono_s"], values, *window)
    return {name: value for name, value in means.items() if not math.isnan(value)}


def closed_form_clocks(row: Row, top_mhz: Mapping[str, float]) -> dict[str, float]:
    """Compute `CLOCKS` of an epoch in closed form (`twin/epoch_rows.py`).

    The CPU is at `cpu_mhz` for `cpu_mhz_pct` of the time, and at `cpu_else_mhz` in the rest.
    """
    peak_mhz, fastest_pct = CPU_PEAK * top_mhz["cpu_mhz"], row["cpu_mhz_pct"]
    below_peak_pct = 0.0
    if row["cpu_mhz"] < peak_mhz:
        below_peak_pct += fastest_pct
    if row["cpu_else_mhz"] < peak_mhz:
        below_peak_pct += 100.0 - fastest_pct
    return {
        "gpu_freq_mhz": row["gpu_mhz"],
        "emc_below_max_time_pct": 100.0 if row["emc_mhz"] < MET * top_mhz["emc_mhz"] else 0.0,
        "cpu_below_peak_time_pct": below_peak_pct,
    }
