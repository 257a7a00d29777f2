"""Rules show_claims and show_configuration: pages of the report."""

from pathlib import Path

from epochwatt.claims.claims_table import ClaimRow, write_claims_table


def test_claims_are_shown_by_takeaway(checkout, run_rule):
    told = dict.fromkeys(ClaimRow._fields, "") | {"claim": "T5.1.1a", "takeaway": "5.1.1"}
    told |= {"paper": "sigmetrics2023", "backend": "host", "status": "holds", "claim_text": "a < b"}
    Path("results").mkdir()
    write_claims_table("results/claims.csv", [ClaimRow(**told)])
    run_rule("show_claims", "results/claims.html")
    page = Path("results/claims.html").read_text("utf-8")
    assert "<h3>5.1.1 “A large page cache (RAM) can reduce the stall time.”</h3>" in page
    assert "a &lt; b" in page


def test_configuration_is_shown_with_the_machines_of_measured_runs(
    checkout, measure, write_epochs, run_rule
):
    for run in checkout.runs:
        write_epochs(run.id, run.factors, {})
    measure(checkout.runs[0], 0, software={"torch": "1.8.0"})
    run_rule("show_configuration", "results/configuration.html")
    page = Path("results/configuration.html").read_text("utf-8")
    assert "1.8.0" in page
    assert "studies: [small]" in page
    assert "config/published/takeaways.csv" in page


def test_advice_has_a_row_per_measured_run_and_energy_is_split_where_there_is_a_sensor(
    checkout, write_epochs, run_rule
):
    for run in checkout.runs:
        path = write_epochs(run.id, run.factors, {}, {}, {})
        Path(path).with_name("energy.csv").write_text("run,epoch,power_scope,energy_wh\n")
    run_rule("advise_runs", "results/tables/advice.csv")
    rows = Path("results/tables/advice.csv").read_text("utf-8").splitlines()[1:]
    assert [row.split(",")[:2] for row in rows] == [[name, "compute"] for name in checkout.ids]
    run_rule("split_energy", "results/tables/energy_parts.csv")
    assert len(Path("results/tables/energy_parts.csv").read_text("utf-8").splitlines()) == 1
