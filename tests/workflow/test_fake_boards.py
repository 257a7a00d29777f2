"""`--profile jetson` end to end on fake boards: modes set and put back, energy from the rails."""

import itertools
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from board_checkout import MODES, BoardCheckout
from full_checkout import LONG, Outcome, block

REPOSITORY = Path(__file__).resolve().parents[2]
OLD_PYTHON = REPOSITORY / ".venv-board/bin/python"
OTHERS = ("nano", "xavier_nx", "agx_orin-jp5")
KINDS = ("agx_xavier", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in OTHERS))
thorough = pytest.mark.thorough


def in_modes(checkout: BoardCheckout, *modes: str, **factors) -> dict:
    """Return a block of power modes (none: all), with epochs of more than a second."""
    return block(power_mode=list(modes or MODES[checkout.device]), dataset_scale=LONG, **factors)


class Ran(NamedTuple):
    """A study over power modes whose last job was killed, and done again by a second start."""

    checkout: BoardCheckout
    before: dict[str, str]  # settings
    killed: dict[str, str]  # settings after the first start
    second: Outcome


@pytest.fixture(params=KINDS, scope="module")
def ran(request, shop) -> Ran:
    """Measure in all modes but the first of all kinds, and twice in one of them; kill the last."""
    checkout = shop.board(request.param)
    *modes, last = list(MODES[checkout.device])[request.param == KINDS[0] :]
    sweep = [in_modes(checkout, *modes, num_workers=1), in_modes(checkout, last)]
    if request.param == KINDS[0]:  # the order of modes is no matter of the kind
        sweep.append(in_modes(checkout, *modes, num_workers=0))
    checkout.study(sweep)
    shop.provide_data(checkout)
    before = checkout.board.snapshot()
    run = checkout.runs()[-1].id
    with checkout.living():
        with checkout.started("tables", "figures") as first:
            first.wait_until(lambda: checkout.is_measuring(run, 0))
            os.kill(checkout.trainers(run)[0], signal.SIGKILL)
            assert first.end().status != 0
        killed = checkout.board.snapshot()
        second = checkout.make("tables", "figures")
    return Ran(checkout, before, killed, second)


def test_board_is_put_back_by_the_next_start_where_the_job_was_killed(ran):
    """After kill -9 the job cannot: the next start does it before anything else."""
    checkout, before, killed, second = ran
    assert killed != before
    assert "its settings are put back first" in second.text
    last = checkout.runs()[-1].id
    assert second.measuring == [f"train_epoch {last} 0 0"]
    runs = [run.id for run in checkout.runs()]
    assert [run for run in runs if "resumed" in checkout.rows(run)[0]["flags"].split()] == [last]


def test_every_mode_is_set_read_back_recorded_and_put_back(ran):
    checkout, before, *_ = ran
    for run in checkout.runs():
        mode = checkout.record(run.id, 0)["board"]["power_mode"]
        assert mode["requested"] == run.factors["power_mode_settings"]
        for key in ("cpu_mhz", "gpu_mhz", "emc_mhz", "cores"):
            wanted = mode["requested"].get(key)
            if wanted is not None:
                assert mode["resolved"][key] == pytest.approx(wanted, rel=0.02)
                assert mode["read_back"][key] >= 0.95 * mode["resolved"][key]
        assert (mode["verified"], mode["dvfs"]) == (True, "off")
    assert checkout.board.snapshot() == before


def is_of_the_rails(checkout: BoardCheckout, run: str, epoch: int) -> bool:
    """Return whether an epoch's energy is what the board's rails showed."""
    record = checkout.record(run, epoch)
    shown_j = checkout.board.energy_j(record["t_start_mono_s"], record["t_end_mono_s"])
    return 3600 * float(checkout.rows(run)[epoch]["energy_wh"]) == pytest.approx(shown_j, rel=0.05)


def test_energy_is_that_of_the_rails_and_clocks_are_those_of_the_mode(ran):
    checkout = ran.checkout
    for run in checkout.runs():
        for epoch, row in enumerate(checkout.rows(run.id)):
            assert row["power_scope"] == "module"
            assert is_of_the_rails(checkout, run.id, epoch)
            assert "clock_below_request" not in row["flags"]
            assert row["valid"] == "True", row["flags"]


