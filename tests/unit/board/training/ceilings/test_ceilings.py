"""The command that measures ceilings: on this CPU, and on a board of files; the real sampler."""

import json

import pytest
from fake_board import make_board, settings_of

from epochwatt import columns
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.board.training import preparation
from epochwatt.board.training.ceilings import blocks, kernels
from epochwatt.board.training.ceilings.__main__ import main
from epochwatt.roofline.ceilings import read_ceilings
from epochwatt.roofline.collect import collect_ceilings

ID = "ceilings-host-local-fp32-p1-0123abcd"
EFFECTS = dict.fromkeys(columns.FLAGS, "informs")
EFFECTS["clock_below_request"] = "invalidates"

pytestmark = pytest.mark.usefixtures("on_the_cpu", "brief")


@pytest.fixture
def brief(monkeypatch):
    """Few and small sizes, timed for a moment."""
    short = dict(zip(blocks.Limits._fields, (3, 1e-4, 1e-3, 1e-4, 0.05, 3, 1.0), strict=True))
    monkeypatch.setattr(
        blocks.time_blocks, "__defaults__", (blocks.Limits(**short), blocks.perf_counter)
    )
    monkeypatch.setattr(kernels, "ARRAY_BYTES", [2**14])
    monkeypatch.setattr(kernels, "MATRICES", {"cpu": (64,)})
    monkeypatch.setattr(kernels, "LINKS_IN_BLOCKS", (1,))
    monkeypatch.setattr(kernels, "CHANNELS", (4,))
    monkeypatch.setattr(kernels, "PICTURES", 2**12)
    monkeypatch.setattr(kernels, "MOST_BYTES", {"cpu": 2**20})
    monkeypatch.setattr(preparation, "BUSY_S", 0.01)


@pytest.fixture
def measure(tmp_path):
    """Return a function that runs the command; it gives exit status, folder and receipt."""

    def call(modes, machine, dvfs="on"):
        listed, receipt = tmp_path / "modes.json", tmp_path / "receipt.json"
        listed.write_text(json.dumps(modes), "utf-8")
        words = ["--ceilings", ID, "--modes", str(listed), "--dvfs", dvfs, "--precisions", "fp32"]
        words += ["--measured", str(tmp_path / "measured"), "--receipt", str(receipt)]
        status = main([*words, "--machine", json.dumps(machine)])
        return status, CeilingFolder(str(tmp_path / "measured"), ID), receipt

    return call


@pytest.fixture
def table(tmp_path):
    """Return a function that makes the table of modes and reads it."""

    def make(modes, provenance="measured"):
        place = {"id": ID, "provenance": provenance, "device": "host", "instance": "local"}
        path = tmp_path / "ceilings.csv"
        measured = str(tmp_path / "measured")
        collect_ceilings(measured, [{**place, "modes": modes}], EFFECTS, path)
        return read_ceilings(path)

    return make


def test_the_machine_at_hand_is_measured_and_what_is_measured_stays(measure, machine, table):
    status, folder, receipt = measure([{"cores": 1}], machine.settings)
    assert status == 0
    record = folder.verify({"cores": 1})
    assert record.meta["torch_threads_used"] == 1
    assert json.loads(receipt.read_text("utf-8"))["modes"][0]["mode"] == "mode-c1-x-x-x"
    rows = table([{"cores": 1}])
    assert [row.kernel for row in rows] == ["copy", "triad", "fma", "fma", "launch", "matmul"]
    assert {(row.cores, row.cpu_mhz, row.processor, row.power_w) for row in rows} == {
        (1, None, "cpu", None)
    }
    assert all(0 < row.best_s <= row.time_s < 1 and row.repeats >= 3 for row in rows)
    assert measure([{"cores": 1}], machine.settings)[0] == 0
    assert folder.read({"cores": 1}).meta == record.meta


def test_a_fake_board_is_measured_in_two_modes_and_put_back(measure, tmp_path, table):
    board = make_board(tmp_path / "agx", "agx_xavier")
    before = board.snapshot()
    machine = settings_of(board.root)
    modes = [{"cores": 2, "cpu_mhz": cpu, "gpu_mhz": 675.75} for cpu in (1190.4, 2265.6)]
    status, folder, _ = measure(modes, machine, dvfs="off")
    assert (status, board.snapshot()) == (0, before)
    rows = table(modes, "fake")
    assert {row.cpu_mhz for row in rows} == {1190.4, 2265.6}
    assert {(row.provenance, row.gpu_mhz) for row in rows} == {("fake", 675.75)}
    # on a busy machine the sampler may miss the moment that one kernel is timed here
    powered = [row for row in rows if row.power_w is not None]
    assert powered
    assert all(row.power_w > 0 for row in powered)
    assert {row.power_scope for row in powered} == {"module"}
    assert {row.clock_mhz for row in rows if row.cpu_mhz == 1190.4} == {1190.4}
    assert folder.read(modes[0]).meta["board"]["power_mode"]["unmet"] == {}
