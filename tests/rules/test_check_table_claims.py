"""Rule check_table_claims: a paper's claims on tables of its study."""

import csv
from pathlib import Path

HEAD = "id,section,sentence,paper_value,exactness,tables,quantities,predicate,note\n"


def test_claims_of_a_paper_are_judged_on_its_tables(checkout, run_rule):
    folder = Path("config/published/pagoda")
    folder.mkdir(parents=True)
    claim = "C1,4,less is more,3,printed,fits,\"less = cell('fits', 'flops_per_s')\",less > 2,\n"
    (folder / "claims.csv").write_text(HEAD + claim)
    Path("results/pagoda").mkdir(parents=True)
    Path("results/pagoda/fits.csv").write_text("provenance,flops_per_s\nmeasured,3\n")
    run_rule("check_table_claims", "results/pagoda/claims.csv")
    with open("results/pagoda/claims.csv", newline="", encoding="utf-8") as handle:
        (row,) = csv.DictReader(handle)
    assert (row["status"], row["provenance"], row["our_value"]) == ("holds", "measured", "less = 3")
