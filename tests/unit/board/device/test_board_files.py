"""What the files of a board say, in all layouts that are known."""

import csv
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_board import CONF, GPU, TinyBoard

from epochwatt.board.device import board_files
from epochwatt.board.device.board_files import Tables, custom_conf, parse_conf

DATA = Path(__file__).parents[3] / "data"
STEPS = Tables(
    (115200, 1190400, 2265600), (114750000, 675750000, 1377000000), (204000000, 2133000000)
)


def rows_of(name):
    return list(csv.DictReader((DATA / name).read_text("utf-8").splitlines()))


@pytest.fixture
def board(tmp_path):
    return TinyBoard(tmp_path / "board [1]")  # glob characters in the path


def root_with(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(folder)


@pytest.mark.parametrize("row", rows_of("device_trees.csv"), ids=lambda row: row["compatible"])
def test_kind_of_board(tmp_path, row):
    compatible = row["compatible"].replace(" ", "\0")
    tree = "proc/device-tree/"
    files = {tree + "model": row["model"] + "\0", tree + "compatible": compatible + "\0"}
    assert board_files.board_kind(root_with(tmp_path, files)) == row["kind"]


@pytest.mark.parametrize(
    "folder",
    [
        "sys/devices/gpu.0/devfreq/57000000.gpu",
        "sys/devices/17000000.gv11b/devfreq/17000000.gv11b",
        "sys/devices/17000000.ga10b/devfreq/17000000.ga10b",
        "sys/devices/17000000.ga10b/devfreq_dev",
        "sys/devices/platform/17000000.gpu/devfreq/17000000.gpu",
        "sys/devices/platform/bus@0/17000000.gpu/devfreq/17000000.gpu",
        "sys/class/devfreq/17000000.ga10b",
    ],
)
def test_the_gpu_is_found_in_every_layout_and_not_taken_for_another(tmp_path, folder):
    other = "sys/class/devfreq/15340000.vic/available_frequencies"
    files = {folder + "/available_frequencies": "2 1\n", other: "9\n"}
    root = root_with(tmp_path, files)
    assert board_files.find_gpu(root) == f"{root}/{folder}"
    assert board_files.gpu_hz(root) == (1, 2)


def test_read_clocks(board):
    root = str(board.root)
    board.write("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_cur_freq", "1189000\n")  # measured
    board.write(GPU + "/min_freq", "")
    assert board_files.read_clocks(root) == {
        "cores_online": [0, 1],
        "cpu_shown_khz": {"0": 1190400, "1": 1190400},
        "cpu_khz": {"0": 1190400, "1": 1189000},
        "cpu_shown_after_khz": {"0": 1190400, "1": 1190400},
        "cpu_min_khz": {"0": 1190400, "1": 1190400},
        "cpu_max_khz": {"0": 1190400, "1": 1190400},
        "gpu_hz": 318750000,
        "gpu_min_hz": None,
        "gpu_max_hz": 675750000,
        "emc_hz": 2133000000,
        "emc_cap_hz": 0,
    }


def test_a_configuration_is_parsed():
    conf = parse_conf(CONF)
    assert [(mode.id, mode.name) for mode in conf.modes] == [
        (0, "SMALL"),
        (3, "MAXN"),
        (7, "GATED"),
    ]
    assert conf.default_id == 0
    assert conf.params["CPU_ONLINE"].type == "FILE"
    assert conf.params["GPU"].paths["MAX_FREQ"].endswith("17000000.gv11b/max_freq")
    assert conf.modes[0].settings[-1] == ("EMC", "MAX_FREQ", "1331200000")
    assert conf.modes[1].settings[0] == ("CPU_ONLINE", "CORE_0", "1")


# Forms of real files; NVIDIA's header forbids to copy those whole, so these are rebuilt. SOURCE:
# airlanggawicaksono/EarlyExitMonoRepo@4d491e8f1cd6 and The-OASIS-Project/dawn@5e9b41735a9a (no
# blank after `<`, ..._KNEXT), borongyuan/XavierNXOverclock@10970c5 (HWMON), stored index
# 11327390116 (a comment behind a value), 39734175043 (settings switched off, two blanks)
ORIN_CONF = (DATA / "nvpmodel/odd_forms.conf").read_text("utf-8")


def test_what_is_written_back_is_the_file_word_by_word_but_for_the_mode():
    text = custom_conf(parse_conf(ORIN_CONF), 1, 1190400, 0, 204000000, STEPS)
    before, after = ORIN_CONF.split("\n"), text.split("\n")
    first, last = before.index("< POWER_MODEL ID=0 NAME=15W >"), before.index("EMC MAX_FREQ -1")
    assert after[:first] == before[:first]
    assert after[-5:] == [
        *before[-5:-3],
        "< PM_CONFIG DEFAULT=2 >",
        "< FAN_CONFIG DEFAULT=quiet >",
        "",
    ]
    words = [line for line in after[first:-5] if line and line[0] != "#"]
    assert words == [
        "< POWER_MODEL ID=2 NAME=EPOCHWATT >",
        "CPU_ONLINE CORE_0 1",
        "CPU_ONLINE CORE_1 0",
        "FBP_POWER_GATING FBP_PG_MASK 2",
        "CPU_A78_0 MIN_FREQ 729600",
        "CPU_A78_0 MAX_FREQ 1190400",
        "EMC MAX_FREQ 204000000",
        before[last + 1],
    ]


@pytest.mark.parametrize(
    ("line", "instead", "why"),
    [
        ("CORE_1 /sys/devices/system/cpu/cpu1/online", "CORE_1", "argument with a path"),
        ("CORE_1 /sys/devices/system/cpu/cpu1/online", "CORE_1 cpu1/online", "with a path"),
        ("FBP_POWER_GATING FBP_PG_MASK 2", "FBP_POWER_GATING FBP_PG_MASK two", "no whole number"),
        ("EMC MAX_FREQ -1", "EMC MAX_FREQ -1 MHz", "three words"),
        ("EMC MAX_FREQ -1", "EMC -1", "three words"),
        ("WARN /sys", "WARN /sys/a b c", "with a path and a name"),
        ("<PARAM TYPE=CLOCK NAME=EMC >", "<PARAM TYPE=CLOCK >", "a section begins with"),
        ("<PARAM TYPE=CLOCK NAME=EMC >", "< PARAM TYPE=CLOCK NAME=EMC", "a section begins with"),
        ("< FAN_CONFIG DEFAULT=quiet >", "< FANS DEFAULT=quiet >", "a section begins with"),
        ("< FAN_CONFIG DEFAULT=quiet >", "quiet", "no parameter and to no power mode"),
        ("#", "EMC MAX_FREQ 0\n#", "no parameter and to no power mode"),
        ("< POWER_MODEL ID=2", "< POWER_MODEL ID=two", "two"),
    ],
)
def test_a_line_that_is_not_understood_is_refused_by_its_number(line, instead, why):
    text = ORIN_CONF.replace(line, instead, 1)
    number = ORIN_CONF[: ORIN_CONF.index(line)].count("\n") + 1
    with pytest.raises(ValueError, match=f"line {number}, .*{why}"):
        parse_conf(text)


@pytest.mark.parametrize(
    ("files", "cap"),
    [
        ({"sys/kernel/nvpmodel_clk_cap/emc": "2133000000\n"}, 2133000000),
        ({"sys/kernel/nvpmodel_emc_cap/emc_iso_cap": "0\n"}, 0),  # an older kernel, same file
        (
            {
                "sys/kernel/nvpmodel_clk_cap/emc": "9223372036854775807\n",
                "sys/kernel/nvpmodel_emc_cap/emc_iso_cap": "5\n",
            },
            9223372036854775807,
        ),
        ({}, None),
    ],
)
def test_the_memorys_cap_is_read_where_the_boards_own_configuration_says(tmp_path, files, cap):
    root = root_with(tmp_path, {"etc/nvpmodel.conf": ORIN_CONF, **files})
    assert board_files.read_clocks(root)["emc_cap_hz"] == cap


@pytest.mark.parametrize(
    ("running", "words"),
    [("2", ""), ("0x2", ""), ("", ""), ("?", ""), ("0", "FBP mask 0, the mode has 2")],
)
def test_a_mask_that_the_gpu_does_not_run_with_is_named(tmp_path, running, words):
    mask = "sys/devices/platform/gpu.0/fbp_pg_mask"
    root = root_with(tmp_path, {"etc/nvpmodel.conf": ORIN_CONF, mask: running + "\n"})
    named = board_files.other_mask(root, parse_conf(ORIN_CONF).modes[0])
    assert named.endswith(words)
    assert bool(named) == bool(words)


@given(st.text() | st.lists(st.sampled_from([*CONF.splitlines(), "<", "< PARAM >"])).map("\n".join))
def test_no_text_breaks_the_parser(text):
    try:
        conf = parse_conf(text)
    except ValueError:
        return
    assert conf.modes
    assert all(len(row) == 3 for mode in conf.modes for row in mode.settings)


@pytest.mark.parametrize(
    ("kind", "mask", "share"),
    [
        ("agx_orin", "0", 1),
        ("agx_orin", "240", 4 / 8),  # NVIDIA's mode of 30 W
        ("agx_orin", "248", 3 / 8),  # of 15 W
        ("agx_xavier", "5", 2 / 4),  # of 10 W
        ("agx_xavier", "15", None),  # all of it: such a mode there is not
        ("orin_nx", "0", 1),
        ("orin_nx", "240", None),  # how many parts the mask counts is not known here
    ],
)
def test_share_of_the_gpu_follows_from_the_mask(kind, mask, share):
    conf = parse_conf(
        "< POWER_MODEL ID=0 NAME=MAXN >\nTPC_POWER_GATING TPC_PG_MASK 0\n"
        "< POWER_MODEL ID=1 NAME=LOW >\nTPC_POWER_GATING TPC_PG_MASK " + mask
    )
    assert board_files.gpu_share(conf, conf.modes[1], kind) == share


def made(cores=0, cpu=0, gpu=0, emc=0, conf=CONF):
    return parse_conf(custom_conf(parse_conf(conf), cores, cpu, gpu, emc, STEPS))


def test_a_mode_with_numbers():
    settings = made(3, 1190400, 675750000, 204000000).modes[0].settings
    assert settings == [
        ("CPU_ONLINE", "CORE_0", "1"),
        ("CPU_ONLINE", "CORE_1", "1"),
        ("CPU_ONLINE", "CORE_2", "1"),
        ("CPU_ONLINE", "CORE_3", "0"),
        ("TPC_POWER_GATING", "TPC_PG_MASK", "0"),
        ("CPU_DENVER_0", "MIN_FREQ", "115200"),  # 1200000 would lie above the maximum
        ("CPU_DENVER_0", "MAX_FREQ", "1190400"),
        ("CPU_DENVER_1", "MIN_FREQ", "115200"),
        ("CPU_DENVER_1", "MAX_FREQ", "1190400"),
        ("GPU", "MIN_FREQ", "318750000"),
        ("GPU", "MAX_FREQ", "675750000"),
        ("EMC", "MAX_FREQ", "204000000"),
    ]


@given(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from((0, *STEPS.cpu_khz)),
        st.sampled_from((0, *STEPS.gpu_hz)),
        st.sampled_from((0, *STEPS.emc_hz)),
    )
)
def test_no_mode_switches_the_first_core_off_or_has_a_minimum_above_its_maximum(numbers):
    settings = {row[:2]: int(row[2]) for row in made(*numbers).modes[0].settings}
    assert settings["CPU_ONLINE", "CORE_0"] == 1
    assert sum(value for (name, _), value in settings.items() if name == "CPU_ONLINE") == (
        numbers[0] or 4
    )
    for (name, arg), value in settings.items():
        if arg == "MIN_FREQ" and settings[name, "MAX_FREQ"] > 0:
            assert value <= settings[name, "MAX_FREQ"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the files of others than root are not root's")
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "is_alone"),
    [
        *[(0o755, 0o755, True), (0o775, 0o755, True), (0o1777, 0o755, True)],
        *[(0o777, 0o755, False), (0o755, 0o775, False), (0o755, 0o757, False)],
    ],
)
def test_who_else_could_change_an_installed_file(tmp_path, folder_mode, file_mode, is_alone):
    folder = tmp_path / "sbin"
    folder.mkdir()
    path = folder / "epochwatt-helper"
    path.touch()
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    found = board_files.first_not_root_only(str(path))
    assert found == ("" if is_alone else str(path if folder_mode == 0o755 else folder))
    os.chown(folder, 1234, 1234)
    assert board_files.first_not_root_only(str(path)) in (str(path), str(folder))
