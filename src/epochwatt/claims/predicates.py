"""What a claim's predicate is made of: its parts, and the quantities that a comparison is of."""

import ast
from collections.abc import Iterator

from epochwatt.text import counted

QUANTITIES = {  # metric of a predicate -> words
    "stall_s": "stall per epoch",
    "compute_s": "compute per epoch",
    "preprocess_s": "pre-processing per epoch",
    "e2e_s": "E2E per epoch",
    "energy_wh": "energy per epoch",
    "power_w": "power",
    "stall_ms_per_minibatch": "stall per mini-batch",
    "compute_ms_per_minibatch": "compute per mini-batch",
    "gpu_util_pct": "GPU utilisation",
    "gpu_freq_mhz": "GPU clock",
    "cpu_below_peak_time_pct": "time below the peak CPU clock",
}
UNITS = {"_s": " s", "_wh": " Wh", "_w": " W", "_mhz": " MHz", "_per_minibatch": " ms"}
NOUNS = {"w": "workers", "bs": "samples"}  # setting -> what it counts
STATISTICS = {
    "spread": "range over median of the",
    "pct": "change of the",
}  # function -> words
JUDGING = ("near", "near_pp", "similar")  # functions that compare their first argument
QUALIFIERS: dict[type[ast.cmpop], str] = {ast.LtE: "at_most", ast.GtE: "at_least"}
WORKERS = "w"  # key of a number of loader workers


def parts(predicate: str) -> list[str]:
    """Return the conditions that a predicate asks for together, also those inside of `all`."""
    return [ast.unparse(part) for part in _parts(ast.parse(predicate, mode="eval").body)]


def cases(predicate: str) -> list[str]:
    """Return the parts of a predicate, of each case that it lists separately."""
    return [ast.unparse(case) for part in parts(predicate) for case in _cases(part)]


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _parts(value)]
    if (loop := _loop(node)) is not None:
        inner = _parts(loop.elt)
        if len(inner) > 1:
            return [_all(part, loop.generators) for part in inner]
    return [node]


def _cases(part: str) -> list[ast.expr]:
    node = ast.parse(part, mode="eval").body
    loop = _loop(node)
    if loop is None or not isinstance(loop.generators[0].iter, ast.Tuple):
        return [node]
    first, *others = loop.generators
    assert isinstance(first.iter, ast.Tuple)
    return [
        _all(loop.elt, [_over(first, ast.Tuple([case], ast.Load())), *others])
        for case in first.iter.elts
    ]


def _over(loop: ast.comprehension, values: ast.expr) -> ast.comprehension:
    return ast.comprehension(loop.target, values, loop.ifs, loop.is_async)


def _loop(node: ast.expr) -> ast.GeneratorExp | None:
    """Return what is inside of an `all`; None: it is none."""
    if isinstance(node, ast.Call) and _name(node) == "all" and len(node.args) == 1:
        (inside,) = node.args
        return inside if isinstance(inside, ast.GeneratorExp) else None
    return None


def _all(condition: ast.expr, loops: list[ast.comprehension]) -> ast.expr:
    return ast.Call(ast.Name("all", ast.Load()), [ast.GeneratorExp(condition, loops)], [])


def quantities(predicate: str) -> set[str]:
    """Return in words what a predicate is on."""
    return {QUANTITIES[name] for name in _called(ast.parse(predicate, mode="eval"))}


def _called(tree: ast.AST) -> list[str]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [name for call in calls if (name := _name(call)) in QUANTITIES]


def quantity(comparison: str) -> str:
    """Return in words what the sides of a comparison are; nothing where they are of several."""
    sides = _sides(comparison)
    words = {QUANTITIES[name] for side in sides for name in _called(side)}
    if len(words) != 1:
        return ""
    statistic = {STATISTICS.get(_name(side), "") for side in sides if _called(side)}
    return " ".join([*(statistic if len(statistic) == 1 else [""]), *words]).strip()


def is_statistic(comparison: str) -> bool:
    """Say whether the sides of a comparison are a spread, which nobody reads off bars."""
    return any(_name(side) == "spread" for side in _sides(comparison))


def unit(comparison: str) -> str:
    """Return the unit of what is compared, with a space; nothing: a ratio, or not known."""
    sides = [side for side in _sides(comparison) if _called(side)]
    names = {name for side in sides for name in _called(side)}
    if len(names) != 1 or any(_is_ratio(side) for side in sides):
        return ""
    (name,) = names
    return next((text for end, text in UNITS.items() if name.endswith(end)), "")


def is_change(comparison: str) -> bool:
    """Say whether a change is compared, whose sign counts."""
    return any(_name(node) == "pct" for side in _sides(comparison)[:1] for node in _unwrapped(side))


def _unwrapped(side: ast.expr) -> Iterator[ast.expr]:
    """Yield a side, and what it is the mean of."""
    yield side
    if (
        isinstance(side, ast.Call)
        and _name(side) == "mean"
        and isinstance(side.args[0], ast.ListComp)
    ):
        yield side.args[0].elt


