"""One page: how many claims hold, where time and energy go, which settings none beats.

A section for what was measured and one for what was simulated; no mean and no row is of both.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from epochwatt.analysis.collect_study import read_epochs
from epochwatt.analysis.summary import DATA, PARTS, best_settings, run_means, workloads
from epochwatt.claims.claims_table import ClaimRow, read_claims_table
from epochwatt.claims.summary import in_short
from epochwatt.columns import SHARED_FLAGS
from epochwatt.epochs.bottleneck import find_longest_part
from epochwatt.published.numbers import TITLES as PAPERS
from epochwatt.study.runs import TWIN
from epochwatt.templates import render
from epochwatt.text import aligned, counted, origin

# a section each: title -> backends
SECTIONS = {
    "Measured": ("host", "jetson"),
    "Fake boards, not measured": ("fake",),
    "Simulated, not measured": (TWIN,),
}
NOTHING = "No epoch has been measured."
NO_POWER = "No power sensor was found, so there is no energy."
WIDE_PCT = 3.0  # bound of an energy; a board's rails at 10 Hz give 2 % in 40 s
MEANS = "Means over the valid epochs after the first (1+); parts in % of E2E."
OVER_RUNS = (
    "Ranges go from the least run to the most; parts are means of the runs, each counted once."
)
FRONT = "Pareto-optimal: no other run is both faster and takes less energy."
FASTEST = "Where there is no energy: the fastest run."
LEARNING = "Learning is not judged."
LONG_S = 36_000  # told in hours from here on
PLACE = ("setup", "board", "data", "unit", "storage")  # told of runs that differ in it
FEW_RUNS = 20  # up to so many have a row each; results/tables/runs.csv has them all
# of the text for the terminal; the page has all of it
WIDTH, MOST_LINES = 100, 22
MOST_ROWS, MOST_NOTES = 6, 2
SETTING_WIDTH = 32
MORE = "more on the pages: results/index.html, results/summary.html"

Row = dict[str, Any]  # texts, and shares of an epoch, which are drawn on the page alone


class Table(NamedTuple):
    """Rows with their title and note."""

    title: str
    note: str
    rows: list[Row]

    @property
    def is_drawn(self) -> bool:
        """Whether the page draws shares."""
        return any(isinstance(cell, Mapping) for cell in self.rows[0].values())


class Section(NamedTuple):
    """What one kind of backend says."""

    title: str
    head: list[str]
    tables: list[Table]
    fastest: list[Row]  # for the terminal: the fastest run of each network

    def lines(self) -> list[str]:
        """Return it in short, for the terminal."""
        head = [sentence for sentence in self.head if sentence != MEANS]
        lines = [line for sentence in head for line in textwrap.wrap(sentence, WIDTH)]
        if self.fastest:
            lines += ["", *_aligned(self.fastest[:MOST_ROWS])]
            n_more = len(self.fastest) - MOST_ROWS
            lines += [f"and {counted(n_more, 'networks')} more"] if n_more > 0 else []
        return lines


def write_summary(
    epochs: Iterable[str],
    claims: str,
    excluded: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    palette: Mapping[str, str],
    text: str,
    page: str,
) -> None:
    """Write the summary as text (for the terminal) and as a page (for the report).

    Parameters
    ----------
    epochs : one `epochs.csv` per run
    claims : claims.csv
    excluded : `run` and `reason` of runs that are not available
    titles : model or device -> name for people
    palette : colours of the parts of an epoch, among others
    text, page : where to write
    """
    all_epochs, findings = read_epochs(epochs), read_claims_table(claims)
    colours = {part: palette[part] for part in PARTS}
    sections = [
        section(title, selected, [f for f in findings if f.backend in backends], titles)
        for title, backends in SECTIONS.items()
        if len(selected := all_epochs[all_epochs.backend.isin(backends)])
    ]
    if (all_epochs.backend == TWIN).all():
        sections.insert(0, Section("Measured", [NOTHING], [], []))
    notes = [f"missing: {row['run']} ({row['reason']})" for row in excluded]
    Path(text).write_text("\n".join(in_short_lines(sections, notes)).rstrip() + "\n", "utf-8")
    html = render("summary.html", title="Summary", sections=sections, colours=colours, notes=notes)
    Path(page).write_text(html, "utf-8")


def in_short_lines(sections: Sequence[Section], notes: Sequence[str]) -> list[str]:
    """Return the summary for the terminal: at most `MOST_LINES` lines of at most `WIDTH` columns.

    Parameters
    ----------
    sections, notes : as the page shows them
    """
    lines = [line for part in sections for line in (*part.lines(), "")]
    lines_of_notes = [
        textwrap.shorten(note, WIDTH, placeholder=" ...") for note in notes[:MOST_NOTES]
    ]
    n_more = len(notes) - MOST_NOTES
    lines_of_notes += [f"and {counted(n_more, 'runs')} more that are missing"] if n_more > 0 else []
    lines += [*lines_of_notes, ""] if lines_of_notes else []
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 2], f"... {MORE}", ""]
    return lines


def section(
    title: str,
    epochs: pd.DataFrame,
    findings: Sequence[ClaimRow],
    titles: Mapping[str, str],
) -> Section:
    """Return what the runs of one kind of backend say.

    Parameters
    ----------
    epochs : theirs, as `read_epochs` gives them
    findings : about their claims
    titles : as `write_summary` takes them
    """
    means = run_means(epochs)
    tables = [
        Table("Where an epoch goes", OVER_RUNS, place_rows(means, titles)),
        Table("Best settings", *best_rows(means, titles)),
    ]
    if len(means) <= FEW_RUNS:
        tables.append(Table("Runs", "", run_rows(means, titles)))
    first, *others = headline(epochs)
    head = [first, *in_short(findings), *others]
    fastest = [] if (epochs.backend == TWIN).all() else fastest_rows(means, titles)
    return Section(title, head, [table for table in tables if table.rows], fastest)


def headline(epochs: pd.DataFrame) -> list[str]:
    """Return what was run where, and how much of it counts."""
    units = epochs.groupby("device").instance.unique()
    places = [f"{device}/{' '.join(sorted(instances))}" for device, instances in units.items()]
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
        lines.append(f"{counted(runs.nunique(), 'runs')} imported from logs of {program}.")
    without = set(epochs.run) - set(run_means(epochs).run)
    if without:
        lines.append(
            f"Not in this table: {counted(len(without), 'runs')} without a valid epoch after the "
            "first one, which means leave out; give the study two or more `epochs`."
        )
    lines += _wide(epochs)
    return [*lines, *([NO_POWER] if (epochs.power_scope == "").all() else []), MEANS]


def _wide(epochs: pd.DataFrame) -> list[str]:
    """Return what to say where energies are uncertain because a board's service was read."""
    seldom = epochs["flags"].str.contains("power_sampling_regular") & epochs.backend.ne(TWIN)
    wide = epochs[seldom & epochs.power_scope.eq("module") & epochs.energy_error_pct.gt(WIDE_PCT)]
    if wide.empty:
        return []
    return [
        f"The energy of {counted(len(wide), 'epochs')} is known to "
        f"{wide.energy_error_pct.median():.0f} % only (median of the bounds): power was read once "
        "a second, from jtop or tegrastats. From sysfs it is read ten times a second, where your "
        "user may (power_source: auto or sysfs in the device file)."
    ]


