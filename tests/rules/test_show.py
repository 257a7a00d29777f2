"""Rules advise_runs and split_energy: tables that the landing page shows."""

from pathlib import Path


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
