"""The language of the predicates: a small part of Python's expressions, never `eval`.

Allowed: numbers, words, names, tuples, lists, + - * /, comparisons (chains and `in` too), and, or,
not, calls of known functions by name, CONSTANT[key], list comprehensions and generators. All else
is refused with its place. There is no attribute, no lambda, no slice, no power, no assignment, so
an expression reaches nothing but what it is given.

It differs from Python in four ways. A comparison gives a `Judgement`, and only these can be joined
by and, or, not, all and any. Nothing is cut short: all parts are evaluated, so that everything that
is missing gets named. What cannot be had (`NotEvaluable`), and a division by zero, make whatever
rests on them unknown. And `all` and `any` of nothing are unknown.
"""

import ast
import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from statistics import StatisticsError
from typing import Any, NamedTuple

from epochwatt.claims.verdict import (
    Comparison,
    Judgement,
    NotEvaluable,
    all_of,
    any_of,
    margin_pct,
    negated,
)
from epochwatt.errors import ConfigError

MAX_CHARACTERS = 1000
MAX_NODES = 500
MAX_DEPTH = 30
MAX_STEPS = 100_000  # nodes visited by one evaluation: bounds nested loops

ALLOWED = "numbers, words, + - * /, comparisons, and or not, known functions, comprehensions"

_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ORDER: dict[type, tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_OTHER: dict[type, tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.In: ("in", lambda left, right: left in right),
    ast.NotIn: ("not in", lambda left, right: left not in right),
}
_NODES = (
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, *_ARITHMETIC),
    *(ast.Compare, *_ORDER, *_OTHER, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Store),
    *(ast.Constant, ast.Tuple, ast.List, ast.Subscript),
    *(ast.ListComp, ast.GeneratorExp, ast.comprehension),
)
_NUMBER = (int, float)


class Expression(NamedTuple):
    """An expression that was checked."""

    text: str
    tree: ast.expr
    where: str  # file, row and column, for messages


class Outcome(NamedTuple):
    """What an expression gives: a value, or what is missing."""

    value: Any
    missing: tuple[str, ...]


class _Unknown:
    """Stands for what rests on something that is not there."""


UNKNOWN = _Unknown()


def parse(text: str, where: str, names: Mapping[str, Any]) -> Expression:
    """Return a checked expression.

    Parameters
    ----------
    text : the expression
    where : where it stands, for messages
    names : what it may use

    Raises
    ------
    ConfigError : it is too long, or holds something that is not allowed; says where
    """
    expression = _parsed(text, where)
    _check_names(expression, names)
    return expression


@functools.cache  # a claim is judged many times
def _parsed(text: str, where: str) -> Expression:
    """Return an expression whose names are yet to be checked; ConfigError as `parse`."""
    if len(text) > MAX_CHARACTERS:
        raise _refused(where, 0, f"{len(text)} characters", f"at most {MAX_CHARACTERS}")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = getattr(error, "offset", None) or 1
        raise _refused(where, place - 1, "no expression", ALLOWED) from None
    n_nodes = sum(1 for _ in ast.walk(tree))
    if n_nodes > MAX_NODES:
        raise _refused(where, 0, f"{n_nodes} parts", f"at most {MAX_NODES}")
    expression = Expression(text, tree, where)
    _check(expression, tree, 1)
    return expression


def _refused(where: str, place: int, found: str, allowed: str) -> ConfigError:
    return ConfigError(f"{where}, character {place + 1}: {found}\n  allowed: {allowed}")


def _check(expression: Expression, node: ast.AST, depth: int) -> None:
    """Refuse a node that is not of the language, or lies too deep."""
    if depth > MAX_DEPTH:
        raise _at(expression, node, "nested too deeply", f"at most {MAX_DEPTH} levels")
    if not isinstance(node, _NODES) or _wrong(node):
        found = ast.get_source_segment(expression.text, node) if _has_place(node) else None
        raise _at(expression, node, f"{found or type(node).__name__!r} is refused", ALLOWED)
    for child in ast.iter_child_nodes(node):
        _check(expression, child, depth + 1)


def _wrong(node: ast.AST) -> bool:
    """Return whether a node of an allowed type is refused for what it holds."""
    match node:
        case ast.Constant():
            return type(node.value) not in (int, float, str)
        case ast.Name():
            return node.id.startswith("_")
        case ast.Call():
            return not isinstance(node.func, ast.Name) or any(k.arg is None for k in node.keywords)
        case ast.Subscript():
            return not isinstance(node.value, ast.Name) or isinstance(node.slice, ast.Slice)
        case ast.comprehension():
            return bool(node.is_async) or not _is_target(node.target)
    return False


