"""Predicates: a small part of Python's expressions, whose comparisons keep their margin.

Allowed: numbers, words, names, tuples, lists, + - * /, comparisons (chains and `in` too), and, or,
not, calls of known functions by name, value[key], list comprehensions and generators. Anything
else is refused, so a predicate reaches nothing but the names that it is given.

A predicate is compiled once, into functions that call each other. Three things differ from Python.
A comparison gives a `Judgement`. Nothing is cut short, so every number that is missing gets named.
A result that rests on a missing number (`NotEvaluable`) or on a division by zero is missing too.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from statistics import StatisticsError
from typing import Any, NamedTuple

from epochwatt.claims.verdict import (
    Comparison,
    Judgement,
    NotEvaluable,
    Ratio,
    Read,
    Tolerated,
    all_of,
    any_of,
    compared,
    negated,
)
from epochwatt.errors import ConfigError

MAX_CHARACTERS = 1000
MAX_ROUNDS = 20_000  # of all loops of one evaluation
ALLOWED = "numbers, words, + - * /, comparisons, and or not, known functions, comprehensions"
# stands for what rests on something that is not there; a loop over it has no rounds
MISSING: Any = type("Missing", (tuple,), {})()


class Log:
    """All that was asked for in an evaluation, and all comparisons that could be made.

    Who reads a number adds it to `reads`; a comparison takes those since the last one.
    """

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.comparisons: list[Comparison] = []
        self.n_taken = 0

    def take_reads(self) -> tuple[Read, ...]:
        """Return the reads since the last call, and mark them as taken."""
        reads = tuple(self.reads[self.n_taken :])
        self.n_taken = len(self.reads)
        return reads


Names = Mapping[str, Any]  # that an expression may use, with their meaning


@dataclass
class _Evaluation:
    """One evaluation: the values of names, loop variables among them, and what is missing."""

    names: dict[str, Any]
    where: str
    log: Log
    missing: list[str] = field(default_factory=list)
    n_rounds: int = 0

    def run(
        self,
        function: Callable[..., Any],
        text: str,
        variables: tuple[str, ...],
        args: list[Any],
        keys: dict[str, Any],
    ) -> Any:
        """Call a function on values; return its result with judgements labelled, or MISSING.

        Adds to `missing` what the function lacks, and to the log the comparisons it makes. Raises
        ConfigError: it cannot be computed with such values.

        `text`: the call as it is written; `variables`: names of the loops around it
        """
        if any(value is MISSING for value in (*args, *keys.values())):
            return MISSING
        try:
            value = function(*args, **keys)
        except NotEvaluable as error:
            self.missing += error.needed
            return MISSING
        except (ZeroDivisionError, StatisticsError) as error:  # by data, not by the predicate
            self.missing.append(f"{text}: {error}")
            return MISSING
        except (TypeError, ArithmeticError, LookupError, ValueError) as error:
            raise ConfigError(f"cannot compute {text}: {error}", where=self.where) from error
        if not isinstance(value, Judgement):
            return value
        where = ", ".join(f"{name}={self.names[name]}" for name in variables)
        reads = self.log.take_reads() if value.made else ()

        def placed(c: Comparison) -> Comparison:
            return c._replace(text=c.text or text, where=c.where or where, reads=c.reads or reads)

        self.log.comparisons += map(placed, value.made)
        return Judgement(value.holds, value.margin_pct, tuple(map(placed, value.comparisons)))


Step = Callable[[_Evaluation], Any]


class Expression(NamedTuple):
    """A predicate or quantity, checked and compiled."""

    where: str  # file, row and column, for messages
    step: Step


def parse(text: str, where: str, names: Names) -> Expression:
    """Check and compile an expression that may use these functions and constants.

    Raises ConfigError: it is too long, or something in it is not allowed, at which character.
    """
    functions = frozenset(name for name, value in names.items() if callable(value))
    return _parsed(text, where, functions, frozenset(names) - functions)


@lru_cache(maxsize=1024)  # a claim is judged many times
def _parsed(
    text: str, where: str, functions: frozenset[str], constants: frozenset[str]
) -> Expression:
    """Compile an expression by the names of its functions and constants, as `parse`."""
    if len(text) > MAX_CHARACTERS:
        allowed = f"at most {MAX_CHARACTERS} characters"
        raise ConfigError("too long", where=where, found=f"{len(text)}", allowed=allowed)
    try:
        tree = ast.parse(text, mode="eval").body
        return Expression(where, _Compiler(where, functions, constants).visit(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f"{where}, character {getattr(error, 'offset', None) or 1}"
        raise ConfigError("not an expression", where=place, allowed=ALLOWED) from None


def judge(
    predicate: Expression, names: Names, log: Log | None = None
) -> tuple[Judgement | None, tuple[str, ...]]:
    """Evaluate a predicate; return its judgement, or None and what is missing.

    Raises ConfigError: it cannot be computed (two words multiplied), or is not a comparison.

    `names`: those that it was parsed with; a function may raise `NotEvaluable`
    `log`: gets every comparison that could be made
    """
    value, missing = _value(predicate, names, log)
    if not missing and not isinstance(value, Judgement):
        where = predicate.where
        raise ConfigError("neither true nor false", where=where, allowed="a comparison")
    return value, missing


def number(expression: Expression, names: Names) -> tuple[float | None, tuple[str, ...]]:
    """Evaluate an expression; return its number, or None and what is missing. Else as `judge`."""
    value, missing = _value(expression, names)
    if not missing and not isinstance(value, int | float):
        raise ConfigError("not a number", where=expression.where, allowed="a number")
    return value, missing


def _value(
    expression: Expression, names: Names, log: Log | None = None
) -> tuple[Any, tuple[str, ...]]:
    """Evaluate an expression; return its value, or None and what is missing, each once."""
    evaluation = _Evaluation(dict(names), expression.where, log or Log())
    try:
        value = expression.step(evaluation)
    except (TypeError, ValueError) as error:  # of a loop's variables; `run` has all others
        raise ConfigError(f"cannot be computed: {error}", where=expression.where) from error
    if evaluation.missing:
        return None, tuple(dict.fromkeys(evaluation.missing))
    return value, ()


class _Compiler(ast.NodeVisitor):
    """Turns each node into a function of the evaluation."""

    def __init__(self, where: str, functions: frozenset[str], constants: frozenset[str]) -> None:
        self.where, self.functions, self.constants = where, functions, constants
        self.variables: tuple[str, ...] = ()  # of the loops around the node
        self.in_condition = False  # of a loop, which compares nothing with a printed number

    def check(
        self, is_allowed: bool, node: ast.AST, problem: str = "is refused", allowed: Any = ALLOWED
    ) -> None:
        """Raise ConfigError, at the character of a node, unless it is allowed."""
        if not is_allowed:
            place = f"{self.where}, character {getattr(node, 'col_offset', 0) + 1}"
            raise ConfigError(f"{ast.unparse(node)} {problem}", where=place, allowed=allowed)

    def call(
        self, function: str | Callable[..., Any], node: ast.AST, *parts: ast.AST, **keys: ast.AST
    ) -> Step:
        """Compile the call of a function, or of one looked up by name, on the parts of a node."""
        text, variables = ast.unparse(node), self.variables
        steps = [self.visit(part) for part in parts]
        named = {name: self.visit(part) for name, part in keys.items()}

        def step(e: _Evaluation) -> Any:
            args, keywords = [s(e) for s in steps], {name: s(e) for name, s in named.items()}
            called = e.names[function] if isinstance(function, str) else function
            return e.run(called, text, variables, args, keywords)

        return step

    def generic_visit(self, node: ast.AST) -> Step:
        """Compile an operator or a display by `_OPERATIONS`."""
        operation = _OPERATIONS.get(type(getattr(node, "op", node)).__name__)
        self.check(operation is not None, node)
        assert operation is not None
        operands = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return self.call(operation, node, *operands)

    def visit_Compare(self, node: ast.Compare) -> Step:
        """Compile a chain of comparisons, all of which have to hold, into one judgement."""
        signs = [type(sign).__name__ for sign in node.ops]
        self.check(_SIGNS.keys() >= set(signs), node)
        sides = [node.left, *node.comparators]
        calls = [[part for part in ast.walk(s) if isinstance(part, ast.Call)] for s in sides]
        computed = [bool(of_side) for of_side in calls]
        keywords = [
            {str(k.arg): k.value.value for call in of_side for k in call.keywords
             if isinstance(k.value, ast.Constant)}
            for of_side in calls
        ]  # fmt: skip
        is_condition = self.in_condition

        def compare(*values: Any) -> Judgement:
            pairs = zip(signs, *map(pairwise, (values, computed, keywords)), strict=True)
            parts = [
                compared(left, *_SIGNS[sign], right, are_computed, written)
                for sign, (left, right), are_computed, written in pairs
            ]
            made = () if is_condition else tuple(c for part in parts for c in part.made)
            return all_of(parts)._replace(made=made)

        return self.call(compare, node, *sides)

    def visit_Constant(self, node: ast.Constant) -> Step:
        value = node.value
        self.check(type(value) in (int, float, str), node)
        return lambda e: value

    def visit_Name(self, node: ast.Name) -> Step:
        name, names = node.id, {*self.constants, *self.variables}
        self.check(name in names, node, "is not a known name", sorted(names))
        return lambda e: e.names[name]

    def visit_Call(self, node: ast.Call) -> Step:
        """Compile the call of a known function by its name."""
        name, functions = getattr(node.func, "id", ""), sorted(self.functions)
        self.check(name in functions, node.func, "is not a known function", functions)
        self.check(all(keyword.arg for keyword in node.keywords), node)
        return self.call(name, node, *node.args, **{str(k.arg): k.value for k in node.keywords})

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Step:
        """Compile a comprehension into a step that gives the list of its elements, or MISSING."""
        outer = self.variables
        loops: list[tuple[Step, tuple[str, ...], bool, Step | None]] = []
        for loop in node.generators:
            values, names = self.call(list, loop.iter, loop.iter), self.loop_variables(loop)
            self.variables += names
            outer_condition, self.in_condition = self.in_condition, True
            condition = self.call(_hold, node, *loop.ifs) if loop.ifs else None
            self.in_condition = outer_condition
            loops.append((values, names, isinstance(loop.target, ast.Tuple), condition))
        element = self.visit(node.elt)
        self.variables = outer

        def rounds(e: _Evaluation, depth: int) -> Iterator[Any]:
            """Yield the element in each round of the loops from this depth on."""
            if depth == len(loops):
                yield element(e)
                return
            values, names, is_tuple, condition = loops[depth]
            for value in values(e):
                e.n_rounds += 1
                if e.n_rounds > MAX_ROUNDS:
                    raise ValueError(f"more than {MAX_ROUNDS} rounds of loops")
                e.names |= zip(names, value if is_tuple else [value], strict=True)
                if condition is None or condition(e):
                    yield from rounds(e, depth + 1)

        def step(e: _Evaluation) -> Any:
            n_missing, made = len(e.missing), list(rounds(e, 0))
            return MISSING if len(e.missing) > n_missing else made

        return step

    visit_GeneratorExp = visit_ListComp  # noqa: N815

    def loop_variables(self, loop: ast.comprehension) -> tuple[str, ...]:
        """Return the names that a loop sets; refuses names that mean something already."""
        target = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        names = tuple(getattr(variable, "id", "_") for variable in target)
        is_new = not {*self.constants, *self.functions, *self.variables} & set(names)
        is_new = is_new and not any(name.startswith("_") for name in names)
        self.check(is_new and not loop.is_async, loop.target, "cannot be a loop variable")
        return names


def _only_on(kind: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it raises TypeError on arguments of another type."""

    def checked(*values: Any) -> Any:
        if not all(isinstance(value, kind) for value in values):
            raise TypeError("needed: comparisons" if kind is Judgement else "needed: numbers")
        return function(*values)

    return checked