def test_rows_are_of_a_fake_board_and_never_called_measured(ran):
    checkout = ran.checkout
    assert {row["backend"] for row in checkout.table("results/tables/epochs.csv")} == {"fake"}
    assert (checkout.root / "results/figures/fake/fig02a.svg").exists()
    assert not (checkout.root / "results/figures/jetson").exists()


def in_order(checkout: BoardCheckout, factor: str) -> list:
    """Return a factor of each epoch that was measured, in order of time."""
    rows = [row for run in checkout.runs() for row in checkout.rows(run.id)]
    return [row[factor] for row in sorted(rows, key=lambda row: float(row["t_start_unix_s"]))]


def test_each_mode_is_set_for_all_its_runs_before_the_next(ran):
    checkout = ran.checkout
    modes = [mode for mode, _ in itertools.groupby(in_order(checkout, "power_mode"))]
    asked = {run.factors["power_mode"] for run in checkout.runs()}
    assert modes == [mode for mode in MODES[checkout.device] if mode in asked]
    assert len(modes) > 1


@thorough
@pytest.mark.parametrize(
    ("kind", "emc_mhz", "scope"),
    [
        ("orin_nano-jp6.2", {"15W": 2133, "25W": 3199}, "module"),
        ("agx_thor-jp7.2", {"120W": 4266, "MAXN": 4266}, "board"),
    ],
)
def test_stock_modes_of_newer_jetpacks_are_verified_while_clocks_vary(shop, kind, emc_mhz, scope):
    """The memory's limit of JetPack 6 and later is read where this board's own files have it."""
    checkout = shop.board(kind)
    checkout.study([in_modes(checkout, num_workers=0, dvfs="on")])
    shop.provide_data(checkout)
    before = checkout.board.snapshot()
    with checkout.living():
        checkout.make("tables")
    assert checkout.board.snapshot() == before
    assert {run.factors["power_mode"] for run in checkout.runs()} == set(MODES[checkout.device])
    for run in checkout.runs():
        mode = checkout.record(run.id, 0)["board"]["power_mode"]
        assert (mode["verified"], mode["unverified"]) == (True, [])
        assert mode["read_back"]["emc_cap_mhz"] == emc_mhz[run.factors["power_mode"]]
        row = checkout.rows(run.id)[-1]
        assert row["valid"] == "True", row["flags"]
        assert row["power_scope"] == scope
        assert is_of_the_rails(checkout, run.id, 0)


@pytest.fixture
def agx(shop) -> BoardCheckout:
    """A fake AGX Xavier and one run of two epochs of more than a second."""
    checkout = shop.board("agx_xavier")
    checkout.study([in_modes(checkout, "g")], epochs=2)
    shop.provide_data(checkout)
    return checkout


@thorough
def test_board_is_put_back_by_a_job_that_is_hung_up(agx):
    before = agx.board.snapshot()
    (run,) = agx.runs()
    with agx.living(), agx.started("runs") as started:
        started.wait_until(lambda: agx.is_measuring(run.id, 0))
        os.kill(agx.trainers(run.id)[0], signal.SIGHUP)
        assert started.end().status != 0
    assert agx.board.snapshot() == before


@thorough
def test_rail_that_stops_harms_neither_training_nor_the_other_epochs(agx):
    (run,) = agx.runs()
    with agx.living() as board:
        agx.make(f"results/runs/{run.id}/part-0-0.json")
        board.set_fault("rail_stops", "GPU")
        agx.make("runs")
    first, second = agx.rows(run.id)
    assert float(first["energy_wh"]) > 0
    assert first["valid"] == "True"
    assert not second["energy_wh"]
    assert "sampler_gap" in second["flags"] or "power_missing" in second["flags"]
    assert float(second["loss"]) < float(first["loss"])


@thorough
def test_a_throttled_epoch_does_not_count(agx):
    (run,) = agx.runs()
    with agx.living() as board, agx.started() as started:
        started.wait_until(lambda: agx.is_measuring(run.id, 1))
        board.set_fault("throttling")
        assert started.end().status == 0
    row = agx.rows(run.id)[1]
    assert {"throttled", "clock_below_request"} & set(row["flags"].split())
    assert row["valid"] == "False"
    assert "not valid and left out of means" in agx.read("results/summary.txt")


