"""Take-aways that are pure order, on any board: the general forms.

A general form names no device, and no more factors than it is about. It is judged on each board
(setup, device and unit) and there in every case: a case is one value of each factor that the form
leaves open. Only cases that have all the runs count; the form holds on a board when it holds in all
of these. So it can be judged on boards, media and modes that the papers never saw.
"""

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from types import CodeType
from typing import Any

from epochwatt import columns
from epochwatt.claims import expression, functions
from epochwatt.claims.evaluate import Claim, Verdict, parsed, verdict
from epochwatt.claims.functions import Front, collected
from epochwatt.claims.number_sources import ENERGIES, METRICS, EpochTable, Row, statistic
from epochwatt.claims.tolerances import KEYWORDS, Terms
from epochwatt.claims.verdict import Judgement, NotEvaluable, all_of
from epochwatt.columns import CLOCKS

BOARD = ("setup", "device", "instance")
# factors that follow from another, and so vary with it
FOLLOWERS = {
    "num_workers": ("prefetch_factor",),
    "model": ("dataset", "dataset_source", "dataset_scale"),
    "dataset_scale": ("dataset_source",),
}
FOLLOWING = ("prefetch_factor", "dataset")  # by which no two cases differ alone

Case = dict[str, Any]  # factor -> value
Modes = Mapping[str, Mapping[str, float]]  # mode -> setting -> value


def evaluate_boards(claims: Iterable[Claim], table: EpochTable, terms: Terms) -> list[Verdict]:
    """Return a verdict for each board of a table and each claim that has a general form.

    Raises ConfigError: a general form is not allowed or cannot be computed; says where.
    """
    boards: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in table.epochs:
        boards[tuple(str(row[name]) for name in BOARD)].append(row)
    names = _Runs([], {}, terms, frozenset()).names()
    forms = [(c, parsed(c, "general_form", names)) for c in claims if c.general_form]
    return [
        _on_board(claim, form, rows, table.power_modes.get(board[1], {}), terms)
        for board, rows in boards.items()
        for claim, form in forms
    ]


def _on_board(claim: Claim, form: CodeType, rows: list[Row], modes: Modes, terms: Terms) -> Verdict:
    """Return what one board says about a general form."""
    nodes = list(ast.walk(ast.parse(claim.general_form, mode="eval")))
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    judged: list[tuple[Case, Judgement]] = []
    missing: list[tuple[str, ...]] = []
    inputs: set[str] = set()
    for case, of_case in _cases(nodes, rows):
        runs = _Runs(of_case, modes, terms, named)
        judgement, needed = expression.judge(form, runs.names(), runs.log)
        if judgement is None:
            missing.append(tuple(f"{what}{_shortly(case)}" for what in needed))
        else:
            judged.append((case, judgement))
            inputs |= runs.inputs
    board = " ".join(str(rows[0][name]) for name in BOARD)
    if not judged:
        return verdict(claim, board, None, min(missing, key=len), ())
    cases = [case for case, _ in judged]
    placed = [_in_case(judgement, _differing(case, cases)) for case, judgement in judged]
    return verdict(claim, board, all_of(placed), (), inputs, len(judged))


def _cases(form: Iterable[ast.AST], rows: Iterable[Row]) -> list[tuple[Case, list[Row]]]:
    """Return the cases of a form, values of the factors it leaves open, with their rows."""
    calls = [node for node in form if isinstance(node, ast.Call)]
    varied = {KEYWORDS[k.arg] for node in calls for k in node.keywords if k.arg in KEYWORDS}
    about_data = {*METRICS, "pareto"}
    if any(c.args for c in calls if isinstance(c.func, ast.Name) and c.func.id in about_data):
        varied.add("model")
    varied |= {name for factor in varied for name in FOLLOWERS.get(factor, ())}
    fixed = [name for name in columns.FACTOR_NAMES if name not in varied]
    cases: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        cases[tuple(row[name] for name in fixed)].append(row)
    return [(dict(zip(fixed, values, strict=True)), of_case) for values, of_case in cases.items()]


def _differing(case: Case, cases: list[Case]) -> str:
    """Return a case's network, and the factors in which the cases of its board differ."""
    factors = [name for name in case if name not in FOLLOWING]
    names = [
        name
        for name in factors
        if name == "model" or any(other[name] != case[name] for other in cases)
    ]
    return ", ".join(f"{name}={case[name]}" for name in names)


def _shortly(case: Case) -> str:
    words = [case[name] for name in ("model", "storage", "power_mode") if name in case]
    return f" ({', '.join(words)})" if words else ""


def _in_case(judgement: Judgement, case: str) -> Judgement:
    """Return a judgement whose comparisons say in which case they are."""
    comparisons = tuple(
        c._replace(where=", ".join(filter(None, (c.where, case)))) for c in judgement.comparisons
    )
    return judgement._replace(comparisons=comparisons)


