"""Show the machine at hand on the landing page: cards of its networks, and every measured run.

Numbers are cells of results/tables/: means over the valid epochs after the first. Runs of a fake
board have a section of their own, named so; simulated runs have none here.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from epochwatt import columns
from epochwatt.analysis.summary import TIME_PARTS, setting_words
from epochwatt.columns import SHARED_FLAGS
from epochwatt.epochs.bottleneck import find_longest_part
from epochwatt.pages.numbers import Bar, Column, Line, Number, Quote, Shown, Table
from epochwatt.text import counted, label, origin

MEASURED, FAKE = ("host", "jetson"), ("fake",)
DATA = ("model", "dataset", "dataset_source", "dataset_scale")


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
KEY = {"stall": "stall (waiting for data and copying)"}  # class of the style sheet -> words
KEY |= {"compute": "compute", "overhead": "overhead"}
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
    "below": (("below_the_roof_pct",), "compute: below the roof"),
    "overhead": (("overhead_pct",), ""),
}
# of a sensor that does not see the whole board
SCOPES = {"gpu": " of the GPU", "cpu_package": " of the CPU", "socket": " at the plug"}
BOUND = {"loader": "the loader", "": "too short to tell"}
NOTHING = (
    "No epoch was measured on this machine, so there is nothing to say on it. The command make run "
    "with the study host-pipeline measures some on any computer within minutes; on a board follow "
    "docs/tutorials/jetson.md."
)
NOT_MADE = (
    "The table of runs could not be made, so this part of the page is empty; above is the reason. "
    "What was measured lies in measured/ and is kept."
)
NONE_COUNTS = (
    "The first epoch of a run is left out of means: give its study two or more epochs in "
    "config/studies.yaml, and only the missing ones are measured. Where it has them, the column "
    "flags of results/tables/epochs.csv says why they are not valid (docs/reference/columns.md)."
)
NO_SENSOR = (
    "No power sensor was found on this machine, so there is no energy and no power: it has no "
    "NVIDIA GPU, RAPL counter or INA3221 that may be read. The command epochwatt doctor names what "
    "it tried."
)
NO_CONSTANT = (
    "How much of the energy is constant power is not known: the idle power of this machine was "
    "not measured."
)
NO_CEILINGS = (
    "What limits computing is not known: the ceilings of this machine were not measured. Give its "
    "study the key ceilings: true in config/studies.yaml and type make run."
)
SHARED_MARK = "while others used the machine"
SHARED_WORDS = (
    "Other programs took more than 10 % of the CPUs while {what} were measured: this machine can "
    "do better. To measure them again once it is quiet: epochwatt discard --shared, then start "
    "again."
)
NOTE = "Means over the valid epochs after the first. How well the networks learn is not judged."


class Card(NamedTuple):
    """A network on the machine: its fastest run."""

    title: str
    backend: str
    label: str
    setting: str
    tiles: Mapping[str, Number | str]  # title -> a number, or a word
    bars: Sequence[Bar]
    advice: Quote | None
    find: str


class Machine:
    """The tables that tell of measured runs, read once.

    Parameters
    ----------
    paths : of `runs`, `advice`, `energy_parts`, and where they were made `explanations`, `epochs`
        and `ceilings`
    """

    def __init__(self, paths: Mapping[str, str], titles: Mapping[str, str]) -> None:
        self.runs, self.advice, self.explanations = (
            Table(paths.get(name, "")) for name in ("runs", "advice", "explanations")
        )
        self.ceilings = Table(paths.get("ceilings", ""))
        self.titles = titles
        self.advice_row = {row["run"]: n for n, row in enumerate(self.advice.rows)}
        self.explained_row = {
            row["run"]: n
            for n, row in enumerate(self.explanations.rows)
            if row["operators"] == "all"
        }
        self.n_shared: dict[str, int] = {}  # run -> epochs measured while others used the machine
        for row in Table(paths.get("epochs", "")).rows:
            if SHARED_FLAGS & {*row["flags"].split()}:
                self.n_shared[row["run"]] = self.n_shared.get(row["run"], 0) + 1
        self.stacks: dict[str, dict[str, dict[str, float]]] = {}  # run -> stack -> part -> %
        self.scope: dict[str, str] = {}  # run -> what its energy is of
        for row in Table(paths.get("energy_parts", "")).rows:
            stacks = self.stacks.setdefault(row["run"], {})
            stacks.setdefault(row["stack"], {})[row["part"]] = float(row["share_pct"])
            self.scope.setdefault(row["run"], row["power_scope"])

    def places(self) -> dict[str, object]:
        """Return what the section shows: each machine, or what to do where no run has a mean."""
        groups: dict[tuple[str, str, str], list[int]] = {}
        for n, row in enumerate(self.runs.rows):
            if row["backend"] in MEASURED + FAKE and _is_mean(row):
                groups.setdefault(_machine_of(row), []).append(n)
        return {
            "places": [self._place(key, rows) for key, rows in groups.items()],
            "nothing": self._nothing(),
        }

    def _nothing(self) -> dict[str, str]:
        if not self.runs.path:
            return {"title": "This machine", "lead": NOT_MADE}
        keys = dict.fromkeys(
            _machine_of(row) for row in self.runs.rows if row["backend"] in MEASURED + FAKE
        )
        if not keys:
            return {"title": "Nothing was measured yet", "lead": NOTHING}
        sentences = [
            f"{origin([key[0]]).capitalize()} {key[1]}/{key[2]}: {sentence}"
            for key in keys
            for sentence in self._without_mean(key)
        ]
        return {"title": "No epoch counts yet", "lead": " ".join([*sentences, NONE_COUNTS])}

    def _without_mean(self, key: tuple[str, str, str]) -> list[str]:
        """Return a sentence on the runs of a machine that have no row, where there are any."""
        has_mean: dict[str, bool] = {}
        for row in self.runs.rows:
            if _machine_of(row) == key:
                has_mean[row["run"]] = has_mean.get(row["run"], False) or _is_mean(row)
        n = list(has_mean.values()).count(False)
        verb = "has" if n == 1 else "have"
        words = f"{counted(n, 'runs')} {verb} no valid epoch after the first, and no row here."
        return [words] if n else []

    def _place(self, key: tuple[str, str, str], numbers: Sequence[int]) -> dict[str, object]:
        """Return a machine with the rows of its runs."""
        backend, device, instance = key
        rows = [self.runs.rows[n] for n in numbers]
        ids = [row["run"] for row in rows]
        stacks = [stack for run in ids for stack in self.stacks.get(run, {})]
        is_metered = any(row["energy_wh"] for row in rows)
        is_explained = any(run in self.explained_row for run in ids)
        sentences = self._without_mean(key)
        if not is_metered:
            sentences.append(NO_SENSOR)
        elif "constant" not in stacks:
            sentences.append(NO_CONSTANT)
        if not is_explained:
            sentences.append(NO_CEILINGS)
        groups: dict[tuple[str, ...], list[int]] = {}
        for n in numbers:
            data = tuple(self.runs.rows[n][name] for name in DATA)
            groups.setdefault(data, []).append(n)
        quantities = [q for q in QUANTITIES if is_metered or not q.is_metered]
        shown = [
            Column("model"),
            Column("setting", "setting"),
            Column("bars", "where it goes", "bars"),
            *(Column(q.column, kind="n") for q in quantities),
            Column("advice", "what holds it back", "advice"),
        ]
        key_of_bars = dict(KEY)
        if is_explained:
            shown.append(Column("why", "by its ceilings", "why"))
            key_of_bars |= {name: words for name, (_, words) in CEILINGS.items() if words}
        parts = [p for run in ids for stack in self.stacks.get(run, {}).values() for p in stack]
        key_of_bars |= dict(ENERGY[part] for part in dict.fromkeys(parts))
        title = self.titles.get(device, device)
        title = title[:1].upper() + title[1:]
        n_epochs = sum(int(row["n_epochs"]) for row in rows)
        lines = [self._line(n, group) for group in groups.values() for n in group]
        return {
            "title": title if backend != "fake" else f"{title}: a fake board, not measured",
            "lead": f"{origin([backend]).capitalize()} {device}/{instance}: "
            f"{counted(len(rows), 'runs')}, {counted(n_epochs, 'epochs')} after the first. {NOTE}",
            "sentences": [*sentences, *self._shared(instance, ids)],
            "cards": [self._card(group, quantities) for group in groups.values()],
            "key": key_of_bars,
            "table": Shown(f"runs-{backend}-{device}-{instance}", shown, lines, is_tall=False),
        }

    def _shared(self, instance: str, runs: Sequence[str]) -> list[str]:
        """Return what was measured while others used the machine, and what to do about it."""
        counts = [self.n_shared[run] for run in runs if run in self.n_shared]
        what = []
        if counts:
            what.append(f"{counted(sum(counts), 'epochs')} of {counted(len(counts), 'runs')}")
        for row in self.ceilings.rows:
            mine = row["provenance"] == "measured" and row["instance"] == instance
            if mine and SHARED_FLAGS & {*row["flags"].split()}:
                what.append("the ceilings")
                break
        return [SHARED_WORDS.format(what=" and ".join(what))] if what else []

    def _number(self, n: int, quantity: Quantity) -> Number | None:
        if quantity.per:
            return self.runs.number(n, quantity.column, "%", per=quantity.per, how="share")
        return self.runs.number(n, quantity.column, columns.unit(quantity.column))

    def _line(self, n: int, group: Sequence[int]) -> Line:
        """Return a run; the longest epoch and the most energy of its workload fill the bars."""
        row = self.runs.rows[n]
        most = [
            max(float(self.runs.rows[other][name] or 0) for other in group)
            for name in ("e2e_s", "energy_wh")
        ]
        cells: dict[str, object] = {q.column: self._number(n, q) for q in QUANTITIES}
        cells |= {
            "model": f"{self._network(row)}, {_data(row)}",
            "setting": setting_words(row) + self._mark(row),
            "bars": self._bars(n, *most),
            "advice": self._advice(row["run"]),
            "why": self._why(row["run"]),
        }
        return Line(cells, self._find(row), self.runs.path, n)

    def _card(self, group: Sequence[int], quantities: Sequence[Quantity]) -> Card:
        n = min(group, key=lambda other: float(self.runs.rows[other]["e2e_s"]))
        row, advice = self.runs.rows[n], self._advice(self.runs.rows[n]["run"])
        bound = (
            self.advice.rows[advice.row]["bound_by"] if advice else find_longest_part(row).bound_by
        )
        scope = SCOPES.get(self.scope.get(row["run"], ""), "")
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
            f"{_data(row)}; {fastest}: {setting_words(row)}{self._mark(row)}",
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
        bars = [Bar(length, parts, "time: " + ", ".join(parts))]
        if row["run"] in self.explained_row:
            cells = self.explanations.rows[self.explained_row[row["run"]]]
            parts = {
                name: sum(float(cells[column] or 0) for column in names)
                for name, (names, _) in CEILINGS.items()
            }
            bars.append(Bar(length, parts, f"by its ceilings: {', '.join(parts)}"))
        for shares in self.stacks.get(row["run"], {}).values():
            energy_length = 100.0 * float(row["energy_wh"] or 0) / (most_wh or 1.0)
            parts = {ENERGY[part][0]: share for part, share in shares.items()}
            bars.append(Bar(energy_length, parts, f"energy: {', '.join(shares)}"))
        return bars

    def _advice(self, run: str) -> Quote | None:
        if run not in self.advice_row:
            return None
        n = self.advice_row[run]
        row = self.advice.rows[n]
        texts = (row["advice"], row["reason"])
        return Quote(self.advice.path, n, ("advice", "reason"), texts, row["kind"])

    def _why(self, run: str) -> Quote | None:
        """Return what holds a run back by the ceilings of its machine."""
        if run not in self.explained_row:
            return None
        n = self.explained_row[run]
        row = self.explanations.rows[n]
        texts = (row["explanation"], row["next_mode"])
        return Quote(self.explanations.path, n, ("explanation", "next_mode"), texts)

    def _mark(self, row: Mapping[str, str]) -> str:
        return f" ({SHARED_MARK})" if row["run"] in self.n_shared else ""

    def _network(self, row: Mapping[str, str]) -> str:
        return self.titles.get(row["model"], row["model"])

    def _find(self, row: Mapping[str, str]) -> str:
        run = row["run"].rpartition("-")[0]  # no hash: its digits would be hits
        words = [run, self._network(row), self.titles.get(row["device"], ""), _data(row)]
        return " ".join([*words, setting_words(row), label(row["backend"])]).lower()


def _machine_of(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["backend"], row["device"], row["instance"]


def _is_mean(row: Mapping[str, str]) -> bool:
    is_chosen = row["epoch_set"] == "1+" and row["statistic"] == "mean"
    return is_chosen and int(row["n_epochs"] or 0) > 0


def _data(row: Mapping[str, str]) -> str:
    scale = float(row["dataset_scale"] or 1)
    return f"{row['dataset']} {row['dataset_source']}" + ("" if scale == 1 else f" x{scale:g}")
