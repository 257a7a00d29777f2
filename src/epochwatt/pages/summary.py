"""Summarise all runs: how many claims hold, where time and energy go, which settings none beats.

A part for what was measured and one for what was simulated; no mean and no row is of both.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from epochwatt.analysis.collect_study import join_ranks, read_epochs
from epochwatt.analysis.run_means import DATA, best_settings, run_means, workloads
from epochwatt.claims.claims_table import ClaimRow, read_claims_table
from epochwatt.claims.takeaway_counts import in_short
from epochwatt.columns import SHARED_FLAGS, TIME_PARTS, label
from epochwatt.epochs.bottleneck import find_longest_part
from epochwatt.pages.numbers import Bar, text_table
from epochwatt.published.numbers import TITLES as PAPERS
from epochwatt.study.imported import OWN_LOOP
from epochwatt.study.runs import TWIN
from epochwatt.text import HOST, THIS_MACHINE, aligned, counted, origin

# a part each: title -> backends
KINDS = {
    "Measured": ("host", "jetson"),
    "Fake boards, not measured": ("fake",),
    "Simulated, not measured": (TWIN,),
}
NOTHING = "No epoch has been measured."
NO_POWER = "No power sensor was found, so there is no energy."
WIDE_PCT = 3.0  # bound of an energy; a board's rails at 10 Hz give 2 % in 40 s
MEANS = "Means over the valid epochs after the first (1+); parts in % of the epoch."
OVER_RUNS = (
    "Ranges go from the least run to the most; parts are means of the runs, each counted once."
)
FRONT = "Pareto-optimal: no other run is both faster and takes less energy."
FASTEST = "Where there is no energy: the fastest run."
LEARNING = "Learning is not judged."
LONG_S = 36_000  # told in hours from here on
PART_LABELS = {part: label(f"{part}_s") for part in TIME_PARTS}
PARTS_PCT = f"{', '.join(PART_LABELS.values())} %"
PLACE = ("setup", "board", "data", "unit", "storage")  # told of runs that differ in it
FEW_RUNS = 20  # up to so many have a row each; results/tables/runs.csv has them all
# of the text for the terminal; the page has all of it
WIDTH, MOST_LINES = 100, 22
MOST_ROWS, MOST_NOTES = 6, 2
SETTING_WIDTH = 30  # of a run, and of its data
MORE = "more on the page: results/index.html"

Row = Mapping[str, object]  # title of a column -> its text, or bars
Run = Mapping[Any, Any]  # a row of `run_means`


class Part(NamedTuple):
    """A part of the summary: all of one kind of backend."""

    title: str
    head: list[str]
    tables: list[tuple[str, str, list[Row]]]  # title, note and rows
    fastest: list[dict[str, str]]  # for the terminal: the fastest run of each network

    def lines(self) -> list[str]:
        """Return it in short, for the terminal."""
        head = [sentence for sentence in self.head if sentence != MEANS]
        lines = [line for sentence in head for line in textwrap.wrap(sentence, WIDTH)]
        if self.fastest:
            rows = self.fastest[:MOST_ROWS]
            names = list(dict.fromkeys(name for row in rows for name in row))
            cells = [[row.get(name, "-") for name in names] for row in rows]
            lines += ["", *aligned([names, *cells])]
        if (n_more := len(self.fastest) - MOST_ROWS) > 0:
            lines.append(f"and {counted(n_more, 'networks')} more")
        return lines

    def shown(self) -> dict[str, object]:
        """Return it as the page shows it."""
        name = f"summary-{self.title.split()[0].lower()}"
        tables = [
            {"title": title, "note": note, "table": text_table(f"{name}-{n}", rows)}
            for n, (title, note, rows) in enumerate(self.tables)
        ]
        return {"title": self.title, "head": self.head, "tables": tables}


def write_summary(
    epochs: Iterable[str],
    claims: str,
    excluded: Sequence[Mapping[str, str]],
    titles: Mapping[str, str],
    path: str,
) -> None:
    """Write the summary for the terminal: at most `MOST_LINES` lines of at most `WIDTH` columns."""
    parts = summarise(read_epochs(epochs), read_claims_table(claims), titles)
    lines = [line for part in parts for line in (*part.lines(), "")]
    notes = missing_runs(excluded)
    shown = [textwrap.shorten(note, WIDTH, placeholder=" ...") for note in notes[:MOST_NOTES]]
    if (n_more := len(notes) - MOST_NOTES) > 0:
        shown.append(f"and {counted(n_more, 'runs')} more that are missing")
    if shown:
        lines += [*shown, ""]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 2], f"... {MORE}", ""]
    Path(path).write_text("\n".join(lines).rstrip() + "\n", "utf-8")


def missing_runs(excluded: Iterable[Mapping[str, str]]) -> list[str]:
    """Return a line for each run that is not available."""
    return [f"missing: {row['run']} ({row['reason']})" for row in excluded]


def summarise(
    all_epochs: pd.DataFrame, findings: Sequence[ClaimRow], titles: Mapping[str, str]
) -> list[Part]:
    """Return a part for each kind of backend that has epochs; that none was measured is said."""
    parts, all_epochs = [], join_ranks(all_epochs)
    for title, backends in KINDS.items():
        epochs = all_epochs[all_epochs.backend.isin(backends)]
        if epochs.empty:
            continue
        means = run_means(epochs)
        best_note, best = _best_rows(means, titles)
        tables = [
            ("Where an epoch goes", OVER_RUNS, _workload_rows(means, titles)),
            ("Best settings", best_note, best),
            ("Runs", "", _run_rows(means, titles) if len(means) <= FEW_RUNS else []),
        ]
        first, *others = _headline(epochs, means)
        head = [first, *in_short([f for f in findings if f.backend in backends]), *others]
        fastest = [] if TWIN in backends else _fastest_rows(means, titles)
        parts.append(Part(title, head, [table for table in tables if table[2]], fastest))
    if (all_epochs.backend == TWIN).all():
        parts.insert(0, Part("Measured", [NOTHING], [], []))
    return parts


def _headline(epochs: pd.DataFrame, means: pd.DataFrame) -> list[str]:
    """Return what was run where, and how much of it counts."""
    units = epochs.groupby("device").instance.unique()
    places = [
        THIS_MACHINE if device == HOST else f"{device}/{' '.join(sorted(instances))}"
        for device, instances in units.items()
    ]
    time_s = epochs.e2e_s.sum()
    duration = f"{time_s:.0f} s" if time_s < LONG_S else f"{time_s / 3600:.0f} h"
    lines = [
        f"{origin(epochs.backend).capitalize()} {', '.join(places)}: "
        f"{counted(epochs.run.nunique(), 'runs')}, {counted(len(epochs), 'epochs')}, "
        f"{duration} of training."
    ]
    invalid = epochs[~epochs.valid]
    if len(invalid):
        flags = sorted({flag for cell in invalid["flags"] for flag in cell.split()})
        n_epochs = counted(len(invalid), "epochs")
        lines.append(f"{n_epochs} not valid and left out of means: {', '.join(flags)}.")
    n_shared = sum(bool(SHARED_FLAGS & {*cell.split()}) for cell in epochs["flags"])
    if n_shared:
        lines.append(f"{counted(n_shared, 'epochs')} measured while others used the machine.")
    for program, runs in epochs[epochs.imported.ne("")].groupby("imported").run:
        n_runs = counted(runs.nunique(), "runs")
        is_own = program == OWN_LOOP
        lines.append(
            f"{n_runs} {'of your own loop' if is_own else f'imported from logs of {program}'}."
        )
    without = set(epochs.run) - set(means.run)
    if without:
        lines.append(
            f"Not in this table: {counted(len(without), 'runs')} without a valid epoch after the "
            "first one, which means leave out; give the study two or more `epochs`."
        )
    seldom = epochs["flags"].str.contains("power_sampling_regular") & epochs.backend.ne(TWIN)
    seldom &= epochs.power_scope.isin(["module", "board"])
    wide = epochs[seldom & epochs.energy_error_pct.gt(WIDE_PCT)]
    if not wide.empty:
        lines.append(
            f"The energy of {counted(len(wide), 'epochs')} is known to "
            f"{wide.energy_error_pct.median():.0f} % only (median of the bounds): power was read "
            "once a second, from jtop or tegrastats. From sysfs it is read ten times a second, "
            "where your user may (power_source: auto or sysfs in the device file)."
        )
    if (epochs.power_scope == "").all():
        lines.append(NO_POWER)
    return [*lines, MEANS]


def _workload_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> list[Row]:
    """Return a row per board and model: runs, time and its parts, energy and power."""
    rows = list[Row]()
    for workload in workloads(means):
        shares = {part: 100.0 * share for part, share in workload.shares.items()}
        shares = {part: share for part, share in shares.items() if not pd.isna(share)}
        words = ", ".join(f"{PART_LABELS[part]} {share:.1f} %" for part, share in shares.items())
        row: dict[str, object] = {
            **_named(workload.group, titles),
            "runs": str(workload.n_runs),
            "epoch s": _range(workload.e2e_s),
            "parts": [Bar(100.0, shares, words)] if shares else [],
            PARTS_PCT: ", ".join(f"{share:.1f}" for share in shares.values()),
        }
        ranges = {"energy Wh": workload.energy_wh, "power W": workload.power_w}
        rows.append(row | {title: _range(ends) for title, ends in ranges.items() if ends})
    return rows


def _best_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> tuple[str, list[Row]]:
    """Return what makes a setting the best, and a row for each."""
    choices = best_settings(means)
    rows = list[Row]()
    for choice in choices:
        row = _named(choice.group, titles)
        row |= {"unit": str(choice.group["instance"]), "of runs": str(choice.n_runs)}
        row |= {"best setting": choice.setting, "epoch s": _short(choice.e2e_s)}
        if choice.energy_wh is not None:
            row["energy Wh"] = _short(choice.energy_wh)
        rows.append(row)
    is_metered = {choice.energy_wh is not None for choice in choices}
    notes = [note for note, needed in ((FRONT, True), (FASTEST, False)) if needed in is_metered]
    return " ".join([*notes, LEARNING]), rows


def _fastest_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the fastest run of each network and unit, in few words."""
    unit = ["device", "instance"]
    has_units = len(means[unit].drop_duplicates()) > 1
    rows = []
    for _, group in means.groupby([*unit, "model", "task", *DATA], sort=False):
        run = group.nsmallest(1, "e2e_s").to_dict("records")[0]
        named = _named(run, titles)
        row = {"unit": f"{run['device']}/{run['instance']}"} if has_units else {}
        row |= {
            "network": named["model"],
            "data": textwrap.shorten(named["data"], SETTING_WIDTH, placeholder=" ..."),
            "runs": str(len(group)),
            "fastest": textwrap.shorten(_terse(run), SETTING_WIDTH, placeholder=" ..."),
            "epoch s": f"{run['e2e_s']:.2f}",
            **_power(run),
            PART_LABELS["stall"]: _percent(100 * run["stall_s"] / run["e2e_s"], 0),
            "bound by": _bound(run),
        }
        rows.append(row)
    return rows


