"""Claims about tables: those of `config/published/{paper}/claims.csv`, on `results/{paper}/`.

A claim names quantities, each an expression over columns of tables, and a predicate over them, in
the language of `expression`. It is judged on the rows of each provenance (simulated, public, ...)
by itself: two provenances never meet. The paper's number is shown beside ours; no expression may
use it unless the row writes it down as a bound.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.claims import expression, functions
from epochwatt.claims.expression import Names
from epochwatt.claims.tolerances import load_terms
from epochwatt.claims.verdict import NotEvaluable, Percentage, shown
from epochwatt.errors import ConfigError
from epochwatt.tables import Cells, checked_rows, read_cells, rows_by_id, write_entries

PROVENANCE = "provenance"


@dataclass(frozen=True)
class TableClaim:
    """One claim: a row of config/published/{paper}/claims.csv."""

    id: str
    section: str
    sentence: str
    paper_value: str  # what the paper says, with its unit, as text; shown, never computed with
    exactness: str  # how that is known: printed, read by eye, ...
    tables: str  # names of the tables that it needs, in results/{paper}/, without .csv
    # `name = expression; name = expression`, in order; a later one may use earlier ones
    quantities: str
    predicate: str  # a comparison of them
    note: str


class TableClaimRow(NamedTuple):
    """One row of results/{paper}/claims.csv: what the rows of one provenance say about a claim."""

    claim: str
    paper: str
    section: str
    sentence: str
    provenance: str  # empty: no table has a row
    status: str  # holds, does_not_hold, not_evaluable
    paper_value: str
    exactness: str
    our_value: str  # each quantity: `transfer = 8.1 %; scratch = 9 %`
    comparison: str
    margin_pct: str
    missing: str
    n_rows: str  # rows of tables that were read
    note: str


def claims_file(paper: str) -> str:
    """Return the file of a paper's claims."""
    return f"config/published/{paper}/claims.csv"


def load_table_claims(paper: str, root: Path = Path()) -> list[TableClaim]:
    """Read the claims of a paper below `root`, the checkout; ConfigError where one is wrong."""
    return list(rows_by_id(checked_rows(TableClaim, root / claims_file(paper))).values())


def papers_with_claims(root: Path = Path()) -> list[str]:
    """Return the papers that have claims about tables, in order of their names."""
    return sorted(path.parent.name for path in root.glob(claims_file("*")))


def needed_tables(paper: str, root: Path = Path()) -> list[str]:
    """Return the paths of the tables that a paper's claims need."""
    names = (name for claim in load_table_claims(paper, root) for name in claim.tables.split())
    return [f"results/{paper}/{name}.csv" for name in dict.fromkeys(names)]


def check_table_claims(paper: str, tables: Iterable[str], path: str, root: Path = Path()) -> None:
    """Judge all claims of a paper on its tables, and write a row for each and each provenance.

    Raises ConfigError: a claim cannot be computed.

    `paper`: its folder in config/published/
    `tables`: paths; a missing one, or one without rows, leaves claims that cannot be evaluated
    `path`: where to write
    `root`: the checkout
    """
    data = {Path(table).stem: read_rows(table) for table in tables}
    tolerances = load_terms(root).numbers
    names = {**tolerances, **functions.PLAIN, **functions.tolerant(tolerances)}
    rows = judge_claims(paper, load_table_claims(paper, root), data, names)
    write_entries(path, "the claims", TableClaimRow, rows)


def read_rows(path: str) -> list[Cells]:
    """Return the rows of a table; none where there is no file, or nothing in it."""
    return read_cells(path) if Path(path).is_file() else []


def judge_claims(
    paper: str,
    claims: Sequence[TableClaim],
    tables: Mapping[str, Sequence[Cells]],
    names: Names = functions.PLAIN,
) -> list[TableClaimRow]:
    """Judge each claim on the rows of each provenance; without a row on none.

    `tables`: name -> rows, each with a column `provenance`; `names`: functions and constants that
    expressions may use besides those of `Tables`
    """
    for name, rows in tables.items():
        if rows and PROVENANCE not in rows[0]:
            raise ConfigError(f"no column {PROVENANCE}", where=f"{name}.csv")
    provenances = dict.fromkeys(row[PROVENANCE] for rows in tables.values() for row in rows)
    return [
        _judge(paper, claim, provenance, Tables(tables, provenance), names)
        for claim in claims
        for provenance in provenances or ("",)
    ]


