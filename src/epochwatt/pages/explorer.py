"""Collect the data of the explorer: a column per factor and quantity, a row per run.

Everything is a mean over the valid epochs after the first (1+), as in results/tables/runs.csv, cell
by cell. `explorer.js` draws it; what it computes itself (fronts, intervals) is tested against the
modules that compute them here.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from epochwatt import columns as cols
from epochwatt.analysis.compare import QUANTITIES
from epochwatt.analysis.run_means import SETTING, WORKLOAD
from epochwatt.board.records.shapes import Document
from epochwatt.errors import RecordError
from epochwatt.pages.timeline import LANES, clocks_of, read_epoch, timeline
from epochwatt.study.runs import TWIN

COMPARED = {**QUANTITIES, "power": "power_mean_w"}
MEANS = tuple(c for c in cols.STATISTIC_COLUMNS if c not in ("loss", "host_wait_s"))
SIMULATED_EPOCHS = 48  # at most so many simulated runs show an epoch
# what tells runs apart; each is offered as colour, shape and filter where it differs
OFFERED = ("kind", *(n for n in cols.FACTOR_NAMES if n not in ("backend", "seed")))
OFFERED += ("seed", "power_scope")
# of which the page says more than the label: those of no table
SAYS = {
    "kind": "measured, imported, simulated, or from a fake board",
    "n_epochs": "valid epochs after the first",
    "n_invalid": "epochs after the first that are not valid",
}
SNIPPET = "window.vegaEmbed = vegaEmbed;"
OWNER = "University of Washington Interactive Data Lab"


def explorer(
    epochs: pd.DataFrame,
    runs: pd.DataFrame,
    records: Mapping[str, str],
    titles: Mapping[str, str],
    palette: Mapping[str, str],
    specs: Iterable[str] = (),
) -> Document:
    """Return what the explorer shows, ready for JSON.

    `epochs`: of all runs, as `read_epochs` gives them
    `runs`: results/tables/runs.csv
    `records`: run -> folder with the records of its epochs; one that is gone is left out
    `titles`: model or device -> name for people
    `palette`: thing -> colour
    `specs`: interactive specs of figures, results/figures/{backend}/{panel}.vl.json

    Returns `runs`, columns of all runs; `compared`, for each quantity n, mean and variance of each
    run's epochs 1+; `epochs` and `specs`, packed by `packed`; `columns`, label, unit and meaning of
    each column; `factors`, `clocks`, `lanes`, names of what is offered; `settings`, factor -> words
    with {} for its value
    """
    by_run = {str(run): rows for run, rows in epochs.groupby("run", sort=False)}
    table = run_table(epochs, runs)
    clocks = [
        clocks_of(records.get(run, ""), int(rows.epoch.iloc[0])) for run, rows in by_run.items()
    ]
    for name in cols.CLOCKS:
        table[name] = [mode.get(name) for mode in clocks]
    lines = {run: timelines(by_run[run], records.get(run, "")) for run in epochs_shown(table)}
    later = epochs[epochs.valid & (epochs.epoch >= 1)].groupby("run")
    return {
        "runs": {str(name): list(map(plain, cells)) for name, cells in table.items()},
        "columns": {str(name): described(str(name)) for name in table},
        "factors": OFFERED,
        "clocks": cols.CLOCKS,
        "lanes": LANES,
        "settings": SETTING,
        "workload": [*WORKLOAD, "instance"],
        "compared": {part: spread(later[name], by_run) for part, name in COMPARED.items()},
        "quantities": COMPARED,
        "epochs": {run: packed(line) for run, line in lines.items() if line},
        "titles": dict(titles),
        "palette": dict(palette),
        "specs": {
            f"{Path(path).parent.name}-{Path(path).name.removesuffix('.vl.json')}": packed(
                json.loads(Path(path).read_text("utf-8"))
            )
            for path in specs
        },
    }


def run_table(epochs: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each run, in the order of the epochs.

    Returns a frame: `run`, `kind`, the factors, `power_scope`, `n_epochs`, `n_invalid`, `MEANS`
    and `stall_pct`, mean stall of mean E2E; scopes of several epochs are joined by `+`
    """
    first = epochs.drop_duplicates("run").set_index("run")
    means = runs[runs.epoch_set.eq("1+") & runs.statistic.eq("mean")]
    means = means.set_index("run").reindex(first.index)
    scopes = epochs[epochs.valid & (epochs.epoch >= 1)].groupby("run").power_scope
    joined = scopes.agg(lambda cells: "+".join(sorted({*cells} - {""})))
    table = first[list(cols.FACTOR_NAMES)].assign(power_scope=joined).fillna({"power_scope": ""})
    table.insert(0, "kind", list(map(kind_of, first.backend, first.imported)))
    table = table.join(means[["n_epochs", "n_invalid", *MEANS]])
    return table.assign(stall_pct=100.0 * table.stall_s / table.e2e_s).reset_index()


