"""Comparisons that fail, in words: of what they are, what is published, what is here."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epochwatt.claims import predicates
from epochwatt.claims.evaluate import Claim, Verdict
from epochwatt.claims.tolerances import Terms
from epochwatt.claims.verdict import Comparison, Percentage

DIGITS = 3
ORDERS = {"<": "less", "<=": "no more", ">": "more", ">=": "no less"}  # in words
SIGNS = {"<=": "≤", ">=": "≥", "==": "="}
PRINTED = ("paper", "mixed")  # sources of a threshold
MEDIA = {"hdd": "HDD", "sd": "SD", "ssd": "SSD", "emmc": "eMMC"}  # in the papers' order
_BESIDE_NAMES = re.compile(  # of what a comparison is of: lists, numbers, names of variables
    r",? ?\b[A-Z]=\[[^]]*\]|,? ?\b\w=-?[\d.]+(?=,|$)|\b\w+="
)
_LOOP = re.compile(  # of a list: factor, and its values
    r"\b(?P<factor>\w+)=(?P<variable>\w+)\b.*\bfor (?P=variable) in \((?P<values>[^()]*)\)"
)
_SLACK = re.compile(r"\bEPS\w*")
LOOPED = {"scale": "at {} x the data"}  # factor of a list -> words of one of its values
TO_PCT = 100.0
WHOLE_PCT = 100.0  # no share is above it, so that "at least" it means about it


def unmet(verdict: Verdict, titles: Mapping[str, str], terms: Terms) -> tuple[list[str], list[str]]:
    """Return what a claim fails by, in words: each comparison, then our tolerances.

    Parameters
    ----------
    titles : model or device -> name for people
    """
    failing = [comparison for comparison in verdict.comparisons if not comparison.holds]
    is_of_several = len(predicates.quantities(verdict.claim.predicate)) > 1
    numbers = comparisons(failing, verdict.claim, titles, named=is_of_several)
    return numbers, list(tolerances(failing, terms))


def comparisons(
    failing: Sequence[Comparison], claim: Claim, titles: Mapping[str, str], *, named: bool
) -> list[str]:
    """Return each comparison in words.

    A printed side is a number in the predicate; where both sides are computed, both are shown.

    Parameters
    ----------
    failing : comparisons of the claim
    titles : model or device -> name for people
    named : say which quantity is compared
    """
    begins = [_begin(one, claim, titles, named=named) for one in failing]
    if len(set(begins)) < len(begins):  # by the setting that parts them
        begins = [
            ", ".join(filter(None, (begin, predicates.ratio_settings(one.text))))
            for begin, one in zip(begins, failing, strict=True)
        ]
    texts = [_sides(one, claim.threshold_source in PRINTED) for one in failing]
    return [f"{b}: {t}" if b else t for b, t in zip(begins, texts, strict=True)]


def _begin(one: Comparison, claim: Claim, titles: Mapping[str, str], *, named: bool) -> str:
    """Return what a comparison is of: board, network, medium, modes, quantity."""
    names = {**MEDIA, **titles}
    looped = list(filter(None, _BESIDE_NAMES.sub("", one.where).split(", ")))
    if not looped:
        for kind in (claim.devices.split(), claim.models.split()):
            in_text = [name for name in kind if re.search(rf"\b{name}\b", one.text)]
            looped += in_text if len(kind) > 1 and len(in_text) == 1 else []
    modes = [name for name in looped if len(name) == 1]
    words = [names.get(name, name) for name in looped if len(name) > 1]
    if modes:
        words.append(f"mode {modes[0]}" if len(modes) == 1 else " to ".join(modes))
    if named or predicates.is_statistic(one.text):
        words.append(predicates.quantity(one.text))
    return ", ".join(filter(None, words))


def _sides(one: Comparison, is_printed: bool) -> str:
    """Return both sides of a comparison: the published one, then the one here."""
    unit, sign = predicates.unit(one.text), "+" if predicates.is_change(one.text) else ""
    here = _here(one.left, unit, sign)
    if one.operator == "near":
        factor = "a factor of " if predicates.is_ratio(one.text) else ""
        return f"published {factor}{_printed(one.right, one.right, unit, sign)}, here {here}"
    if one.operator == "similar within":
        return f"published as alike, here {values_of(one) or here}"
    if one.operator in ("in", "not in"):  # of a mode and a front
        published, is_on = ("on", "is not on") if one.operator == "in" else ("off", "is on")
        return f"published as {published} the front, here {here} {is_on} it ({one.right})"
    if predicates.is_computed(one.text):
        apart = predicates.settings_apart(one.text)
        than = f" with {apart[0]} than with {apart[1]}" if apart else ""
        order = ORDERS.get(one.operator, one.operator)
        return f"published as {order}{than}, here {here} against {_here(one.right, unit, sign)}"
    return _limit(one, is_printed, unit, sign)


def _limit(one: Comparison, is_printed: bool, unit: str, sign: str) -> str:
    """Return a bound, or an interval, and what is here; our slack at its ends is left out."""
    low, high = predicates.printed_ends(one.text)
    if low is not None and high is not None:
        ours = max(one.left, one.right, key=lambda side: abs(side - (low + high) / 2))
        ends = f"{low:{sign}g} to {_printed(high, ours, unit, sign)}"
        return f"published {ends}, here {_here(ours, unit, sign)}"
    has_slack = bool(_SLACK.search(one.text))
    end = next((end for end in (low, high) if end is not None and has_slack), None)
    word = "published" if is_printed and (end is not None or not has_slack) else "read as"
    bound = one.right if end is None else end
    limit, here = _printed(bound, one.left, unit, ""), _here(one.left, unit, sign)
    is_whole = isinstance(one.left, Percentage) and (one.operator, bound) == (">=", WHOLE_PCT)
    sign = "≈" if is_whole else SIGNS.get(one.operator, one.operator)
    return f"{word} {sign} {limit}, here {here}"


def values_of(comparison: Comparison) -> str:
    """Return the values of a list with what each is of; nothing where the text does not say it."""
    loop = _LOOP.search(comparison.text)
    names = [name.strip() for name in loop["values"].split(",")] if loop else []
    if loop is None or len(names) != len(comparison.left):
        return ""
    unit, factor = (
        predicates.unit(comparison.text),
        LOOPED.get(loop["factor"], loop["factor"] + " {}"),
    )
    pairs = zip(names, comparison.left, strict=True)
    return ", ".join(f"{_here(value, unit, '')} {factor.format(name)}" for name, value in pairs)


def tolerances(failing: Sequence[Comparison], terms: Terms) -> Iterator[str]:
    """Yield in one phrase how far printed numbers may be off, where some of them are compared."""
    names = [name for one in failing for name in _tolerances(one)]
    words = dict.fromkeys(_tolerance(name, terms) for name in names if name in terms.tolerances)
    if words:
        yield f"our tolerance: {' and '.join(words)}"


def _tolerances(one: Comparison) -> list[str]:
    """Return the names of tolerances that a comparison rests on."""
    if one.operator == "near":
        return ["NEAR_PP" if isinstance(one.right, Percentage) else "NEAR"]
    if one.operator == "similar within":
        return ["SIMILAR"]
    return _SLACK.findall(one.text)


def _tolerance(name: str, terms: Terms) -> str:
    tolerance = terms.tolerances[name]
    if tolerance.unit == "factor":
        return f"{TO_PCT * tolerance.value:g} %"
    return f"{tolerance.value:g} {tolerance.unit}"


def _here(value: Any, unit: str, sign: str) -> str:
    """Return a value here: percentages with a decimal, as in brackets, others with three digits."""
    if isinstance(value, list | tuple):
        return ", ".join(_here(one, unit, sign) for one in value)
    if isinstance(value, Percentage):
        return f"{value:{sign}.1f} %"
    if not isinstance(value, float):
        return _word(value)
    digits = ".0f" if abs(value) >= 10**DIGITS else f".{DIGITS}g"
    return f"{value:{sign}{digits}}{unit}"


def _printed(value: Any, like: Any, unit: str, sign: str) -> str:
    """Return a value with the digits that are printed, of the kind of another one."""
    if not isinstance(value, int | float):
        return _word(value)
    return f"{value:{sign}g}{' %' if isinstance(like, Percentage) else unit}"


def _word(value: Any) -> str:
    """Return what is no number: a set of power modes as its letters apart."""
    return " ".join(value) if isinstance(value, str) else str(value)
