"""Predict published numbers by the simulated boards: quantities of configurations in closed form.

The fit of the simulated boards sees the numbers of the main paper that a simulation can be judged
on and says something to. HiPCW 2021 contradicts the main paper, so no shared parameter is fitted to
it: what its set-up has of its own alone sees its numbers (`refits.fit_setups`). `epochwatt
calibrate-twin` writes their ids to `config/twin/seen.csv`. Figures take them from there
(`published/folds.py`), so that no figure depends on the simulator's code.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from epochwatt.counting.kernel_counts import KernelCounts
from epochwatt.published.folds import ID, SEEN, Judged, judged
from epochwatt.published.numbers import PAPERS, Config, Fact, Published, load_published, single
from epochwatt.tables import checked_rows, rows_by_id, write_table
from epochwatt.twin.boards import Array, Board, Clocks, SampleFacts, Values, number
from epochwatt.twin.epoch import Epoch, Setting, cached_share, epoch
from epochwatt.twin.loader import BLOCK_BYTES
from epochwatt.twin.power import STATE, Load, idle_w, parts
from epochwatt.twin.twin import Twin

# Of the published configurations (Table 2), whatever config/workloads.yaml is changed to.
DATASETS = {"lenet": "mnist", "mobilenet": "gld23k", "resnet": "cifar10", "vgg11": "cifar10"}
ALSO_SEEN = ("n_epochs_in_15h",)  # counts are not judged, but these are times in other words
NEVER_SEEN = {"RS5.1.7-06": "Orin rests on its data sheet alone"}
RAILS = "rails.csv"
HOURS_15_S = 15 * 3600.0
ON_BOARD = "i"  # the one idle state that the module's sensors are read in


class Question(NamedTuple):
    """One configuration: an epoch of the long run, or one with a cold page cache."""

    device: str
    model: str
    storage: str
    num_workers: int
    batch_size: int
    power_mode: str
    dvfs: str = "off"
    cold: bool = False
    scale: float = 1.0
    setup: str = ""

    def setting(
        self, parts: tuple[Board, KernelCounts, SampleFacts], clocks: Clocks, workers: Array
    ) -> Setting:
        """Return this configuration as a `Setting`; clocks and workers may be arrays."""
        board, work, samples = parts
        return Setting(
            board=board,
            work=work,
            samples=samples,
            medium=self.storage,
            batch_size=self.batch_size,
            clocks=clocks,
            num_workers=workers,
            cold=self.cold,
            dvfs=self.dvfs == "on",
            scale=self.scale,
            setup=self.setup,
        )


@dataclass(frozen=True, kw_only=True)
class Reading(Fact):
    """Mean power of one rail of a board that others measured, with the load that they report."""

    paper: str = ""  # type: ignore[assignment]
    section: str = ""
    metric: str = "rail_w"
    unit: str = "W"
    qualifier: str = "rail"  # type: ignore[assignment]
    source: str  # whose measurement: left out as a whole
    device: str
    cores: float
    cpu_mhz: float
    gpu_mhz: float
    emc_mhz: float
    gpu_share: float  # of the GPU that is on
    busy_cores: float
    gpu_util: float
    gpu_computing: float  # as in `power.Load`; ASSUME 0.85 of `gpu_util` for convolutions
    gb_per_s: float
    rail: str

    @property
    def sides(self) -> tuple[Config, ...]:
        """Its one state."""
        return ({"device": self.device, "state": self.source},)

    @property
    def takeaway(self) -> str:
        """Whose sensor: two rails of one board are two pieces of evidence."""
        return f"{self.source} {self.rail}"

    def watts(self, board: Board, p: Values) -> Array:
        """Return the power that a simulated board's rail would show."""
        clocks = Clocks(self.cores, self.cpu_mhz, self.gpu_mhz, self.emc_mhz)
        load = Load(self.busy_cores, self.gpu_util, self.gpu_computing, 1e9 * self.gb_per_s)
        of_parts = parts(board, clocks, load, p)
        of_parts = of_parts._replace(gpu_w=self.gpu_share * of_parts.gpu_w)
        shares = board.rails[self.rail]
        return sum(shares.get(n.removesuffix("_w"), 0.0) * w for n, w in of_parts._asdict().items())


