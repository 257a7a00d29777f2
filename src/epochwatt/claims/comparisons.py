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
from epochwatt.claims.tolerances import PRINTED, SLACK, Terms
from epochwatt.claims.verdict import Change, Comparison, Percentage, Ratio, Tolerated
from epochwatt.published.numbers import Fact, run_key
from epochwatt.tables import cell_text

COLUMN_OF = {  # metric of a predicate -> column of epochs.csv, where that has another name
    "energy_wh": "energy_paper_wh",
    "power_w": "power_mean_w",
    "idle_power_w": "power_mean_w",
    "iops": "read_iops",
}
LABELS = {  # of metrics that are no column
    "stall_ms_per_minibatch": "stall per mini-batch",
    "compute_ms_per_minibatch": "compute per mini-batch",
    "reads_per_sample": "reads per sample",
    "gpu_freq_mhz": "GPU clock",
    "emc_below_max_time_pct": "time below the top memory clock",
    "cpu_below_peak_time_pct": "time below the peak CPU clock",
    "idle_power_w": "idle power",
    "baseload_wh": "base load",
    "time_mape_pct": "error of predicted times",
    "energy_mape_pct": "error of predicted energies",
    "best_mode_set": "modes that train the model of time",
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
ORDERS = {"<": "less", "<=": "no more", ">": "more", ">=": "no less", "==": "the same"}
SIGNS = {"<=": "≤", ">=": "≥", "==": "="}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
PRINTED_SOURCES = ("paper", "mixed")  # of a threshold
WHOLE_EPOCHS = {"all": "1+"}  # of the main paper's runs of 15 hours


def comparison_rows(
    verdict: Verdict,
    backend: str,
    facts: Mapping[frozenset[Any], Sequence[Fact]],
    titles: Mapping[str, str],
    terms: Terms,
) -> list[ComparisonRow]:
    """Return the rows of a verdict.

    Parameters
    ----------
    facts : `facts_by_reads`
    titles : model or device -> name for people
    """
    claim = verdict.claim
    shared: dict[str, Any] = {
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
    made = [one for one in verdict.made or verdict.comparisons if any(one.computed)]
    if not made:
        return [ComparisonRow(**shared, verdict=verdict.status)]
    subjects = _subjects(made, titles)
    rows = []
    for one, subject in zip(made, subjects, strict=True):
        observed, sign, limit = one.left, one.operator, one.right
        if one.computed == (False, True) and sign in TURNED:
            observed, sign, limit = one.right, TURNED[sign], one.left
        is_order = all(one.computed)
        is_number = sign not in ("similar within", "in", "not in")
        printed = limit if is_number and not is_order else None
        if isinstance(printed, Tolerated):
            printed = printed.printed
        unit = _unit(observed, one)
        cells = {
            "comparison": f"{one.text} [{one.where}]" if one.where else one.text,
            "subject": subject,
            **{key: _only(one, key) for key in ("device", "model")},
            "metric": " ".join(dict.fromkeys(metric for metric, _ in one.reads)),
            "published_id": " ".join(_ids(one, claim.paper, printed, facts)),
            "operator": sign,
            "printed": _cell(printed),
            "observed": _cell(observed),
            "limit": _cell(limit),
            "unit": unit,
            "tolerance": _tolerance(one, terms),
            "verdict": HOLDS if one.holds else FAILS,
            "margin_pct": "" if one.margin_pct is None else f"{one.margin_pct:.3g}",
        }
        if is_order and is_number:
            than = f"published as {ORDERS.get(sign, sign)}"
            words = f"{than}, here {shown(observed, unit)} against {shown(limit, unit)}"
        else:
            is_printed = claim.threshold_source in PRINTED_SOURCES
            words = _in_words(sign, printed, observed, limit, unit, is_printed=is_printed)
        cells["in_words"] = words
        rows.append(ComparisonRow(**shared, **cells))
    return rows


def facts_by_reads(facts: Iterable[Fact]) -> dict[frozenset[Any], list[Fact]]:
    """Return published numbers by the runs and metrics that they are of."""
    by_reads: dict[frozenset[Any], list[Fact]] = defaultdict(list)
    for fact in facts:
        metrics = fact.metric.replace("median_", "").strip("()").replace(")/", "/")
        parts = metrics.replace("+", "/").split("/")
        reads = frozenset((fact.paper, _run(fact.paper, r), m) for r in fact.runs for m in parts)
        by_reads[reads].append(fact)
    return by_reads


def _run(paper: str, config: Mapping[str, Any]) -> tuple[Any, ...]:
    epoch = config.get("epoch")
    if paper != "hipcw2021":
        epoch = WHOLE_EPOCHS.get(str(epoch), epoch)
    return run_key({**config, "epoch": epoch})


def _ids(
    one: Comparison,
    paper: str,
    printed: Any,
    facts: Mapping[frozenset[Any], Sequence[Fact]],
) -> Iterator[str]:
    """Yield the ids of the printed numbers that a comparison is of.

    They are of the same runs and metrics, or of more of them; where the predicate has a number
    it is theirs.
    """
    reads = frozenset(
        (paper, _run(paper, {PRINTED.get(k, k): v for k, v in factors.items()}), metric)
        for metric, factors in one.reads
    )
    number = abs(printed) if isinstance(printed, int | float) else None
    for of_fact, same in facts.items() if reads else ():
        for fact in same:
            ends = [abs(end) for end in (fact.value, fact.value_hi) if end is not None]
            is_of = reads <= of_fact if number in ends else reads == of_fact and printed is None
            if is_of:
                yield fact.id


def _only(one: Comparison, key: str) -> str:
    values = {str(factors[key]) for _, factors in one.reads}
    return values.pop() if len(values) == 1 else ""


def _unit(observed: Any, one: Comparison) -> str:
    """Return the unit of what is compared."""
    values = observed if isinstance(observed, list | tuple) else [observed]
    if any(isinstance(value, Percentage) for value in values):
        return "%"
    metrics = {metric for metric, _ in one.reads}
    if len(metrics) != 1 or not all(type(value) is float for value in values):
        return ""
    metric = metrics.pop().removesuffix("_per_minibatch")
    return columns.UNIT_OF_ENDING.get(metric.rpartition("_")[2], "")


def _subjects(made: Sequence[Comparison], titles: Mapping[str, str]) -> list[str]:
    """Return what tells each comparison from the others of a claim, in as few words as do."""
    names = {**MEDIA, **titles}
    told: list[list[str]] = [[] for _ in made]
    keys: list[tuple[Any, ...]] = [() for _ in made]
    for factor, form in APART.items():
        values = [_values(one, factor) for one in made]
        further = [(*key, of_one) for key, of_one in zip(keys, values, strict=True)]
        if len(set(further)) > len(set(keys)):
            keys = further
            for words, of_one in zip(told, values, strict=True):
                if 0 < len(of_one) <= MOST_VALUES:
                    words.append(form.format(" to ".join(names.get(v, v) for v in of_one)))
    metrics = [tuple(dict.fromkeys(metric for metric, _ in one.reads)) for one in made]
    if len(set(metrics)) > 1:
        for words, own in zip(told, metrics, strict=True):
            words.append(" and ".join(map(metric_label, own)))
    for words, one in zip(told, made, strict=True):
        if not words and one.where:
            words += [names.get(v := part.partition("=")[2], v) for part in one.where.split(", ")]
    return list(map(", ".join, told))


def _values(one: Comparison, factor: str) -> tuple[str, ...]:
    """Return the values of a factor that a comparison reads, in order."""
    values = [factors.get(factor) for _, factors in one.reads]
    words = [f"{v:g}" if isinstance(v, float) else str(v) for v in values if v not in (None, "")]
    return tuple(dict.fromkeys(words))


def metric_label(metric: str) -> str:
    """Return what people call a metric of a predicate."""
    return LABELS.get(metric) or columns.label(COLUMN_OF.get(metric, metric))


def _tolerance(one: Comparison, terms: Terms) -> str:
    """Return our tolerance in a comparison, with its unit."""
    name = next((s.tolerance for s in (one.left, one.right) if isinstance(s, Tolerated)), "")
    if one.operator == "near":
        name = "NEAR_PP" if isinstance(one.right, Percentage) else "NEAR"
    elif one.operator == "similar within":
        name = "SIMILAR"
    if name not in ("NEAR", "NEAR_PP", "SIMILAR") and not name.startswith(SLACK):
        return ""  # a limit of ours where nothing is printed
    tolerance = terms.tolerances[name]
    if tolerance.unit == "factor":
        return f"{100.0 * tolerance.value:g} %"
    return f"{tolerance.value:g} {tolerance.unit}"


def _in_words(
    sign: str, printed: Any, observed: Any, limit: Any, unit: str, *, is_printed: bool
) -> str:
    """Return what is published, then what is here, each with its unit."""
    here = shown(observed, unit)
    if sign == "similar within":
        return f"published as alike, here {here}"
    if sign in ("in", "not in"):  # of a mode and a front
        published, is_on = ("on", "is not on") if sign == "in" else ("off", "is on")
        return f"published as {published} the front, here {here} {is_on} it ({limit})"
    number = shown(limit, unit)
    if isinstance(printed, int | float):
        number = f"{printed:{'+' if isinstance(observed, Change) else ''}g} {unit}".rstrip()
    if sign == "near":
        factor = "a factor of " if isinstance(observed, Ratio) else ""
        return f"published {factor}{number}, here {here}"
    word = "published" if is_printed and printed is not None else "read as"
    is_whole = unit == "%" and (sign, printed) == (">=", 100)  # no share is above it
    return f"{word} {'≈' if is_whole else SIGNS.get(sign, sign)} {number}, here {here}"


def shown(value: Any, unit: str) -> str:
    """Return a number here: percentages with a decimal, others with three digits."""
    if isinstance(value, list | tuple):
        return ", ".join(shown(one, unit) for one in value)
    if isinstance(value, Percentage):
        return f"{value:{'+' if isinstance(value, Change) else ''}.1f} %"
    if not isinstance(value, float):
        return " ".join(value) if isinstance(value, str) else str(value)
    return f"{value:{'.0f' if abs(value) >= 1000 else '.3g'}} {unit}".rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(_cell, value))
    return str(cell_text(float(value) if isinstance(value, float) else value))


def in_words(rows: Sequence[ComparisonRow]) -> str:
    """Return what a claim fails by: each comparison, then our tolerances."""
    failing = [row for row in rows if row.fails]
    texts = [f"{row.subject}: {row.in_words}" if row.subject else row.in_words for row in failing]
    tolerances = dict.fromkeys(row.tolerance for row in failing if row.tolerance)
    remark = [f"our tolerance: {' and '.join(tolerances)}"] if tolerances else []
    return "; ".join([*texts, *remark])
