"""The common tables: exports for people and other tools. Nothing in the DAG depends on them."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.columns import (
    ENERGY_COLUMNS,
    EPOCH_COLUMNS,
    FACTOR_NAMES,
    FACTORS,
    RUN_EPOCH_COLUMNS,
    RUNS_COLUMNS,
    STATISTIC_COLUMNS,
    current_names,
    names,
)
from epochwatt.epochs.table import DEFAULTS, REMAKE
from epochwatt.errors import RecordError
from epochwatt.tables import write_frame
from epochwatt.text import ORIGINS

_DTYPES = {"str": "string", "int": "Int64", "float": "float64", "bool": "boolean"}
_COLUMNS = {f.name: _DTYPES[f.kind] for f in RUN_EPOCH_COLUMNS}
_COLUMNS["valid"] = "bool"  # no epoch's cell is empty

# What every table of epochs has; other columns may be younger.
_NEEDED = (
    *("run", *(f.name for f in FACTORS if f.name not in DEFAULTS)),
    *("epoch", "e2e_s", "wait_s", "copy_s", "stall_s", "compute_s"),
    *(f.name for f in EPOCH_COLUMNS if f.kind == "bool"),
    "flags",
)
RANK = r"\.rank[1-9]\d*$"  # what the id of a further process of one training ends with
# columns that are summed over the machines of a training, and bounds of two of them
_SUMS = [column.name for column in ENERGY_COLUMNS if column.unit in ("Wh", "J", "W")]
_BOUNDS = {"energy_wh": "energy_error_pct", "stall_energy_j": "stall_energy_error_pct"}
_TIMES = ("e2e_s", "wait_s", "copy_s", "stall_s", "compute_s", "overhead_s")
# pandas only warns of cells that it leaves out, and of numbers that it cannot hold
_WARNINGS = (pd.errors.ParserWarning, RuntimeWarning)
_DAMAGED = (ValueError, TypeError, OverflowError, *_WARNINGS)  # pandas' own errors among them


def read_epochs(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read the `epochs.csv` of several runs into one table, one row per run and epoch.

    Columns are `RUN_EPOCH_COLUMNS`; empty text is "", an empty number NA or NaN. Adjacent tables of
    one header are parsed together, six times as fast as one by one.

    Raises RecordError for a file that is damaged.
    """
    frames = []
    for header, texts in groupby(map(_read_text, paths), key=lambda text: text.header):
        same_header = list(texts)
        try:
            frames.append(_parsed(header + "".join(text.body for text in same_header)))
        except _DAMAGED:  # one by one, to name the damaged file
            for text in same_header:
                with _naming_file(text.path):
                    frames.append(_parsed(header + text.body))
    if not frames:
        frames = [pd.DataFrame({name: pd.Series(dtype=d) for name, d in _COLUMNS.items()})]
    table = pd.concat(frames, ignore_index=True)
    text_columns = [name for name, dtype in _COLUMNS.items() if dtype == "string"]
    table[text_columns] = table[text_columns].fillna("")
    return table


@contextmanager
def _naming_file(path: str | Path) -> Iterator[None]:
    """Turn an error of reading a table (`_DAMAGED`) into a RecordError that names the file."""
    try:
        yield
    except _DAMAGED as error:
        raise RecordError(f"{path} is not a table of epochs: {error}", do=REMAKE) from error


class _Text(NamedTuple):
    path: str | Path
    header: str  # both with the ends of their lines
    body: str


def _read_text(path: str | Path) -> _Text:
    """Read a table as text; RecordError: a quotation mark without its counterpart."""
    with _naming_file(path):
        text = Path(path).read_text("utf-8")
        if text.count('"') % 2:  # it would go on in the next file
            raise ValueError("a quotation mark without its counterpart")
    header, _, body = text.partition("\n")
    if body and not body.endswith("\n"):
        body += "\n"
    return _Text(path, f"{header}\n", body)


def _parsed(text: str) -> pd.DataFrame:
    """Return a table of epochs with today's columns, younger ones filled with their defaults.

    Raises one of `_DAMAGED`: it has no such columns, an unknown backend, or a wrong cell.
    """
    with warnings.catch_warnings():
        for kind in _WARNINGS:
            warnings.simplefilter("error", kind)
        # a network may be called NA
        table = pd.read_csv(
            StringIO(text), dtype=dict(_COLUMNS), index_col=False,
            keep_default_na=False, na_values=[""],
        )  # fmt: skip
    table.columns = pd.Index(current_names(table.columns))
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise ValueError(f"it has no column {missing[0]}")
    if unknown := sorted(set(table.backend.fillna("")) - set(ORIGINS)):
        raise ValueError(f"it has a backend {unknown[0]!r}")
    for name, dtype in _COLUMNS.items():
        if name not in table:
            table[name] = pd.Series(DEFAULTS.get(name), index=table.index, dtype=dtype)
    return table


