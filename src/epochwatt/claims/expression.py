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
from statistics import StatisticsError
from types import CodeType
from typing import Any

from epochwatt.claims import verdict
from epochwatt.claims.verdict import Judgement, NotEvaluable, compared
from epochwatt.errors import ConfigError

MAX_CHARACTERS = 1000
MAX_ROUNDS = 20_000  # of all loops of one evaluation
ALLOWED = "numbers, words, + - * /, comparisons, and or not, known functions, comprehensions"


def parse(text: str, where: str, names: Mapping[str, Any]) -> CodeType:
    """Return a predicate, checked and compiled; its file name is `where`.

    Parameters
    ----------
    text : the expression
    where : file, row and column, for messages
    names : functions and constants that it may use

    Raises
    ------
    ConfigError : it is too long, or holds something that is not allowed; names the character
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


def judge(
    predicate: CodeType, names: Mapping[str, Any]
) -> tuple[Judgement | None, tuple[str, ...]]:
    """Return the judgement of a predicate, or None and what is missing.

    Parameters
    ----------
    names : those that it was parsed with; a function may raise `NotEvaluable`

    Raises
    ------
    ConfigError : it cannot be computed (two words multiplied), or is not a comparison
    """
    value, missing = _value(predicate, names)
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


def _value(code: CodeType, names: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return what an expression gives, or None and what is missing."""
    where = code.co_filename
    evaluation = _Evaluation(where)
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
        chain = ast.Constant(" ".join(kinds))
        return self.run("_Compare", node, chain, node.left, *node.comparators)

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
            tests: list[ast.expr] = [self.run("_hold", node, *loop.ifs)] if loop.ifs else []
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

    def __init__(self, where: str) -> None:
        self.where = where
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
        placed = (
            c._replace(text=c.text or text, where=c.where or where) for c in value.comparisons
        )
        return value._replace(comparisons=tuple(placed))

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


def _compare(kinds: str, *sides: Any) -> Judgement:
    pairs = zip(kinds.split(), sides, sides[1:], strict=False)
    return verdict.all_of([compared(left, *_SIGNS[kind], right) for kind, left, right in pairs])


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
    "_Add": _of(int | float, operator.add),
    "_Sub": _of(int | float, operator.sub),
    "_Mult": _of(int | float, operator.mul),
    "_Div": _of(int | float, operator.truediv),
    "_USub": _of(int | float, operator.neg),
    "_Not": _of(Judgement, verdict.negated),
    "_And": _of(Judgement, lambda *parts: verdict.all_of(parts)),
    "_Or": _of(Judgement, lambda *parts: verdict.any_of(parts)),
    "_hold": _of(Judgement, lambda *tests: all(test.holds for test in tests)),
    "_Compare": _compare,
    "_Subscript": operator.getitem,
    "_List": lambda *values: list(values),
    "_Tuple": lambda *values: values,
}