def place_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> list[Row]:
    """Return a row per board and model: runs, time and its parts, energy and power."""
    return [
        {
            **_named(workload.group, titles),
            "runs": str(workload.n_runs),
            "E2E s": _range(workload.e2e_s),
            "parts": workload.shares,
            f"{', '.join(PARTS)} %": ", ".join(f"{100 * workload.shares[p]:.1f}" for p in PARTS),
            **({"energy Wh": _range(workload.energy_wh)} if workload.energy_wh else {}),
            **({"power W": _range(workload.power_w)} if workload.power_w else {}),
        }
        for workload in workloads(means)
    ]


def best_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> tuple[str, list[Row]]:
    """Return what makes a setting the best, and a row for each; what it is of is named once."""
    choices, rows, above = best_settings(means), [], Row()
    for choice in choices:
        named = _named(choice.group, titles)
        named |= {"unit": str(choice.group["instance"]), "of runs": str(choice.n_runs)}
        numbers = {"best setting": choice.setting, "E2E s": _short(choice.e2e_s)}
        numbers |= {} if choice.energy_wh is None else {"energy Wh": _short(choice.energy_wh)}
        rows.append((dict.fromkeys(named, "") if named == above else named) | numbers)
        above = named
    metered = {choice.energy_wh is not None for choice in choices}
    notes = [
        note for note, is_metered in ((FRONT, True), (FASTEST, False)) if is_metered in metered
    ]
    return " ".join([*notes, LEARNING]), rows