def load_readings(folder: Path) -> list[Reading]:
    """Read `rails.csv`; ConfigError: it is missing, or a cell is wrong."""
    return list(rows_by_id(checked_rows(Reading, folder / RAILS)).values())


Quantity = Callable[[Setting, Epoch, Values], Array]

QUANTITIES: dict[str, Quantity] = {
    "e2e_s": lambda s, e, p: e.e2e_s,
    "stall_s": lambda s, e, p: e.stall_s,
    "compute_s": lambda s, e, p: e.compute_s,
    "overhead_s": lambda s, e, p: e.overhead_s,
    "compute_ms_per_minibatch": lambda s, e, p: 1e3 * e.compute_s / s.n_minibatches,
    "stall_ms_per_minibatch": lambda s, e, p: 1e3 * e.stall_s / s.n_minibatches,
    "energy_wh": lambda s, e, p: e.energy_wh,
    "power_w": lambda s, e, p: e.power_w,
    "gpu_util_pct": lambda s, e, p: 100.0 * e.gpu_busy_s / e.e2e_s,
    "cpu_util_pct": lambda s, e, p: 100.0 * e.cpu_busy_s / e.e2e_s / e.clocks.cores,
    "iops": lambda s, e, p: (
        e.read_share * s.n_samples * s.samples.file_bytes / BLOCK_BYTES / e.e2e_s
    ),
    "cached_pct": lambda s, e, p: 100.0 * cached_share(s, p),
    "gpu_freq_mhz": lambda s, e, p: e.clocks.gpu_mhz + 0.0 * e.e2e_s,
    "n_epochs_in_15h": lambda s, e, p: HOURS_15_S / e.e2e_s,
    "stall_s/e2e_s": lambda s, e, p: 100.0 * e.stall_s / e.e2e_s,
    "(stall_s+compute_s)/e2e_s": lambda s, e, p: 100.0 * (e.stall_s + e.compute_s) / e.e2e_s,
    "baseload_wh/energy_wh": lambda s, e, p: (
        100.0 * idle_w(s.board, "logging_on_dvfs_off", s.clocks, "module", p) / e.power_w
    ),
}


class Group(NamedTuple):
    """Questions that are one evaluation, and its setting: they differ in workers and clocks."""

    questions: list[Question]
    setting: Setting

    def evaluate(
        self, quantities: Mapping[str, Quantity], p: Mapping[str, Array], n: int
    ) -> dict[str, NDArray[np.floating]]:
        """Return quantity -> values of all questions with n sets of parameters, (sets, questions).

        `p`: parameters, each a number or of shape (sets,).
        """
        size = len(self.questions)
        setting = replace(
            self.setting,
            clocks=Clocks(*(np.tile(clock, n) for clock in self.setting.clocks)),
            num_workers=np.tile(self.setting.num_workers, n),
        )
        values = {k: np.repeat(value, size) if np.ndim(value) else value for k, value in p.items()}
        numbers = cast(Values, values)
        mean = epoch(setting, numbers)
        answers = {}
        for name, quantity in quantities.items():
            answer = np.asarray(quantity(setting, mean, numbers), float)
            answers[name] = np.broadcast_to(answer, n * size).reshape(n, size)
        return answers


