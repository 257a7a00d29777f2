"""What runs again after a change, and above all what does not."""

import shutil
from pathlib import Path

import pytest
from full_checkout import PAGES, TABLES, configure_two_studies

from epochwatt.maintenance.fingerprint import modules_behind

pytestmark = pytest.mark.workflow

FIGURE = "plot_fig02 host"
# simulated boards are made of these, and claims are held against simulated boards
JUDGED_WITH = modules_behind(
    script=str(Path(__file__).resolve().parents[2] / "workflow/scripts/check_claims.py")
)


def test_the_first_run_makes_every_table_and_figure(finished):
    """Below a folder with spaces, by an interpreter that lies there."""
    drawn, beside = finished.drawn, finished.beside
    trained = [f"train_epoch {drawn} 0 0", f"train_epoch {drawn} 1 1", f"train_epoch {beside} 0 0"]
    collected = [f"collect_run {drawn}", f"collect_run {beside}"]
    made = ["make_dataset data/mnist-digits-x0.5", FIGURE, "bundle_vega"]
    assert finished.first_run.jobs == sorted(TABLES + PAGES + trained + collected + made)
    figures = [f"figures/host/fig02{p}.{kind}" for p in "abc" for kind in ("svg", "png", "csv")]
    tables = ("epochs", "runs", "advice", "energy_parts", "printed")
    others = ["claims.csv", "index.html", "summary.txt", *(f"tables/{name}.csv" for name in tables)]
    for path in figures + others:
        assert (finished.checkout.root / "results" / path).stat().st_size > 0, path
    rows = finished.checkout.table("results/tables/epochs.csv")
    assert [(row["run"], row["epoch"], row["valid"]) for row in rows] == [
        (drawn, "0", "True"),
        (drawn, "1", "True"),
        (beside, "0", "True"),
    ]


def test_another_batch_size_measures_that_run_and_redraws_what_uses_it(shop, finished):
    """test_not_made.py does so for real, and sees that all else stays as it is."""
    checkout = shop.copy_of(finished.checkout)
    configure_two_studies(checkout, drawn_batch=32)
    new = checkout.run_of("host-pipeline").id
    assert new != finished.drawn
    trained = [f"train_epoch {new} 0 0", f"train_epoch {new} 1 1"]
    expected = [*TABLES, *PAGES, *trained, f"collect_run {new}", FIGURE]
    assert checkout.make("--dry-run").jobs == sorted(expected)


@pytest.mark.thorough
def test_raising_epochs_continues_the_run(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    run = finished.beside
    others = (f"measured/{finished.drawn}", f"results/runs/{finished.drawn}", "results/figures")
    receipt = f"results/runs/{run}/part-0-0.json"
    before, epoch_0 = checkout.state(*others, receipt), checkout.epoch_state(run, 0)
    configure_two_studies(checkout, beside_epochs=2)
    expected = [*TABLES, *PAGES, f"collect_run {run}", f"train_epoch {run} 1 1"]
    assert checkout.make().jobs == sorted(expected)
    assert checkout.state(*others, receipt) == before
    assert checkout.epoch_state(run, 0) == epoch_0
    record = checkout.record(run, 1)
    assert (record["weights"], record["resumed"]) == ("checkpoint", None)
    assert record["flags"] == ["cold_process"]


def _other_colour(checkout):
    """The landing page has bars of the same colours, and shows the configuration."""
    plotting = checkout.read_yaml("config/plotting.yaml")
    plotting["palette"]["stall"] = "#123456"
    checkout.write_yaml("config/plotting.yaml", plotting)


def _other_style(checkout):
    checkout.append("config/paper.mplstyle", "axes.linewidth: 2.0")


@pytest.mark.thorough
@pytest.mark.parametrize("change", [_other_colour, _other_style])
def test_colour_or_style_redraws_figures_alone(shop, finished, change):
    checkout = shop.copy_of(finished.checkout)
    change(checkout)
    assert checkout.make("--dry-run").jobs == [FIGURE, "show_index"]


def edit_code(checkout, *folders, judged=False):
    """Add a statement to each module below folders of the package, or to those claims need."""
    edited = 0
    for path in [p for f in folders for p in (checkout.root / "src/epochwatt" / f).rglob("*.py")]:
        module = ".".join(path.relative_to(checkout.root / "src").with_suffix("").parts)
        if (module in JUDGED_WITH) == judged:
            checkout.append(str(path), "EDITED = True")
            edited += 1
    return edited


def test_code_of_figures_redraws_figures_and_a_move_or_measuring_code_reruns_nothing(
    shop, finished
):
    """A comment does not, nor does code that only measures: `PROTOCOL` says when it should."""
    checkout = shop.copy_of(finished.checkout)
    for path in (checkout.root / "src/epochwatt/board/records").glob("*.py"):
        checkout.append(str(path), "# a comment")
    assert edit_code(checkout, "board/training", "board/telemetry", "board/device") > 40
    path = checkout.root / "src/epochwatt/figures/common/bars.py"
    code = path.read_text()
    assert code.count("\nBAR = 0.66 ") == 1, "the constant to change has another name now"
    path.write_text(code.replace("\nBAR = 0.66 ", "\nBAR = 0.55 "))
    assert checkout.make("--dry-run").jobs == [FIGURE, "show_index"]


@pytest.mark.thorough
def test_editing_the_simulator_redraws_no_figure_of_measured_runs(shop, finished):
    """Claims are judged again, since they may be held against simulated boards."""
    checkout = shop.copy_of(finished.checkout)
    assert edit_code(checkout, "twin") > 20
    assert checkout.make("--dry-run").jobs == []
    assert edit_code(checkout, "twin", "telemetry", "device", judged=True) > 20
    assert checkout.make("--dry-run").jobs == ["check_claims", "show_index", "summarise"]


@pytest.mark.thorough
def test_a_newer_receipt_or_manifest_starts_no_measuring_job(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    checkout.append(f"results/runs/{finished.drawn}/part-0-0.json", "")
    checkout.append("data/mnist-digits-x0.5/manifest.json", "")
    outcome = checkout.make("--dry-run")
    assert outcome.measuring == []
    assert f"collect_run {finished.drawn}" in outcome.jobs


def test_lost_results_come_back_without_measuring_and_without_torch(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    tables = ("results/runs", "results/tables", "results/figures", "results/summary.txt")
    measured, made = checkout.state("measured"), checkout.state(*tables, content_only=True)
    shutil.rmtree(checkout.root / "results")
    (checkout.root / "src/torch.py").write_text("raise SystemExit('torch was imported')\n")
    outcome = checkout.make()
    assert outcome.jobs == [job for job in finished.first_run.jobs if "make_dataset" not in job]
    assert checkout.state("measured") == measured
    assert checkout.state(*tables, content_only=True) == made
    log = checkout.job_log(finished.drawn, 1, 1)
    assert "epoch 1 was measured on" in log
    assert f"epochwatt discard {finished.drawn} 1" in log
