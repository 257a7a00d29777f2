"""One study on many boards: a real Slurm, a fake board for each node, real training."""

import itertools
import os
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from fake_board import FakeBoard
from fleet_checkout import FleetCheckout, on
from full_checkout import LONG, FullCheckout, Outcome, Started
from slurm_cluster import FLEET, Node, node_of

from epochwatt.study.runs import Run

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
# A job on a node starts Snakemake twice, so the larger fleets take minutes.
thorough = pytest.mark.thorough

KIND_OF = {"orin": "agx_orin", "agx": "agx_xavier", "nano": "nano"}  # device file -> kind
AGX, NANO = node_of("agx_xavier", "d1"), node_of("nano", "d1")


def threads_of_torch() -> int:
    """Return how many threads torch takes where nothing tells it a number."""
    environment = {k: value for k, value in os.environ.items() if not k.endswith("_THREADS")}
    words = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]
    return int(subprocess.check_output(words, env=environment))


def losses(checkout: FullCheckout) -> dict[str, list[float]]:
    """Return run -> the losses of its epochs."""
    return {run.id: checkout.losses(run) for run in checkout.runs()}


def node_for(run: Run) -> Node:
    """Return the node whose board is the unit of a run."""
    return node_of(KIND_OF[run.factors["device"]], run.factors["instance"])


def without_slurm(shop, fleet: FleetCheckout) -> tuple[FleetCheckout, dict[str, FakeBoard]]:
    """Return the same study for one machine that measures it run after run, and its boards."""
    alone = shop.fleet(fleet.nodes)
    for path in ("config/studies.yaml", "config/plotting.yaml", "config/config.yaml"):
        (alone.root / path).write_text(fleet.read(path))
    boards = alone.leave_the_fleet()
    shop.provide_data(alone)
    return alone, boards


def measured_without_slurm(shop, fleet: FleetCheckout) -> FleetCheckout:
    """Return the same study as it is measured on one machine."""
    alone, boards = without_slurm(shop, fleet)
    with ExitStack() as stack:
        for board in boards.values():
            stack.enter_context(board.live())
        alone.make("runs", "tables")
    return alone


def assert_each_on_its_own_board(fleet: FleetCheckout) -> None:
    """Check name and serial number of the board in each record."""
    for run in fleet.runs():
        node = node_for(run)
        assert fleet.measured_by(run.id) == (node.name, fleet.serial(node))


def test_two_runs_are_measured_on_two_kinds_of_boards_and_collected_here(shop):
    fleet = shop.fleet((AGX, NANO))
    fleet.study(epochs=1, sweep=[on(AGX), on(NANO, torch_threads=0)])
    shop.provide_data(fleet)
    with fleet.cluster():
        outcome = fleet.make("tables")
    assert len(outcome.measuring) == 2
    assert_each_on_its_own_board(fleet)
    rows = fleet.table("results/tables/epochs.csv")
    assert {(row["device"], row["backend"]) for row in rows} == {("agx", "fake"), ("nano", "fake")}
    assert [row["valid"] for row in rows] == ["True", "True"], rows
    modes = [fleet.record(run.id, 0)["board"]["power_mode"] for run in fleet.runs()]
    assert all(mode["verified"] for mode in modes)
    threads = {
        run.factors["device"]: fleet.record(run.id, 0)["torch_threads_used"] for run in fleet.runs()
    }
    assert threads == {"agx": 1, "nano": threads_of_torch()}  # 0 leaves it to torch


# -- six boards, thirty runs -------------------------------------------------------------------


def n_submitted(workflow: Started) -> int:
    """Return how many jobs Slurm has taken by now."""
    return workflow.screen.read_text().count("has been submitted with SLURM jobid")


class Thirty(NamedTuple):
    """Thirty runs that six boards have measured."""

    fleet: FleetCheckout
    outcome: Outcome
    jobs: list[tuple[str, str]]  # state and node of each job, while the first ones measured


@pytest.fixture(scope="module")
def thirty(shop) -> Thirty:
    """Five runs for each of two units of three kinds, measured."""
    fleet = shop.fleet()
    fleet.study(epochs=1, sweep=[on(node, seed=[0, 1, 2, 3, 4]) for node in FLEET])
    shop.provide_data(fleet)
    runs = [run.id for run in fleet.runs()]
    with fleet.cluster() as cluster, fleet.started("runs", "tables") as workflow:
        workflow.wait_until(
            lambda: any(fleet.is_measured(run, 0) for run in runs) and n_submitted(workflow) == 30
        )
        jobs = cluster.jobs()
        outcome = workflow.end()
    assert outcome.status == 0, outcome.text
    return Thirty(fleet, outcome, jobs)


@thorough
def test_thirty_runs_are_measured_each_once_on_its_own_board_at_once(shop, thirty):
    fleet = thirty.fleet
    assert len(thirty.outcome.measuring) == 30
    assert_each_on_its_own_board(fleet)
    rows = fleet.table("results/tables/epochs.csv")
    assert [row["valid"] for row in rows] == ["True"] * 30
    # jobs wait while all boards are taken; each board has one job, and not one board all
    states = Counter(state for state, _ in thirty.jobs)
    at_work = [node for state, node in thirty.jobs if state == "RUNNING"]
    assert states.total() == 30
    assert states["PENDING"] >= 30 - 2 * len(FLEET)
    assert len(at_work) == len(set(at_work)) > 1
    assert not fleet.leftovers()
    times_s = defaultdict(list)
    for run in fleet.runs():
        record = fleet.record(run.id, 0)
        bounds_s = record["t_start_mono_s"], record["t_end_mono_s"]
        times_s[record["host_state"]["hostname"]].append(bounds_s)
    assert {node: len(bounds_s) for node, bounds_s in times_s.items()} == {
        node.name: 5 for node in FLEET
    }
    for bounds_s in times_s.values():
        assert all(end < start for (_, end), (start, _) in itertools.pairwise(sorted(bounds_s)))
    alone = measured_without_slurm(shop, fleet)
    assert losses(alone) == losses(fleet)
    assert alone.lasting_cells() == fleet.lasting_cells()


# -- what goes wrong ---------------------------------------------------------------------------


@thorough
def test_a_board_that_dies_goes_on_in_the_epoch_where_it_was(shop):
    fleet = shop.fleet((NANO, AGX))
    fleet.study(epochs=2, sweep=[on(NANO, dataset_scale=LONG), on(AGX)])
    shop.provide_data(fleet)
    dies, lives = fleet.runs()
    with fleet.cluster() as cluster, fleet.started("runs", "tables") as workflow:
        workflow.wait_until(lambda: fleet.is_measuring(dies.id, 1))
        cluster.kill_node(NANO.name)
        kept = fleet.epoch_state(dies.id, 0)
        cluster.start_node(NANO.name)
        outcome = workflow.end()
    assert outcome.status == 0, outcome.text
    assert fleet.epoch_state(dies.id, 0) == kept
    assert ["resumed" in row["flags"].split() for row in fleet.rows(dies.id)] == [False, True]
    assert not any("resumed" in row["flags"].split() for row in fleet.rows(lives.id))
    assert losses(fleet) == losses(measured_without_slurm(shop, fleet))