def groups(questions: Iterable[Question], twin: Twin) -> list[Group]:
    """Return distinct questions, grouped by all that a `Setting` has one value of."""
    by_setting: dict[Question, list[Question]] = defaultdict(list)
    for q in dict.fromkeys(questions):
        by_setting[q._replace(num_workers=0, power_mode="")].append(q)
    grouped = []
    for group in by_setting.values():
        q = group[0]
        found = twin.find(q.device, q.model, DATASETS.get(q.model, ""))
        modes = [twin.clocks(question.device, question.power_mode) for question in group]
        clocks = Clocks(*np.array(modes, dtype=float).T)
        workers = np.array([question.num_workers for question in group])
        setting = q.setting(found, clocks, workers)
        grouped.append(Group(group, setting))
    return grouped


def answer_each(
    questions: Iterable[Question],
    twin: Twin,
    draws: Sequence[Values],
    quantities: Mapping[str, Quantity] = QUANTITIES,
) -> list[dict[Question, dict[str, float]]]:
    """Return, per draw of parameters, configuration -> quantity -> value, in one evaluation."""
    answers: list[dict[Question, dict[str, float]]] = [{} for _ in draws]
    if not draws:
        return answers
    p: dict[str, Array] = dict(draws[0])  # one that is the same in all draws stays a number
    for name, value in draws[0].items():
        if any(draw[name] != value for draw in draws):
            p[name] = np.array([draw[name] for draw in draws])
    for group in groups(questions, twin):
        tables = group.evaluate(quantities, p, len(draws))
        columns = {name: table.tolist() for name, table in tables.items()}
        for i, draw_answers in enumerate(answers):
            for j, q in enumerate(group.questions):
                draw_answers[q] = {name: column[i][j] for name, column in columns.items()}
    return answers


def questions(config: Config, setup: str = "") -> list[Question]:
    """Return the questions that a published configuration stands for; none: a key is not stated."""
    asked = []
    for run in single(config):
        stated: dict[str, Any] = {key: run.get(key) for key in Question._fields[:7]}
        if None in stated.values():
            return []
        cold = run["epoch"] == "0" or run["cache"] == "dropped"
        asked.append(Question(**stated, cold=cold, scale=run["scale"], setup=setup))
    return asked


class Batch:
    """Published numbers, made ready to be predicted with many sets of parameters at once.

    The simulation's equations take one value per configuration. So a number of sets is as many
    copies of the configurations, each with its own parameters, and costs little more than one.
    """

    def __init__(self, facts: Iterable[Fact], twin: Twin) -> None:
        self._twin = twin
        # each with the configurations of its sides; none where it is of no simulated epoch
        self._facts: list[tuple[Fact, list[list[Question]]]] = []
        wanted: dict[Question, set[str]] = defaultdict(set)
        for fact in facts:
            is_of_epoch = fact.metric in QUANTITIES and fact.kind != "idle"
            sides = [questions(side, fact.paper) for side in fact.sides] if is_of_epoch else []
            self._facts.append((fact, sides))
            for side in sides:
                for q in side:
                    wanted[q].add(fact.metric)
        self._groups = [
            (group, sorted(set().union(*(wanted[q] for q in group.questions))))
            for group in groups(wanted, twin)
        ]

    def predict(self, p: Mapping[str, Array]) -> dict[str, tuple[NDArray[np.floating], ...]]:
        """Return published id -> prediction; numbers that the simulation cannot say are left out.

        A prediction is one value, or lowest and highest of a range; each of shape (sets,).
        """
        n = max(int(np.size(value)) for value in p.values())
        answers: dict[Question, dict[str, Array]] = {}
        for group, metrics in self._groups:
            values = group.evaluate({name: QUANTITIES[name] for name in metrics}, p, n)
            for i, q in enumerate(group.questions):
                answers[q] = {name: column[:, i] for name, column in values.items()}
        predictions = {}
        for fact, sides in self._facts:
            prediction: tuple[Array, ...] = ()
            if isinstance(fact, Reading):
                prediction = (fact.watts(self._twin.boards[fact.device], cast(Values, p)),)
            elif fact.kind == "idle":
                prediction = (self._idle_w(fact, p),)
            elif sides and all(sides):
                values_of_sides = [
                    np.array([answers[q][fact.metric] for q in side]) for side in sides
                ]
                prediction = _apply_formula(fact.formula, values_of_sides)
            if prediction and all(np.all(np.isfinite(value)) for value in prediction):
                predictions[fact.id] = tuple(np.broadcast_to(value, n) for value in prediction)
        return predictions

    def _idle_w(self, fact: Fact, p: Mapping[str, Array]) -> Array:
        """Return an idle power: state (i) by the module's sensors, the others at the plug."""
        (config,) = fact.sides
        scope = "module" if config["state"] == ON_BOARD else "socket"
        clocks = self._twin.clocks(config["device"], config["power_mode"])
        board = self._twin.boards[config["device"]]
        return idle_w(board, STATE[config["state"]], clocks, scope, cast(Values, p))


