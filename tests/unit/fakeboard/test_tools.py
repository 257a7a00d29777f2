"""The stand-ins behave as reports say of the real programs."""

import re
import subprocess
from pathlib import Path

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
