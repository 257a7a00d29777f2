"""Verdicts on the claims of the take-aways: holds, does not hold, or cannot be evaluated.

A predicate is about the papers' runs. A claim that is pure order may have a general form, too,
which names no device, and no more factors than it is about. It is judged on each board (setup,
device and unit) and there in every case: a case is one value of each factor that the form leaves
open. Only cases that have all the runs count; the form holds on a board when it holds in all of
these. So it can be judged on boards, media and modes that the papers never saw.
"""

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from typing import Any, Literal, NamedTuple

from epochwatt import columns
from epochwatt.claims import expression, functions
from epochwatt.claims.expression import Names
from epochwatt.claims.functions import Front, front
from epochwatt.claims.number_sources import (
    BEST,
    ENERGIES,
    HIPCW,
    METRICS,
    PREDICTED,
    EpochTable,
    Row,
    statistic,
)
from epochwatt.claims.tolerances import KEYWORDS, Terms
from epochwatt.claims.verdict import Comparison, Judgement, NotEvaluable, Percentage, Read, all_of
from epochwatt.errors import ConfigError
from epochwatt.tables import read_table

TAKEAWAYS = "config/published/takeaways.csv"
BOARD = ("setup", "device", "instance")
# factors that follow from another, and so vary with it
FOLLOWERS = {
    "num_workers": ("prefetch_factor",),
    "model": ("dataset", "dataset_source", "dataset_scale"),
    "dataset_scale": ("dataset_source",),
}
FOLLOWING = ("prefetch_factor", "dataset")  # by which no two cases differ alone

Status = Literal["holds", "does_not_hold", "not_evaluable"]
Modes = Mapping[str, Mapping[str, float]]  # mode -> setting -> value


class Claim(NamedTuple):
    """One testable claim of a take-away: a row of config/published/takeaways.csv."""

    id: str
    takeaway: str
    paper: str
    section: str
    role: str
    claim: str
    predicate: str
    general_form: str
    threshold_source: str
    devices: str
    models: str
    note: str

    @property
    def fold(self) -> str:
        """Take-away in config/twin/folds.csv whose numbers are left out to judge it held out."""
        number = self.takeaway.partition("-")[0]
        return f"H-{number}" if self.paper == HIPCW else number


class Verdict(NamedTuple):
    """The outcome of judging a claim on a table."""

    claim: Claim
    board: str  # of the general form: setup, device, instance; "" for the papers' own form
    status: Status
    margin_pct: float | None  # of verdict.py: positive where it holds
    comparisons: tuple[Comparison, ...]  # that decide it: all that fail, else the nearest to it
    missing: tuple[str, ...]  # of `not_evaluable`
    inputs: tuple[str, ...]  # ids of the runs, or of the printed values, that were read
    n_cases: int  # judged: 1, or the settings in which a board has the runs of a general form
    made: tuple[Comparison, ...] = ()  # all of it, also where runs of others are missing

    @property
    def sides(self) -> str:
        """The deciding comparisons in words."""
        return "; ".join(map(str, self.comparisons))


def load_claims(root: Path = Path()) -> list[Claim]:
    """Read config/published/takeaways.csv below `root`, the checkout.

    Raises ConfigError: the file is missing, its columns differ, or an id is there twice.
    """
    claims: dict[str, Claim] = {}
    for line, row in read_table(root / TAKEAWAYS):
        where = f"{TAKEAWAYS}, line {line}"
        row.pop("tolerances", "")  # of tables of before: nobody read it
        if tuple(row) != Claim._fields:
            raise ConfigError("other columns", where=where, found=row, allowed=Claim._fields)
        if row["id"] in claims:
            raise ConfigError(f"id {row['id']} is there twice", where=where)
        claims[row["id"]] = Claim(**row)
    if not claims:
        raise ConfigError("no claims", where=TAKEAWAYS, allowed=Claim._fields)
    return list(claims.values())


