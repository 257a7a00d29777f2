"""Numbers of a paper about whole tables: `config/published/{paper}/numbers.csv`.

They are shown beside ours and never used to compute them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epochwatt.tables import checked_rows, rows_by_id

Exactness = Literal["printed", "from notes", "read by eye"]
Qualifier = Literal["exact", "approx", "less_than"]
SIGNS = {"exact": "", "approx": "\u2248 ", "less_than": "< "}


@dataclass(frozen=True)
class PaperNumber:
    """One number."""

    id: str
    place: str  # where the paper has it
    exactness: Exactness  # how we know it
    group: str  # of the rows of our tables that it belongs to
    reference: str  # names of ours; empty: none of ours is meant
    workload: str
    paper_workload: str  # what the paper ran
    device: str  # board of the paper, by our name
    method: str
    n_profiled: str  # modes that were profiled; empty: not said, or all
    target: str  # time_s, power_w, or limit
    statistic: str  # column of ours that it stands beside
    value: float
    unit: str
    qualifier: Qualifier
    note: str

    @property
    def text(self) -> str:
        """The number as it is written: `< 15`."""
        return f"{SIGNS[self.qualifier]}{self.value:g}"


def load_paper_numbers(path: Path) -> list[PaperNumber]:
    """Read the numbers of a paper; ConfigError where a row is wrong, or an id is there twice."""
    return list(rows_by_id(checked_rows(PaperNumber, path)).values())
