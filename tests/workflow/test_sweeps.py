"""Sweeps end to end: 60 modes of a fake AGX Orin, killed twice; threads of the machine at hand."""

from pathlib import Path

import pytest
from full_checkout import TINY, wait_for

from epochwatt.sweeps.mode_table import read_mode_tables
from epochwatt.sweeps.table import Sweep, load_sweeps

pytestmark = pytest.mark.workflow

PARTS = {
    "cores": [4, 8, 12],
    "cpu_mhz": [729.6, 1113.6, 1497.6, 2201.6],
    "gpu_mhz": [114.75, 318.75, 624.75, 930.75, 1300.5],
    "emc_mhz": [2133],
}
BRIEF = {"idle_s": 0, "patience_s": 0.1, "warm_up_s": 0.1, "power_readings": 1}
WORKLOAD = {"model": "lenet", "dataset_scale": TINY, "num_workers": 0, "batch_size": 16}
ENTRY = {"title": "a test", "workload": WORKLOAD, "procedure": BRIEF, "minibatches": 5}


def select(checkout, **keys) -> Sweep:
    """Write one sweep, select it alone, and return it."""
    checkout.write_yaml("config/sweeps.yaml", {"mine": {**ENTRY, **keys}})
    study = {"backend": keys["backend"], "device": keys["device"], "sweep": [WORKLOAD]}
    checkout.configure(drawn=(), unused={"epochs": 1, **study})
    config = checkout.read_yaml("config/config.yaml") | {"sweeps": "mine"}
    checkout.write_yaml("config/config.yaml", config)
    return load_sweeps(config, checkout.root).sweeps["mine"]


def measured(checkout, sweep: Sweep) -> dict[str, float]:
    """Return when each measured mode was renamed: a second time would be another moment."""
    folders = (checkout.root / "measured" / sweep.id).glob("mode-*[!d]")
    return {path.name: (path / "mode.json").stat().st_mtime for path in folders}


def rows(checkout, sweep: Sweep):
    """Return the rows of a sweep's table."""
    (table,) = read_mode_tables(checkout.root / sweep.table)
    return table.rows


@pytest.mark.thorough
@pytest.mark.slow
def test_sixty_modes_of_a_fake_board_killed_twice_are_each_measured_once(shop):
    checkout = shop.board("agx_orin-jp5")
    place = {"backend": "jetson", "device": "orin", "grid": {"parts": PARTS}}
    sweep = select(checkout, **place, chunk=20)
    assert len(sweep.modes) == 60
    before = checkout.board.snapshot()
    kept: dict[str, float] = {}
    with checkout.living():
        for wanted in (7, 33):
            with checkout.started("sweeps") as job:
                job.wait_until(lambda: len(measured(checkout, sweep)) >= wanted)  # noqa: B023
                job.kill_group()
            wait_for(lambda: not checkout.processes())
            assert measured(checkout, sweep).items() >= kept.items()
            kept = measured(checkout, sweep)
            assert wanted <= len(kept) < 60
        assert f"mine   60     {len(kept)}" in checkout.epochwatt("plan", "mine").text
        checkout.make("sweeps")
    assert checkout.board.snapshot() == before
    assert measured(checkout, sweep).items() >= kept.items()
    assert len(measured(checkout, sweep)) == 60
    assert checkout.leftovers() == []
    table = rows(checkout, sweep)
    modes = [(row.cores, row.cpu_mhz, row.gpu_mhz, row.emc_mhz) for row in table]
    assert modes == [tuple(mode) for mode in sweep.modes]
    assert {row.provenance for row in table} == {"fake"}
    assert all(row.valid for row in table), {row.flags for row in table}
    assert "nothing to be done" in checkout.make("sweeps").text.lower()


@pytest.mark.thorough
def test_a_clock_that_is_not_met_makes_its_mode_invalid_and_more_modes_go_on(shop):
    checkout = shop.board("agx_orin-jp5")
    two = {"cores": [4], "cpu_mhz": [1497.6], "gpu_mhz": [318.75, 1300.5], "emc_mhz": [2133]}
    place = {"backend": "jetson", "device": "orin"}
    sweep = select(checkout, **place, grid={"parts": two})
    checkout.board.set_fault("gpu_held", 0.5)
    with checkout.living():
        outcome = checkout.make("sweeps")
        slow, fast = rows(checkout, sweep)
        assert slow.valid
        assert not fast.valid
        assert "clock_below_request" in fast.flags.split()
        assert "1 mode of 2 are not valid" in outcome.text
        before = measured(checkout, sweep)
        larger = select(checkout, **place, grid={"parts": {**two, "cores": [4, 8]}})
        assert larger.id == sweep.id
        checkout.make("sweeps")
    assert measured(checkout, sweep).items() >= before.items()
    assert [row.cores for row in rows(checkout, larger)] == [4, 4, 8, 8]


def test_threads_of_this_machine_are_swept_for_real(shop):
    checkout = shop.checkout()
    sweep = select(checkout, backend="host", device="host", grid={"parts": {"cores": [1]}})
    checkout.make("sweeps")
    (row,) = rows(checkout, sweep)
    assert (row.provenance, row.cores, row.power_scope) == ("measured", 1, "")
    assert row.time_s > 0
    assert row.n_minibatches >= 5
    receipt = Path(checkout.root / sweep.receipts[0])
    assert "mode-c1-x-x-x" in receipt.read_text("utf-8")
