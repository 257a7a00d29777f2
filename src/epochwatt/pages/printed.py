"""Write `results/tables/printed.csv`: what the papers print of a run or board, and ours.

Figures mark most of these numbers; what none of them draws, the landing page takes from here.
"""

from pathlib import Path

from epochwatt.claims.number_sources import METRICS, EpochTable, read_rows
from epochwatt.claims.tolerances import PRINTED, load_terms
from epochwatt.claims.verdict import NotEvaluable
from epochwatt.figures.common.published import CELLS, ON_BOARD, Mark, here_of, seen_ids
from epochwatt.published.numbers import (
    DEFAULTS,
    PAPERS,
    Config,
    Fact,
    Measurement,
    Relation,
    load_published,
    single,
)
from epochwatt.tables import read_table, write_table

PRINTED_COLUMNS = ("backend", "quantity", "value", "value_hi", *CELLS)
FACTOR_OF = {printed: factor for factor, printed in PRINTED.items()}


def write_printed(epochs: str, idle: str, published: str, twin: str, path: str) -> None:
    """Write a row for each backend and each published number that its runs give a value for.

    Values have the published number's unit. The tolerances are those of `config/claims.yaml` beside
    the folder `published`.

    `epochs`: `epochs.csv` of all runs; `idle`: idle.csv; empty: there are no idle powers
    `published`, `twin`: the folders config/published and config/twin
    """
    rows = [row for row in read_rows([epochs]) if row["setup"] in PAPERS]
    idle_rows = [row for _, row in read_table(Path(idle))] if idle else []
    facts = load_published(Path(published)).facts()
    tolerances = load_terms(Path(published).parents[1]).numbers
    lines = []
    for backend in dict.fromkeys(row["backend"] for row in rows):
        epoch_rows = [row for row in rows if row["backend"] == backend]
        source = EpochTable(epoch_rows, [row for row in idle_rows if row["backend"] == backend])
        seen = seen_ids(twin, backend)
        for fact in facts.values():
            if values := _our_values(fact, source):
                ours = (values[0], values[-1] if len(values) > 1 else None)
                printed = Mark(fact.value, fact.value_hi, fact.id, fact.qualifier, fact.id in seen)
                is_percentage = fact.unit == "pct"
                printed = printed.judged(values, tolerances, is_percentage=is_percentage)
                lines.append((backend, fact.metric, *ours, *printed))
    write_table(Path(path), "the printed numbers", PRINTED_COLUMNS, lines)


def _our_values(fact: Fact, source: EpochTable) -> tuple[float, ...]:
    """Return our value of a published number, or the least and the most; empty: we have none."""

    def number(config: Config, metric: str) -> float | None:
        factors = {FACTOR_OF.get(key, key): value for key, value in config.items()}
        try:
            if "state" in config:
                scope = "module" if config["state"] == ON_BOARD else "socket"
                return source.idle_w({**DEFAULTS, **factors}, config["state"], scope)
            return source.number(metric, {"setup": fact.paper, **factors}, config["epoch"])
        except NotEvaluable:
            return None

    if fact.metric not in (*METRICS, "idle_power_w") or "device" not in fact.sides[0]:
        return ()
    if isinstance(fact, Relation):
        return here_of(fact, number)
    assert isinstance(fact, Measurement)
    values = [number(config, fact.metric) for config in single(fact.config)]
    there = [value for value in values if value is not None]
    return tuple(sorted({min(there), max(there)})) if len(there) == len(values) else ()
