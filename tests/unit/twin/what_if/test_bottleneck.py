"""What an epoch hangs on, moved by making each resource better."""

from dataclasses import replace
from pathlib import Path

import pytest

from epochwatt.counting.kernel_counts import generic_kernel_counts
from epochwatt.twin.inputs.boards import SampleFacts
from epochwatt.twin.inputs.twin import load_twin
from epochwatt.twin.model.epoch import Setting, epoch
from epochwatt.twin.model.power import Clocks
from epochwatt.twin.what_if import bottleneck

ROOT = Path(__file__).resolve().parents[4]
SMALL = 1e-4
BALANCED = {"flops": 3e9, "moved_bytes": 2e8, "launches": 700}
NO_FILES = SampleFacts(20000, 0, 1000, 0, "test")
PHOTOGRAPHS = SampleFacts(20000, 100_000, 400_000, 2000, "test")


@pytest.fixture(scope="module")
def twin():
    return load_twin(ROOT / "config/twin", [])


@pytest.fixture
def ask(twin):
    """Return a function that makes a setting on an AGX Xavier."""

    def make(samples=NO_FILES, medium="ssd", workers=4, cold=False, dvfs=False, **totals):
        changes = {**BALANCED, "parameters": 10**6, "sample_bytes": 3072, **totals}
        clocks = Clocks(8.0, 2265.0, 1377.0, 2133.0)
        work = generic_kernel_counts(**changes)
        return Setting(twin.boards["agx"], work, samples, medium, 16, clocks, workers, cold, dvfs)

    return make


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize(("medium", "cold"), [("ssd", False), ("hdd", True), ("sd", True)])
@pytest.mark.parametrize("flops", [1e7, 3e9, 1e11])
def test_the_shares_of_all_resources_add_up_to_one(ask, twin, workers, medium, cold, flops):
    setting = ask(PHOTOGRAPHS, medium, workers, cold, flops=flops)
    shorter = bottleneck.shorter_pct(setting, twin.parameters, 1.0 + SMALL)
    shares = {name: gain / (100.0 * SMALL) for name, gain in shorter.items()}
    assert sum(shares.values()) == pytest.approx(1.0, abs=2e-3)
    assert min(shares.values()) >= -1e-9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flops": 1e12}, "bound by compute, its limit is arithmetic"),
        ({"moved_bytes": 1e11}, "bound by compute, its limit is memory"),
        (
            {"launches": 5000, "flops": 1e5, "moved_bytes": 1e6},
            "bound by compute, its limit is launches",
        ),
        (
            {"samples": PHOTOGRAPHS, "medium": "hdd", "cold": True, "workers": 2, "flops": 1e7},
            "bound by the loader (storage medium)",
        ),
        (
            {"samples": replace(PHOTOGRAPHS, pixels=1e8)},
            "bound by the loader (decoding and transforming)",
        ),
        (
            {"sample_bytes": 10**9, "launches": 10},
            "bound by copying to the GPU",
        ),
    ],
)
def test_an_extreme_network_is_bound_by_what_it_has_too_much_of(ask, twin, changes, words):
    shorter = bottleneck.shorter_pct(ask(**changes), twin.parameters)
    assert bottleneck.bottleneck_words(shorter).split(";")[0] == words


def test_what_the_pipeline_hides_has_no_share(ask, twin):
    setting = ask(replace(PHOTOGRAPHS, pixels=1.0), "ssd", flops=1e12)
    shorter = bottleneck.shorter_pct(setting, twin.parameters)
    assert shorter["storage medium"] == shorter["decoding and transforming"] == 0.0


def test_governors_do_not_answer_to_the_change(ask, twin):
    governed = ask(dvfs=True)
    clocks = epoch(governed, twin.parameters).clocks
    pinned = replace(governed, dvfs=False, clocks=clocks)
    expected = bottleneck.shorter_pct(pinned, twin.parameters)
    assert bottleneck.shorter_pct(governed, twin.parameters) == pytest.approx(expected)


def test_words_name_what_helps_nearly_as_much():
    shorter = {**dict.fromkeys(bottleneck.RESOURCES, 0.0), "launches": 5.0, "GPU memory": 3.0}
    assert bottleneck.bottleneck_words(shorter) == (
        "bound by compute, its limit is launches; nearly as much by: GPU memory"
    )


def test_assumed_parameters_in_play_are_assumed_and_in_order(ask, twin):
    setting = ask(PHOTOGRAPHS, "emmc", workers=1, cold=True)
    moved = bottleneck.assumed_in_play(setting, twin.parameters)
    assert {twin.parameters.described[name].source for name in moved} == {"assumed"}
    sizes = [max(map(abs, changes)) for changes in moved.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] >= bottleneck.IN_PLAY_PCT
    assert "emmc_mb_per_s" in moved
    assert not [name for name in moved if name.startswith(("noise_", "hdd_", "nano_"))]
