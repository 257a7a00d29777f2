"""A board is set, read back, compared and put back; what it did not take is never measured."""

import json
import os
import signal

import pytest
from fake_board import make_board, open_board

from epochwatt.board.device import jetson
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.errors import BoardError, ConfigError, RebootNeeded

MODE = {"cores": 4, "cpu_mhz": 1200, "gpu_mhz": 670, "emc_mhz": 1333}
RESOLVED = {"cores": 4, "cpu_mhz": 1190.4, "gpu_mhz": 675.75, "emc_mhz": 1331.2}


@pytest.fixture
def make(tmp_path):
    """Return a function that makes a fake board of a kind, and opens it."""

    def call(name="agx_xavier"):
        fake = make_board(tmp_path / name, name)
        return fake, open_board(fake)

    return call


@pytest.mark.parametrize(
    ("kind", "mode", "resolved"),
    [
        ("agx_xavier", MODE, RESOLVED),
        (
            "nano",
            {"nvpmodel": "5W"},
            {"nvpmodel": "5W", "nvpmodel_id": 1, "cores": 2, "cpu_mhz": 918.0, "gpu_mhz": 640.0}
            | {"emc_mhz": 1600.0},
        ),
    ],
)
@pytest.mark.parametrize("dvfs", ["on", "off"])
def test_a_mode_is_resolved_set_read_back_and_put_back_after_a_kill(
    make, kind, mode, resolved, dvfs
):
    fake, board = make(kind)
    before = fake.snapshot()
    board.check()
    applied = board.apply(mode, dvfs)
    assert json.loads(json.dumps(applied, allow_nan=False))["requested"] == mode
    assert applied["resolved"] == resolved
    assert (applied["verified"], applied["unverified"]) == (True, [])
    assert (applied["dvfs"], applied["fan"]) == (dvfs, "maximum")
    back = applied["read_back"]
    assert back["cores"] == resolved["cores"]
    assert (back["gpu_mhz"] == back["gpu_max_mhz"]) == (dvfs == "off")
    assert fake.snapshot() != before
    successor = JetsonBoard(board.settings)  # the first one was killed
    assert successor.left_over()
    successor.restore()
    assert fake.snapshot() == before
    assert not board.left_over()
    board.restore()  # once more is nothing
    assert fake.snapshot() == before


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ({"cpu_mhz": 1535}, r"cpu_mhz: 1535 MHz is not a step(.|\n)*the nearest are"),
        ({"gpu_mhz": 1000}, r"gpu_mhz: 1000 MHz is not a step(.|\n)*905\.25 and 1032\.75"),
        ({"emc_mhz": 1000}, r"emc_mhz: 1000 MHz is not a step(.|\n)*800 and 1065\.6"),
        ({"cores": 9}, r"cores: .*\n  found: 9\n  allowed: 1 to 8"),
        ({"nvpmodel": "MAXQ"}, r"\.conf: .*no power mode MAXQ\n  allowed: MAXN, MODE_10W"),
    ],
)
def test_mode_that_the_board_does_not_have_is_refused_before_anything_is_set(make, mode, told):
    fake, board = make()
    before = fake.snapshot()
    with pytest.raises(ConfigError, match=told):
        board.apply(mode, "off")
    assert fake.snapshot() == before
    assert not board.left_over()


def test_mode_that_needs_a_restart_is_told_with_what_to_do_and_nothing_waits(make):
    fake, board = make("agx_orin-jp6")
    before = fake.snapshot()
    with pytest.raises(RebootNeeded, match=r"restarted first: .*sudo nvpmodel -m 0"):
        board.apply({"nvpmodel": "MAXN"}, "on")
    assert not board.left_over()
    assert fake.snapshot() == before


def test_tool_that_does_nothing_and_says_it_did_is_found_out(make):
    fake, board = make()
    (fake.root / "usr/sbin/nvpmodel").write_text(
        "#!/bin/sh\n# epochwatt stand-in\necho 'NV Power Mode: MAXN'; echo 0\n"
    )
    with pytest.raises(BoardError, match="did not take the power mode") as caught:
        board.apply({"gpu_mhz": 670}, "on")
    assert caught.value.found.startswith("gpu_mhz is 1377, wanted")
    board.restore()


def test_one_mode_after_the_other_is_set_and_only_then_all_is_put_back(make):
    fake, board = make()
    before = fake.snapshot()
    first = board.change({"cores": 2, "cpu_mhz": 1190.4, "gpu_mhz": 675.75}, "off")
    second = board.change(RESOLVED, "off")
    assert (first["fan"], second["fan"]) == ("maximum", "maximum")
    assert second["resolved"] == RESOLVED
    assert first["unmet"] == second["unmet"] == board.unmet(second) == {}
    board.restore()
    assert fake.snapshot() == before


@pytest.mark.parametrize(
    ("status", "answer", "error", "told"),
    [
        (2, '{"ok": false, "error": "cores 9"}', BoardError, "was refused: cores 9"),
        (3, '{"ok": false, "error": "it timed out"}', BoardError, "failed: it timed out"),
        (4, '{"ok": false, "error": "TPC mask"}', RebootNeeded, "restarted first: TPC mask"),
        (1, "", BoardError, "failed: no reason given"),
        (0, "no json", BoardError, "failed: no reason given"),
        (0, "[1]", BoardError, "failed: no reason given"),
    ],
)
def test_answer_of_the_helper_that_is_no_success_is_told(
    make, monkeypatch, status, answer, error, told
):
    _, board = make()
    done = jetson.subprocess.CompletedProcess([], status, answer, "")
    monkeypatch.setattr(jetson.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(error, match=told):
        board.apply({"gpu_mhz": 900}, "on")


def test_helper_of_a_real_board_is_called_by_sudo_and_by_root_directly(make, monkeypatch):
    called = []

    def run(command, **options):
        called.append(command)
        assert options["start_new_session"]
        return jetson.subprocess.CompletedProcess(command, 1, "", "sudo: a password is required\n")

    _, board = make()
    monkeypatch.setattr(jetson.subprocess, "run", run)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    board.root = "/"
    for uid in (1000, 0):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        with pytest.raises(BoardError, match="a password is required") as caught:
            board.ask_helper("custom-mode", 1, 0, 0, 0)
        assert "make setup-jetson" in caught.value.do
    command = ["/usr/local/sbin/epochwatt-helper", "custom-mode", "1", "0", "0", "0"]
    assert called == [["sudo", "-n", *command], command]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_does_not_cut_putting_back_and_comes_afterwards(make, number, monkeypatch):
    fake, board = make()
    before = fake.snapshot()
    board.apply({"gpu_mhz": 905.25}, "on")
    happened = []
    run = jetson.subprocess.run

    def run_and_be_hit(*arguments, **options):
        os.kill(os.getpid(), number)
        happened.append("restoring")
        done = run(*arguments, **options)
        happened.append("restored")
        return done

    monkeypatch.setattr(jetson.subprocess, "run", run_and_be_hit)
    handler = signal.signal(number, lambda *_: happened.append("signal"))
    try:
        board.restore()
    finally:
        signal.signal(number, handler)
    assert happened == ["restoring", "restored", "signal"]
    assert fake.snapshot() == before
