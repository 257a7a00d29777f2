"""Which ceilings are measured: of studies and sweeps that ask for them, each mode once."""

import json

import pytest

from epochwatt.roofline.wanted import ceiling_runs, point_run, wanted_ceilings
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.discard import forget_lost_modes
from epochwatt.sweeps.table import load_sweeps

SWEEP = {
    "title": "threads",
    "backend": "host",
    "device": "host",
    "workload": {"model": "lenet", "num_workers": 0},
    "grid": {"modes": [{"cores": 1}]},
}


@pytest.fixture
def wanted(checkout):
    """Return a function that gives what studies (and a sweep) ask for."""

    def call(*blocks, sweep=None, **study):
        checkout.sweep(*(blocks or [{}]), **study)
        names = []
        if sweep is not None:
            checkout.write("sweeps.yaml", {"mine": {**SWEEP, **sweep}})
            names = ["mine"]
        config = {"studies": ["small"], "sweeps": names}
        settings = load_settings(config, checkout.path)
        return wanted_ceilings(settings, load_sweeps(config, checkout.path))

    return call


def test_nothing_is_measured_unless_it_is_asked_for(wanted):
    assert wanted() == {}
    assert wanted(sweep={}) == {}


def test_runs_of_a_host_ask_for_each_number_of_threads_once(wanted):
    blocks = [{"torch_threads": [1, 2], "batch_size": [16, 32]}]
    (job,) = wanted(*blocks, ceilings=True).values()
    assert job.settings == [{"cores": 1}, {"cores": 2}]
    assert job.id.startswith("ceilings-host-local-fp32-p1-")
    assert job.chunks == [(0, 1)]
    assert job.receipts[0].startswith(f"results/roofline/{job.id}/{job.digest}/")
    assert (
        "-m epochwatt.board.training.ceilings --dvfs on --precisions fp32 --machine" in job.command
    )
    assert job.place["modes"] == job.settings
    assert job.place["provenance"] == "measured"


def test_a_study_and_a_sweep_share_what_is_measured(wanted):
    modes = {"grid": {"modes": [{"cores": 1}, {}]}, "ceilings": True}
    (job,) = wanted({"torch_threads": 1}, ceilings=True, sweep=modes).values()
    assert job.settings == [{"cores": 1}, {}]


def test_a_mode_that_is_gone_is_measured_again(wanted, monkeypatch, checkout):
    monkeypatch.chdir(checkout.path)
    (job,) = wanted({"torch_threads": 1}, ceilings=True).values()
    receipt = checkout.path / job.receipts[0]
    receipt.parent.mkdir(parents=True)
    receipt.write_text("{}", "utf-8")
    (checkout.path / "measured").mkdir(exist_ok=True)
    (said,) = forget_lost_modes([job])
    assert "ceilings of host/local: mode-c1-x-x-x gone" in said
    assert not receipt.exists()


def test_a_run_is_placed_with_its_factors_as_plain_values(checkout, wanted):
    wanted({"torch_threads": 2, "batch_size": 32}, ceilings=True)
    settings = load_settings({"studies": ["small"]}, checkout.path)
    (run,) = ceiling_runs(settings)
    placed = point_run(run, settings)
    assert json.loads(json.dumps(placed)) == placed
    assert (placed["cores"], placed["batch_size"], placed["workload"]) == (2, 32, "lenet")
    assert (placed["provenance"], placed["device"], placed["task"]) == ("measured", "host", "train")