def _is_target(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(isinstance(part, ast.Name) for part in node.elts)
    return isinstance(node, ast.Name)


def _has_place(node: ast.AST) -> bool:
    return hasattr(node, "lineno")


def _at(expression: Expression, node: ast.AST, found: str, allowed: str) -> ConfigError:
    return _refused(expression.where, getattr(node, "col_offset", 0), found, allowed)


def _check_names(expression: Expression, names: Mapping[str, Any]) -> None:
    """Refuse unknown names, calls of what is no function, and loop variables that hide a name."""
    nodes = list(ast.walk(expression.tree))
    used = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in used if isinstance(node.ctx, ast.Store)}
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in used:
        known = names.get(node.id)
        if isinstance(node.ctx, ast.Store) and node.id in names:
            raise _at(expression, node, f"{node.id} has a meaning", "another loop variable")
        if node.id not in names and (node.id not in bound or id(node) in called):
            functions = sorted(k for k, v in names.items() if callable(v) == (id(node) in called))
            raise _at(expression, node, f"{node.id} is not known", ", ".join(functions))
        if node.id in names and callable(known) != (id(node) in called):
            kind = "a function, to be called" if callable(known) else "no function"
            raise _at(expression, node, f"{node.id} is {kind}", ALLOWED)


def evaluate(expression: Expression, names: Mapping[str, Any]) -> Outcome:
    """Return what an expression gives.

    Parameters
    ----------
    expression : checked, with at least these `names`
    names : functions and constants; a function may raise `NotEvaluable`

    Raises
    ------
    ConfigError : it cannot be computed (two words multiplied); says where
    """
    evaluation = _Evaluation(expression, names)
    value = evaluation.value(expression.tree, {})
    missing = tuple(dict.fromkeys(evaluation.missing))
    return Outcome(None if missing else value, missing)


@functools.cache  # in a loop it is the same each time
def _text(node: ast.expr) -> str:
    return ast.unparse(node)


def judge(
    expression: Expression, names: Mapping[str, Any]
) -> tuple[Judgement | None, tuple[str, ...]]:
    """Return what a predicate says, or None and what is missing; ConfigError as `evaluate`."""
    value, missing = evaluate(expression, names)
    if not missing and not isinstance(value, Judgement):
        raise _refused(expression.where, 0, "neither true nor false", "a comparison")
    return value, missing


