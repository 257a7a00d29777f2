"""Show the machine at hand on the landing page: cards of its networks, and every measured run.

Numbers are cells of results/tables/: means over the valid epochs after the first. Runs of a fake
board have a section of their own, named so; simulated runs have none here.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from epochwatt import columns
from epochwatt.analysis.run_means import DATA, setting_words
from epochwatt.columns import SHARED_FLAGS, TIME_PARTS
from epochwatt.epochs.bottleneck import find_longest_part
from epochwatt.pages.numbers import Bar, Column, Line, Number, Quote, Shown, Table
from epochwatt.text import HOST, THIS_MACHINE, counted, label, origin

BACKENDS = ("host", "jetson", "fake")
MACHINE = ["backend", "device", "instance"]


class Quantity(NamedTuple):
    """A column of results/tables/runs.csv that the table of runs and its cards show."""

    column: str
    per: str = ""  # column that it is shown as a share of, %
    on_card: bool = False
    is_metered: bool = False  # only where a power sensor was found


# What the page shows of a run, in order. Label and unit are those of columns.py.
QUANTITIES = (
    Quantity("e2e_s", on_card=True),
    Quantity("stall_s", per="e2e_s", on_card=True),
    Quantity("compute_s", per="e2e_s"),
    Quantity("overhead_s", per="e2e_s"),
    Quantity("energy_wh", on_card=True, is_metered=True),
    Quantity("power_mean_w", on_card=True, is_metered=True),
)
KEY = {part: columns.label(f"{part}_s") for part in TIME_PARTS}  # class of the style sheet -> words
KEY["stall"] += " (waiting for data and copying)"
# part of a run's energy -> class of the style sheet, and words
ENERGY = {
    "constant power": ("baseload", "energy: constant power"),
    "above it": ("above_baseload", "energy above it"),
    "CPU": ("cpu", "CPU"),
    "CPU package": ("cpu", "CPU package"),
    "GPU": ("gpu", "GPU"),
    "CPU and GPU": ("cpu_gpu", "CPU and GPU"),
    "GPU and SoC": ("gpu", "GPU and SoC"),
    "CPU and SoC": ("cpu", "CPU and SoC"),
    "memory": ("memory", "memory"),
    "rest": ("rest", "energy that no rail of these tells"),
}
# class of the style sheet -> columns of results/tables/explanations.csv, and words
CEILINGS = {
    "stall": (("loader_pct", "copy_pct"), ""),
    "launch": (("launches_pct",), "compute: launches"),
    "arithmetic": (("arithmetic_pct",), "compute: arithmetic"),
    "bandwidth": (("memory_pct",), "compute: memory"),
    "below": (("below_the_roof_pct",), "compute: slower than the ceilings allow"),
    "overhead": (("overhead_pct",), ""),
}
# of a sensor that does not see the whole board
SCOPES = {"gpu": " of the GPU", "cpu_package": " of the CPU", "socket": " at the plug"}
BOUND = {"loader": "the loader", "": "too short to tell"}
SHARED_MARK = " (while others used the machine)"


class Card(NamedTuple):
    """A network on the machine: its fastest run."""

    title: str
    backend: str
    label: str
    setting: str
    tiles: Mapping[str, Number | str]  # title -> a number, or a word
    bars: list[Bar]
    advice: Quote | None
    find: str


class Machine:
    """The tables that tell of measured runs, read once.

    `paths`: of `runs`, `advice`, `energy_parts`, and where they were made `explanations`, `epochs`
    and `ceilings`
    """

    def __init__(self, paths: Mapping[str, str], titles: Mapping[str, str]) -> None:
        self.titles = titles
        self.runs, self.advice, self.explanations = (
            Table(paths.get(name, "")) for name in ("runs", "advice", "explanations")
        )
        rows = self.runs.frame("epoch_set", "statistic", "n_epochs", "run", *MACHINE)
        self.all_runs = rows[rows.backend.isin(BACKENDS)]
        is_mean = self.all_runs.epoch_set.eq("1+") & self.all_runs.statistic.eq("mean")
        self.means = self.all_runs[is_mean & ~self.all_runs.n_epochs.isin(["", "0"])]
        self.advice_row = {row["run"]: n for n, row in enumerate(self.advice.rows)}
        self.explained_row = {
            row["run"]: n
            for n, row in enumerate(self.explanations.rows)
            if row["operators"] == "all"
        }
        epochs = Table(paths.get("epochs", "")).frame("run", "flags")
        self.n_shared = epochs[_is_shared(epochs)].run.value_counts()  # epochs of a run
        self.parts = Table(paths.get("energy_parts", "")).frame("run", "stack", "part")
        ceilings = Table(paths.get("ceilings", "")).frame("provenance", "instance", "flags")
        measured = ceilings[ceilings.provenance.eq("measured")]
        self.shared_ceilings = set(measured[_is_shared(measured)].instance)

    def shown(self) -> dict[str, object]:
        """Return what the section shows: each machine, and those without a mean of any run."""
        places, without = [], []
        for key, _ in self.all_runs.groupby(MACHINE, sort=False):
            backend, device, instance = map(str, key)
            rows = self.means[self.means[MACHINE].eq(list(key)).all(axis=1)]
            if len(rows):
                places.append(self._place(backend, device, instance, rows))
                continue
            name = _origin(backend, device, instance)
            without.append(
                {"name": name, "n_runs": self._n_without_mean(backend, device, instance)}
            )
        return {"is_made": bool(self.runs.path), "places": places, "without": without}

    def _n_without_mean(self, backend: str, device: str, instance: str) -> int:
        is_here = self.all_runs[MACHINE].eq([backend, device, instance]).all(axis=1)
        return len({*self.all_runs[is_here].run} - {*self.means.run})

    def _place(
        self, backend: str, device: str, instance: str, rows: pd.DataFrame
    ) -> dict[str, object]:
        """Return a machine with the means of its runs."""
        parts = self.parts[self.parts.run.isin(rows.run)]
        is_metered = rows.energy_wh.ne("").any()
        is_explained = rows.run.isin(self.explained_row).any()
        quantities = [q for q in QUANTITIES if is_metered or not q.is_metered]
        shown = [
            Column("model"),
            Column("setting", "setting"),
            Column("bars", "where it goes", "bars"),
            *(Column(q.column, kind="n") for q in quantities),
            Column("advice", "what holds it back", "advice"),
        ]
        key = dict(KEY)
        if is_explained:
            shown.append(Column("why", "against its best rates (ceilings)", "why"))
            key |= {name: words for name, (_, words) in CEILINGS.items() if words}
        key |= dict(ENERGY[part] for part in parts.part.unique())
        counts = self.n_shared.reindex(rows.run).dropna()
        shared = [f"{counted(counts.sum(), 'epochs')} of {counted(len(counts), 'runs')}"]
        shared = shared if len(counts) else []
        if instance in self.shared_ceilings:
            shared.append("the ceilings")
        workloads = [group for _, group in rows.groupby(["model", *DATA], sort=False)]
        lines = [self._line(n, group) for group in workloads for n in group.index]
        title = self.titles.get(device, device)
        return {
            "title": title[:1].upper() + title[1:],
            "backend": backend,
            "origin": _origin(backend, device, instance),
            "n_runs": len(rows),
            "n_epochs": int(rows.n_epochs.astype(int).sum()),
            "n_without_mean": self._n_without_mean(backend, device, instance),
            "is_metered": is_metered,
            "has_constant": parts["stack"].eq("constant").any(),
            "is_explained": is_explained,
            "shared": " and ".join(shared),  # what was measured while others used the machine
            "cards": [self._card(group, quantities) for group in workloads],
            "key": key,
            "table": Shown(f"runs-{backend}-{device}-{instance}", shown, lines, is_tall=False),
        }

    def _number(self, n: int, quantity: Quantity) -> Number | None:
        if quantity.per:
            return self.runs.number(n, quantity.column, "%", per=quantity.per, how="share")
        return self.runs.number(n, quantity.column, columns.unit(quantity.column))

    def _line(self, n: int, group: pd.DataFrame) -> Line:
        """Return a run; the longest epoch and the most energy of its workload fill the bars."""
        row = self.runs.rows[n]
        most = [group[name].replace("", "0").astype(float).max() for name in ("e2e_s", "energy_wh")]
        cells: dict[str, object] = {q.column: self._number(n, q) for q in QUANTITIES}
        cells |= {
            "model": f"{self._network(row)}, {_data(row)}",
            "setting": self._setting(row),
            "bars": self._bars(n, *most),
            "advice": _quote(self.advice, self.advice_row.get(row["run"]), "advice", "reason"),
            "why": _quote(
                self.explanations, self.explained_row.get(row["run"]), "explanation", "next_mode"
            ),
        }
        return Line(cells, self._find(row), self.runs.path, n)

    def _card(self, group: pd.DataFrame, quantities: list[Quantity]) -> Card:
        """Return the card of a network: its fastest run."""
        n = group.index[int(group.e2e_s.astype(float).argmin())]
        row = self.runs.rows[n]
        advice = _quote(self.advice, self.advice_row.get(row["run"]), "advice", "reason")
        bound = (
            self.advice.rows[advice.row]["bound_by"] if advice else find_longest_part(row).bound_by
        )
        scopes = self.parts[self.parts.run.eq(row["run"])]
        scope = SCOPES.get(scopes.power_scope.iloc[0], "") if len(scopes) else ""
        tiles: dict[str, Number | str] = {
            columns.label(q.column) + (scope if q.is_metered else ""): self._number(n, q)
            or "\u2013"
            for q in quantities
            if q.on_card
        }
        fastest = "the only run" if len(group) == 1 else f"the fastest of {len(group)} runs"
        return Card(
            self._network(row),
            row["backend"],
            label(row["backend"]),
            f"{_data(row)}; {fastest}: {self._setting(row)}",
            {**tiles, "held back by": BOUND.get(bound, bound)},
            [bar._replace(length=100.0) for bar in self._bars(n, 1.0, 1.0)],
            advice,
            self._find(row),
        )

    def _bars(self, n: int, longest_s: float, most_wh: float) -> list[Bar]:
        """Return the stacked time of a run and, where there is a sensor, its stacked energy."""
        row = self.runs.rows[n]
        e2e_s = float(row["e2e_s"])
        length = 100.0 * e2e_s / longest_s
        parts = {part: 100.0 * float(row[f"{part}_s"] or 0) / e2e_s for part in TIME_PARTS}
        labels = (columns.label(f"{part}_s") for part in parts)
        bars = [Bar(length, parts, f"time: {', '.join(labels)}")]
        if row["run"] in self.explained_row:
            cells = self.explanations.rows[self.explained_row[row["run"]]]
            parts = {
                name: sum(float(cells[column] or 0) for column in names)
                for name, (names, _) in CEILINGS.items()
            }
            bars.append(Bar(length, parts, f"by its ceilings: {', '.join(parts)}"))
        energy_length = 100.0 * float(row["energy_wh"] or 0) / (most_wh or 1.0)
        of_run = self.parts[self.parts.run.eq(row["run"])]
        for _, stack in of_run.groupby("stack", sort=False):
            shares = zip(stack.part, stack.share_pct.astype(float), strict=True)
            parts = {ENERGY[part][0]: share for part, share in shares}
            bars.append(Bar(energy_length, parts, f"energy: {', '.join(stack.part)}"))
        return bars

    def _setting(self, row: Mapping[str, str]) -> str:
        return setting_words(row) + (SHARED_MARK if row["run"] in self.n_shared.index else "")

    def _network(self, row: Mapping[str, str]) -> str:
        return self.titles.get(row["model"], row["model"])

    def _find(self, row: Mapping[str, str]) -> str:
        run = row["run"].rpartition("-")[0]  # no hash: its digits would be hits
        words = [run, self._network(row), self.titles.get(row["device"], ""), _data(row)]
        return " ".join([*words, setting_words(row), label(row["backend"])]).lower()


def _origin(backend: str, device: str, instance: str) -> str:
    place = THIS_MACHINE if device == HOST else f"{device}/{instance}"
    return f"{origin([backend]).capitalize()} {place}"


def _is_shared(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Say of each row whether it was measured while others used the machine."""
    return rows["flags"].map(lambda cell: not SHARED_FLAGS.isdisjoint(cell.split())).astype(bool)


def _quote(table: Table, n: int | None, *names: str) -> Quote | None:
    """Return two texts of a row; None where there is no row."""
    if n is None:
        return None
    row, (large, small) = table.rows[n], names
    texts = (row[large], row[small])
    return Quote(table.path, n, (large, small), texts, row.get("kind", ""))


def _data(row: Mapping[str, str]) -> str:
    scale = float(row["dataset_scale"] or 1)
    return f"{row['dataset']} {row['dataset_source']}" + ("" if scale == 1 else f" x{scale:g}")
