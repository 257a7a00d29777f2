"""One study on many boards: a real Slurm, a fake board for each node, real training."""

import pytest
from fleet_checkout import FleetCheckout
from full_checkout import LONG, block
from slurm_cluster import Node, node_of

# A job on a node starts Snakemake twice, so these take minutes where other programs run.
pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

DEVICES = {"agx_orin": "orin", "agx_xavier": "agx", "nano": "nano"}  # kind -> device file
MODES = {"orin": "full", "agx": "g", "nano": "full"}
NANO = node_of("nano", "d1")


def on(node: Node, **factors) -> dict:
    """Return a block of a study for one node's board."""
    kind, unit = node.features
    device = DEVICES[kind]
    return block(device=device, instance=unit, power_mode=MODES[device], **factors)


def losses(checkout) -> dict[str, list[float]]:
    """Return run -> the losses of its epochs."""
    return {run.id: checkout.losses(run) for run in checkout.runs()}


def as_without_slurm(shop, fleet: FleetCheckout) -> dict[str, list[float]]:
    """Return the losses of the same runs, measured on one machine, one after the other."""
    alone = shop.fleet(fleet.nodes)
    for path in ("config/studies.yaml", "config/plotting.yaml", "config/config.yaml"):
        (alone.root / path).write_text(fleet.read(path))
    alone.leave_the_fleet()
    shop.provide_data(alone)
    alone.make("runs")
    assert [run.id for run in alone.runs()] == [run.id for run in fleet.runs()]
    return losses(alone)


def test_each_run_is_measured_on_its_own_board_and_as_without_slurm(shop):
    fleet = shop.fleet()
    fleet.study(epochs=1, sweep=[on(node, seed=[0, 1, 2, 3, 4]) for node in fleet.nodes])
    shop.provide_data(fleet)
    with fleet.cluster():
        outcome = fleet.make("runs", "tables")
    assert len(outcome.measuring) == 30  # five for each node: most of them waited
    wanted = {
        run.id: node_of(kind, run.factors["instance"]).name
        for run in fleet.runs()
        for kind, device in DEVICES.items()
        if device == run.factors["device"]
    }
    records = {run: fleet.record(run, 0) for run in wanted}
    assert {run: record["machine"]["hostname"] for run, record in records.items()} == wanted
    assert all(row["valid"] == "True" for run in wanted for row in fleet.rows(run))
    assert losses(fleet) == as_without_slurm(shop, fleet)


def test_a_board_that_dies_goes_on_in_the_epoch_where_it_was(shop):
    fleet = shop.fleet((NANO,))
    fleet.study(epochs=2, sweep=[on(NANO, dataset_scale=LONG)])
    shop.provide_data(fleet)
    (run,) = fleet.runs()
    with fleet.cluster() as cluster, fleet.started("runs") as workflow:
        workflow.wait_until(lambda: fleet.is_measuring(run.id, 1))
        cluster.kill_node(NANO.name)
        kept = fleet.epoch_state(run.id, 0)
        cluster.start_node(NANO.name)
        outcome = workflow.end()
    assert outcome.status == 0, outcome.text
    assert fleet.epoch_state(run.id, 0) == kept
    assert ["resumed" in row["flags"].split() for row in fleet.rows(run.id)] == [False, True]
    assert losses(fleet) == as_without_slurm(shop, fleet)


def test_a_controller_that_is_started_again_loses_no_job(shop):
    fleet = shop.fleet((NANO,))
    fleet.study(epochs=1, sweep=[on(NANO, dataset_scale=LONG)])
    shop.provide_data(fleet)
    (run,) = fleet.runs()
    with fleet.cluster() as cluster, fleet.started("runs") as workflow:
        workflow.wait_until(lambda: fleet.is_measuring(run.id, 0))
        cluster.kill_daemon("slurmctld")
        cluster.start_controller()
        outcome = workflow.end()
    assert outcome.status == 0, outcome.text
    assert [row["valid"] for row in fleet.rows(run.id)] == ["True"]
    assert not any("resumed" in row["flags"] for row in fleet.rows(run.id))
