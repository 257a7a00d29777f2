"""The twin in the workflow: what it makes, and what a change makes again."""

import shutil

import pytest
from full_checkout import PAGES

TWO = {"model": "lenet", "storage": ["ssd", "hdd"]}


@pytest.fixture(scope="module")
def simulated(shop):
    """A checkout in which two runs and the papers' idle powers were simulated."""
    checkout = shop.checkout()
    study = {"backend": "jetson", "twin": "true", "device": "agx", "epochs": 2, "sweep": [TWO]}
    checkout.configure(drawn=("grid",), grid=study)
    checkout.write_yaml("config/config.yaml", {"studies": ["simulated"]})
    return checkout, checkout.make()


@pytest.fixture
def checkout(shop, simulated):
    """A copy of it, to be changed."""
    return shop.copy_of(simulated[0])


def test_runs_idle_powers_tables_and_figures_are_made_and_say_that_they_are_simulated(simulated):
    checkout, outcome = simulated
    tables = ("check_claims", "collect_idle", "collect_study", "advise_runs", "compare_printed")
    others = ("count_workload lenet", "plot_fig02 twin", "simulate_idle", "split_energy")
    runs = (f"simulate_run {run.id}" for run in checkout.runs())
    assert outcome.jobs == sorted([*tables, *others, *runs, "bundle_vega", *PAGES])
    assert not (checkout.root / "data").exists()
    assert [p.name for p in (checkout.root / "measured").iterdir()] == [".workflow.lock"]
    rows = checkout.table("results/tables/epochs.csv")
    assert [(row["backend"], row["timing_method"]) for row in rows] == [("twin", "simulated")] * 4
    idle = checkout.table("results/tables/idle.csv")
    assert [row["backend"] for row in idle] == ["twin"] * 29
    assert all(float(row["power_w"]) > 0 for row in idle)
    assert "Simulated, not measured" in checkout.read("results/summary.txt")
    discarded = checkout.epochwatt("discard", checkout.runs()[0].id)
    assert discarded.status == 1
    assert "is simulated: nothing is measured of it" in discarded.text


def simulating(jobs):
    return [job.split()[0] for job in jobs if job.startswith(("count", "simulate"))]


def test_a_changed_parameter_simulates_again_and_a_comment_or_a_date_does_not(checkout):
    for name in ("boards", "parameters", "samples"):
        checkout.append(f"config/twin/{name}.yaml", "# looked at again")
    path = checkout.root / "config/twin/parameters.yaml"
    told = path.read_text()
    path.write_text(told.replace("nx_soc_w:\n    value: ", "nx_soc_w:\n    value: 1"))
    assert simulating(checkout.make("--dry-run").jobs) == ["simulate_idle"]  # both runs are of AGX
    path.write_text(told.replace("ssd_access_ms:\n    value: ", "ssd_access_ms:\n    value: 1"))
    jobs = checkout.make("--dry-run").jobs
    assert simulating(jobs) == ["simulate_idle", "simulate_run", "simulate_run"]


@pytest.mark.thorough
def test_changed_code_of_the_twin_simulates_again_and_a_comment_does_not(checkout):
    checkout.append("src/epochwatt/twin/records.py", "# a comment")
    assert checkout.make("--dry-run").jobs == []
    checkout.append("src/epochwatt/twin/records.py", "EDITED = True")
    jobs = simulating(checkout.make("--dry-run").jobs)
    assert jobs.count("simulate_run") == 2
    assert "count_workload" not in jobs


@pytest.mark.thorough
def test_more_epochs_are_simulated_from_the_start_and_lost_results_come_back(checkout):
    before = checkout.state("results/runs", "results/simulated", content_only=True)
    shutil.rmtree(checkout.root / "results")
    checkout.make()
    assert checkout.state("results/runs", "results/simulated", content_only=True) == before
    told = checkout.epochwatt("plan", "--explain", checkout.runs()[0].id)
    assert "simulated on the twin" in told.text
    assert "nothing would run" in told.text
    studies = checkout.read_yaml("config/studies.yaml")
    studies["grid"]["epochs"] = 3
    checkout.write_yaml("config/studies.yaml", studies)
    checkout.make("tables")
    assert len(checkout.table("results/tables/epochs.csv")) == 6
