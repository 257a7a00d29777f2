"""The self-test on fake boards: which board, its clocks and modes, helper and alarms."""

import pytest
from fake_board import make_board
from fake_device import DEVICE

from epochwatt.doctor import board as board_checks
from epochwatt.doctor.subject import choose
from tests.fakeboard.kinds import KINDS as FAKE_KINDS
from tests.fakeboard.model import Model

KINDS = {name: fake.board.name for name, fake in FAKE_KINDS.items()}


@pytest.fixture
def make(checkout, tmp_path):
    """Return a function that makes a fake board and its device; it gives board and subject."""

    def call(kind="agx_xavier", board=None, modes="asis: {}"):
        fake = make_board(tmp_path / "board", kind)
        text = DEVICE.format(board=board or KINDS[kind], root=fake.root, modes=modes)
        checkout.write("devices/fake.yaml", text)
        return fake, choose(checkout.path, "fake")

    return call


def messages(findings):
    return [(finding.level, finding.message) for finding in findings]


@pytest.mark.parametrize("kind", ["agx_xavier", "agx_orin-jp5", "orin_nano-jp6.2", "agx_thor"])
def test_each_board_is_known(make, kind):
    _, subject = make(kind)
    first, last = board_checks.identity(subject, subject.machine)
    assert first.level == "ok"
    assert KINDS[kind] in first.message
    assert "never counted as measured" in last.message


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("{cpu_mhz: 5000}", "cpu_mhz: 5000 MHz is not a step"),
        ("{cores: 16}", "found: 16; allowed: 1 to 8"),
        ("{nvpmodel: TURBO}", "no power mode TURBO"),
    ],
)
def test_a_mode_that_the_board_lacks_gives_a_warning(make, mode, why):
    _, subject = make(modes=f"bad: {mode}")
    _, finding = board_checks.modes(subject, subject.machine)
    assert finding.level == "warning"
    assert finding.message.startswith("bad of config/devices/fake.yaml: ")
    assert why in finding.message


def test_the_helper_answers_or_is_a_problem_that_says_how_to_install_it(make):
    board, subject = make("agx_orin-jp5")
    before = board.snapshot()
    answers, mode, clocks = messages(board_checks.helper(subject.machine))
    assert answers == ("ok", "it answers without a password: modes, clocks and fan can be set")
    assert mode == ("info", "the board is in mode MAXN (0)")
    assert clocks[1].startswith("read through the helper: cores 12, cpu_mhz ")
    assert board.snapshot() == before
    (board.root / "usr/local/sbin/epochwatt-helper").unlink()
    missing, clocks = board_checks.helper(subject.machine)
    assert (missing.level, missing.topic) == ("problem", "root helper")
    assert "is missing" in missing.message
    assert "make setup-jetson" in missing.do
    assert clocks.message.startswith("read by this user: ")


def test_throttling_and_settings_of_a_killed_run_give_a_warning(make):
    board, subject = make("agx_orin-jp6")
    assert [f.level for f in board_checks.alarms_now(subject.machine)] == ["ok", "ok"]
    assert list(board_checks.left_over(subject.machine)) == []
    board.set_fault("throttling")
    Model(str(board.root)).step(1.0, 1.0)
    heat, current = board_checks.alarms_now(subject.machine)
    assert (heat.topic, heat.level) == ("throttling", "warning")
    assert (current.topic, current.level) == ("over-current", "warning")
    assert "cool" in heat.do
    done = board.run("usr/local/sbin/epochwatt-helper", "fan-max")
    assert done.returncode == 0, done.stdout
    (finding,) = board_checks.left_over(subject.machine)
    assert "restore" in finding.do
