"""What runs again after a change, and above all what does not."""

import shutil
from pathlib import Path

import pytest
from full_checkout import configure_two_studies

from epochwatt.maintenance.fingerprint import modules_behind

pytestmark = pytest.mark.workflow


def test_the_first_run_makes_every_table_and_figure(finished):
    drawn, beside = finished.drawn, finished.beside
    assert finished.first_run.jobs == [
        *("advise_runs", "check_claims"),
        f"collect_run {beside}",
        f"collect_run {drawn}",
        *("collect_study", "compare_printed"),
        "make_dataset data/mnist-digits-x0.5",
        "plot_fig02 host",
        *("show_index", "split_energy", "summarise"),
        f"train_epoch {beside} 0 0",
        f"train_epoch {drawn} 0 0",
        f"train_epoch {drawn} 1 1",
    ]
    figures = [f"figures/host/fig02{p}.{kind}" for p in "abc" for kind in ("svg", "png", "csv")]
    tables = [
        f"tables/{name}.csv" for name in ("epochs", "runs", "advice", "energy_parts", "printed")
    ]
    tables.append("claims.csv")
    pages = ["index.html", "summary.txt"]
    for path in [*figures, *tables, *pages]:
        assert (finished.checkout.root / "results" / path).stat().st_size > 0, path
    rows = finished.checkout.table("results/tables/epochs.csv")
    assert [(row["run"], row["epoch"], row["valid"]) for row in rows] == [
        (drawn, "0", "True"),
        (drawn, "1", "True"),
        (beside, "0", "True"),
    ]


def test_running_again_does_nothing_but_say_so(finished):
    outcome = finished.checkout.make()
    assert "Nothing to be done" in outcome.text
    assert outcome.jobs == []


