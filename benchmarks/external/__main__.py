"""Check others' measurements against ours: `python -m benchmarks.external`.

It writes benchmarks/tables/external/, one table a question, and prints how many checks agree. What
has no licence is read from the folder that EPOCHWATT_PUBLIC_DATA names; where that lacks it, a row
says so. Counts of the papers' networks come from `snakemake workloads`.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from benchmarks.external import (
    Finding,
    Inputs,
    NotHereError,
    energy_curves,
    orin_power,
    rooflines,
    scaling,
    training_logs,
)
from benchmarks.results import REPOSITORY
from epochwatt.errors import EpochwattError
from epochwatt.sweeps.public.registry import public_folder
from epochwatt.tables import write_table
from epochwatt.twin.power_modes import load_twin_with_modes

FOLDER = REPOSITORY / "benchmarks/tables/external"
COLUMNS = ("subject", "unit", "expected", "observed", "verdict", "note")
SCALED = ("translucence-tx1-5000", "translucence-tx2-5000", "opml19-tx2")

Check = Callable[[Inputs], Iterable[Finding]]


def _each(check: Callable[[str, Inputs], Iterable[Finding]], *names: str) -> list[Check]:
    return [partial(check, name) for name in names]


TABLES: dict[str, list[Check]] = {
    "energy": [training_logs.findings],
    "gpu-clock": [energy_curves.law_findings, energy_curves.gpu_clock_findings],
    "orin-power": [orin_power.findings],
    "power-limit": _each(energy_curves.power_limit_findings, *energy_curves.LIMITS),
    "roof-energy": [rooflines.findings],
    "scaling": [*_each(scaling.findings, *SCALED), scaling.stock_mode_findings],
}


def rows(checks: Iterable[Check], inputs: Inputs) -> list[tuple[str, ...]]:
    """Return the rows of a table; one that says why for what is not here."""
    made = []
    for check in checks:
        try:
            found = list(check(inputs))
        except NotHereError as error:
            made.append(("all of it", "", "", "", "not available", error.problem))
            continue
        for f in found:
            verdict = "agrees" if f.agrees else "differs"
            made.append((f.subject, f.unit, f.expected, f.observed, verdict, f.note))
    return made


def main(folder: Path = FOLDER) -> int:
    """Make all checks that can be made here, and write their tables."""
    counts = sorted((REPOSITORY / "results/twin/workloads").glob("*.json"))
    try:
        twin = load_twin_with_modes(list(map(str, counts)), REPOSITORY)
        inputs = Inputs(REPOSITORY, public_folder(None), twin)
        for name, checks in TABLES.items():
            found = rows(checks, inputs)
            write_table(folder / f"{name}.csv", f"checks: {name}", COLUMNS, found)
            agreeing = sum(row[4] == "agrees" for row in found)
            print(f"{name}: {agreeing} of {len(found)} agree", flush=True)
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