def evaluate(claims: Iterable[Claim], table: EpochTable, terms: Terms) -> list[Verdict]:
    """Judge each claim's predicate on the epochs of one backend; verdicts in order.

    Raises ConfigError: a predicate is not allowed, or cannot be computed.
    """
    verdicts = []
    for claim in claims:
        log = expression.Log()
        judgement, missing = _judged(claim, table, terms, log)
        verdict = _verdict(claim, "", judgement, missing, table.inputs)
        verdicts.append(verdict._replace(made=tuple(log.comparisons)))
    return verdicts


def reads_of(claims: Iterable[Claim], terms: Terms) -> list[Read]:
    """List all numbers that predicates ask for, by judging them on no data.

    Raises ConfigError as `evaluate`.
    """
    log = expression.Log()
    for claim in claims:
        _judged(claim, EpochTable(), terms, log)  # fills the log
    return log.reads


def _judged(
    claim: Claim, table: EpochTable, terms: Terms, log: expression.Log
) -> tuple[Judgement | None, tuple[str, ...]]:
    """Judge a claim on a table, or say what is missing; `table.inputs` and `log` get the reads."""
    table.inputs.clear()
    names = namespace(table, claim.paper, terms, log)
    where = f"{TAKEAWAYS}, {claim.id}, predicate"
    return expression.judge(expression.parse(claim.predicate, where, names), names, log)


def _verdict(
    claim: Claim,
    board: str,
    judgement: Judgement | None,
    missing: tuple[str, ...],
    inputs: Iterable[str],
    n_cases: int = 1,
) -> Verdict:
    """Build a verdict from a judgement; without one it is not evaluable, for what is `missing`."""
    read = tuple(sorted(inputs))
    if judgement is None:
        return Verdict(claim, board, "not_evaluable", None, (), missing, read, 0)
    status: Status = "holds" if judgement.holds else "does_not_hold"
    margin, comparisons = judgement.margin_pct, judgement.comparisons
    return Verdict(claim, board, status, margin, comparisons, (), read, n_cases)


def _shared_names(terms: Terms) -> Names:
    return {**terms.constants(), **functions.PLAIN, **functions.tolerant(terms.numbers)}


def namespace(
    table: EpochTable, paper: str, terms: Terms, log: expression.Log | None = None
) -> Names:
    """Return the functions and constants that a predicate about one paper may use, by name.

    The functions read `table`, and add each read to `log`; NotEvaluable where it has no such run.
    """
    reads = (log or expression.Log()).reads

    def run(
        metric: str, device: str, model: str, keys: dict[str, Any], **more: str
    ) -> dict[str, Any]:
        """Return the factors of a run that is read, and log them."""
        factors = {"setup": paper, **terms.factors(device, model, keys)}
        reads.append(Read(metric, {**factors, "epoch": "1+", **more}))
        return factors

    def metric(name: str) -> Callable[..., float]:
        """Return the function of a predicate that has the metric's name, as `e2e_s(device, model)`.

        It gives the metric, in its own unit, of the run with the factors `keys`; the others are the
        paper's defaults. `epoch`: the set of epochs, as of `statistic`.
        """

        def number(device: str, model: str, epoch: str = "1+", **keys: Any) -> float:
            return table.number(name, run(name, device, model, keys, epoch=epoch), epoch)

        return number

    def predicted(name: str) -> Callable[..., Percentage]:
        def number(device: str, model: str, pm: str) -> Percentage:
            run(name, device, model, {"pm": pm})
            return Percentage(table.predicted(name, device, model, pm))

        return number

    def epoch_values(metric: str, device: str, model: str, instance: str) -> list[float]:
        """Return a metric of each epoch of one unit's 15 h run."""
        factors = run(metric, device, model, {"instance": instance})
        return table.series(metric, factors, terms.long_run_epochs[device])

    def idle_power_w(device: str, state: str, scope: str, pm: str = "") -> float:
        """Return the power of an idle board; by default in its default mode."""
        keys = {"pm": pm} if pm else {}
        factors = run("idle_power_w", device, "", keys, epoch="", state=state)
        return table.idle_w(factors, state, scope)

    def baseload_wh(device: str, model: str, **keys: Any) -> float:
        """Return idle power (i) of the mode, by the module's sensors, times the epoch's time."""
        factors = run("baseload_wh", device, model, keys)
        idle_w = table.idle_w(factors, "i", "module")
        return idle_w * table.number("e2e_s", factors, "1+") / 3600.0

    def pareto(device: str, model: str) -> Front:
        """Return the front over the modes that the papers run the model in."""
        modes = terms.sets["MODES"][model]
        return front(modes, lambda name, mode: metric(name)(device, model, pm=mode))

    def best_mode_set(device: str) -> str:
        """Return the modes that the time prediction learns from best, as letters in order."""
        run(BEST, device, "", {})
        return str(table.predicted(BEST, device, "", ""))

    def software_stack(device: str) -> list[str]:
        """Return the software stack of each run of a device, which no table tells."""
        raise NotEvaluable(f"software stacks of the runs of {device}")

    def software_spread_pct() -> Percentage:
        """Return the spread over other software stacks, of which the paper describes no run."""
        raise NotEvaluable("runs with other software stacks; the paper describes none")

    return {
        **_shared_names(terms),
        **{name: metric(name) for name in METRICS},
        **{name: predicted(name) for name in PREDICTED},
        "epoch_values": epoch_values,
        "idle_power_w": idle_power_w,
        "baseload_wh": baseload_wh,
        "pareto": pareto,
        "best_mode_set": best_mode_set,
        "software_stack": software_stack,
        "software_spread_pct": software_spread_pct,
    }


