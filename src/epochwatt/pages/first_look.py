"""Show a folder of own runs without a checkout: its page, and the same as text.

The runs are those of `EpochMonitor` and those that were imported. Each has its epochs over time,
how they split, their energy with its bound, power over the last one, flags in words, and advice.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from epochwatt import columns
from epochwatt.analysis.advice import Advice, advise
from epochwatt.analysis.collect_study import counted_epochs, join_ranks
from epochwatt.analysis.own_runs import read_own_epochs
from epochwatt.analysis.run_means import SETTING
from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.epochs.bottleneck import PART_COLUMNS as PARTS
from epochwatt.errors import RecordError
from epochwatt.pages.numbers import Bar, Column, link, shown, text_table
from epochwatt.pages.timeline import read_epoch, timeline
from epochwatt.study.imported import IMPORTED, find_own_runs
from epochwatt.study.runs import Run
from epochwatt.templates import render
from epochwatt.text import POWER_SENSORS, aligned, counted

Cell = TypeVar("Cell")
PAGE = "page.html"
WHEN = "%Y-%m-%d %H:%M:%S"
FEW = 20  # epochs up to which a table needs no window of its own
# columns that add up to an epoch, where its logs have waiting and copying in one
JOINED = ("stall_s", "compute_s", "overhead_s")
NUMBERS = ("e2e_s", "stall_s", *PARTS.values(), "power_mean_w")
EFFECTS = {
    columns.INVALIDATES: "; left out of means",
    columns.VOIDS_ENERGY: "; no energy",
    columns.INFORMS: "",
}
WIDTH, HEIGHT = 600, 150  # of the drawing of power, in its own units


@dataclass(frozen=True)
class OwnRun:
    """A run as it is shown."""

    run: str
    title: str  # its network, or the name that it was given
    setting: str
    facts: list[str]  # number of epochs and when, means, what limits the reading
    overview: dict[str, str]  # its row of the overview: title of a column -> text
    rows: list[dict[str, object]]  # an epoch each: title of a column -> its text, or bars
    key: dict[str, str]  # parts of an epoch: class of the style sheet -> words
    flags: dict[str, str]  # of any of its epochs -> meaning
    power: Document | None  # over the last epoch; None: it was not measured
    advice: Advice

    @property
    def name(self) -> str:
        """Return its id with its setting."""
        return f"{self.run} ({self.setting})" if self.setting else self.run

    def lines(self) -> list[str]:
        """Return it for the terminal."""
        names = [name for name in self.rows[0] if name != "parts"]
        table = aligned([names, *([str(row[name]) for name in names] for row in self.rows)])
        flags = [f"{name}: {meaning}" for name, meaning in self.flags.items()]
        return [
            self.name,
            *self.facts,
            "",
            *table,
            "",
            self.advice.advice,
            self.advice.reason,
            *flags,
        ]


def read_own_runs(folder: Path) -> list[OwnRun]:
    """Return the runs of a folder, in the order of their ids.

    Raises RecordError: there are none, or a record is damaged.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        do = "name the folder with the records of EpochMonitor, `measured` where it was not told"
        raise RecordError(f"{folder} is no folder", found=found, do=do)
    home, runs = find_own_runs(folder)
    if not runs:
        n = sum(path.is_dir() and path.name[0] != "." for path in home.iterdir())
        raise RecordError(
            f"{folder} holds no run of EpochMonitor with a finished epoch",
            found=f"{counted(n, 'folders')} without source.json and an epoch" if n else "nothing",
            do="name the folder that holds the runs' folders",
        )
    epochs = join_ranks(read_own_epochs(home, runs.values()))
    settings = {name: run.factors.get("settings", {}) for name, run in runs.items()}
    advice = {row.run: row for row in advise(epochs, settings)}
    own = []
    for name, rows in epochs.groupby("run", sort=False):
        run = runs.get(str(name)) or runs[f"{name}.rank1"]
        n_ranks = sum(other.startswith(f"{name}.rank") for other in runs) + (name in runs)
        own.append(_own_run(home, replace(run, id=str(name)), n_ranks, rows, advice[str(name)]))
    by_id = {run.run: run for run in own}
    for slower in own:
        if faster := by_id.get(slower.advice.compared_run):
            faster.facts.append(
                f"{slower.name} would save {slower.advice.saved_pct:.0f} % of its time with these "
                "settings (measured)"
            )
    return own


