"""Which runs models are fitted to."""

from collections import Counter
from types import SimpleNamespace

import pytest

from epochwatt.prediction.data.required_runs import _numbers, backends, fitted_runs
from epochwatt.study.settings import load_settings


@pytest.fixture(scope="module")
def table(request):
    """Both papers' grids on the twin."""
    return load_settings({"studies": ["simulated"]}, request.config.rootpath).table


def test_grid_of_the_paper_has_its_networks_and_modes(table):
    found = fitted_runs(table, "twin")
    factors = [run.factors for run in found.runs]
    four = Counter(f["model"] for f in factors if (f["num_workers"], f["device"]) == (4, "agx"))
    assert four["lenet"] >= 14
    assert four["vgg11"] == 10
    assert {f["dvfs"] for f in factors} == {"off"}
    by_mode = {f["power_mode"]: found.modes[r.id] for f, r in zip(factors, found.runs, strict=True)}
    assert by_mode["g"] == [8, 2265, 1377, 2133, 1]


def test_single_modes_are_left_out(table):
    used = {run.id for run in fitted_runs(table, "twin").runs}
    nano = [run for run in table.runs.values() if run.factors["device"] == "nano"]
    assert nano
    assert used.isdisjoint(run.id for run in nano)


def test_backends_without_two_modes_have_no_models(table, checkout):
    assert backends(table) == ["twin"]
    assert backends(checkout.settings().table) == []
    assert fitted_runs(checkout.settings().table, "host").runs == []


def test_a_mode_that_gates_half_of_the_gpu_says_so():
    """A named mode of a board whose numbers the device file states."""
    clocks = {"cores": 2, "cpu_mhz": 1200, "gpu_mhz": 520, "emc_mhz": 1065}
    named = {"nvpmodel": "MODE_10W", "gpu_share": 0.5, **clocks}
    for settings, share in ((clocks, 1), (named, 0.5)):
        run = SimpleNamespace(factors={"power_mode_settings": settings})
        assert _numbers(run) == [2, 1200, 520, 1065, share]
