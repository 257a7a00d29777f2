"""The stand-ins behave as reports say of the real programs."""

import re
import subprocess
from pathlib import Path

import pytest

NVPMODEL, CLOCKS = "usr/sbin/nvpmodel", "usr/bin/jetson_clocks"
CPU0 = "sys/devices/system/cpu/cpu0/cpufreq/scaling_"
CAP = "sys/kernel/nvpmodel_emc_cap/emc_iso_cap"


def custom(board, tmp_path, mode_id=14, name="EPOCHWATT", default=None, **changes):
    """Write a configuration with one mode, made from the default one; return its path."""
    text = (board.root / "etc/nvpmodel.conf").read_text()
    head, *modes, _ = re.split(r"(?m)^(?=< (?:POWER_MODEL|PM_CONFIG) )", text)
    first = next(
        m for m in modes if m.startswith(f"< POWER_MODEL ID={board.kind.release.default_mode} ")
    )
    rows = first.splitlines()[1:]
    for key, value in changes.items():
        param, _, argument = key.partition("__")
        word = f"{param} {argument} "
        assert any(row.startswith(word) for row in rows), key
        rows = [f"{word}{value}" if row.startswith(word) else row for row in rows]
    end = f"< PM_CONFIG DEFAULT={mode_id if default is None else default} >"
    path = tmp_path / "custom.conf"
    path.write_text("\n".join([f"{head}< POWER_MODEL ID={mode_id} NAME={name} >", *rows, end, ""]))
    return str(path)


def test_a_clock_that_is_not_in_the_table_becomes_the_nearest_without_a_word(agx):
    done = agx.run(NVPMODEL, "-m", "4")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert agx.files.number(CPU0 + "max_freq") == 1_420_800  # of 1450000
    assert agx.files.number(CPU0 + "min_freq") == 1_190_400  # of 1200000
    assert agx.files.number("sys/devices/gpu.0/devfreq/17000000.gv11b/max_freq") == 905_250_000


def test_no_limit_and_0_are_the_ends_of_the_table(board):
    mode = board.kind.modes[0]
    if mode.cpu_khz[1] != -1 or board.kind.name == "agx_orin-jp6":
        pytest.skip("its first mode has limits, or needs a reboot")
    board.run(NVPMODEL, "-m", "0")
    gpu = board.files.facts["gpu"]
    assert board.files.number(CPU0 + "max_freq") == board.kind.board.cpu_khz[-1]
    assert board.files.number(gpu + "/max_freq") == board.kind.gpu_hz[-1]
    assert board.files.number(CAP) == 0


def test_a_made_up_mode_leaves_etc_alone_and_is_unknown_to_it(agx, tmp_path):
    before = (agx.root / "etc/nvpmodel.conf").read_bytes()
    changes = {"GPU__MIN_FREQ": 522_750_000, "GPU__MAX_FREQ": 522_750_000}
    path = custom(agx, tmp_path, EMC__MAX_FREQ=1_600_000_000, **changes)
    assert agx.run(NVPMODEL, "-f", path, "-m", "14").returncode == 0
    gpu = agx.files.facts["gpu"]
    assert {agx.files.number(f"{gpu}/{end}_freq") for end in ("min", "max", "cur")} == {522_750_000}
    assert agx.files.number(CAP) == 1_600_000_000
    assert agx.files.text("var/lib/nvpmodel/status") == "pmode:0014"
    assert (agx.root / "etc/nvpmodel.conf").read_bytes() == before
    assert agx.run(NVPMODEL, "-q").returncode == 255
    assert agx.run(NVPMODEL, "-q", "-f", path).stdout.endswith("NV Power Mode: EPOCHWATT\n14\n")


def test_another_tpc_mask_needs_a_reboot_and_asks_for_it(orin):
    before = orin.snapshot()
    done = orin.run(NVPMODEL, "-m", "2")  # nothing on its input
    assert done.returncode == 255
    assert "Reboot required" in done.stdout
    assert orin.snapshot() == before
    for answer in ("no\n", ""):
        words = [str(orin.root / NVPMODEL), "-m", "2"]
        done = subprocess.run(words, input=answer, capture_output=True, text=True, check=False)
        assert done.returncode == 255
        assert orin.snapshot() == before


def test_the_reboot_makes_the_mode_that_was_asked_for(orin):
    words = [str(orin.root / NVPMODEL), "-m", "2"]
    done = subprocess.run(words, input="YES\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0
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


def tegrastats_line(board):
    words = [str(board.root / "usr/bin/tegrastats"), "--interval", "20"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        process.terminate()
    return line.rstrip("\n")


def test_tegrastats_prints_rails_cpus_and_clocks_as_the_files_have_them(board):
    line = tegrastats_line(board)
    rails = {r["label"]: r for r in board.files.facts["rails"] if r["label"] in board.kind.total}
    unit = "" if board.kind.jetpack == 4 else "mW"
    for label, rail in rails.items():
        shown = re.search(rf" {label} (\d+){unit}/(\d+){unit}(?: |$)", line)
        power = board.files.number(rail["volt"]) * board.files.number(rail["curr"]) // 1000
        assert [int(mw) for mw in shown.groups()] == [power, power]
    cpus = re.search(r"CPU \[([^]]*)\]", line).group(1).split(",")
    assert [n for n, shown in enumerate(cpus) if shown != "off"] == board.files.online()
    assert len(cpus) == len(board.files.cpus())
    assert (re.match(r"\d\d-\d\d-\d{4} ", line) is None) == (board.kind.jetpack == 4)


def test_a_line_has_the_words_of_the_recorded_ones(board):
    """Names and order of the tokens are those of the same board's recorded lines (root or not)."""
    name = {"nano": "nano_jp4", "xavier_nx": "xavier_nx_jp4", "agx_xavier": "agx_xavier_jp4"}
    name |= {"agx_orin-jp5": "orin_agx_jp5", "agx_orin-jp6": "orin_agx_jp6"}
    name |= {"orin_nano": "orin_nano_jp6"}
    here = Path(__file__).resolve()
    folders = here.parents[2] / "data/tegrastats", here.parents[4] / "shared/data/tegrastats"
    paths = [folder / f"{name.get(board.kind.name)}.txt" for folder in folders]
    if not any(path.exists() for path in paths):
        pytest.skip(f"{paths[1]} has no licence, so it is not in the repository, and is absent")

    def rails(line):
        temps_and_rails = line.partition("GR3D_FREQ")[2]
        return re.findall(r"(?<= )([A-Z][A-Z0-9_]*) \d+(?:mW)?/", temps_and_rails)

    recorded = [line for p in paths if p.exists() for line in p.read_text().splitlines()]
    mine = [label for label in rails(tegrastats_line(board)) if label != "NC"]
    assert mine in [rails(line) for line in recorded]


def test_the_fan_s_service_is_asked_and_stopped(board):
    asked = board.run("bin/systemctl", "is-active", "nvfancontrol")
    if board.kind.jetpack == 4:
        assert (asked.stdout, asked.returncode) == ("inactive\n", 3)
        assert board.run("bin/systemctl", "stop", "nvfancontrol").returncode == 5
        return
    assert (asked.stdout, asked.returncode) == ("active\n", 0)
    assert board.run("bin/systemctl", "stop", "nvfancontrol").returncode == 0
    assert board.run("bin/systemctl", "is-active", "nvfancontrol").stdout == "inactive\n"
    assert board.run("bin/systemctl", "start", "nvfancontrol").returncode == 0
    assert board.run("bin/systemctl", "is-active", "nvfancontrol").stdout == "active\n"
    assert board.run("bin/systemctl", "reboot").returncode == 1