def fastest_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> list[Row]:
    """Return the fastest run of each network and unit, in few words."""
    places = {(run["device"], run["instance"]) for run in means.to_dict("records")}
    rows = []
    for _, group in means.groupby(["device", "instance", "model", "task", *DATA], sort=False):
        run: Row = group.nsmallest(1, "e2e_s").to_dict("records")[0]  # type: ignore[assignment]
        named = _named(run, titles)
        shares = {part: run[f"{part}_s"] / run["e2e_s"] for part in PARTS}
        power = {"energy Wh": run["energy_wh"], "power W": run["power_mean_w"]}
        rows.append(
            {
                **({"unit": f"{run['device']}/{run['instance']}"} if len(places) > 1 else {}),
                "network": named["model"],
                "data": named["data"],
                "runs": str(len(group)),
                "fastest": textwrap.shorten(_setting(run), SETTING_WIDTH, placeholder=" ..."),
                "E2E s": f"{run['e2e_s']:.2f}",
                **{name: _short(value) for name, value in power.items() if not pd.isna(value)},
                "stall": f"{100 * shares['stall']:.0f} %",
                "bound by": find_longest_part(run).bound_by,
            }
        )
    return rows


def _setting(run: Row) -> str:
    words = [counted(run["num_workers"], "workers"), f"batch {run['batch_size']}"]
    mode = [] if run["power_mode"] == "asis" else [f"mode {run['power_mode']}"]
    arithmetic = [] if run["precision"] == "fp32" else [run["precision"]]
    arithmetic += ["compiled"] if run["compile"] == "on" else []
    return ", ".join([*words, *mode, *arithmetic, run["storage"]])


def run_rows(means: pd.DataFrame, titles: Mapping[str, str]) -> list[Row]:
    """Return a row per run; of what names board, unit and data, only what differs."""
    rows = []
    for run in means.to_dict("records"):
        shares = {part: run[f"{part}_s"] / run["e2e_s"] for part in PARTS}
        power = {"energy Wh": run["energy_wh"], "power W": run["power_mean_w"]}
        rows.append(
            {
                **_named(run, titles),
                "unit": run["instance"],
                "storage": run["storage"],
                "mode": str(run["power_mode"]),
                "workers": str(run["num_workers"]),
                "batch": str(run["batch_size"]),
                "epochs": str(run["n_epochs"]),
                "E2E s": f"{run['e2e_s']:.2f}",
                **{part: f"{100 * share:.1f} %" for part, share in shares.items()},
                "bound by": find_longest_part(run).bound_by,
                **{name: _short(value) for name, value in power.items() if not pd.isna(value)},
            }
        )
    same = {name for name in PLACE if len({row[name] for row in rows}) == 1}
    return [{name: cell for name, cell in row.items() if name not in same} for row in rows]


def _named(values: Mapping[Any, Any], titles: Mapping[str, str]) -> Row:
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


def _aligned(rows: Sequence[Row]) -> list[str]:
    """Return rows for the terminal, without what is drawn; what is not there is a dash."""
    drawn = {name for row in rows for name, cell in row.items() if isinstance(cell, Mapping)}
    names = [name for name in dict.fromkeys(n for row in rows for n in row) if name not in drawn]
    return aligned([names, *([row.get(name, "-") for name in names] for row in rows)])