class _Evaluation:
    """One walk through an expression."""

    def __init__(self, expression: Expression, names: Mapping[str, Any]) -> None:
        self.expression = expression
        self.names = names
        self.missing: list[str] = []
        self.n_steps = 0

    def value(self, node: ast.expr, loop: Mapping[str, Any]) -> Any:
        """Return the value of a part, given the loop variables around it."""
        self.n_steps += 1
        if self.n_steps > MAX_STEPS:
            raise self.wrong(node, "too many steps", f"at most {MAX_STEPS}")
        method = getattr(self, f"of_{type(node).__name__.lower()}")
        try:
            return method(node, loop)
        except NotEvaluable as error:
            self.missing += error.needed
            return UNKNOWN
        except (ZeroDivisionError, StatisticsError) as error:  # by data, not by the expression
            text = ast.get_source_segment(self.expression.text, node)
            self.missing.append(f"{text}: {error}")
            return UNKNOWN
        except (TypeError, ArithmeticError, LookupError, ValueError) as error:
            raise self.wrong(node, str(error), "what can be computed") from error

    def wrong(self, node: ast.AST, found: str, allowed: str) -> ConfigError:
        text = ast.get_source_segment(self.expression.text, node)
        return _at(self.expression, node, f"{text}: {found}", allowed)

    def of_constant(self, node: ast.Constant, loop: Mapping[str, Any]) -> Any:
        return node.value

    def of_name(self, node: ast.Name, loop: Mapping[str, Any]) -> Any:
        return loop[node.id] if node.id in loop else self.names[node.id]

    def of_tuple(self, node: ast.Tuple, loop: Mapping[str, Any]) -> Any:
        parts = [self.value(part, loop) for part in node.elts]
        return UNKNOWN if UNKNOWN in parts else tuple(parts)

    def of_list(self, node: ast.List, loop: Mapping[str, Any]) -> Any:
        parts = [self.value(part, loop) for part in node.elts]
        return UNKNOWN if UNKNOWN in parts else parts

    def of_subscript(self, node: ast.Subscript, loop: Mapping[str, Any]) -> Any:
        constant, key = self.value(node.value, loop), self.value(node.slice, loop)
        return UNKNOWN if UNKNOWN in (constant, key) else constant[key]

    def of_unaryop(self, node: ast.UnaryOp, loop: Mapping[str, Any]) -> Any:
        operand = self.value(node.operand, loop)
        if operand is UNKNOWN:
            return UNKNOWN
        if isinstance(node.op, ast.Not):
            return negated(self.judged(node.operand, operand))
        return -self.number(operand)

    def of_binop(self, node: ast.BinOp, loop: Mapping[str, Any]) -> Any:
        operands = [self.value(part, loop) for part in (node.left, node.right)]
        if UNKNOWN in operands:
            return UNKNOWN
        return _ARITHMETIC[type(node.op)](*map(self.number, operands))

    def of_boolop(self, node: ast.BoolOp, loop: Mapping[str, Any]) -> Any:
        parts = [self.value(part, loop) for part in node.values]
        if UNKNOWN in parts:
            return UNKNOWN
        judged = [self.judged(n, part) for n, part in zip(node.values, parts, strict=True)]
        return all_of(judged) if isinstance(node.op, ast.And) else any_of(judged)

    def of_compare(self, node: ast.Compare, loop: Mapping[str, Any]) -> Any:
        sides = [self.value(side, loop) for side in (node.left, *node.comparators)]
        if UNKNOWN in sides:
            return UNKNOWN
        text = _text(node)
        where = ", ".join(f"{name}={value}" for name, value in loop.items())
        return all_of(
            [
                _compared(text, where, left, op, right)
                for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
            ]
        )

    def of_call(self, node: ast.Call, loop: Mapping[str, Any]) -> Any:
        name = node.func.id  # type: ignore[attr-defined]
        args = [self.value(part, loop) for part in node.args]
        named = {k.arg: self.value(k.value, loop) for k in node.keywords if k.arg}
        if UNKNOWN in args or UNKNOWN in named.values():
            return UNKNOWN
        value = self.names[name](*args, **named)
        if isinstance(value, Judgement):  # of a helper, which knows no text
            where = ", ".join(f"{key}={val}" for key, val in loop.items())
            told = [
                c._replace(text=c.text or _text(node), where=c.where or where)
                for c in value.comparisons
            ]
            return value._replace(comparisons=tuple(told))
        return value

    def of_listcomp(self, node: ast.ListComp, loop: Mapping[str, Any]) -> Any:
        known = True
        parts = []
        for inner in self.loops(node.generators, dict(loop)):
            part = UNKNOWN if inner is None else self.value(node.elt, inner)
            known = known and part is not UNKNOWN
            parts.append(part)
        return parts if known else UNKNOWN

    of_generatorexp = of_listcomp

    def loops(
        self, generators: list[ast.comprehension], loop: dict[str, Any]
    ) -> Iterator[dict[str, Any] | None]:
        """Yield the loop variables of each round; None for what cannot be known."""
        if not generators:
            yield loop
            return
        first, rest = generators[0], generators[1:]
        items = self.value(first.iter, loop)
        if items is UNKNOWN:
            yield None
            return
        for item in items:
            inner = {**loop, **_bound(first.target, item)}
            tests = [self.value(test, inner) for test in first.ifs]
            if UNKNOWN in tests:
                yield None
            elif all(self.judged(n, t).holds for n, t in zip(first.ifs, tests, strict=True)):
                yield from self.loops(rest, inner)

    @staticmethod
    def number(value: Any) -> Any:
        if isinstance(value, _NUMBER) and not isinstance(value, bool):
            return value
        raise TypeError(f"{type(value).__name__} is no number")

    def judged(self, node: ast.expr, value: Any) -> Judgement:
        if isinstance(value, Judgement):
            return value
        raise self.wrong(node, "neither true nor false", "a comparison, all(...), any(...)")


def _bound(target: ast.expr, item: Any) -> dict[str, Any]:
    """Return loop variables and their values in one round."""
    if isinstance(target, ast.Tuple):
        names = [part.id for part in target.elts if isinstance(part, ast.Name)]
        return dict(zip(names, item, strict=True))
    return {target.id: item}  # type: ignore[attr-defined]


def _compared(text: str, where: str, left: Any, op: ast.cmpop, right: Any) -> Judgement:
    """Return what one comparison says of its two sides."""
    symbol, holds_for = (_ORDER | _OTHER)[type(op)]
    if isinstance(left, Judgement) or isinstance(right, Judgement):
        raise TypeError("a comparison is compared")
    holds, margin = holds_for(left, right), None
    if type(op) in _ORDER and isinstance(left, _NUMBER) and isinstance(right, _NUMBER):
        margin = margin_pct(left, right) if symbol[0] == "<" else margin_pct(right, left)
    elif symbol in ("in", "not in") and hasattr(right, "margin_pct"):
        margin = right.margin_pct(left)
        margin = -margin if symbol == "not in" else margin
    comparison = Comparison(text, where, left, symbol, right, holds, margin)
    return Judgement(holds, margin, (comparison,))
