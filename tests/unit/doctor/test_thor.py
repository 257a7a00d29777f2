"""Jetson AGX Thor, a kind of which much is not known: what works, and what is said of the rest."""

import pytest
from fake_board import make_board
from fake_device import DEVICE

from epochwatt.board.device import board_files
from epochwatt.board.device.identity import identify
from epochwatt.board.device.kinds import AGX_THOR
from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.board.telemetry.tegrastats import parse_line
from epochwatt.doctor import board as board_checks
from epochwatt.doctor.subject import choose

# SOURCE: dkreinov/blackwell-autoresearch@1d895cb5bbe3 (MIT), a benchmark's start in mode MAXN
LINE = (
    "03-19-2026 07:38:11 RAM 45192/125772MB (lfb 27x4MB) CPU [0%@2601,0%@2601,0%@2601,0%@2601,"
    "2%@2601,2%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601,0%@2601] "
    "cpu@36.437C tj@37.75C soc012@36.312C gpu@37.75C soc345@36.937C VDD_GPU 3958mW/3958mW "
    "VDD_CPU_SOC_MSS 7520mW/7520mW VIN_SYS_5V0 5727mW/5727mW VIN 26422mW/26422mW"
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
        ("warning", f"{clock}: the steps of this clock are unknown")
        for clock in ("CPU", "GPU", "EMC")
    ]
    assert [level for level, _ in rows(board_checks.modes(subject, subject.machine))] == [
        "ok",
        "ok",
    ]


def test_no_total_is_made_of_rails_whose_sum_no_source_states():
    rails_mw = parse_line(LINE).rails_mw
    assert set(rails_mw) == {rail.label for rail in AGX_THOR.rails}
    power = ModulePower("agx_thor", list(rails_mw))
    assert power.total is None
    assert "is not known" in power.no_total
    assert power.row([mw / 1e3 for mw in rails_mw.values()]) == [3.958, 7.52, 5.727, 26.422]
    assert power.n_contradictions == 0