def evaluate_boards(claims: Iterable[Claim], table: EpochTable, terms: Terms) -> list[Verdict]:
    """Judge each claim that has a general form on each board of a table.

    Raises ConfigError: a general form is not allowed, or cannot be computed.
    """
    boards: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in table.epochs:
        boards[tuple(str(row[name]) for name in BOARD)].append(row)
    names = case_names([], {}, terms, frozenset(), expression.Log())
    forms = [
        (c, expression.parse(c.general_form, f"{TAKEAWAYS}, {c.id}, general_form", names))
        for c in claims
        if c.general_form
    ]
    return [
        _on_board(claim, form, rows, table.power_modes.get(board[1], {}), terms)
        for board, rows in boards.items()
        for claim, form in forms
    ]


def _on_board(
    claim: Claim, form: expression.Expression, rows: list[Row], modes: Modes, terms: Terms
) -> Verdict:
    """Judge a general form on one board, in every case that has the runs; it has to hold in all."""
    nodes = list(ast.walk(ast.parse(claim.general_form, mode="eval")))
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    judged: list[tuple[Row, Judgement]] = []
    missing: list[tuple[str, ...]] = []
    inputs: set[str] = set()
    for factors, case_rows in _cases(nodes, rows):
        log = expression.Log()
        names = case_names(case_rows, modes, terms, named, log)
        judgement, needed = expression.judge(form, names, log)
        if judgement is None:
            words = [factors[k] for k in ("model", "storage", "power_mode") if k in factors]
            where = f" ({', '.join(words)})" if words else ""
            missing.append(tuple(f"{what}{where}" for what in needed))
        else:
            judged.append((factors, judgement))
            inputs |= {read.factors["run"] for read in log.reads}
    board = " ".join(str(rows[0][name]) for name in BOARD)
    if not judged:
        return _verdict(claim, board, None, min(missing, key=len), ())
    factors_shown = [  # the network, and what the cases of the board differ in
        name
        for name in judged[0][0]
        if name == "model"
        or (name not in FOLLOWING and any(f[name] != judged[0][0][name] for f, _ in judged))
    ]
    judgements = []
    for factors, judgement in judged:  # each comparison says of which case it is
        case = ", ".join(f"{name}={factors[name]}" for name in factors_shown)
        comparisons = tuple(
            c._replace(where=", ".join(filter(None, (c.where, case))))
            for c in judgement.comparisons
        )
        judgements.append(judgement._replace(comparisons=comparisons))
    return _verdict(claim, board, all_of(judgements), (), inputs, len(judged))


def _cases(form: Iterable[ast.AST], rows: Iterable[Row]) -> list[tuple[Row, list[Row]]]:
    """Split rows into the cases of a form: values of the factors it does not vary, and rows.

    `form`: the nodes of its syntax tree
    """
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
    return [(dict(zip(fixed, values, strict=True)), alike) for values, alike in cases.items()]


