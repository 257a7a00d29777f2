"""Idle power of a board: what is left behind, when it is measured, and what is said when not."""

import json
from pathlib import Path

import pytest
from fake_board import make_board

from epochwatt import columns
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records import files
from epochwatt.board.records.samples import read_samples
from epochwatt.board.training import idle as module
from epochwatt.board.training import observation, preparation
from epochwatt.board.training.idle import main, measure_idle
from epochwatt.errors import BoardError, TrainingError

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

    def end(self):
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


@pytest.mark.usefixtures("sampler")
class TestMeasurement:
    """What is done, in which order, and what is left."""

    def test_the_record_tells_what_and_how(self, measure, board):
        folder = measure()
        record = files.read_json(str(folder / "record.json"))
        assert (record["idle"], record["backend"]) == (IDLE, "fake")
        assert (record["protocol"], record["schema_version"]) == (
            columns.PROTOCOL,
            columns.SCHEMA_VERSION,
        )
        assert record["board"]["power_mode"]["requested"] == {"cores": 2}
        assert record["board"]["busy_pct"] == 2.5
        assert record["machine"] == {"board": "none"}
        grown = record["events"]["after"]["throttle"] - record["events"]["before"]["throttle"]
        assert grown == 4  # begin, sleep, end, and the second look
        assert record["t_start_mono_s"] < record["t_end_mono_s"]

    def test_an_unfinished_one_is_measured_again(self, measure, measured):
        attempt = measured / IDLE / "idle.unfinished"
        attempt.mkdir(parents=True)
        (attempt / "samples-old.csv").touch()
        assert sorted(path.name for path in measure().iterdir()) == [
            "SHA256SUMS",
            "record.json",
        ]

    def test_it_waits_for_the_machine_and_names_the_holder(
        self, measure, board, monkeypatch, caplog
    ):
        other = machine_lock().acquire({"run": "run-b", "epoch": 4})
        say = module.log_waiting

        def say_and_end_the_other(holder):
            say(holder)
            assert board.calls == []
            other.release()

        monkeypatch.setattr(module, "log_waiting", say_and_end_the_other)
        measure()
        assert "run run-b" in caplog.text


class TestFailure:
    """Nothing counts as measured, and the board is put back."""

    @pytest.mark.parametrize(
        ("statistics", "why"),
        [
            ({"lost": True, "reason": "it fell silent", "sources": {}}, "it fell silent"),
            ({"lost": False, "sources": {"host": {"scope": None}}}, "reports no power"),
        ],
    )
    def test_without_power_nothing_was_measured(
        self, statistics, why, measure, measured, sampler, board
    ):
        sampler.statistics = statistics
        with pytest.raises(TrainingError, match=why):
            measure()
        assert not (measured / IDLE / "idle").exists()
        assert board.calls[-1] == "restore"
        machine_lock().acquire({"run": "run-b"}).release()

    @pytest.mark.usefixtures("sampler")
    def test_a_mode_that_cannot_be_set_leaves_nothing(self, measure, measured, board):
        board.fails["apply"] = BoardError("not met")
        with pytest.raises(BoardError, match="not met"):
            measure()
        assert not (measured / IDLE / "idle").exists()
        assert "begin" not in board.calls


# -- the command, with a board of files and the real sampler ---------------------------------------


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
        machine = {
            **{"backend": "fake", "root": str(agx.root), "kind": "agx_xavier", "unit": ""},
            "storage": {"root": str(agx.root), "mount": "", "block_device": ""},
            **{"power_source": "sysfs", "settle": None, **changes},
        }
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