def predict(facts: Iterable[Fact], twin: Twin, p: Values) -> dict[str, tuple[float, ...]]:
    """Return published id -> prediction with one set of parameters, as `Batch.predict`."""
    answers = Batch(facts, twin).predict(p)
    return {name: tuple(number(value) for value in values) for name, values in answers.items()}


def _apply_formula(formula: str, sides: list[NDArray[np.floating]]) -> tuple[Array, ...]:
    """Apply a published number's formula to its sides, each (configurations, sets).

    Returns one value (sets,), or the lowest and highest over the configurations.
    """

    def ends(values: NDArray[np.floating]) -> tuple[Array, ...]:
        return (values.min(axis=0), values.max(axis=0)) if len(values) > 1 else (values[0],)

    a = sides[0]
    if not formula:
        return (a.mean(axis=0),)
    if len(sides) == 1:
        if formula == "100*(max-min)/max":
            return (100.0 * (a.max(axis=0) - a.min(axis=0)) / a.max(axis=0),)
        return ends(a) if formula in ("100*part/whole", "min..max") else (a[0],)
    ratios = sides[1] / a  # B to A
    if formula == "A/B":
        return ends(1.0 / ratios)
    if formula == "B/A":
        return (ratios.mean(axis=0),)
    change = 100.0 * (ratios.mean(axis=0) - 1.0)
    return (abs(change) if "|" in formula else change,)


def seen_by_fit(published: Published, rows: Mapping[str, Judged]) -> list[Fact]:
    """Return the numbers that the fit of the shared parameters may see, in the paper's order."""
    return [
        fact
        for fact in published.facts().values()
        if fact.paper == PAPERS[0]
        and (rows[fact.id].is_simulable or fact.metric in ALSO_SEEN)
        and (fact.metric in QUANTITIES or fact.kind == "idle")
        and fact.id not in NEVER_SEEN
    ]


def seen_by_setups(published: Published, rows: Mapping[str, Judged]) -> list[Fact]:
    """Return the numbers of other papers, which the fit of their set-ups' parameters may see."""
    facts = published.facts().values()
    return [f for f in facts if f.paper != PAPERS[0] and rows[f.id].is_simulable]


def visible(published: Published, rows: Mapping[str, Judged], twin: Twin) -> list[Fact]:
    """Return the published numbers that a fit may see and the simulation can predict."""
    facts = seen_by_fit(published, rows)
    predictions = predict(facts, twin, twin.parameters)
    return [fact for fact in facts if fact.id in predictions]


def write_seen(root: Path = Path()) -> None:
    """Write `seen.csv`, the ids of all numbers that a fit may see, whole or not at all.

    Raises ConfigError: a table of published numbers is missing or wrong; RecordWriteError: the file
    cannot be written.
    """
    folder = root / "config/twin"
    published, rows = load_published(root / "config/published"), judged(folder)
    facts = seen_by_fit(published, rows) + seen_by_setups(published, rows)
    write_table(folder / SEEN, "what the fit sees", [ID], [[fact.id] for fact in facts])