def write_page(folder: Path, runs: list[OwnRun]) -> Path:
    """Write the page of a folder's runs into it; return its path."""
    path = folder.resolve() / PAGE
    names = (*(columns.label(name) for name in NUMBERS), columns.label("energy_wh"))
    tables = {}
    for n, run in enumerate(runs):
        kinds = {"parts": "bars", "flags": "middle", **dict.fromkeys(names, "n")}
        given = [Column(name, name, kinds.get(name, "")) for name in run.rows[0]]
        tables[run.run] = text_table(f"epochs-{n}", run.rows, *given)._replace(
            is_tall=len(run.rows) > FEW
        )
    rows = [
        {**row, "run": link(f"run-{n}", run.run), "advice": run.advice.advice}
        for n, (run, row) in enumerate(zip(runs, _overview(runs), strict=True))
    ]
    kinds = {"run": "", "setting": "", "advice": "why"}
    overview = text_table("runs", rows, *(Column(n, n, kinds.get(n, "n")) for n in rows[0]))
    overview = overview._replace(is_tall=len(rows) > FEW)
    text = render(
        "first_look.html", runs=runs, overview=overview, tables=tables, sensors=POWER_SENSORS
    )
    with files.writing("the page", str(path)):
        files.write_bytes(str(path), text.encode("utf-8"))
    return path


def text_lines(runs: list[OwnRun]) -> Iterator[str]:
    """Yield what the page says, for the terminal."""
    if len(runs) > 1:
        rows = _overview(runs)
        yield from [*aligned([list(rows[0]), *([*row.values()] for row in rows)]), ""]
    for n, run in enumerate(runs):
        yield from [*([""] if n else []), *run.lines()]


def _overview(runs: list[OwnRun]) -> list[dict[str, str]]:
    """Return a row for each run, to compare them at a glance."""
    return _filled([{"run": run.run, **run.overview} for run in runs])


def _filled(rows: list[dict[str, Cell]]) -> list[dict[str, Cell]]:
    """Return rows of cells without the columns that none of them has."""
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    return [{name: row[name] for name in names} for row in rows]


def _own_run(folder: Path, run: Run, n_ranks: int, epochs: pd.DataFrame, advice: Advice) -> OwnRun:
    """Describe a run of one's own: facts, a row per epoch, flags, power, advice."""
    longest_s = float(epochs.e2e_s.max())
    parts = JOINED if epochs.wait_s.isna().all() else tuple(PARTS.values())
    key = {name.removesuffix("_s"): columns.label(name) for name in parts}
    rows = _filled([_row(epoch, parts, longest_s) for _, epoch in epochs.iterrows()])
    facts = [counted(len(epochs), "epochs")]
    ends = (epochs.t_start_unix_s.min(), epochs.t_end_unix_s.max())
    if all(map(pd.notna, ends)):  # logs of others may not tell it
        begin, end = (datetime.datetime.fromtimestamp(float(s), datetime.UTC) for s in ends)
        facts[0] += f", {begin:{WHEN}} to {end:{WHEN}} UTC"
    if n_ranks > 1:
        facts.append(
            f"{counted(n_ranks, 'processes')}: times are means over them, energy is of all machines"
        )
    if IMPORTED in run.studies:
        facts.append(f"imported from logs of {run.factors['imported']}")
    later, setting = counted_epochs(epochs), _setting(run, epochs.iloc[0])
    mean = later[[*_numbers(parts), "energy_wh"]].mean()  # NaN without an epoch
    waiting = parts[0]  # together with copying, where they were not told apart
    wait_pct = 100.0 * mean[waiting] / mean.e2e_s
    overview = {
        "setting": setting,
        "epochs": str(len(epochs)),
        columns.label("e2e_s"): _number(mean.e2e_s, "e2e_s"),
        "wait": "" if pd.isna(wait_pct) else f"{wait_pct:.0f} %",
        columns.label("energy_wh"): _energy(mean.energy_wh),
    }
    if len(later):
        means = {name: _number(mean[name], name) for name in _numbers(parts)}
        told = (f"{columns.label(name)} {text}" for name, text in means.items() if text)
        n_valid = counted(len(later), "valid epochs")
        facts.append(f"mean of {n_valid} after the first: {', '.join(told)}")
    n_invalid = int((~epochs.valid).sum())
    if n_invalid:
        facts.append(f"{counted(n_invalid, 'epochs')} not valid, left out of means")
    scopes = sorted({*epochs["power_scope"].dropna()} - {""})
    none = "no energy: no power sensor could be read"
    facts.append(f"energy of: {', '.join(scopes)}" if scopes else none)
    flags = sorted({flag for cell in epochs["flags"] for flag in cell.split()})
    return OwnRun(
        run.id,
        str(run.factors["model"]),
        setting,
        facts,
        overview,
        rows,
        key,
        {flag: columns.FLAGS[flag].meaning + EFFECTS[columns.FLAGS[flag].effect] for flag in flags},
        _power(str(folder / run.id), int(epochs.epoch.max())),
        advice,
    )


