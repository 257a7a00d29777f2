"""One page: what was trained and where the time went."""

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from epochwatt.analysis.tables import epoch_sets, read_epochs
from epochwatt.study.runs import TWIN
from epochwatt.text import aligned, origin

HEADER = (
    "model",
    "mode",
    "workers",
    "batch",
    "epochs",
    "E2E s",
    "stall",
    "compute",
    "overhead",
    "bound by",
    "energy Wh",
    "power W",
)


def write_summary(
    paths: Iterable[str],
    excluded: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    text: str,
    page: str,
) -> None:
    """Write the summary as text (for the terminal) and as a page (for the report).

    Parameters
    ----------
    paths : one `epochs.csv` per run
    excluded : `run` and `reason` of rows that cannot be had
    titles : model -> name for people
    text, page : where to write
    """
    epochs = read_epochs(paths)
    simulated = epochs[epochs.backend == TWIN]
    measured = epochs[epochs.backend != TWIN]
    head = headline(measured) + simulated_lines(simulated)
    rows = [run_row(r, titles) for _, r in measured.groupby("run", sort=False)]
    notes = [f"missing: {row['run']} ({row['reason']})" for row in excluded]
    Path(text).write_text("\n".join([*head, "", *aligned([HEADER, *rows]), *notes, ""]), "utf-8")
    Path(page).write_text(as_page(head, rows, notes), "utf-8")


def headline(epochs: pd.DataFrame) -> list[str]:
    """Return what was measured where, and how much of it counts."""
    if epochs.empty:
        return ["No epoch has been measured."]
    places = sorted(set(epochs.device + "/" + epochs.instance))
    lines = [
        f"{origin(epochs.backend).capitalize()} {', '.join(places)}: "
        f"{epochs.run.nunique()} runs, {len(epochs)} epochs, "
        f"{epochs.e2e_s.sum():.0f} s of training."
    ]
    invalid = epochs[~epochs.valid]
    if len(invalid):
        flags = sorted({flag for cell in invalid["flags"] for flag in cell.split()})
        lines.append(
            f"{len(invalid)} epochs are not valid and left out of means: {', '.join(flags)}."
        )
    imported = epochs[epochs.timing_method == "imported_cuda_events"]
    if len(imported):
        n_runs = imported.run.nunique()
        lines.append(f"{n_runs} of the runs are imported from logs of the 2023 scripts.")
    if (epochs.power_scope == "").all():
        lines.append("No power sensor was found: there is no energy, and its columns are empty.")
    lines.append("Means over the valid epochs after the first (1+); parts in % of E2E.")
    return lines


def simulated_lines(epochs: pd.DataFrame) -> list[str]:
    """Return what was simulated, in a line: its rows are many, and no measurement."""
    if epochs.empty:
        return []
    return [
        f"{origin(epochs.backend).capitalize()} {', '.join(sorted(set(epochs.device)))}: "
        f"{epochs.run.nunique()} runs, {len(epochs)} epochs, {epochs.e2e_s.sum():.0f} s of "
        f"training, {(~epochs.valid).sum()} epochs not valid; rows of backend {TWIN} in "
        "results/tables/."
    ]


def run_row(of_run: pd.DataFrame, titles: Mapping[str, str]) -> tuple[str, ...]:
    """Return one run's cells, in the order of `HEADER`."""
    first = of_run.iloc[0]
    place = (titles.get(first.model, first.model), str(first.power_mode))
    cells = (*place, str(first.num_workers), str(first.batch_size))
    later = epoch_sets(of_run)["1+"]
    valid = later[later.valid]
    if valid.empty:
        return (*cells, "0", "-", "-", "-", "-", "no valid epoch after the first", "-", "-")
    mean = valid[["e2e_s", "stall_s", "compute_s", "overhead_s", "wait_s"]].mean()
    shares = [f"{100 * mean[p] / mean.e2e_s:.1f} %" for p in ("stall_s", "compute_s", "overhead_s")]
    energy_wh, power_w = valid[["energy_trapezoid_wh", "power_mean_w"]].mean()
    told = (str(len(valid)), f"{mean.e2e_s:.2f}", *shares, verdict(mean.to_dict()))
    return (*cells, *told, _known(energy_wh), _known(power_w))


def _known(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.3g}"


def verdict(mean: Mapping[Any, float]) -> str:
    """Name the longest part of the epoch: what would have to shrink first."""
    parts = {"input": "stall_s", "compute": "compute_s", "overhead": "overhead_s"}
    return max(parts, key=lambda name: mean[parts[name]])


def as_page(head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Return the summary as a self-contained page."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = [f"<p>{html.escape(text)}</p>" for text in head]
    body += ["<table>", line(HEADER, "th"), *(line(row, "td") for row in rows), "</table>"]
    body += [f"<p>{html.escape(text)}</p>" for text in notes]
    style = (
        "body{font-family:sans-serif;margin:2em}td,th{padding:.3em .8em;text-align:left;"
        "border-bottom:1px solid #ddd}"
    )
    return (
        "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>epochwatt: summary</title>"
        f"<style>{style}</style><body><h1>Where the epochs went</h1>{''.join(body)}</body></html>\n"
    )
