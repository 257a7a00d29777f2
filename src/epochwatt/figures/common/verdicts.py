"""Claims that the runs of a panel do not bear out, told in its corner.

Judged on what the figure draws, by the predicates of `config/published/takeaways.csv`, simulated or
measured: somebody who sees the picture alone must not take it for the paper's. A claim for which
runs are missing does not hold where one of the cases that it lists has its runs and fails; else it
says nothing.
"""

import ast
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from epochwatt.claims.boards import evaluate_boards
from epochwatt.claims.evaluate import Claim, Verdict, evaluate, load_claims
from epochwatt.claims.number_sources import EpochTable, Source
from epochwatt.claims.tolerances import Terms, load_terms
from epochwatt.claims.verdict import Comparison, Percentage
from epochwatt.errors import ConfigError
from epochwatt.figures.common import predicates
from epochwatt.study.runs import TWIN
from epochwatt.text import counted

N_TOLD = 4  # comparisons of a claim, the largest misses; claims.csv has all
DIGITS = 3
ORDERS = {"<": "less", "<=": "no more", ">": "more", ">=": "no less"}  # in words
SIGNS = {"<=": "≤", ">=": "≥", "==": "="}
PRINTED = ("paper", "mixed")  # sources of a threshold
MODE_SETS = "best_mode_set("
_TOLERANCE = re.compile(r"\bEPS_")
_BESIDE_NAMES = re.compile(  # of what a comparison is of: lists, numbers, names of variables
    r",? ?\b[A-Z]=\[[^]]*\]|,? ?\b\w=-?[\d.]+(?=,|$)|\b\w+="
)
_CLAIM = re.compile(r"^[^:]+: (?P<claim>.*? \(T[\w.-]+\))")  # of a line
_LOOP = re.compile(  # of a list: factor, and its values
    r"\b(?P<factor>\w+)=(?P<variable>\w+)\b.*\bfor (?P=variable) in \((?P<values>[^()]*)\)"
)
_CALL = re.compile(r"[a-z_]\(")


def not_borne_out(ids: Sequence[str], source: Source, root: Path) -> list[str]:
    """Return a line for each claim that does not hold.

    Parameters
    ----------
    ids : of the claims
    source : what the figure is drawn from
    root : of the checkout

    Raises
    ------
    ConfigError : there is no such claim, or its predicate is wrong
    """
    terms = load_terms(root)
    names = terms.sets["MODELS4"]
    return [
        line(
            verdict,
            names,
            _tolerance(verdict, terms) if _only_off(verdict, source, terms) else "",
            _what_holds(verdict, source, terms),
        )
        for verdict in failing_verdicts(ids, source, root)
    ]


def failing_verdicts(ids: Sequence[str], source: Source, root: Path) -> list[Verdict]:
    """Return the verdict on each claim that does not hold. Parameters as of `not_borne_out`."""
    if not ids:
        return []
    claims = {claim.id: claim for claim in load_claims(root)}
    if unknown := [name for name in ids if name not in claims]:
        raise ConfigError(
            "claims of a panel name an unknown claim",
            where="config/plotting.yaml",
            found=unknown[0],
            allowed="ids of config/published/takeaways.csv",
        )
    terms = load_terms(root)
    verdicts = evaluate([claims[name] for name in ids], source, terms)
    judged = [_by_cases(v, source, terms) if v.missing else v for v in verdicts]
    of_own = _on_own_boards([claims[name] for name in ids], source, terms)
    failing = {v.claim.id: v for v in (*of_own, *judged) if v.status == "does_not_hold"}
    return [failing[name] for name in ids if name in failing]


def _on_own_boards(claims: Sequence[Claim], source: Source, terms: Terms) -> list[Verdict]:
    """Return verdicts on measured boards by the general forms of claims, as claims.csv has them.

    The simulated boards are the papers', and are judged by the papers' own forms alone.
    """
    if not isinstance(source, EpochTable):
        return []
    measured = [row for row in source.epochs if row.get("backend") != TWIN]
    return evaluate_boards(claims, EpochTable(measured), terms) if measured else []