def _setting(run: Run, first: "pd.Series[Any]") -> str:
    """Return in words what is known of a run's settings, those of its own among them."""
    named = ("num_workers", "prefetch_factor", "batch_size", "precision", "compile", "seed")
    told = {name: first[name] for name in named if pd.notna(first[name])}
    known = {n: value for n, value in told.items() if value != columns.FACTOR_DEFAULTS[n]}
    known |= {name: told[name] for name in ("num_workers", "batch_size") if name in told}
    own = run.factors.get("settings") or {}
    words = [SETTING[name].format(v) for name, v in known.items() if name != "num_workers"]
    if "num_workers" in known:
        words.insert(0, counted(known["num_workers"], "workers"))
    return ", ".join([*words, *(f"{name} {value}" for name, value in own.items())])


def _numbers(parts: tuple[str, ...]) -> tuple[str, ...]:
    return ("e2e_s", *parts, "power_mean_w")


def _row(epoch: "pd.Series[Any]", parts: tuple[str, ...], longest_s: float) -> dict[str, object]:
    """Return an epoch; the longest of its run fills the room of the bars."""
    seconds = {name.removesuffix("_s"): epoch[name] for name in parts}
    shares = {
        part: 0.0 if pd.isna(s) else 100.0 * float(s) / float(epoch.e2e_s)
        for part, s in seconds.items()
    }
    words = ", ".join(
        f"{columns.label(f'{part}_s')} {share:.1f} %" for part, share in shares.items()
    )
    energy = ""
    if pd.notna(epoch.energy_wh):
        energy = _energy(epoch.energy_wh)
        if pd.notna(epoch.energy_error_pct):
            energy += f" \u00b1 {epoch.energy_error_pct:.1f} %"
    numbers = {columns.label(name): _number(epoch[name], name) for name in _numbers(parts)}
    power = numbers.popitem()
    return {
        "epoch": str(epoch.epoch),
        "parts": [Bar(100.0 * float(epoch.e2e_s) / longest_s, shares, words)],
        **numbers,
        columns.label("energy_wh"): energy,
        power[0]: power[1],
        "flags": epoch["flags"].replace(" ", ", "),
    }


def _number(value: float, name: str) -> str:
    """Return a number with its unit; empty where there is none."""
    unit = columns.unit(name)
    if unit == "s" and 0.0 < abs(value) < 0.1:
        value, unit = 1000.0 * value, "ms"
    return "" if pd.isna(value) else f"{shown(float(value), unit=unit)} {unit}"


def _energy(wh: float) -> str:
    """Return an energy with its unit; empty where there is none."""
    if pd.isna(wh):
        return ""
    return f"{wh:.3g} Wh" if wh >= 1.0 else f"{1000.0 * wh:.3g} mWh"


def _power(folder: str, epoch: int) -> Document | None:
    """Return the curves of power over an epoch, as the page draws them."""
    told = timeline(*read_epoch(folder, epoch))
    series = [line for line in told["series"] if line["lane"] == "power"]
    most_w = max((w for line in series for w in line["value"]), default=0.0)
    if most_w <= 0.0:
        return None
    scale_x, scale_y = WIDTH / told["e2e_s"], 0.95 * HEIGHT / most_w
    curves = {}
    for line in series:
        points = zip(line["t_s"], line["value"], strict=True)
        name = line["name"] if line["name"] not in curves else f"{line['source']} {line['name']}"
        curves[name] = " ".join(f"{scale_x * t:.1f},{HEIGHT - scale_y * w:.1f}" for t, w in points)
    axes = {"most": _number(most_w, "power_w"), "end": _number(told["e2e_s"], "e2e_s")}
    return {"epoch": epoch, "curves": curves, "width": WIDTH, "height": HEIGHT, **axes}