class _Runs:
    """The runs of one case, and the functions by which a general form asks for them."""

    def __init__(self, rows: Iterable[Row], modes: Modes, terms: Terms, named: Set[str]) -> None:
        self.runs: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            self.runs[row["run"]].append(row)
        self.modes_settings = modes
        self.terms = terms
        self.models = named & set(self.values("model"))  # that the form is about
        self.scopes = {r["power_scope"] for rows in self.runs.values() for r in rows} - {""}
        self.inputs: set[str] = set()
        self.log = expression.Log()

    def names(self) -> dict[str, Any]:
        """Return every name that a general form may use, with its meaning."""
        return {
            **self.terms.constants(),
            **functions.PLAIN,
            **functions.tolerant(self.terms.numbers),
            **{metric: self.metric(metric) for metric in METRICS},
            "pareto": self.pareto,
            "neighbours": self.neighbours,
            "media": self.media,
            "modes": self.modes,
            "modes_apart_in": self.modes_apart_in,
            "strongest_mode": self.strongest_mode,
        }

    def metric(self, name: str) -> Callable[..., float]:
        """Return the function of one metric: (model, epoch and keys) -> number."""

        def number(model: str = "", epoch: str = "1+", **keys: Any) -> float:
            wanted = {KEYWORDS[key]: value for key, value in keys.items()}
            wanted |= {"model": model} if model else {}
            runs = [run for run, rows in self.runs.items() if _has(rows[0], wanted)]
            if len(runs) != 1:
                wish = " ".join(f"{key}={value}" for key, value in wanted.items())
                raise NotEvaluable(f"one run with {wish} ({len(runs)} are there)")
            if name in ENERGIES and len(self.scopes) > 1:
                raise NotEvaluable(f"one power scope, not {' and '.join(sorted(self.scopes))}")
            value = statistic(name, self.runs[runs[0]], epoch)
            self.inputs.add(runs[0])
            self.log.reads.append((name, {**self.runs[runs[0]][0], "epoch": epoch}))
            return value

        return number

    def values(self, factor: str) -> list[Any]:
        """Return the values that a factor has in the runs."""
        return list(dict.fromkeys(rows[0][factor] for rows in self.runs.values()))

    def neighbours(self, word: str) -> list[tuple[float, float]]:
        """Return each value of a factor of numbers with the next larger one."""
        return self.pairs(sorted(self.values(KEYWORDS[word])), f"two values of {word}")

    def media(self) -> list[tuple[str, str]]:
        """Return each storage medium with the next slower one."""
        there = set(self.values("storage"))
        order = [name for name in self.terms.sets["MEDIA_BY_SPEED"] if name in there]
        return self.pairs(order, "runs on two media")

    @staticmethod
    def pairs(values: list[Any], needed: str) -> list[tuple[Any, Any]]:
        if len(values) < 2:
            raise NotEvaluable(needed)
        return functions.steps(values)

    def modes(self) -> list[str]:
        """Return the power modes in which there are runs of each model that the form names."""
        ran = {(rows[0]["model"], rows[0]["power_mode"]) for rows in self.runs.values()}
        return [
            str(mode)
            for mode in self.values("power_mode")
            if all((model, mode) in ran for model in self.models)
        ]

    def settings(self) -> dict[str, tuple[float, ...]]:
        """Return the settings of those modes whose settings are known in numbers.

        What a mode does not name is as in the board's strongest mode.
        """
        settings = {m: self.modes_settings.get(m, {}) for m in self.modes()}
        return {
            mode: tuple(numbers.get(name) or math.inf for name in CLOCKS)
            for mode, numbers in settings.items()
            if any(numbers.get(name) for name in CLOCKS)
        }

    def modes_apart_in(self, setting: str) -> list[tuple[str, str]]:
        """Return pairs of modes (lower, higher) that differ in one setting and in no other."""
        place, modes = CLOCKS.index(setting), self.settings()
        pairs = [
            (low, high)
            for low, a in modes.items()
            for high, b in modes.items()
            if a[place] < b[place] and a[:place] + a[place + 1 :] == b[:place] + b[place + 1 :]
        ]
        if not pairs:
            raise NotEvaluable(f"runs in two power modes that differ in {setting} alone")
        return pairs

    def strongest_mode(self) -> str:
        """Return the mode in which no setting is lower than in another."""
        modes = self.settings()
        top = tuple(max(values) for values in zip(*modes.values(), strict=True))
        strongest = [mode for mode, values in modes.items() if values == top]
        if len(modes) < 2 or not strongest:
            raise NotEvaluable("runs in several power modes, one of them the strongest")
        return strongest[0]

    def pareto(self, model: str = "") -> Front:
        """Return the front over the modes of the runs."""
        modes = self.modes()
        energy_wh = collected(modes, lambda p: self.metric("energy_wh")(model, pm=p))
        return Front(energy_wh, {p: self.metric("e2e_s")(model, pm=p) for p in modes})


def _has(row: Row, wanted: Case) -> bool:
    return all(row[name] == value for name, value in wanted.items())