@thorough
def test_goes_on_after_the_restart_that_a_mode_needs(shop):
    checkout = shop.board("agx_orin-jp6")  # delivered in a mode with another TPC mask
    checkout.study([in_modes(checkout, "full")])
    shop.provide_data(checkout)
    before = checkout.board.snapshot()
    with checkout.living():
        outcome = checkout.snakemake()
    assert outcome.status != 0
    assert "reboot needed: " in outcome.text
    assert "`sudo nvpmodel -m 0`" in outcome.text
    assert checkout.board.snapshot() == before
    by_hand = [checkout.board.root / "usr/sbin/nvpmodel", "-m", "0"]
    subprocess.run(by_hand, input="YES\n", text=True, check=False)
    checkout.board.reboot()
    with checkout.living():
        checkout.make()
    (run,) = checkout.runs()
    assert checkout.rows(run.id)[0]["valid"] == "True"
    assert checkout.read("results/summary.txt").startswith("Not measured, from a fake board: ")


@thorough
def test_board_measures_with_an_interpreter_of_its_own(shop):
    """Two interpreters for real: the workflow's own, and JetPack 4's Python 3.6 with torch 1.8."""
    if not OLD_PYTHON.exists():
        pytest.skip("no .venv-board: `make board-env` makes it from a python3.6")
    checkout = shop.board("nano")
    checkout.set_device(python=[str(OLD_PYTHON)])
    checkout.study([in_modes(checkout, "full", num_workers=1)])
    shop.provide_data(checkout)
    before = checkout.board.snapshot()
    with checkout.living():
        checkout.make()
    (run,) = checkout.runs()
    record = checkout.record(run.id, 0)
    assert record["software"]["python"].startswith("3.6.")
    assert record["board"]["power_mode"]["verified"]
    assert float(checkout.rows(run.id)[0]["energy_wh"]) > 0
    assert checkout.board.snapshot() == before


def test_root_is_refused_and_a_run_of_another_unit_left_alone(agx):
    agx.set_device(units={"d1": "some-other-board"})
    plan = agx.epochwatt("plan").text
    assert "left alone: 1 run, unit d1 is some-other-board" in plan
    agx.set_device(units={})
    if os.geteuid() == 0:
        del agx.environment["EPOCHWATT_ALLOW_ROOT"]
        outcome = agx.snakemake()
        assert outcome.status != 0
        assert "does not run as root on a board" in outcome.text
        assert "EPOCHWATT_ALLOW_ROOT=1" in outcome.text
        assert not list((agx.root / "measured").glob("fake-*"))


@thorough
def test_runs_that_were_measured_on_a_board_are_drawn_on_a_pc(agx):
    """`measured/` was copied: no board, no data set and no interpreter of the board is needed."""
    (run,) = agx.runs()
    with agx.living():
        agx.make("figures")
    drawn = agx.state("results/figures", content_only=True)
    for name in ("boards", "results", "data"):
        shutil.rmtree(agx.root / name)
    agx.set_device(python=["/bin/false"])
    del agx.environment["EPOCHWATT_ALLOW_ROOT"]
    agx.make("figures")
    assert agx.state("results/figures", content_only=True) == drawn
    assert not (agx.root / "data").exists()
    assert agx.rows(run.id)


def test_starter_study_is_made_from_the_boards_own_tables(agx):
    agx.write_yaml("config/config.yaml", {"studies": "starter"})
    runs = agx.runs()
    assert {run.factors["num_workers"] for run in runs} == {0, 1, 4}
    assert {run.factors["batch_size"] for run in runs} == {16, 32}
    assert {run.factors["power_mode"] for run in runs} == {
        *("max", "halfcores", "halfcpu", "halfgpu", "halfemc", "half")
    }
    plan = agx.epochwatt("plan").text.splitlines()
    assert plan[-1].startswith("11 runs, 33 epochs, 0 of them measured; the rest takes about")


@thorough
def test_idle_power_is_measured_once_per_mode(agx):
    agx.set_device(idle_s=1.5)
    with agx.living():
        agx.make("idle_power")
    (row,) = agx.table("results/tables/idle.csv")
    assert (row["state"], row["power_scope"], row["power_mode"]) == ("i", "module", "g")
    assert 1.0 < float(row["power_w"]) < 60.0
    shutil.rmtree(agx.root / "results")
    assert "measured before" in agx.make("idle_power").text
