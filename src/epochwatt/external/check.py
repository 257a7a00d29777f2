"""One check against a measurement by others: what was expected, what came out, the verdict."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Literal, NamedTuple

from epochwatt.tables import write_table

AGREES: Final = "agrees"
DIFFERS: Final = "differs"
NOT_AVAILABLE: Final = "not available"
Verdict = Literal["agrees", "differs", "not available"]
PUBLIC: Final = "public"
SIMULATED: Final = "simulated"


class Finding(NamedTuple):
    """What a check found.

    Attributes
    ----------
    subject : what was looked at: a mode, a network, a GPU
    unit : of both values; empty for a ratio or an exponent
    expected : value, range or limit, as text
    observed : value or range, as text
    deviation_pct : of the observed value from the expected one; None where that means nothing
    verdict : `AGREES` or `DIFFERS`
    note : what to know to read it
    provenance : of what was observed: `PUBLIC`, or `SIMULATED` where it comes from a simulation
    """

    subject: str
    unit: str
    expected: str
    observed: str
    deviation_pct: float | None
    verdict: Verdict
    note: str = ""
    provenance: Literal["public", "simulated"] = PUBLIC


@dataclass(frozen=True)
class Check:
    """A row of results/tables/external.csv: a finding, its question, and whose numbers it is about.

    `source` and `licence` are of the measurement; a simulated value stands beside it.
    """

    question: str
    subject: str
    unit: str
    expected: str
    observed: str
    deviation_pct: float | None
    verdict: Verdict
    provenance: str
    source: str
    licence: str
    note: str


COLUMNS = tuple(field.name for field in fields(Check))


def write_checks(path: Path, checks: list[Check]) -> None:
    """Write results/tables/external.csv. Raises RecordWriteError."""
    rows = ([_cell(getattr(check, name)) for name in COLUMNS] for check in checks)
    write_table(path, "checks against measurements by others", COLUMNS, rows)


def _cell(value: object) -> object:
    return f"{round(value, 1) + 0.0:.1f}" if isinstance(value, float) else value  # no -0.0


# -- judging -------------------------------------------------------------------------------------


def near(subject: str, unit: str, expected: float, observed: float, within_pct: float) -> Finding:
    """Return whether a value is the expected one, to some per cent."""
    deviation = 100.0 * (observed / expected - 1.0)
    verdict: Verdict = AGREES if abs(deviation) <= within_pct else DIFFERS
    return Finding(subject, unit, show(expected), show(observed), deviation, verdict)


def at_most(subject: str, unit: str, limit: float, observed: float) -> Finding:
    """Return whether a value keeps to a limit."""
    verdict: Verdict = AGREES if observed <= limit else DIFFERS
    return Finding(subject, unit, f"at most {show(limit)}", show(observed), None, verdict)


def held_by(
    subject: str, unit: str, measured: float, simulated: list[float], margin: float
) -> Finding:
    """Return whether a measured value lies in the range of simulated ones.

    Parameters
    ----------
    measured : what is expected of the simulation
    simulated : one value per simulated workload
    margin : by which the range is widened on both sides
    """
    low, high = min(simulated), max(simulated)
    inside = low - margin <= measured <= high + margin
    return Finding(
        subject,
        unit,
        show(measured),
        f"{show(low)} to {show(high)}",
        None,
        AGREES if inside else DIFFERS,
        provenance=SIMULATED,
    )


def show(value: float) -> str:
    """Return a number to three figures, and never in exponents."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:.{min(digits, 3)}f}"
    return text.removeprefix("-") if float(text) == 0 else text
