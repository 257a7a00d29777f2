"""Rule summarise: from claims.csv and epochs.csv of all runs to a few lines."""

import re
from pathlib import Path

from epochwatt.claims.claims_table import write_claims_table


def test_summary_says_where_the_time_went(checkout, write_epochs, run_rule):
    checkout.write("exclusions.yaml", [{"where": {"batch_size": 32}, "reason": "out of memory"}])
    for run in checkout.runs:
        write_epochs(run.id, run.factors, {"e2e_s": 100.0}, {}, {})
    write_claims_table("results/claims.csv", [])
    run_rule("summarise", "results/summary.txt")
    lines = Path("results/summary.txt").read_text("utf-8").split("\n")
    assert lines[0] == "Measured on host/local: 2 runs, 6 epochs, 216 s of training."
    told = [re.split(r"  +", line) for line in lines if line.startswith("LeNet-5")]
    fastest = "0 workers, batch 16, disk"
    assert told == [["LeNet-5", "mnist digits x8", "2", fastest, "4.00", "38 %", "compute"]]
    assert sum("(out of memory)" in line for line in lines) == 2
