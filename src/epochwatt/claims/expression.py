"""Predicates: a small part of Python's expressions, whose comparisons keep their margin.

Allowed: numbers, words, names, tuples, lists, + - * /, comparisons (chains and `in` too), and, or,
not, calls of known functions by name, value[key], list comprehensions and generators. Anything
else is refused, so a predicate reaches nothing but the names that it is given.

A predicate is compiled once; each operation in it becomes a call of `_Evaluation.run`. Three things
differ from Python. A comparison gives a `Judgement`. Nothing is cut short, so every number that is
missing gets named. A result that rests on a missing number (`NotEvaluable`) or on a division by
zero is missing too.
"""

import ast
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from statistics import StatisticsError
from types import CodeType
from typing import Any

from epochwatt.claims import verdict
from epochwatt.claims.verdict import (
    Comparison,
    Judgement,
    NotEvaluable,
    Ratio,
    Tolerated,
    compared,
)
from epochwatt.errors import ConfigError

MAX_CHARACTERS = 1000
MAX_ROUNDS = 20_000  # of all loops of one evaluation
ALLOWED = "numbers, words, + - * /, comparisons, and or not, known functions, comprehensions"


def parse(text: str, where: str, names: Mapping[str, Any]) -> CodeType:
    """Return a predicate, checked and compiled; its file name is `where`.

    Raises ConfigError: it is too long, or holds something that is not allowed; names the character.

    Parameters
    ----------
    text : the expression
    where : file, row and column, for messages
    names : functions and constants that it may use
    """
    functions = frozenset(name for name, value in names.items() if callable(value))
    return _parsed(text, where, functions, frozenset(names) - functions)