def case_names(
    rows: Iterable[Row],
    mode_settings: Modes,
    terms: Terms,
    named: Set[str],
    log: expression.Log,
) -> Names:
    """Return the functions and constants that a general form may use on one case, by name.

    `named`: all names of the form, the models that it is about among them; `log`: gets what is read
    """
    runs: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        runs[row["run"]].append(row)
    scopes = {row["power_scope"] for own in runs.values() for row in own} - {""}

    def values(factor: str) -> list[Any]:
        return list(dict.fromkeys(own[0][factor] for own in runs.values()))

    def metric(name: str) -> Callable[..., float]:
        def number(model: str = "", epoch: str = "1+", **keys: Any) -> float:
            wanted = {KEYWORDS[key]: value for key, value in keys.items()}
            wanted |= {"model": model} if model else {}
            found = [r for r, own in runs.items() if wanted.items() <= own[0].items()]
            if len(found) != 1:
                wish = " ".join(f"{key}={value}" for key, value in wanted.items())
                raise NotEvaluable(f"one run with {wish} ({len(found)} are there)")
            if name in ENERGIES and len(scopes) > 1:
                raise NotEvaluable(f"one power scope, not {' and '.join(sorted(scopes))}")
            run_rows = runs[found[0]]
            value = statistic(name, run_rows, epoch)
            log.reads.append(Read(name, {**run_rows[0], "epoch": epoch}))
            return value

        return number

    def pairs(ordered: list[Any], needed: str) -> list[tuple[Any, Any]]:
        if len(ordered) < 2:
            raise NotEvaluable(needed)
        return functions.steps(ordered)

    def neighbours(word: str) -> list[tuple[float, float]]:
        """Return each value of a factor of numbers with the next larger one."""
        return pairs(sorted(values(KEYWORDS[word])), f"two values of {word}")

    def media() -> list[tuple[str, str]]:
        """Return each storage medium with the next slower one."""
        there = values("storage")
        by_speed = [name for name in terms.sets["MEDIA_BY_SPEED"] if name in there]
        return pairs(by_speed, "runs on two media")

    def modes() -> list[str]:
        """Return the power modes in which there are runs of each model that the form names."""
        ran = {(own[0]["model"], own[0]["power_mode"]) for own in runs.values()}
        models = named & set(values("model"))
        return [m for m in values("power_mode") if all((model, m) in ran for model in models)]

    def settings() -> dict[str, tuple[float, ...]]:
        """Return the settings of those modes whose settings are known in numbers.

        What a mode does not name is as in the board's strongest mode.
        """
        known = {}
        for mode in modes():
            numbers = [mode_settings.get(mode, {}).get(name) for name in columns.CLOCKS]
            if any(numbers):
                known[mode] = tuple(number or math.inf for number in numbers)
        return known

    def modes_apart_in(setting: str) -> list[tuple[str, str]]:
        """Return pairs of modes (lower, higher) that differ in one setting and in no other."""
        n, known = columns.CLOCKS.index(setting), settings()
        apart = [
            (low, high)
            for low, a in known.items()
            for high, b in known.items()
            if a[n] < b[n] and a[:n] + a[n + 1 :] == b[:n] + b[n + 1 :]
        ]
        if not apart:
            raise NotEvaluable(f"runs in two power modes that differ in {setting} alone")
        return apart

    def strongest_mode() -> str:
        """Return the mode in which no setting is lower than in another."""
        known = settings()
        top = tuple(max(numbers) for numbers in zip(*known.values(), strict=True))
        strongest = [mode for mode, numbers in known.items() if numbers == top]
        if len(known) < 2 or not strongest:
            raise NotEvaluable("runs in several power modes, one of them the strongest")
        return strongest[0]

    def pareto(model: str = "") -> Front:
        """Return the front over the modes of the runs."""
        return front(modes(), lambda name, mode: metric(name)(model, pm=mode))

    asked = (neighbours, media, modes, modes_apart_in, strongest_mode, pareto)
    return {
        **_shared_names(terms),
        **{name: metric(name) for name in METRICS},
        **{function.__name__: function for function in asked},
    }
