"""Claims that the runs of a panel do not bear out, told in its corner.

Judged on what the figure draws, by the predicates of `config/published/takeaways.csv`, simulated or
measured: somebody who sees the picture alone must not take it for the paper's. A claim for which
runs are missing does not hold where one of the cases that it lists has its runs and fails; else it
says nothing. `claims/claim_words.py` has the words of a comparison.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from epochwatt.claims import claim_words, predicates
from epochwatt.claims.boards import evaluate_boards
from epochwatt.claims.evaluate import Claim, Verdict, evaluate, load_claims
from epochwatt.claims.number_sources import EpochTable, Source
from epochwatt.claims.tolerances import Terms, load_terms
from epochwatt.claims.verdict import Comparison
from epochwatt.errors import ConfigError
from epochwatt.study.runs import TWIN
from epochwatt.text import counted

N_SHOWN = 3  # comparisons of a claim on a panel; its caption and claims.csv have all
QUANTITATIVE = "quant"  # role of a claim that is a list of printed numbers


class Unmet(NamedTuple):
    """A claim that does not hold, in words.

    Attributes
    ----------
    begin : what of it does not hold
    claim : its text and id
    numbers : of each comparison that fails: what is published, what is here
    remarks : on all of them: tolerances, causes, where it holds
    """

    begin: str
    claim: str
    numbers: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """The claim without numbers."""
        return f"{self.begin}: {self.claim}"

    def text(self, most: int | None = None) -> str:
        """Return it in a line, with this many of its numbers at most; None: all."""
        more = (
            []
            if most is None or len(self.numbers) <= most
            else [f"{len(self.numbers) - most} more"]
        )
        return f"{self.head}: {'; '.join([*self.numbers[:most], *more, *self.remarks])}"


def not_borne_out(
    ids: Sequence[str], source: Source, root: Path, titles: Mapping[str, str] | None = None
) -> list[Unmet]:
    """Return the claims that do not hold, in words.

    Parameters
    ----------
    ids : of the claims
    source : what the figure is drawn from
    root : of the checkout
    titles : model or device -> name for people

    Raises
    ------
    ConfigError : there is no such claim, or its predicate is wrong
    """
    terms = load_terms(root)
    return [
        _unmet(verdict, source, terms, titles or {})
        for verdict in failing_verdicts(ids, source, root)
    ]


def _unmet(verdict: Verdict, source: Source, terms: Terms, titles: Mapping[str, str]) -> Unmet:
    claim, held = verdict.claim, _what_holds(verdict, source, terms)
    begin = "Does not hold here"
    if claim.role == QUANTITATIVE:
        begin = "Not as published"
    if _only_off(verdict, source, terms):
        begin = "Direction as published, size not"
    elif held is not None:
        begin = f"Holds here for the {held[0]}, not for the {held[1]}"
    numbers, tolerances = claim_words.unmet(verdict, titles, terms)
    return Unmet(begin, f"{claim.claim} ({claim.id})", tuple(numbers), tuple(tolerances))


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

    Both are empty where it holds, where it is of several numbers of workers or of a number that is
    printed for one of them, or holds with no other one.

    Parameters
    ----------
    name : id of the claim
    others : numbers of workers that there are runs with
    """
    verdicts = failing_verdicts([name], source, root)
    judged = predicates.workers(verdicts[0].claim.predicate) if verdicts else set()
    if len(judged) != 1 or any(c.operator == "near" for c in verdicts[0].comparisons):
        return "", ""
    terms, holds = load_terms(root), []
    for n in sorted(set(others) - judged):
        predicate = predicates.with_workers(verdicts[0].claim.predicate, n)
        (verdict,) = _of([predicate], verdicts[0], source, terms)
        if verdict.status == "holds":
            values = "; ".join(filter(None, map(claim_words.values_of, verdict.comparisons)))
            holds.append(f"holds with {counted(n, 'workers')}" + (f" ({values})" if values else ""))
    return (f"with {counted(min(judged), 'workers')}", "; ".join(holds)) if holds else ("", "")


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
    """Say whether the claim's order of numbers holds, and only numbers beside it fail.

    These are printed ones, or limits that a word such as "negligible" is read as.
    """
    numbers = ("near", *claim_words.ORDERS)
    failing = [c for c in verdict.comparisons if not c.holds]
    if any(c.operator not in numbers or _is_order(c) for c in failing):
        return False
    tree = ast.parse(verdict.claim.predicate, mode="eval").body
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else []
    of_parts = _of([ast.unparse(part) for part in parts], verdict, source, terms)
    return any(
        part.status == "holds" and any(map(_is_order, part.comparisons)) for part in of_parts
    )


def _is_order(comparison: Comparison) -> bool:
    """Say whether a comparison is of two numbers that are both computed."""
    return comparison.operator in claim_words.ORDERS and predicates.is_computed(comparison.text)