class Tables:
    """Answer what expressions ask of the rows of one provenance.

    `where`: column -> word, number, or list of them, one of which its cell has to be
    """

    def __init__(self, tables: Mapping[str, Sequence[Cells]], provenance: str) -> None:
        self._rows = {
            name: [row for row in rows if row[PROVENANCE] == provenance]
            for name, rows in tables.items()
        }
        self.read: set[tuple[str, int]] = set()  # table and number of the rows that were used

    def column(self, table: str, column: str, **where: Any) -> list[float]:
        """Return the numbers of a column, without empty cells; those of `_pct` are percentages.

        Raises NotEvaluable: no row has a number there; LookupError: the table has no such column.
        """
        cells = [text for text in self._cells(table, column, where) if text not in ("", "nan")]
        if not cells:
            raise NotEvaluable(_wish(table, column, where))
        kind = Percentage if column.endswith("_pct") else float
        return [kind(text) for text in cells]

    def cell(self, table: str, column: str, **where: Any) -> float:
        """Return the number of the one row that fits; NotEvaluable unless there is one."""
        values = self.column(table, column, **where)
        if len(values) != 1:
            raise NotEvaluable(f"one row, not {len(values)}: {_wish(table, column, where)}")
        return values[0]

    def words(self, table: str, column: str, **where: Any) -> list[str]:
        """Return the distinct cells of a column, in order; NotEvaluable where no row fits."""
        cells = list(dict.fromkeys(self._cells(table, column, where)))
        if not cells:
            raise NotEvaluable(_wish(table, column, where))
        return cells

    def _cells(self, table: str, column: str, where: Mapping[str, Any]) -> list[str]:
        """Return a column's cells in the rows that fit, and add these rows to `read`."""
        rows = self._rows.get(table, [])
        if not rows:
            raise NotEvaluable(f"rows of {table}.csv")
        lacking = [name for name in (column, *where) if name not in rows[0]]
        if lacking:
            raise LookupError(f"{table}.csv has no column {', '.join(lacking)}")
        found = {
            number: row[column]
            for number, row in enumerate(rows)
            if all(_matches(row[name], wanted) for name, wanted in where.items())
        }
        self.read |= {(table, number) for number in found}
        return list(found.values())


def _matches(cell: str, wanted: Any) -> bool:
    """Return whether a cell is a word, a number, or one of a list of them."""
    if isinstance(wanted, list | tuple):
        return any(_matches(cell, value) for value in wanted)
    if isinstance(wanted, str):
        return cell == wanted
    try:
        return math.isclose(float(cell), wanted)
    except ValueError:
        return False


def _wish(table: str, column: str, where: Mapping[str, Any]) -> str:
    """Return in words what was asked of a table."""
    conditions = ", ".join(f"{name} {shown(value)}" for name, value in where.items())
    return f"{column} of {table}.csv" + (f" where {conditions}" if conditions else "")


def _judge(
    paper: str, claim: TableClaim, provenance: str, tables: Tables, names: Names
) -> TableClaimRow:
    """Compute a claim's quantities on one provenance, in order, then judge its predicate.

    All expressions are parsed, also where a quantity is missing, so that mistakes are found.
    """
    known = {**names, "column": tables.column, "cell": tables.cell, "words": tables.words}
    values: dict[str, float] = {}
    missing: tuple[str, ...] = ()
    for part in filter(str.strip, claim.quantities.split(";")):
        name, sign, text = (word.strip() for word in part.partition("="))
        where = f"{claims_file(paper)}, {claim.id}, quantity {name}"
        if not sign or not name.isidentifier() or name in known:
            raise ConfigError("not a new name and an expression", where=where, allowed="name = ...")
        quantity, known[name] = expression.parse(text, where, known), 0.0
        if not missing:  # a later one may rest on it: the first that is missing is named
            value, missing = expression.number(quantity, known)
            if value is not None:
                values[name] = known[name] = value
    predicate = expression.parse(
        claim.predicate, f"{claims_file(paper)}, {claim.id}, predicate", known
    )
    judgement = None
    if not missing:
        judgement, missing = expression.judge(predicate, known)
    status, comparison, margin_pct = "not_evaluable", "", None
    if judgement is not None:
        status = "holds" if judgement.holds else "does_not_hold"
        comparison, margin_pct = "; ".join(map(str, judgement.comparisons)), judgement.margin_pct
    return TableClaimRow(
        claim=claim.id,
        paper=paper,
        section=claim.section,
        sentence=claim.sentence,
        provenance=provenance,
        status=status,
        paper_value=claim.paper_value,
        exactness=claim.exactness,
        our_value="; ".join(f"{name} = {shown(value)}" for name, value in values.items()),
        comparison=comparison,
        margin_pct="" if margin_pct is None else f"{margin_pct:.3g}",
        missing="; ".join(missing),
        n_rows=str(len(tables.read)),
        note=claim.note,
    )
