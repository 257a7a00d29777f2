"""`results/tables/comparisons.csv`: each comparison of each claim, and what is printed of it.

A claim is judged here and nowhere else. Figures and pages read the table: what is published under
an id is wrong here where a row with that id does not hold.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from epochwatt import columns
from epochwatt.claims.claims_table import FAILS, GENERAL, HOLDS, PAPER, ComparisonRow
from epochwatt.claims.evaluate import Verdict
from epochwatt.claims.tolerances import KEYWORDS, PRINTED, Terms
from epochwatt.claims.verdict import Change, Comparison, Percentage, Ratio, Tolerated
from epochwatt.published.folds import Point, point
from epochwatt.published.numbers import Config, Fact
from epochwatt.tables import cell_text

COLUMN_OF = {  # metric of a predicate -> column of epochs.csv, where that has another name
    "energy_wh": "energy_paper_wh",
    "power_w": "power_mean_w",
    "idle_power_w": "power_mean_w",
    "iops": "read_iops",
}
MEDIA = {"hdd": "HDD", "sd": "SD", "ssd": "SSD", "emmc": "eMMC"}
APART = {  # factor that tells comparisons of a claim apart -> how its values are written
    "device": "{}",
    "model": "{}",
    "storage": "{}",
    "num_workers": "{} workers",
    "batch_size": "{} samples",
    "power_mode": "mode {}",
    "dvfs": "DVFS {}",
    "dataset_scale": "{} x the data",
    "instance": "unit {}",
    "state": "state {}",
    "epoch": "epoch {}",
}
MOST_VALUES = 2  # of a factor that are named; of more the comparison is over them
ORDERS = {"<": "less", "<=": "no more", ">": "more", ">=": "no less", "==": "the same", "!=": "!="}
SIGNS = {"<=": "≤", ">=": "≥", "==": "="}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
TOLERANCES = {"near": "NEAR", "similar within": "SIMILAR"}  # of an operator
PRINTED_SOURCES = ("paper", "mixed")  # of a threshold

Reads = frozenset[Point]  # runs and metrics


def claim_cells(verdict: Verdict, backend: str) -> dict[str, str]:
    """Return the cells that claims.csv and comparisons.csv share: claim, backend, board, status."""
    claim = verdict.claim
    return {
        "claim": claim.id,
        "takeaway": claim.takeaway,
        "paper": claim.paper,
        "role": claim.role,
        "claim_text": claim.claim,
        "backend": backend,
        "form": GENERAL if verdict.board else PAPER,
        "board": verdict.board,
        "status": verdict.status,
    }


def comparison_rows(
    verdict: Verdict,
    backend: str,
    facts: Mapping[Reads, Sequence[Fact]],
    titles: Mapping[str, str],
    terms: Terms,
) -> list[ComparisonRow]:
    """Turn each comparison of a verdict into a row of comparisons.csv.

    A verdict without a comparison on data is one row, with its status.

    `facts`: `facts_by_reads`; `titles`: model or device -> name for people
    """
    claim, shared = verdict.claim, claim_cells(verdict, backend)
    comparisons = [c for c in verdict.made or verdict.comparisons if any(c.computed)]
    if not comparisons:
        return [ComparisonRow(**shared, verdict=verdict.status)]
    is_printed = claim.threshold_source in PRINTED_SOURCES
    rows = []
    for made, subject in zip(comparisons, _subjects(comparisons, titles), strict=True):
        observed, sign, limit = made.left, made.operator, made.right
        if made.computed == (False, True) and sign in TURNED:
            observed, sign, limit = made.right, TURNED[sign], made.left
        # one side is a number in the predicate, and no set that the other is held against
        has_number = not all(made.computed) and sign not in ("similar within", "in", "not in")
        printed = getattr(limit, "printed", limit) if has_number else None
        unit = _unit(observed, made)
        is_order = all(made.computed) and sign in ORDERS
        if is_order:
            published = f"published as {ORDERS[sign]}"
            sides = zip((observed, limit), _sides(made), strict=True)
            here = " against ".join(shown(value, unit) + words for value, words in sides)
        else:
            words = "published" if is_printed and printed is not None else "read as"
            published, here = _in_words(sign, printed, observed, limit, unit, words)
        if sign == "similar within":
            here = _series(made, observed, unit) or here
        rows.append(
            ComparisonRow(
                **shared,
                comparison=f"{made.text} [{made.where}]" if made.where else made.text,
                subject=subject,
                device=_only(made, "device"),
                model=_only(made, "model"),
                metric=" ".join(dict.fromkeys(read.metric for read in made.reads)),
                published_id=" ".join(_ids(made, claim.paper, printed, facts)),
                operator=sign,
                printed=_cell(printed),
                observed=_cell(observed),
                limit=_cell(limit),
                unit=unit,
                tolerance=_tolerance(made, terms),
                verdict=HOLDS if made.holds else FAILS,
                margin_pct="" if made.margin_pct is None else f"{made.margin_pct:.3g}",
                published=published,
                here=here,
                in_words=f"{published}, here {here}",
            )
        )
    return rows


def facts_by_reads(facts: Iterable[Fact]) -> dict[Reads, list[Fact]]:
    """Group published numbers by the runs and metrics that they are of."""
    by_reads: dict[Reads, list[Fact]] = defaultdict(list)
    for fact in facts:
        # `(stall_s+compute_s)/e2e_s` is of three metrics, `median_power_w` of one
        formula = fact.metric.replace("median_", "").strip("()").replace(")/", "/")
        metrics = formula.replace("+", "/").split("/")
        reads = frozenset(_point(fact.paper, run, name) for run in fact.runs for name in metrics)
        by_reads[reads].append(fact)
    return by_reads


def _point(paper: str, config: Config, metric: str) -> Point:
    return (*point(paper, dict(config), "")[:-1], metric)


def _ids(
    made: Comparison, paper: str, printed: Any, facts: Mapping[Reads, Sequence[Fact]]
) -> Iterator[str]:
    """Yield the ids of the printed numbers that a comparison judges.

    Where the predicate has a number, the facts that print it and are of the same runs and metrics
    or of more; else all facts of exactly the same ones.
    """
    reads = frozenset(
        _point(paper, {PRINTED.get(k, k): v for k, v in factors.items()}, metric)
        for metric, factors in made.reads
    )
    number = abs(printed) if isinstance(printed, int | float) else None
    for fact_reads, alike in facts.items() if reads else ():
        for fact in alike:
            ends = [abs(end) for end in (fact.value, fact.value_hi) if end is not None]
            prints_it = number in ends and reads <= fact_reads
            if prints_it or (printed is None and reads == fact_reads):
                yield fact.id


def _only(made: Comparison, key: str) -> str:
    """Return the value of a factor that all reads of a comparison share; empty: they differ."""
    values = {str(read.factors[key]) for read in made.reads}
    return values.pop() if len(values) == 1 else ""


def _unit(observed: Any, made: Comparison) -> str:
    """Return the unit of what is compared; empty for ratios, counts and words."""
    values = observed if isinstance(observed, list | tuple) else [observed]
    if any(isinstance(value, Percentage) for value in values):
        return "%"
    metrics = {read.metric for read in made.reads}
    if len(metrics) != 1 or not all(type(value) is float for value in values):
        return ""
    metric = metrics.pop().removesuffix("_per_minibatch")
    return columns.UNIT_OF_ENDING.get(metric.rpartition("_")[2], "")


def _subjects(comparisons: Sequence[Comparison], titles: Mapping[str, str]) -> list[str]:
    """Name each comparison of a claim by the factors and metrics that tell it from others."""
    names = {**MEDIA, **titles}
    subjects: list[list[str]] = [[] for _ in comparisons]
    keys: list[tuple[Any, ...]] = [() for _ in comparisons]  # values of the factors used so far
    for factor, form in APART.items():
        values = [_values(c, factor) for c in comparisons]
        longer_keys = [(*key, v) for key, v in zip(keys, values, strict=True)]
        if len(set(longer_keys)) > len(set(keys)):  # this factor tells more of them apart
            keys = longer_keys
            for words, own_values in zip(subjects, values, strict=True):
                if 0 < len(own_values) <= MOST_VALUES:
                    own_words = " to ".join(names.get(v, v) for v in own_values)
                    words.append(_counted(form, own_words))
    metrics = [tuple(dict.fromkeys(read.metric for read in c.reads)) for c in comparisons]
    for words, c, own_metrics in zip(subjects, comparisons, metrics, strict=True):
        if len(set(metrics)) > 1:
            words.append(" and ".join(columns.label(COLUMN_OF.get(m, m)) for m in own_metrics))
        elif not words and c.where:
            words += [names.get(v := part.partition("=")[2], v) for part in c.where.split(", ")]
    return list(map(", ".join, subjects))


def _counted(form: str, words: str) -> str:
    """Fill a form of `APART`: of one worker or sample its noun is singular."""
    return form.removesuffix("s").format(words) if words == "1" else form.format(words)


def _sides(made: Comparison) -> tuple[str, str]:
    """Return what tells the sides of `a(w=1) < a(w=0)` apart: ` (1 worker)`, ` (0 workers)`.

    Empty: not one keyword alone does.
    """
    left, right = made.keywords
    factors = {**KEYWORDS, "epoch": "epoch"}
    apart = [word for word in left.keys() | right.keys() if left.get(word) != right.get(word)]
    if len(apart) != 1 or apart[0] not in left.keys() & right.keys() & factors.keys():
        return "", ""
    form = APART[factors[apart[0]]]
    first, second = (_counted(form, str(side[apart[0]])) for side in (left, right))
    return f" ({first})", f" ({second})"


def _series(made: Comparison, observed: Any, unit: str) -> str:
    """Name results by the one factor that they differ in: `1, 4 workers: 9.1, 9.3 s`."""
    values = {name: _values(made, name) for name in APART}
    differing = [name for name, of_factor in values.items() if len(of_factor) > 1]
    if len(differing) != 1 or len(made.reads) != len(observed):
        return ""
    numbers = ", ".join(shown(value, "") for value in observed)
    return (
        f"{APART[differing[0]].format(', '.join(values[differing[0]]))}: {numbers} {unit}".rstrip()
    )


def _values(made: Comparison, factor: str) -> tuple[str, ...]:
    """Return the distinct values of a factor that a comparison reads, as text, in order."""
    values = [read.factors.get(factor) for read in made.reads]
    words = [f"{v:g}" if isinstance(v, float) else str(v) for v in values if v not in (None, "")]
    return tuple(dict.fromkeys(words))


def _tolerance(made: Comparison, terms: Terms) -> str:
    """Return our tolerance in a comparison, with its unit; none of a limit that is all ours."""
    name = TOLERANCES.get(made.operator, "")
    if name == "NEAR" and isinstance(made.right, Percentage):
        name = "NEAR_PP"
    for side in (made.left, made.right):
        if not name and isinstance(side, Tolerated) and terms.is_slack(side.tolerance):
            name = side.tolerance
    if not name:
        return ""
    tolerance = terms.tolerances[name]
    if tolerance.unit == "factor":
        return f"{100.0 * tolerance.value:g} %"
    return f"{tolerance.value:g} {tolerance.unit}"


def _in_words(
    sign: str, printed: Any, observed: Any, limit: Any, unit: str, read_as: str
) -> tuple[str, str]:
    """Put into words what is published and what is here, for all but orders of two results.

    `read_as`: word before the limit: published, or read as
    """
    here = shown(observed, unit)
    if sign == "similar within":
        return "published as alike", here
    if sign in ("in", "not in"):  # of a mode and a front
        published, is_on = ("on", "is not on") if sign == "in" else ("off", "is on")
        return f"published as {published} the front", f"{here} {is_on} it ({limit})"
    number = shown(limit, unit)
    if isinstance(printed, int | float):
        number = f"{printed:{'+' if isinstance(observed, Change) else ''}g} {unit}".rstrip()
    if sign == "near":
        factor = "a factor of " if isinstance(observed, Ratio) else ""
        return f"published {factor}{number}", here
    is_whole = unit == "%" and (sign, printed) == (">=", 100)  # no share is above it
    return f"{read_as} {'≈' if is_whole else SIGNS.get(sign, sign)} {number}", here


def shown(value: Any, unit: str) -> str:
    """Format a result with its unit: percentages with a decimal, others with three digits."""
    if isinstance(value, list | tuple):
        return ", ".join(shown(part, unit) for part in value)
    if isinstance(value, Percentage):
        return f"{value:{'+' if isinstance(value, Change) else ''}.1f} %"
    if not isinstance(value, float):
        return " ".join(value) if isinstance(value, str) else str(value)
    return f"{value:{'.0f' if abs(value) >= 1000 else '.3g'}} {unit}".rstrip()


def _cell(value: Any) -> str:
    """Format a side of a comparison as a cell; several numbers are separated by spaces."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(_cell, value))
    return str(cell_text(float(value) if isinstance(value, float) else value))


def in_words(rows: Sequence[ComparisonRow]) -> str:
    """Join in words the comparisons that a claim fails by, then our tolerances; empty: none."""
    failing = [row for row in rows if row.fails]
    texts = [f"{row.subject}: {row.in_words}" if row.subject else row.in_words for row in failing]
    tolerances = dict.fromkeys(row.tolerance for row in failing if row.tolerance)
    if tolerances:
        texts.append(f"our tolerance: {' and '.join(tolerances)}")
    return "; ".join(texts)