def by_workers(name: str, others: Iterable[int], source: Source, root: Path) -> tuple[str, str]:
    """Return in words with how many workers a claim fails, and with how many others it holds.

    Both are empty where it holds, where it is of several numbers of workers, or holds with no
    other one.

    Parameters
    ----------
    name : id of the claim
    others : numbers of workers that there are runs with
    """
    verdicts = failing_verdicts([name], source, root)
    judged = predicates.workers(verdicts[0].claim.predicate) if verdicts else set()
    if len(judged) != 1:
        return "", ""
    terms, holds = load_terms(root), []
    for n in sorted(set(others) - judged):
        predicate = predicates.with_workers(verdicts[0].claim.predicate, n)
        (verdict,) = _of([predicate], verdicts[0], source, terms)
        if verdict.status == "holds":
            values = "; ".join(filter(None, map(_each, verdict.comparisons)))
            holds.append(f"holds with {counted(n, 'workers')}" + (f" ({values})" if values else ""))
    return (f"With {counted(min(judged), 'workers')}", "; ".join(holds)) if holds else ("", "")


def _by_cases(verdict: Verdict, source: Source, terms: Terms) -> Verdict:
    """Return the verdict on a claim with missing runs: one case that fails makes it fail."""
    of_cases = _of(predicates.cases(verdict.claim.predicate), verdict, source, terms)
    failing = [case for case in of_cases if case.status == "does_not_hold"]
    if not failing:
        return verdict
    comparisons = tuple(comparison for case in failing for comparison in case.comparisons)
    return verdict._replace(status="does_not_hold", comparisons=comparisons)


def _of(conditions: Sequence[str], verdict: Verdict, source: Source, terms: Terms) -> list[Verdict]:
    """Return a verdict on each of some conditions of a claim."""
    claims = [verdict.claim._replace(predicate=condition) for condition in conditions]
    return evaluate(claims, source, terms)


def _what_holds(verdict: Verdict, source: Source, terms: Terms) -> tuple[str, str] | None:
    """Return in words which one quantity of a claim holds, and which one not; else None."""
    of_parts = _of(predicates.parts(verdict.claim.predicate), verdict, source, terms)
    of_status = [
        set().union(
            *(predicates.quantities(v.claim.predicate) for v in of_parts if v.status == status)
        )
        for status in ("holds", "does_not_hold")
    ]
    held, failed = of_status
    if len(held) == len(failed) == 1 and held != failed:
        return held.pop(), failed.pop()
    return None


def _only_off(verdict: Verdict, source: Source, terms: Terms) -> bool:
    """Say whether the claim's order of numbers holds, and only printed numbers beside it fail."""
    if any(c.operator != "near" for c in verdict.comparisons if not c.holds):
        return False
    tree = ast.parse(verdict.claim.predicate, mode="eval").body
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else []
    of_parts = _of([ast.unparse(part) for part in parts], verdict, source, terms)
    return any(
        part.status == "holds" and any(c.operator in ORDERS for c in part.comparisons)
        for part in of_parts
    )


def _tolerance(verdict: Verdict, terms: Terms) -> str:
    """Return in words how near a claim's numbers have to be: percentages in points."""
    if "near_pp(" in verdict.claim.predicate:
        return f"{terms.numbers['NEAR_PP']:g} points"
    return f"{terms.numbers['NEAR']:g} %"


def claims_of(lines: Sequence[str]) -> str:
    """Return the claims of lines of `line`, with their ids and without numbers."""
    return "; ".join(match["claim"] for match in map(_CLAIM.search, lines) if match)


def heads(lines: Sequence[str]) -> list[str]:
    """Return lines of `line` up to the id of their claim."""
    return [match[0] for match in map(_CLAIM.search, lines) if match]