@lru_cache(maxsize=1024)  # a claim is judged many times
def _parsed(text: str, where: str, *names: Collection[str]) -> CodeType:
    if len(text) > MAX_CHARACTERS:
        allowed = f"at most {MAX_CHARACTERS} characters"
        raise ConfigError("too long", where=where, found=f"{len(text)}", allowed=allowed)
    try:
        tree = _Rewriting(where, *names).visit(ast.parse(text, mode="eval").body)
        return compile(ast.fix_missing_locations(ast.Expression(tree)), where, "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f"{where}, character {getattr(error, 'offset', None) or 1}"
        raise ConfigError("not an expression", where=place, allowed=ALLOWED) from None


class Log:
    """All comparisons of one evaluation, also those that decide nothing, each with what it read.

    Attributes
    ----------
    reads : metric and factors of each number since the last comparison; whoever reads one adds it
    """

    def __init__(self) -> None:
        self.reads: list[tuple[str, Mapping[str, Any]]] = []
        self.comparisons: list[Comparison] = []

    def take_reads(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Return what was read since the last comparison."""
        reads = tuple(self.reads)
        self.reads.clear()
        return reads


def judge(
    predicate: CodeType, names: Mapping[str, Any], log: Log | None = None
) -> tuple[Judgement | None, tuple[str, ...]]:
    """Return the judgement of a predicate, or None and what is missing.

    Raises ConfigError: it cannot be computed (two words multiplied), or is not a comparison.

    Parameters
    ----------
    names : those that it was parsed with; a function may raise `NotEvaluable`
    log : gets every comparison that could be made
    """
    value, missing = _value(predicate, names, log)
    if not missing and not isinstance(value, Judgement):
        where = predicate.co_filename
        raise ConfigError("neither true nor false", where=where, allowed="a comparison")
    return value, missing


def number(code: CodeType, names: Mapping[str, Any]) -> tuple[float | None, tuple[str, ...]]:
    """Return the number that an expression gives, or None and what is missing.

    Parameters, errors: as of `judge`; ConfigError where it gives anything but a number
    """
    value, missing = _value(code, names)
    if not missing and not isinstance(value, int | float):
        raise ConfigError("not a number", where=code.co_filename, allowed="a number")
    return value, missing


def _value(
    code: CodeType, names: Mapping[str, Any], log: Log | None = None
) -> tuple[Any, tuple[str, ...]]:
    """Return what an expression gives, or None and what is missing."""
    where = code.co_filename
    evaluation = _Evaluation(where, log)
    steps = {"_run": evaluation.run, "_rounds": evaluation.rounds, "_loop": evaluation.loop}
    try:
        value = eval(code, {**names, **_OPERATIONS, **steps, "__builtins__": {}})
    except (TypeError, ValueError) as error:  # of a loop's variables; `run` has all others
        raise ConfigError(f"cannot be computed: {error}", where=where) from error
    if evaluation.missing:
        return None, tuple(dict.fromkeys(evaluation.missing))
    return value, ()


class _Rewriting(ast.NodeVisitor):
    """Turns each operation into a call of `_Evaluation.run`, with its text and loop variables."""

    def __init__(self, where: str, functions: Collection[str], constants: Collection[str]) -> None:
        self.where, self.functions, self.constants = where, functions, constants
        self.variables: tuple[str, ...] = ()  # of the loops around the node
        self.in_condition = False  # of a loop, which compares nothing with a printed number

    def check(
        self, is_right: bool, node: ast.AST, problem: str = "is refused", allowed: Any = ALLOWED
    ) -> None:
        if not is_right:
            place = f"{self.where}, character {getattr(node, 'col_offset', 0) + 1}"
            raise ConfigError(f"{ast.unparse(node)} {problem}", where=place, allowed=allowed)

    def run(self, name: str, node: ast.AST, *parts: ast.AST, keywords: Any = ()) -> ast.Call:
        loop = ast.Dict([ast.Constant(n) for n in self.variables], list(map(_name, self.variables)))
        arguments = [_name(name), ast.Constant(ast.unparse(node)), loop, *map(self.visit, parts)]
        return ast.Call(_name("_run"), arguments, list(keywords))

    def generic_visit(self, node: ast.AST) -> ast.Call:
        name = f"_{type(getattr(node, 'op', node)).__name__}"
        self.check(name in _OPERATIONS, node)
        operands = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return self.run(name, node, *operands)

    def visit_Compare(self, node: ast.Compare) -> ast.Call:
        kinds = [type(op).__name__ for op in node.ops]
        self.check(_SIGNS.keys() >= set(kinds), node)
        sides = [node.left, *node.comparators]
        computed = [any(isinstance(part, ast.Call) for part in ast.walk(side)) for side in sides]
        name = "_Condition" if self.in_condition else "_Compare"
        call = self.run(name, node, *sides)
        call.args[3:3] = [ast.Constant(" ".join(kinds)), ast.Constant(" ".join(map(str, computed)))]
        return call

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        self.check(type(node.value) in (int, float, str), node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        names = {*self.constants, *self.variables}
        self.check(node.id in names, node, "is not a known name", sorted(names))
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        name, functions = getattr(node.func, "id", ""), sorted(self.functions)
        self.check(name in functions, node.func, "is not a known function", functions)
        self.check(all(keyword.arg for keyword in node.keywords), node)
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        return self.run(name, node, *node.args, keywords=keywords)

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> ast.Call:
        outer, loops = self.variables, []
        for loop in node.generators:
            values = self.run("_rounds", loop.iter, loop.iter)
            self.variables += self.loop_variables(loop)
            outer_condition, self.in_condition = self.in_condition, True
            tests: list[ast.expr] = [self.run("_hold", node, *loop.ifs)] if loop.ifs else []
            self.in_condition = outer_condition
            loops.append(ast.comprehension(loop.target, values, tests, is_async=0))
        made = ast.ListComp(self.visit(node.elt), loops)
        self.variables = outer
        nothing = ast.arguments([], [], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.Call(_name("_loop"), [ast.Lambda(nothing, made)], [])

    visit_GeneratorExp = visit_ListComp  # noqa: N815

    def loop_variables(self, loop: ast.comprehension) -> tuple[str, ...]:
        target = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        names = tuple(getattr(variable, "id", "_") for variable in target)
        is_new = not {*self.constants, *self.functions, *self.variables} & set(names)
        is_new = is_new and not any(name.startswith("_") for name in names)
        self.check(is_new and not loop.is_async, loop.target, "cannot be a loop variable")
        return names


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


class _Missing(tuple[()]):
    """Stands for what rests on something that is not there; a loop over it has no rounds."""

    __slots__ = ()


_MISSING = _Missing()


class _Evaluation:
    """One evaluation, which collects what is missing."""

    def __init__(self, where: str, log: Log | None) -> None:
        self.where = where
        self.log = log or Log()
        self.missing: list[str] = []
        self.n_rounds = 0

    def run(
        self, function: Any, text: str, loop: Mapping[str, Any], /, *args: Any, **keys: Any
    ) -> Any:
        """Return what a function gives; `_MISSING` where it or an argument lacks something."""
        if any(value is _MISSING for value in (*args, *keys.values())):
            return _MISSING
        try:
            value = function(*args, **keys)
        except NotEvaluable as error:
            self.missing += error.needed
            return _MISSING
        except (ZeroDivisionError, StatisticsError) as error:  # by data, not by the predicate
            self.missing.append(f"{text}: {error}")
            return _MISSING
        except (TypeError, ArithmeticError, LookupError, ValueError) as error:
            raise ConfigError(f"cannot compute {text}: {error}", where=self.where) from error
        if not isinstance(value, Judgement):
            return value
        where = ", ".join(f"{name}={item}" for name, item in loop.items())
        reads = self.log.take_reads() if value.made else ()

        def placed(c: Comparison) -> Comparison:
            return c._replace(text=c.text or text, where=c.where or where, reads=c.reads or reads)

        self.log.comparisons += map(placed, value.made)
        return Judgement(value.holds, value.margin_pct, tuple(map(placed, value.comparisons)))

    def rounds(self, values: Iterable[Any]) -> list[Any]:
        """Return the rounds of a loop, unless there are too many in all."""
        rounds = list(values)
        self.n_rounds += len(rounds)
        if self.n_rounds > MAX_ROUNDS:
            raise ValueError(f"more than {MAX_ROUNDS} rounds of loops")
        return rounds

    def loop(self, values: Callable[[], list[Any]]) -> list[Any] | _Missing:
        """Return the values of a loop; `_MISSING` where anything in it is."""
        n_missing = len(self.missing)
        made = values()
        return _MISSING if len(self.missing) > n_missing else made


def _compare(kinds: str, computed: str, *sides: Any) -> Judgement:
    is_computed = [word == "True" for word in computed.split()]
    pairs = zip(kinds.split(), sides, sides[1:], pairwise(is_computed), strict=False)
    parts = [compared(left, *_SIGNS[kind], right, of) for kind, left, right, of in pairs]
    return verdict.all_of(parts)._replace(made=tuple(c for part in parts for c in part.made))


def _condition(*arguments: Any) -> Judgement:
    return _compare(*arguments)._replace(made=())


def _computed(operation: Callable[..., float]) -> Callable[..., float]:
    """Return an operation that keeps what is printed apart from our tolerances."""

    def computed(*sides: float) -> float:
        for side in sides:
            if isinstance(side, Tolerated):
                return side.with_operation(operation, *sides)
        return operation(*sides)

    return computed


def _of(kind: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses arguments of another kind."""

    def checked(*values: Any) -> Any:
        if not all(isinstance(value, kind) for value in values):
            raise TypeError("needed: comparisons" if kind is Judgement else "needed: numbers")
        return function(*values)

    return checked


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
_OPERATIONS: dict[str, Callable[..., Any]] = {  # by names that no predicate can use
    "_Add": _of(int | float, _computed(operator.add)),
    "_Sub": _of(int | float, _computed(operator.sub)),
    "_Mult": _of(int | float, _computed(operator.mul)),
    "_Div": _of(int | float, lambda a, b: Ratio(a / b)),
    "_USub": _of(int | float, _computed(operator.neg)),
    "_Not": _of(Judgement, verdict.negated),
    "_And": _of(Judgement, lambda *parts: verdict.all_of(parts)),
    "_Or": _of(Judgement, lambda *parts: verdict.any_of(parts)),
    "_hold": _of(Judgement, lambda *tests: all(test.holds for test in tests)),
    "_Compare": _compare,
    "_Condition": _condition,
    "_Subscript": operator.getitem,
    "_List": lambda *values: list(values),
    "_Tuple": lambda *values: values,
}
