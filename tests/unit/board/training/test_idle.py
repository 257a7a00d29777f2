"""Idle power of a board: what is left behind, when it is measured, and what is said when not."""

import json
from pathlib import Path

import pytest
from fake_board import make_board, settings_of

from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records import files
from epochwatt.board.records.samples import read_samples
from epochwatt.board.training import idle as module
from epochwatt.board.training import observation, preparation
from epochwatt.board.training.idle import main, measure_idle
from epochwatt.errors import TrainingError

IDLE = "idle-fake-agx-d1-f-dvfsoff-p1-0123abcd"
SETTINGS = {"power_mode_settings": {"cores": 2}, "dvfs": "off"}
SOUND = {"lost": False, "sources": {"host": {"scope": None}, "sysfs": {"scope": "module"}}}


class FakeSampler:
    """Writes what is asked of it into the board's own log."""

    def __init__(self, board):
        self.board = board
        self.statistics = SOUND

    def start(self, pid, data_path, seed, root, power, gpu):
        self.started = {"pid": pid, "data": data_path, "root": root, "power": power}
        return self

    def begin(self, folder):
        self.folder = folder
        self.board.say("begin")

    def end(self, folder):
        self.board.say("end")
        return self.statistics

    def __enter__(self):
        return self

    def stop(self):
        self.board.say("stop")


@pytest.fixture
def sampler(board, monkeypatch):
    """A sampler without a process, and a test that does not sleep."""
    sampler = FakeSampler(board)
    monkeypatch.setattr(observation.Sampler, "start", sampler.start)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: board.say(f"sleep-{seconds:g}"))
    return sampler


@pytest.fixture
def measured(tmp_path):
    return tmp_path / "measured"


@pytest.fixture
def measure(board, measured):
    """Return a function that measures on the board that only writes down; it gives the folder."""

    def call(seconds=60.0, **settings):
        return Path(measure_idle(board, IDLE, {**SETTINGS, **settings}, seconds, str(measured)))

    return call


@pytest.mark.parametrize(
    ("statistics", "why"),
    [
        ({"lost": True, "reason": "it fell silent", "sources": {}}, "it fell silent"),
        ({"lost": False, "sources": {"host": {"scope": None}}}, "reports no power"),
    ],
)
def test_without_power_nothing_was_measured(statistics, why, measure, measured, sampler, board):
    sampler.statistics = statistics
    with pytest.raises(TrainingError, match=why):
        measure()
    assert not (measured / IDLE / "idle").exists()
    assert board.calls[-1] == "restore"
    machine_lock().acquire({"run": "run-b"}).release()


@pytest.fixture
def agx(tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "BUSY_S", 0.01)
    return make_board(tmp_path / "agx", "agx_xavier")


@pytest.fixture
def command(agx, measured, tmp_path):
    """Return a function that runs the command; it gives its exit status and the receipt's path."""
    receipt = tmp_path / "results" / "idle" / f"{IDLE}.json"
    receipt.parent.mkdir(parents=True)

    def call(settings=SETTINGS, **changes):
        machine = settings_of(agx.root, **changes)
        words = ["--idle", IDLE, "--settings", json.dumps(settings), "--seconds", "0.5"]
        words += ["--measured", str(measured), "--machine", json.dumps(machine)]
        return main([*words, "--receipt", str(receipt)]), receipt

    return call


def test_command_measures_a_board_and_puts_it_back(agx, command, measured):
    before = agx.snapshot()
    status, receipt = command()
    assert status == 0
    assert agx.snapshot() == before
    folder = measured / IDLE / "idle"
    record = files.read_json(str(folder / "record.json"))
    assert record["board"]["power_mode"]["verified"]
    assert record["board"]["power_mode"]["read_back"]["cores"] == 2
    assert record["t_end_mono_s"] - record["t_start_mono_s"] >= 0.5
    samples = read_samples(str(folder), "sysfs")
    assert samples["t_mono_s"][0] <= record["t_start_mono_s"]
    assert samples["t_mono_s"][-1] >= record["t_end_mono_s"]
    assert (samples["power_module_w"] > 0).all()
    assert json.loads(receipt.read_text("utf-8")) == {
        "idle": IDLE,
        "record_sha256": files.sha256_of(str(folder / "record.json")),
    }


def test_command_writes_the_receipt_again_without_a_board(command, agx, measured, tmp_path):
    folder = measured / IDLE / "idle"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text("{}", "utf-8")
    before = agx.snapshot()
    status, receipt = command(kind="nano")  # nothing is checked, as nothing is measured
    assert (status, agx.snapshot()) == (0, before)
    assert json.loads(receipt.read_text("utf-8"))["idle"] == IDLE