def kind_of(backend: str, imported: str) -> str:
    """Return what kind of data a run's are; data of two kinds are never one mean or one front."""
    if backend in (TWIN, "fake"):
        return {TWIN: "simulated"}.get(backend, backend)
    return "imported" if imported else "measured"


def spread(later: Any, runs: Iterable[str]) -> dict[str, list[float | None]]:
    """Return number, mean and variance of each run's valid epochs after the first.

    That is all that the interval of `analysis.compare` takes from the epochs.

    `later`: a quantity of these epochs, grouped by run
    """
    numbers = later.agg(n="count", mean="mean", variance="var").reindex(list(runs))
    numbers["n"] = numbers["n"].fillna(0).astype(int)
    return {str(name): list(map(plain, cells)) for name, cells in numbers.items()}


def epochs_shown(runs: pd.DataFrame) -> list[str]:
    """Return the runs of which an epoch is shown: all but the simulated, and some of these.

    Of the simulated one of each board, network, number of workers, medium and setup comes first.
    """
    twin = runs[runs.kind == "simulated"]
    is_again = twin.duplicated(["setup", "device", "model", "num_workers", "storage"])
    chosen = [*twin[~is_again].run, *twin[is_again].run]
    return [*runs[runs.kind != "simulated"].run, *chosen[:SIMULATED_EPOCHS]]


def timelines(of_run: pd.DataFrame, folder: str) -> list[Document]:
    """Return the last valid epoch of a run, after the first one where something was measured."""
    valid = of_run[of_run.valid].epoch.tolist()
    chosen = sorted({*valid[:1], *valid[-1:]})
    if (of_run.backend == TWIN).all():
        chosen = chosen[-1:]
    lines = []
    for epoch in chosen:
        try:
            lines.append(timeline(*read_epoch(folder, int(epoch))))
        except (RecordError, OSError):  # the tables stay when records are moved away
            continue
    return lines


def described(name: str) -> dict[str, str]:
    """Return label, unit and meaning of a column."""
    column = cols.COLUMNS.get(name)
    says = SAYS.get(name) or (column.description if column else "")
    label = "data" if name == "kind" else cols.label(name)
    return {"label": label, "unit": cols.unit(name), "says": says}


def packed(value: Any) -> str:
    """Return a value as base64 of gzip of JSON: the browser unpacks it when it is looked at."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode("ascii")


def plain(value: Any) -> Any:
    """Return a cell for JSON: None where it is missing, numbers in full."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


def vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that asks for nothing from a network.

    It sets the name `vegaEmbed` and no other. Putting it together takes two seconds.
    """
    import vl_convert  # here: 88 MB, and only a page needs it

    vega, lite = vl_convert.get_vega_version(), vl_convert.get_vegalite_versions()[-1]
    licence = f"/*! Vega {vega}, Vega-Lite {lite}, Vega-Embed: BSD-3-Clause, {OWNER} */"
    # in a function: as a script it would declare hundreds of names of one letter for the whole page
    text = f"{licence}\n(() => {{{vl_convert.javascript_bundle(SNIPPET)}}})();\n"
    if "</script" in text.lower():
        raise ValueError("Vega's script cannot stand in a page: it ends a script element")
    return text