def is_ratio(comparison: str) -> bool:
    """Say whether a quotient is compared."""
    return any(map(_is_ratio, _sides(comparison)[:1]))


def _is_ratio(side: ast.expr) -> bool:
    return isinstance(side, ast.BinOp) and isinstance(side.op, ast.Div)


def is_computed(comparison: str) -> bool:
    """Say whether the last side of a comparison is computed, too."""
    last = _sides(comparison)[-1:]
    return any(isinstance(node, ast.Call) for side in last for node in ast.walk(side))


def printed_ends(comparison: str) -> tuple[float | None, float | None]:
    """Return the lower and the upper bound that a comparison has, without our slack; else None."""
    sides = _sides(comparison)
    if len(sides) < 2:
        return None, None
    node = ast.parse(comparison, mode="eval").body
    assert isinstance(node, ast.Compare)
    is_rising = isinstance(node.ops[0], ast.Lt | ast.LtE)
    first, last = (next(iter(_numbers(side)), None) for side in (sides[0], sides[-1]))
    return (first, last) if is_rising else (last, first)


def ratio_settings(comparison: str) -> str:
    """Return in words which one setting a quotient is over: `8 against 1 samples`; else nothing."""
    side = next(iter(_sides(comparison)), None)
    if not isinstance(side, ast.BinOp) or not isinstance(side.op, ast.Div):
        return ""
    left, right = (dict(_settings(part)) for part in (side.left, side.right))
    apart = [key for key in left if left[key] != right.get(key)]
    if len(apart) != 1 or apart[0] not in NOUNS:
        return ""
    a, b = (" ".join(of_side[apart[0]]) for of_side in (left, right))
    return f"{a} against {b} {NOUNS[apart[0]]}"


def settings_apart(comparison: str) -> list[str]:
    """Return in words by which one setting two computed sides differ; nothing: by others."""
    sides = _sides(comparison)
    settings = [dict(_settings(side)) for side in sides]
    if len(sides) != 2 or not all(settings) or settings[0].keys() != settings[1].keys():
        return []
    apart = [key for key in settings[0] if settings[0][key] != settings[1][key]]
    if apart != [WORKERS] or any(len(of_side[WORKERS]) != 1 for of_side in settings):
        return []
    return [counted(float(*of_side[WORKERS]), "workers") for of_side in settings]


def workers(predicate: str) -> set[int]:
    """Return the numbers of loader workers that the metrics of a predicate are of."""
    return {
        keyword.value.value
        for keyword in _workers(ast.parse(predicate, mode="eval"))
        if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, int)
    }


def with_workers(predicate: str, n_workers: int) -> str:
    """Return a predicate with another number of loader workers in each of its metrics."""
    tree = ast.parse(predicate, mode="eval")
    for keyword in _workers(tree):
        keyword.value = ast.Constant(n_workers)
    return ast.unparse(tree)


def _workers(tree: ast.AST) -> list[ast.keyword]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == WORKERS]


def _settings(side: ast.expr) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each keyword of the metrics in a side, with its values."""
    calls = [n for n in ast.walk(side) if isinstance(n, ast.Call) and _name(n) in QUANTITIES]
    pairs = [(str(k.arg), ast.unparse(k.value)) for call in calls for k in call.keywords]
    for key in dict.fromkeys(key for key, _ in pairs):
        yield key, frozenset(value for name, value in pairs if name == key)


def _sides(comparison: str) -> list[ast.expr]:
    """Return what a comparison compares; nothing where its text is none."""
    try:
        node = ast.parse(comparison, mode="eval").body
    except SyntaxError:
        return []
    if isinstance(node, ast.Call) and _name(node) in JUDGING:
        return node.args[:1]
    return [node.left, *node.comparators] if isinstance(node, ast.Compare) else []


def _name(node: ast.expr) -> str:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.func.id if is_call else ""  # type: ignore[attr-defined]


def bound(predicate: str, metric: str, value: float) -> str:
    """Return whether a predicate asks for at most or at least a value; nothing: for neither.

    Parameters
    ----------
    metric : that it is a bound on
    """
    for node in ast.walk(ast.parse(predicate, mode="eval")):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = node.left, node.comparators[0]
            called = {_name(n) for n in ast.walk(left) if isinstance(n, ast.Call)}
            if metric in called and value in _numbers(right):
                return QUALIFIERS.get(type(node.ops[0]), "")
    return ""


def names(predicate: str, metric: str, value: float) -> bool:
    """Say whether a predicate is on a metric and has a value in it, whatever its sign."""
    nodes = list(ast.walk(ast.parse(predicate, mode="eval")))
    called = {_name(node) for node in nodes if isinstance(node, ast.Call)}
    numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return metric in called and abs(value) in numbers


def _numbers(node: ast.expr) -> list[float]:
    """Return a number, or the one that a tolerance is added to or taken from."""
    if isinstance(node, ast.BinOp):
        return _numbers(node.left)
    try:
        return [float(ast.literal_eval(node))]
    except (TypeError, ValueError):
        return []