def _arithmetic(operation: Callable[..., float]) -> Callable[..., float]:
    """Wrap an operation so that a `Tolerated` side gives a `Tolerated` result.

    Its printed number is computed from the printed numbers of the sides.
    """

    def computed(*sides: float) -> float:
        for side in sides:
            if isinstance(side, Tolerated):
                printed = [s.printed if isinstance(s, Tolerated) else s for s in sides]
                without = None if None in printed else operation(*printed)
                return Tolerated(operation(*map(float, sides)), without, side.tolerance)
        return operation(*sides)

    return _only_on(int | float, computed)


_hold = _only_on(Judgement, lambda *tests: all(test.holds for test in tests))
_SIGNS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "Lt": ("<", operator.lt),
    "LtE": ("<=", operator.le),
    "Gt": (">", operator.gt),
    "GtE": (">=", operator.ge),
    "Eq": ("==", operator.eq),
    "NotEq": ("!=", operator.ne),
    "In": ("in", lambda left, right: left in right),
    "NotIn": ("not in", lambda left, right: left not in right),
}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": _arithmetic(operator.add),
    "Sub": _arithmetic(operator.sub),
    "Mult": _arithmetic(operator.mul),
    "Div": _only_on(int | float, lambda a, b: Ratio(a / b)),
    "USub": _arithmetic(operator.neg),
    "Not": _only_on(Judgement, negated),
    "And": _only_on(Judgement, lambda *parts: all_of(parts)),
    "Or": _only_on(Judgement, lambda *parts: any_of(parts)),
    "Subscript": operator.getitem,
    "List": lambda *values: list(values),
    "Tuple": lambda *values: values,
}
