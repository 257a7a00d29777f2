"""Jetson AGX Thor, known from recordings only: what works, and what is said of the rest."""

import pytest
from fake_board import make_board, open_board
from fake_device import DEVICE

from epochwatt.board.device import board_files
from epochwatt.board.device.identity import identify
from epochwatt.board.device.kinds import KINDS
from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.board.telemetry.tegrastats import parse_line
from epochwatt.doctor import board as board_checks
from epochwatt.doctor.subject import choose
from epochwatt.errors import BoardError
from tests.fakeboard.model import Model

LINES = (
    # SOURCE: dkreinov/blackwell-autoresearch@1d895cb5bbe3 (MIT), a benchmark's start in mode MAXN
    "03-19-2026 07:38:11 RAM 45192/125772MB (lfb 27x4MB) CPU [0%@2601,0%@2601,0%@2601,0%@2601,"
    "2%@2601,2%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601] "
    "cpu@36.437C tj@37.75C soc012@36.312C gpu@37.75C soc345@36.937C VDD_GPU 3958mW/3958mW "
    "VDD_CPU_SOC_MSS 7520mW/7520mW VIN_SYS_5V0 5727mW/5727mW VIN 26422mW/26422mW",
    # SOURCE: stored index 54612712197, as root: GPU clocks without a load
    "EMC_FREQ 0%@2750 GR3D_FREQ @[314,314,314] NVENC0_FREQ @314 VIC off gpu@38.875C "
    "VDD_GPU 1962mW/1962mW VDD_CPU_SOC_MSS 5887mW/5887mW VIN_SYS_5V0 5635mW/5635mW "
    "VIN 19780mW/19780mW",
    # SOURCE: 57101387929: less than nothing, by a step, while the GPU is off
    "VDD_GPU -392mW/-392mW VDD_CPU_SOC_MSS 3924mW/3835mW VIN_SYS_5V0 5064mW/5055mW "
    "VIN 15004mW/15096mW",
    # SOURCE: 55747643154, JetPack 7.2: a third number
    "VDD_GPU 37528mW/37528mW/37528mW VDD_CPU_SOC_MSS 18961mW/18961mW/18961mW "
    "VIN_SYS_5V0 18331mW/18331mW/18331mW VIN 87426mW/43713mW/87426mW",
)


@pytest.fixture
def thor(tmp_path):
    return make_board(tmp_path / "thor", "agx_thor")


def rows(findings):
    return [(finding.level, finding.message) for finding in findings]


def test_the_board_is_known(thor):
    found = identify(str(thor.root))
    assert (found.kind, found.l4t, found.jetpack) == ("agx_thor", "38.4.0", "7.1")
    assert len(board_files.cpus(str(thor.root))) == 14


def test_doctor_says_what_is_not_known(thor, checkout):
    modes = "120W: {nvpmodel: 120W}"
    text = DEVICE.format(board="agx_thor", root=thor.root, modes=modes)
    checkout.write("devices/fake.yaml", text)
    subject = choose(checkout.path, "fake")
    assert rows(board_checks.tables(subject.machine)) == [
        ("ok", "CPU: 49 steps, 54 to 2601 MHz"),
        ("ok", "GPU: 170 steps, 54 to 1575 MHz"),
        ("warning", "EMC: the steps of this clock are unknown"),
    ]
    assert [level for level, _ in rows(board_checks.modes(subject, subject.machine))] == [
        "ok",
        "ok",
    ]


def test_cpus_that_the_hardware_holds_back_are_seen_though_cpufreq_hides_it(thor):
    """As on the board of NVIDIA forum topic 361188, after an over-current event at its start."""
    board = open_board(thor)
    assert not any(row.topic == "throttling" for row in board_checks.helper(board))
    thor.set_fault("held_back", 0.25)
    Model(str(thor.root)).step(1.0, 1.0)
    (found,) = (row for row in board_checks.helper(board) if row.topic == "throttling")
    assert found.level == "warning"
    assert "cpufreq shows 2601" in found.message
    assert "power supply" in found.do
    with pytest.raises(BoardError, match="did not take the power mode") as caught:
        board.apply({"nvpmodel": "120W"}, "off")
    assert "power supply" in caught.value.do
    assert board.apply({"nvpmodel": "120W"}, "on")["read_back"]["held_back"]
    board.restore()


@pytest.mark.parametrize("text", LINES)
def test_all_power_comes_in_through_vin_and_nothing_is_added_to_it(text):
    rails_mw = parse_line(text).rails_mw
    assert set(rails_mw) == {rail.label for rail in KINDS["agx_thor"].rails}
    power = ModulePower("agx_thor", list(rails_mw))
    assert (power.scope, power.total) == ("board", "power_board_w")
    row = power.row([mw / 1e3 for mw in rails_mw.values()])
    assert row[-1] == rails_mw["VIN"] / 1e3
    assert row[-1] - sum(row[:-2]) > 6.0  # the carrier board
    assert power.n_contradictions == 0


def test_without_vin_there_is_no_total():
    """The other rails leave out what nobody has stated, and jtop 7.2.0 does not know VIN."""
    power = ModulePower("agx_thor", ["VDD_GPU", "VDD_CPU_SOC_MSS", "VIN_SYS_5V0"])
    assert power.total is None
    assert "no reading of VIN" in power.no_total