def test_another_batch_size_measures_that_run_and_redraws_what_uses_it(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    others = (f"measured/{finished.beside}", f"results/runs/{finished.beside}")
    before = checkout.state(*others)
    configure_two_studies(checkout, drawn_batch=32)
    new = checkout.run_of("host-pipeline").id
    assert new != finished.drawn
    assert checkout.make("--dry-run").jobs == [
        *("advise_runs", "check_claims"),
        f"collect_run {new}",
        *("collect_study", "compare_printed"),
        "plot_fig02 host",
        *("show_index", "split_energy", "summarise"),
        f"train_epoch {new} 0 0",
        f"train_epoch {new} 1 1",
    ]
    made = checkout.make("runs")
    assert made.measuring == [f"train_epoch {new} 0 0", f"train_epoch {new} 1 1"]
    assert checkout.state(*others) == before


@pytest.mark.thorough
def test_raising_epochs_continues_the_run(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    run = finished.beside
    others = (f"measured/{finished.drawn}", f"results/runs/{finished.drawn}", "results/figures")
    receipt = f"results/runs/{run}/part-0-0.json"
    before, epoch_0 = checkout.state(*others, receipt), checkout.epoch_state(run, 0)
    configure_two_studies(checkout, beside_epochs=2)
    assert checkout.make().jobs == [
        *("advise_runs", "check_claims"),
        f"collect_run {run}",
        *("collect_study", "compare_printed"),
        *("show_index", "split_energy", "summarise"),
        f"train_epoch {run} 1 1",
    ]
    assert checkout.state(*others, receipt) == before
    assert checkout.epoch_state(run, 0) == epoch_0
    record = checkout.record(run, 1)
    assert record["weights"] == "checkpoint"
    assert record["resumed"] is None
    assert record["flags"] == ["cold_process"]


def _other_colour(checkout):
    """The landing page has bars of the same colours, and shows the configuration."""
    plotting = checkout.read_yaml("config/plotting.yaml")
    plotting["palette"]["stall"] = "#123456"
    checkout.write_yaml("config/plotting.yaml", plotting)
    return ["plot_fig02 host", "show_index"]


def _other_figure_code(checkout):
    path = checkout.root / "src/epochwatt/figures/common/bars.py"
    before = path.read_text()
    assert before.count("\nBAR = 0.66 ") == 1, "the constant to change has another name now"
    path.write_text(before.replace("\nBAR = 0.66 ", "\nBAR = 0.55 "))
    return ["plot_fig02 host", "show_index"]


def _other_style(checkout):
    checkout.append("config/paper.mplstyle", "axes.linewidth: 2.0")
    return ["plot_fig02 host", "show_index"]


@pytest.mark.parametrize(
    "change", [_other_figure_code, pytest.param(_other_style, marks=pytest.mark.thorough)]
)
def test_code_or_style_of_figures_redraws_them_alone(shop, finished, change):
    checkout = shop.copy_of(finished.checkout)
    jobs = change(checkout)
    assert checkout.make("--dry-run").jobs == jobs


def test_what_only_figures_show_redraws_figures_only(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    others = ("measured", "results/runs", "results/tables", "results/claims.csv")
    before, figures = checkout.state(*others), checkout.state("results/figures")
    text = checkout.read("results/summary.txt")
    _other_figure_code(checkout)
    _other_style(checkout)
    jobs = _other_colour(checkout)
    assert checkout.make().jobs == jobs
    assert checkout.state(*others) == before
    assert checkout.read("results/summary.txt") == text
    drawn = checkout.state("results/figures")
    assert drawn.keys() == figures.keys()
    assert drawn["results/figures/host/fig02a.svg"] != figures["results/figures/host/fig02a.svg"]


# simulated boards are made of these, and claims are held against simulated boards
JUDGED_WITH = modules_behind(
    script=str(Path(__file__).resolve().parents[2] / "workflow/scripts/check_claims.py")
)


def edit_code(checkout, *folders, judged=False):
    """Add a statement to each module below folders of the package, or to those claims need."""
    edited = 0
    for path in [p for f in folders for p in (checkout.root / "src/epochwatt" / f).rglob("*.py")]:
        module = ".".join(path.relative_to(checkout.root / "src").with_suffix("").parts)
        if (module in JUDGED_WITH) == judged:
            checkout.append(str(path), "EDITED = True")
            edited += 1
    return edited


def test_editing_measuring_code_reruns_nothing(shop, finished):
    """A comment does not, nor does code that only measures: `PROTOCOL` says when it should."""
    checkout = shop.copy_of(finished.checkout)
    for path in (checkout.root / "src/epochwatt/board/records").glob("*.py"):
        checkout.append(str(path), "# a comment")
    assert edit_code(checkout, "board/training", "board/telemetry", "board/device") > 40
    outcome = checkout.make()
    assert "Nothing to be done" in outcome.text
    assert outcome.jobs == []


@pytest.mark.thorough
def test_editing_the_simulator_redraws_no_figure_of_measured_runs(shop, finished):
    """Claims are judged again, since they may be held against simulated boards."""
    checkout = shop.copy_of(finished.checkout)
    assert edit_code(checkout, "twin") > 20
    assert checkout.make("--dry-run").jobs == []
    assert edit_code(checkout, "twin", "telemetry", "device", judged=True) > 20
    again = checkout.make("--dry-run").jobs
    assert again == ["check_claims", "show_index", "summarise"]


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


def test_a_checkout_that_moved_measures_and_collects_nothing_again(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    moved = shop.moved(checkout)
    outcome = moved.make()
    assert "Nothing to be done" in outcome.text
    assert outcome.jobs == []
    assert not checkout.root.exists()


def test_no_epoch_is_shorter_than_its_parts(finished, undisturbed):
    """Overhead is at least -0.1 % of E2E in every row."""
    for checkout in (finished.checkout, undisturbed):
        rows = checkout.table("results/tables/epochs.csv")
        shares = [float(row["overhead_s"]) / float(row["e2e_s"]) for row in rows]
        assert min(shares) >= -0.001