def line(
    verdict: Verdict,
    names: Sequence[str],
    near: str = "",
    held: tuple[str, str] | None = None,
) -> str:
    """Return in a line why a claim does not hold: what is here, what is published.

    Parameters
    ----------
    names : of networks, told where a comparison is of one of them
    near : tolerance of the printed numbers in words, where nothing but these fails; else nothing
    held : quantity that the claim holds of and quantity that it fails by; None: it fails as a whole
    """
    failing = [c for c in verdict.comparisons if not c.holds]
    word = "published" if verdict.claim.threshold_source in PRINTED else "read as"
    is_of_several = len(predicates.quantities(verdict.claim.predicate)) > 1
    texts = [
        comparison_text(one, names, word, named=is_of_several and held is None)
        for one in _largest(failing)
    ]
    shown = "; ".join(texts)
    more = f"; {len(failing) - N_TOLD} more" if len(failing) > N_TOLD else ""
    claim = f"{verdict.claim.claim} ({verdict.claim.id})"
    if near:
        beyond = f"beyond the tolerance of {near}"
        return f"Direction as published, size not: {claim}: {shown}{more}, {beyond}"
    if held is not None:
        holds, fails = held
        return f"Holds here for the {holds}, not for the {fails}: {claim}: {fails}, {shown}{more}"
    return f"Does not hold here: {claim}: {shown}{more}"


def _largest(failing: Sequence[Comparison]) -> list[Comparison]:
    """Return as many comparisons as a line has room for, in their order: those that miss most."""
    kept = sorted(range(len(failing)), key=lambda n: -_miss(failing[n]))[:N_TOLD]
    return [failing[n] for n in sorted(kept)]


def _miss(comparison: Comparison) -> float:
    """Return how far two numbers are apart; what is no number is told first."""
    sides = comparison.left, comparison.right
    numbers = [side for side in sides if isinstance(side, float | int)]
    return abs(numbers[0] - numbers[1]) if len(numbers) == len(sides) else math.inf


def comparison_text(
    comparison: Comparison,
    names: Sequence[str] = (),
    word: str = "published",
    *,
    named: bool = False,
) -> str:
    """Return a comparison that fails in words.

    A printed side is a number in the predicate; where both sides are computed, both are
    shown. Parameters as of `line`; `word` is what a limit is: published, or how we read words.

    Parameters
    ----------
    named : begin with the quantity that is compared
    """
    of_one = [name for name in names if re.search(rf"\b{name}\b", comparison.text)]
    where = _BESIDE_NAMES.sub("", comparison.where) or (of_one[0] if len(of_one) == 1 else "")
    is_named = named or predicates.is_statistic(comparison.text)
    quantity = predicates.quantity(comparison.text) if is_named else ""
    begin = ": ".join(filter(None, (where, quantity)))
    text = _sides_text(comparison, word)
    return f"{begin}: {text}" if begin else text


def _sides_text(comparison: Comparison, word: str) -> str:
    left, right = _short(comparison.left), _short(comparison.right)
    if MODE_SETS in comparison.text:  # a letter for each mode
        left, right = " ".join(left), " ".join(right)
    sign = SIGNS.get(comparison.operator, comparison.operator)
    if comparison.operator == "near":
        return f"{left} here, {right} published"
    if comparison.operator == "similar within":
        return f"{_each(comparison) or left} here, published as alike"
    if comparison.operator == "not in":
        return f"{left} is in the {right} here, published as not in it"
    if _CALL.search(comparison.text.split(comparison.operator)[-1]):
        apart = predicates.settings_apart(comparison.text)
        if apart:
            left, right = f"{left} with {apart[0]}", f"{right} with {apart[1]}"
        return f"{left} against {right} here, published as {ORDERS.get(comparison.operator, sign)}"
    with_tolerance = " with our tolerance" if _TOLERANCE.search(comparison.text) else ""
    unit = " %" if isinstance(comparison.left, Percentage) and "%" not in right else ""
    return f"{left} here, {word} {sign} {right}{unit}{with_tolerance}"


def _each(comparison: Comparison) -> str:
    """Return the values of a list with what each is of; nothing where the text does not say it."""
    loop = _LOOP.search(comparison.text)
    names = [name.strip() for name in loop["values"].split(",")] if loop else []
    if loop is None or len(names) != len(comparison.left):
        return ""
    unit = " ms" if "_ms_per_minibatch(" in comparison.text else ""
    pairs = zip(names, comparison.left, strict=True)
    return ", ".join(f"{loop['factor']} {name}: {_short(value)}{unit}" for name, value in pairs)


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_short, value))
    unit = " %" if isinstance(value, Percentage) else ""
    return f"{value:.{DIGITS}g}{unit}" if isinstance(value, float) else str(value)