def epoch_sets(epochs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each epoch set: `0` the first epoch, `1+` those after it, `all`."""
    return {"0": epochs[epochs.epoch == 0], "1+": epochs[epochs.epoch >= 1], "all": epochs}


def join_ranks(epochs: pd.DataFrame) -> pd.DataFrame:
    """Join the rows of the processes (ranks) of one training into one row per epoch.

    Its run is that of the first process. Times are means over the processes. Each machine's power
    is measured by its first process: energies and power are sums over machines, NaN if one lacks.
    """
    training = epochs.run.str.replace(RANK, "", regex=True)  # its id
    is_distributed = training.isin(training[training != epochs.run])
    if not is_distributed.any():
        return epochs
    joined = epochs[~is_distributed]
    for _, rows in epochs[is_distributed].groupby([training, "epoch"], sort=False):
        row = rows.sort_values("run").iloc[:1].copy()
        row[[*_TIMES]] = rows[[*_TIMES]].mean().to_numpy()
        flags = set(" ".join(rows["flags"]).split()) - {"power_elsewhere"}
        row["run"], row["flags"] = training[row.index], " ".join(sorted(flags))
        row["valid"] = bool(rows.valid.all())
        with_power = rows[~rows["flags"].str.contains("power_elsewhere")]
        sums = with_power[_SUMS].sum(skipna=False)
        if with_power.instance.nunique() < rows.instance.nunique():
            sums[:] = np.nan
        row[_SUMS] = sums.to_numpy()
        for energy, error_pct in _BOUNDS.items():
            weighted_errors = with_power[energy] * with_power[error_pct]
            with np.errstate(invalid="ignore"):  # no energy, as of no stalls
                row[error_pct] = np.divide(weighted_errors.sum(skipna=False), sums[energy])
        joined = pd.concat([joined, row], ignore_index=True)
    return joined.sort_values(["run", "epoch"], ignore_index=True)


def counted_epochs(epochs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that count in a run's means: valid epochs after the first."""
    return epochs[(epochs.epoch >= 1) & epochs.valid]


def summarise_runs(epochs: pd.DataFrame, studies: Mapping[str, str]) -> pd.DataFrame:
    """Return one row per run, epoch set and statistic (columns `RUNS_COLUMNS`).

    Epochs that are not valid are left out of the statistics and counted in `n_invalid`; a set
    without a valid epoch keeps its row, with empty values.

    `studies`: run -> names of its studies, separated by spaces
    """
    rows = []
    factors = list(FACTOR_NAMES)
    numbers = epochs[list(STATISTIC_COLUMNS)].to_numpy(float)
    for run, run_epochs in epochs.reset_index(drop=True).groupby("run", sort=False):
        settings = run_epochs.iloc[0][factors].to_dict()
        for name, members in epoch_sets(run_epochs).items():
            # (valid epochs, columns), in the order of memory in which sums go down columns
            valid = np.asfortranarray(numbers[members.index[members.valid]])
            flags = sorted({flag for cell in members["flags"] for flag in cell.split()})
            rows += [
                {
                    "studies": studies.get(str(run), ""),
                    "run": run,
                    **settings,
                    "epoch_set": name,
                    "statistic": statistic,
                    "n_epochs": len(valid),
                    "n_invalid": len(members) - len(valid),
                    **dict(zip(STATISTIC_COLUMNS, statistic_of(valid), strict=True)),
                    "flags": " ".join(flags),
                }
                for statistic, statistic_of in (("mean", _means), ("median", _medians))
            ]
    # nullable, as a user's own loop may leave them open; prefetch has always had decimals here
    integers = [f.name for f in FACTORS if f.kind == "int" and f.name != "prefetch_factor"]
    table = pd.DataFrame(rows, columns=list(names(RUNS_COLUMNS)))
    return table.astype(dict.fromkeys(integers, "Int64"))


def _means(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each column, shape (n, columns) -> (columns,); NaN: it has no number."""
    n = (~np.isnan(numbers)).sum(axis=0)
    return np.divide(np.nansum(numbers, axis=0), n, out=np.full(n.shape, np.nan), where=n > 0)


def _medians(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each column, shape (n, columns) -> (columns,); NaN: it has no number.

    Of the n numbers of a column, in order, it is the mean of those at (n - 1) // 2 and n // 2.
    """
    n = (~np.isnan(numbers)).sum(axis=0)
    middles, columns = np.array([np.maximum(n - 1, 0) // 2, n // 2]), np.arange(len(n))
    ordered = np.vstack([np.sort(numbers, axis=0), np.full(len(n), np.nan)])  # NaN stand last
    return np.where(n > 0, ordered[middles, columns].mean(axis=0), np.nan)


def export_tables(
    paths: Iterable[str], studies: Mapping[str, str], epochs_csv: str, runs_csv: str
) -> None:
    """Write results/tables/epochs.csv and runs.csv from the `epochs.csv` of all runs.

    `paths`: one `epochs.csv` per run; `studies`: run id -> names of its studies, separated by
    spaces
    """
    epochs = read_epochs(paths)
    write_frame(runs_csv, "the table of runs", summarise_runs(epochs, studies))
    epochs.insert(0, "studies", epochs.run.map(lambda run: studies.get(run, "")))
    write_frame(epochs_csv, "the table of epochs", epochs)
