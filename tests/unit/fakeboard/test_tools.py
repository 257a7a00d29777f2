"""The stand-ins behave as reports say of the real programs."""

import re
import subprocess
from pathlib import Path

import pytest

NVPMODEL, CLOCKS = "usr/sbin/nvpmodel", "usr/bin/jetson_clocks"
CPU0 = "sys/devices/system/cpu/cpu0/cpufreq/scaling_"
DATA = Path(__file__).resolve().parents[2] / "data/tegrastats"
RECORDED = {
    **{"nano": "nano_jp4", "xavier_nx": "xavier_nx_jp4", "agx_xavier": "agx_xavier_jp4"},
    **{"agx_orin-jp5": "orin_agx_jp5", "agx_orin-jp6": "orin_agx_jp6"},
}


def test_a_clock_that_is_not_in_the_table_becomes_the_nearest_without_a_word(agx):
    done = agx.run(NVPMODEL, "-m", "4")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert agx.files.number(CPU0 + "max_freq") == 1_420_800  # of 1450000
    assert agx.files.number(CPU0 + "min_freq") == 1_190_400  # of 1200000
    assert agx.files.number("sys/devices/gpu.0/devfreq/17000000.gv11b/max_freq") == 905_250_000
    agx.run(NVPMODEL, "-m", "0")  # no limits
    assert agx.files.number(CPU0 + "max_freq") == agx.kind.board.cpu_khz[-1]
    assert agx.files.number(agx.files.facts["gpu"] + "/max_freq") == agx.kind.gpu_hz[-1]
    assert agx.files.number("sys/kernel/nvpmodel_emc_cap/emc_iso_cap") == 0


def test_a_mode_of_another_file_is_set_and_unknown_to_that_of_etc(agx, tmp_path):
    text = (agx.root / "etc/nvpmodel.conf").read_text()
    path = tmp_path / "custom.conf"
    path.write_text(re.sub(r"ID=3 NAME=\S+", "ID=14 NAME=EPOCHWATT", text))
    assert agx.run(NVPMODEL, "-f", str(path), "-m", "14").returncode in (0, 255)
    assert agx.files.text("var/lib/nvpmodel/status") == "pmode:0014"
    assert agx.run(NVPMODEL, "-q").returncode == 255
    told = agx.run(NVPMODEL, "-q", "-f", str(path)).stdout
    assert told.endswith("NV Power Mode: EPOCHWATT\n14\n")


def test_another_tpc_mask_needs_a_reboot_asks_for_it_and_gets_it(orin):
    before, words = orin.snapshot(), [str(orin.root / NVPMODEL), "-m", "2"]
    for answer in ("no\n", "", "YES\n"):
        assert orin.snapshot() == before
        done = subprocess.run(words, input=answer, capture_output=True, text=True, check=False)
        assert "Reboot required" in done.stdout
        assert done.returncode == (0 if answer == "YES\n" else 255)
    assert len(orin.files.online()) == 12  # not yet
    orin.reboot()
    assert len(orin.files.online()) == 8
    assert orin.files.text("sys/devices/gpu.0/tpc_pg_mask") == "240"


def test_locked_clocks_are_the_highest_of_the_mode_and_come_back(board, tmp_path):
    before, path = board.snapshot(), str(tmp_path / "l4t_dfs.conf")
    assert board.run(CLOCKS, "--store", path).returncode == 0
    assert board.run(CLOCKS, "--fan").returncode == 0
    files, gpu = board.files, board.files.facts["gpu"]
    assert files.number(CPU0 + "cur_freq") == files.number(CPU0 + "max_freq")
    assert files.number(gpu + "/cur_freq") == files.number(gpu + "/max_freq")
    assert files.number(files.emc["now"]) == files.emc_limit_hz()
    assert files.number(files.facts["fan"]["pwm"]) == 255
    assert board.run(CLOCKS, "--restore", path).returncode == 0
    assert board.snapshot() == before


def rails(line):
    """Return the labels of a line's rails, in order."""
    return re.findall(r"(?<= )([A-Z][A-Z0-9_]*) \d+(?:mW)?/", line.partition("GR3D_FREQ")[2])


def test_tegrastats_prints_what_the_files_have_in_the_words_of_recorded_lines(board):
    words = [str(board.root / "usr/bin/tegrastats"), "--interval", "20"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline().rstrip("\n")
        process.terminate()
    unit = "" if board.kind.jetpack == 4 else "mW"
    for rail in board.files.facts["rails"]:
        if rail["label"] in board.kind.total:
            shown = re.search(rf" {rail['label']} (\d+){unit}/(\d+){unit}(?: |$)", line)
            power = board.files.number(rail["volt"]) * board.files.number(rail["curr"]) // 1000
            assert [int(mw) for mw in shown.groups()] == [power, power]
    cpus = re.search(r"CPU \[([^]]*)\]", line).group(1).split(",")
    assert [n for n, shown in enumerate(cpus) if shown != "off"] == board.files.online()
    assert len(cpus) == len(board.files.cpus())
    assert (re.match(r"\d\d-\d\d-\d{4} ", line) is None) == (board.kind.jetpack == 4)
    recorded = DATA / f"{RECORDED.get(board.kind.name)}.txt"
    if recorded.exists():
        mine = [label for label in rails(line) if label != "NC"]
        assert mine in [rails(other) for other in recorded.read_text().splitlines()]


@pytest.mark.parametrize("name", ["agx", "orin"])
def test_the_fan_s_service_is_asked_and_stopped(request, name):
    board = request.getfixturevalue(name)
    asked = board.run("bin/systemctl", "is-active", "nvfancontrol")
    if board.kind.jetpack == 4:
        assert (asked.stdout, asked.returncode) == ("inactive\n", 3)
        assert board.run("bin/systemctl", "stop", "nvfancontrol").returncode == 5
        return
    assert (asked.stdout, asked.returncode) == ("active\n", 0)
    for verb, answer in (("stop", "inactive\n"), ("start", "active\n")):
        assert board.run("bin/systemctl", verb, "nvfancontrol").returncode == 0
        assert board.run("bin/systemctl", "is-active", "nvfancontrol").stdout == answer