def _terse(run: Run) -> str:
    """Return a run's setting with the medium last: it is what is cut off first."""
    words = list[str]()
    if pd.notna(run["num_workers"]):  # a loop of one's own may not tell it
        words.append(counted(run["num_workers"], "workers"))
    if pd.notna(run["batch_size"]):
        words.append(f"batch {run['batch_size']}")
    if run["power_mode"] != "asis":
        words.append(f"mode {run['power_mode']}")
    if run["precision"] != "fp32":
        words.append(run["precision"])
    if run["compile"] == "on":
        words.append("compiled")
    return ", ".join([*words, run["storage"]])


def _run_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> list[Row]:
    """Return a row per run; of what names board, unit and data, only what differs."""
    rows = []
    for run in means.to_dict("records"):
        shares = {part: 100 * run[f"{part}_s"] / run["e2e_s"] for part in TIME_PARTS}
        rows.append(
            {
                **_named(run, titles),
                "unit": run["instance"],
                "storage": run["storage"],
                "mode": "as is" if run["power_mode"] == "asis" else str(run["power_mode"]),
                "workers": "" if pd.isna(run["num_workers"]) else str(run["num_workers"]),
                "batch": "" if pd.isna(run["batch_size"]) else str(run["batch_size"]),
                "epochs": str(run["n_epochs"]),
                "epoch s": f"{run['e2e_s']:.2f}",
                **{PART_LABELS[part]: _percent(share, 1) for part, share in shares.items()},
                "bound by": _bound(run),
                **_power(run),
            }
        )
    same = {name for name in PLACE if len({row[name] for row in rows}) == 1}
    return [{name: cell for name, cell in row.items() if name not in same} for row in rows]


def _percent(share: float, digits: int) -> str:
    """Return a share in words; empty where it is not known."""
    return "" if pd.isna(share) else f"{share:.{digits}f} %"


def _bound(run: Run) -> str:
    return find_longest_part({str(name): cell for name, cell in run.items()}).bound_by


def _power(run: Run) -> dict[str, str]:
    values = {"energy Wh": run["energy_wh"], "power W": run["power_mean_w"]}
    return {name: _short(value) for name, value in values.items() if not pd.isna(value)}


def _named(values: Run, titles: Mapping[str, str]) -> dict[str, str]:
    setup, device, model = (str(values[name]) for name in ("setup", "device", "model"))
    scale = values["dataset_scale"]
    times = "" if scale == 1 else f" x{scale:g}"
    task = ", inference" if values.get("task") == "infer" else ""
    return {
        "setup": PAPERS.get(setup, setup),
        "board": titles.get(device, device),
        "model": f"{titles.get(model, model)}{task}",
        "data": f"{values['dataset']} {values['dataset_source']}{times}",
    }


def _range(values: tuple[float, float]) -> str:
    low, high = map(_short, values)
    return low if low == high else f"{low} to {high}"


def _short(value: float) -> str:
    """Return a number to three figures, a large one in full."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
