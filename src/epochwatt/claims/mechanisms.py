"""`config/twin/mechanisms.csv`: what of the simulated boards carries a claim, and what they lack.

A line is about a take-away, or about one claim of it by its id, which then counts.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from epochwatt.claims.evaluate import Claim
from epochwatt.errors import ConfigError
from epochwatt.tables import read_table

FILE = "mechanisms.csv"
RESTS_ON = ("mechanism", "fitted", "assumed")  # each weaker evidence than the one before


class Mechanisms(NamedTuple):
    """The mechanisms and assumptions on which a take-away rests where the boards are simulated."""

    mechanisms: str  # by name, separated by semicolons
    # at best; one of `RESTS_ON`: on how the boards are made up, whatever their numbers; on fitted
    # numbers; on assumed ones
    rests_on: str
    lacks: str  # what the boards do not have, or have as an assumption, that may turn it
    contradiction: str  # with which other numbers of the papers it does not go

    @property
    def why(self) -> str:
        """Why a claim may fail: what the simulated boards lack, what the papers contradict."""
        parts = {"the simulation lacks": self.lacks, "the paper disagrees": self.contradiction}
        return "; ".join(f"{name}: {text}" for name, text in parts.items() if text)


def load_mechanisms(folder: Path, claims: Sequence[Claim]) -> dict[str, Mechanisms]:
    """Return what each claim rests on, by its id.

    Raises ConfigError: the file is missing, a line cannot be, or is about no claim, or a claim has
    none.
    """
    path, lines = folder / FILE, dict[str, Mechanisms]()
    for line, row in read_table(path):
        subject = row.pop("claims", "")
        if row.keys() != set(Mechanisms._fields) or row["rests_on"] not in RESTS_ON:
            allowed = f"{', '.join(Mechanisms._fields)}; rests_on: {', '.join(RESTS_ON)}"
            where = f"{path}, line {line}"
            raise ConfigError("not a row", where=where, found=repr(row), allowed=allowed)
        lines[subject] = Mechanisms(**row)
    subjects = {claim.id: {claim.id, claim.takeaway} for claim in claims}
    for subject in lines.keys() - set().union(*subjects.values()):
        problem = f"a line for {subject!r}"
        raise ConfigError(problem, where=str(path), allowed="a take-away, or a claim's id")
    for claim in (name for name, names in subjects.items() if not names & lines.keys()):
        problem = f"no line for {claim}"
        raise ConfigError(problem, where=str(path), do="add a line for its take-away")
    return {c.id: lines.get(c.id) or lines[c.takeaway] for c in claims}


def weakest(*rests_on: str) -> str:
    """Return the weakest of several kinds of evidence."""
    return max(rests_on, key=RESTS_ON.index)
