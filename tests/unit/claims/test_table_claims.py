"""Claims about tables: judged on each provenance by itself, with our numbers beside the paper's."""

from pathlib import Path

import pytest

from epochwatt.claims import table_claims
from epochwatt.claims.table_claims import (
    TableClaim,
    check_table_claims,
    judge_claims,
    load_table_claims,
    papers_with_claims,
    read_rows,
)
from epochwatt.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
ERRORS = [
    {"provenance": origin, "method": method, "n_profiled": str(n), "mape_pct": cell}
    for origin, method, n, cell in [
        ("simulated", "transfer", 10, "8"),
        ("simulated", "transfer", 10, "10"),
        ("simulated", "transfer", 10, ""),
        ("simulated", "scratch", 10, "20"),
        ("simulated", "scratch", 50, "9.5"),
        ("public", "transfer", 10, "30"),
        ("public", "scratch", 10, "20"),
    ]
]
TRANSFER = "transfer = mean(column('errors', 'mape_pct', method='transfer', n_profiled=10))"
SCRATCH = "scratch = cell('errors', 'mape_pct', method='scratch', n_profiled=10)"


def claim(quantities=f"{TRANSFER}; {SCRATCH}", predicate="transfer < scratch", **more):
    texts = dict.fromkeys(TableClaim.__dataclass_fields__, "")
    texts |= {"id": "C1", "paper_value": "5 %", "exactness": "printed", "tables": "errors"}
    return TableClaim(**texts | {"quantities": quantities, "predicate": predicate} | more)


def judged(*claims, errors=ERRORS):
    return judge_claims("powertrain", claims or [claim()], {"errors": errors})


def test_each_provenance_is_judged_by_itself():
    simulated, public = judged()
    assert (simulated.provenance, simulated.status) == ("simulated", "holds")
    assert (public.provenance, public.status) == ("public", "does_not_hold")
    assert simulated.our_value == "transfer = 9 %; scratch = 20 %"
    assert simulated.paper_value == "5 %"
    assert simulated.margin_pct == "11"  # points between percentages
    assert simulated.n_rows == "4"
    assert public.comparison == "transfer < scratch: 30 % < 20 %"


def test_what_no_row_tells_cannot_be_evaluated():
    at_fifty = claim("fifty = cell('errors', 'mape_pct', n_profiled=50)", "fifty < 10")
    simulated, public = judged(at_fifty)
    assert simulated.status == "holds"
    assert (public.status, public.our_value) == ("not_evaluable", "")
    assert public.missing == "mape_pct of errors.csv where n_profiled 50"


def test_one_row_is_asked_for_and_several_are_there():
    row = judged(claim("one = cell('errors', 'mape_pct', method='transfer')", "one < 10"))[0]
    assert (row.status, "one row, not 2" in row.missing) == ("not_evaluable", True)


@pytest.mark.parametrize("errors", [[], None])
def test_empty_and_missing_tables_leave_claims_open(errors, tmp_path):
    rows = judge_claims("powertrain", [claim()], {} if errors is None else {"errors": errors})
    assert [(row.status, row.provenance, row.missing) for row in rows] == [
        ("not_evaluable", "", "rows of errors.csv")
    ]
    assert read_rows(str(tmp_path / "none.csv")) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (claim(predicate="transfer"), "neither true nor false"),
        (claim(predicate="other < 3"), "other is not a known name"),
        (claim(quantities="a = 'word'", predicate="1 < 2"), "not a number"),
        (claim(quantities="mean = 3", predicate="mean < 3"), "not a new name"),
        (claim(quantities="a = cell('errors', 'mape')", predicate="a < 2"), "has no column mape"),
    ],
)
def test_a_wrong_claim_says_where(wrong, problem):
    with pytest.raises(ConfigError, match=problem) as raised:
        judged(wrong)
    assert "config/published/powertrain/claims.csv, C1" in str(raised.value)


def test_an_id_is_there_once(tmp_path, monkeypatch):
    path = tmp_path / table_claims.claims_file("powertrain")
    path.parent.mkdir(parents=True)
    path.write_text("id,section,sentence,paper_value,exactness,tables,quantities,predicate,note\n")
    assert load_table_claims("powertrain", tmp_path) == []
    path.write_text(path.read_text() + "A,,,,,,,1 < 2,\n" * 2)
    with pytest.raises(ConfigError, match="id A is there twice"):
        load_table_claims("powertrain", tmp_path)


@pytest.mark.parametrize("paper", papers_with_claims(ROOT))
def test_the_projects_claims_can_be_computed_and_are_open_without_tables(paper, tmp_path):
    path = tmp_path / "claims.csv"
    check_table_claims(paper, [], str(path), ROOT)
    rows = read_rows(str(path))
    assert len(rows) == len(load_table_claims(paper, ROOT)) > 0
    assert {row["status"] for row in rows} == {"not_evaluable"}
