"""Rules of studies in pairs: from the epochs of twelve runs to verdicts, figure and page."""

from pathlib import Path

from tests.rules.tables import rows

PAIRS = {"factor": "container", "values": ["none", "again"], "margin_pct": 3}
RESULTS = Path("results/small")


def test_pairs_become_verdicts_a_figure_and_a_page(checkout, measure, write_epochs, run_rules):
    """Five pairs differ by 5 %; the last does not count, for its container has another torch."""
    checkout.sweep({"seed": list(range(6))}, pairs=PAIRS)
    for run in checkout.runs:
        seed, is_inside = run.factors["seed"], run.factors["container"] == "again"
        changes = {"software": {"torch": "1.8.0"}} if is_inside and seed == 5 else {}
        for epoch in range(3):
            measure(run, epoch, **changes)
        factor = (1 + seed / 1000) * (1.05 if is_inside else 1)
        epochs = [{"e2e_s": 4.0 * factor, "compute_s": 2.25 * factor} for _ in range(3)]
        write_epochs(run.id, run.factors, *epochs)
    run_rules("compare_pairs draw_pairs show_pairs", str(RESULTS / "index.html"))
    verdicts = {row["metric"]: row for row in rows(RESULTS / "verdicts.csv")}
    assert (verdicts["e2e"]["verdict"], verdicts["e2e"]["n_pairs"]) == ("different", "5")
    assert verdicts["energy"]["verdict"] == "undecided"
    page = (RESULTS / "index.html").read_text("utf-8")
    assert "different" in page
    assert "torch 2.9.1 / 1.8.0" in page
    assert Path("results/figures/small/differences.png").stat().st_size > 0
