"""Explanations of simulated runs: the bottleneck of `what-if`, and next modes nearly as there."""

import pytest

from epochwatt.epochs.bottleneck import ARITHMETIC, LAUNCHES, MEMORY
from epochwatt.roofline.explain import Observed, Roof, explain
from epochwatt.twin import resources
from epochwatt.twin.boards import Clocks, number
from epochwatt.twin.ceilings import simulated_fits
from epochwatt.twin.epoch import Setting, epoch

DATASET = {"lenet": "mnist", "mobilenet": "gld23k", "resnet": "cifar10"}
LIMITS = {"launches": LAUNCHES, "GPU arithmetic": ARITHMETIC, "GPU memory": MEMORY}


@pytest.fixture
def simulate(twin):
    """Return a function that gives a setting and what is seen of it, in a mode."""

    def call(device, model, workers, mode):
        samples = twin.samples[DATASET[model]]
        clocks = Clocks(*map(float, mode))
        setting = Setting(
            twin.boards[device], twin.works[model], samples, "ssd", 16, clocks, workers
        )
        e, n = epoch(setting, twin.parameters), setting.n_minibatches
        copy_s = n * number(e.stages.copy_s)
        times = (number(e.e2e_s), number(e.stall_s) - copy_s, copy_s, number(e.compute_s))
        return setting, Observed(
            n, setting.n_samples / n, workers, *times, number(e.overhead_s), number(e.fetch_s),
            number(e.preprocess_s), 3600.0 * number(e.energy_wh),
        )  # fmt: skip

    return call


@pytest.fixture(scope="module")
def fits(request):
    """The rooflines of a simulated board."""
    return {device: simulated_fits(device, request.config.rootpath) for device in ("agx", "orin")}


@pytest.mark.parametrize(
    ("device", "model", "workers", "gpu_mhz"),
    [("orin", "mobilenet", 4, None), ("orin", "lenet", 4, None), ("agx", "resnet", 4, 114.75)],
)
def test_the_limit_of_computing_is_that_of_what_if(
    device, model, workers, gpu_mhz, simulate, twin, fits
):
    here = next(fit for fit in fits[device] if gpu_mhz in (None, fit.gpu_mhz))
    setting, seen = simulate(device, model, workers, here.mode)
    found = explain(twin.works[model], seen, Roof.fitted(here))
    shorter = resources.shorter_pct(setting, twin.parameters)
    largest = max(LIMITS, key=lambda name: shorter[name])
    assert found.bottleneck.limit == LIMITS[largest]
    assert found.roof_share < 1.05
    assert found.energy_scale == 1.0
