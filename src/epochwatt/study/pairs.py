"""Find the runs of a study that are the two sides of a pair: they differ in one factor alone."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from epochwatt.study.runs import Run

# what a value of a factor brings with it
BROUGHT = {"container": "container_settings", "model": "network"}


def pairs_of(runs: Iterable[Run], study: str, pairs: Mapping[str, Any]) -> list[tuple[Run, Run]]:
    """Return the pairs of a study, A and B each, in order; one without the other side is left out.

    Parameters
    ----------
    pairs : the study's key of that name
    """
    factor, values = pairs["factor"], list(pairs["values"])
    apart = {factor, BROUGHT.get(factor)}
    sides: dict[str, dict[Any, Run]] = {}
    for run in runs:
        if study in run.studies:
            shared = {k: v for k, v in run.factors.items() if k not in apart}
            sides.setdefault(json.dumps(shared, sort_keys=True), {})[run.factors[factor]] = run
    a, b = values
    return [(both[a], both[b]) for both in sides.values() if both.keys() >= {a, b}]
