"""A board is set, read back, compared and put back; what it did not take is never measured."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from fake_board import make_board

import epochwatt
from epochwatt.board.device import jetson
from epochwatt.board.device.helper_file import helper_file
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.errors import BoardError, ConfigError, RebootNeeded

CPU_KHZ = [115200, 1113600, 1190400, 2112000, 2265600]
GPU_HZ = [114750000, 675750000, 905250000, 1377000000]
CPU, GPU = "sys/devices/system/cpu", "sys/devices/17000000.gv11b/devfreq/17000000.gv11b"
CAP, RATE = "sys/kernel/nvpmodel_emc_cap/emc_iso_cap", "sys/kernel/debug/bpmp/debug/clk/emc/rate"
SERIAL = "1421120012345"

CONF = """\
< PARAM TYPE=FILE NAME=CPU_ONLINE >
CORE_0 /sys/devices/system/cpu/cpu0/online
CORE_1 /sys/devices/system/cpu/cpu1/online
< PARAM TYPE=CLOCK NAME=GPU >
MAX_FREQ /sys/devices/17000000.gv11b/devfreq/17000000.gv11b/max_freq
< PARAM TYPE=CLOCK NAME=EMC >
MAX_FREQ /sys/kernel/nvpmodel_emc_cap/emc_iso_cap
< POWER_MODEL ID=0 NAME=MAXN >
CPU_ONLINE CORE_0 1
CPU_ONLINE CORE_1 1
CPU_DENVER_0 MAX_FREQ -1
GPU MAX_FREQ -1
EMC MAX_FREQ 0
< POWER_MODEL ID=2 NAME=MODE_15W >
CPU_ONLINE CORE_0 1
CPU_ONLINE CORE_1 0
CPU_DENVER_0 MAX_FREQ 1200000
GPU MAX_FREQ 670000000
EMC MAX_FREQ 1331200000
< PM_CONFIG DEFAULT=2 >
"""

# A root helper that believes its caller: it writes the made-up board's files. `behaviour.json` says
# what goes wrong: a verb with an exit status and an error, or clocks that the board does not take.
HELPER = """\
#!{python}
# epochwatt stand-in
import json, os, sys
sys.path.insert(0, {source!r})
from epochwatt.board.device import board_files

ROOT, CPU, GPU, CAP, RATE = {root!r}, {cpu!r}, {gpu!r}, {cap!r}, {rate!r}
verb, numbers = sys.argv[1], [int(n) for n in sys.argv[2:]]


def at(name):
    return os.path.join(ROOT, name)


def write(name, value):
    with open(at(name), "w") as handle:
        handle.write(str(value) + "\\n")


def read(name):
    with open(at(name)) as handle:
        return handle.read().strip()


with open(at("calls"), "a") as handle:
    handle.write(" ".join(sys.argv[1:]) + "\\n")
behaviour = json.loads(read("behaviour.json"))
if verb in behaviour:
    status, answer = behaviour[verb]
    print(answer if isinstance(answer, str) else json.dumps(answer))
    sys.exit(status)
STATE = "var/lib/epochwatt/state.json"
if verb in ("named-mode", "custom-mode", "pin-clocks", "fan-max") and not os.path.exists(at(STATE)):
    names = ["nvpmodel_id", "fan", GPU + "/max_freq", GPU + "/cur_freq", CAP, RATE]
    for n in range(2):
        names += [CPU + "/cpu%d/" % n + f for f in ("online", "cpufreq/scaling_max_freq",
                                                   "cpufreq/scaling_cur_freq")]
    write(STATE, json.dumps({{name: read(name) for name in names}}))


def limits(cores, cpu_khz, gpu_hz, emc_hz):
    for n in range(2):
        write(CPU + "/cpu%d/online" % n, int(n < (cores or 2)))
        write(CPU + "/cpu%d/cpufreq/scaling_max_freq" % n, cpu_khz or 2265600)
    write(GPU + "/max_freq", gpu_hz or 1377000000)
    write(CAP, emc_hz)
    for name, value in behaviour.get("not taken", {{}}).items():
        write(name, value)


answer = {{"ok": True}}
if verb == "custom-mode":
    limits(*numbers)
elif verb == "named-mode":
    write("nvpmodel_id", numbers[0])
    limits(*[(2, 0, 0, 0), None, (1, 1190400, 675750000, 1331200000)][numbers[0]])
elif verb == "pin-clocks":
    for n in range(2):
        f = CPU + "/cpu%d/cpufreq/" % n
        write(f + "scaling_cur_freq", read(f + "scaling_max_freq"))
    write(GPU + "/cur_freq", read(GPU + "/max_freq"))
    write(RATE, int(read(CAP)) or 2133000000)
elif verb == "fan-max":
    write("fan", 255)
elif verb == "read-clocks":
    answer.update(board_files.read_clocks(ROOT))
elif verb == "status":
    answer["nvpmodel"] = {{"id": int(read("nvpmodel_id")), "name": "AS_READ"}}
elif verb == "restore":
    for name, value in json.loads(read(STATE)).items():
        write(name, value)
    os.unlink(at(STATE))
print(json.dumps(answer))
"""


class Board:
    """The files of a made-up AGX Xavier with two cores, and the stand-in helper's doings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        tree = "proc/device-tree/"
        self.write(tree + "model", "Jetson-AGX\0")
        self.write(tree + "compatible", "nvidia,p2822-0000+p2888-0001\0nvidia,tegra194\0")
        self.write(tree + "serial-number", SERIAL + "\0")
        self.write("etc/nv_tegra_release", "# R32 (release), REVISION: 5.1, GCID: 26202423\n")
        self.write("etc/nvpmodel.conf", CONF)
        for n in range(2):
            cpu = f"{CPU}/cpu{n}/"
            self.write(cpu + "online", 1)
            self.write(cpu + "cpufreq/scaling_available_frequencies", " ".join(map(str, CPU_KHZ)))
            self.write(cpu + "cpufreq/scaling_min_freq", 115200)
            self.write(cpu + "cpufreq/scaling_max_freq", 2265600)
            self.write(cpu + "cpufreq/scaling_cur_freq", 1113600)
        self.write(GPU + "/available_frequencies", " ".join(map(str, GPU_HZ)))
        for name, hz in (("min", GPU_HZ[0]), ("max", GPU_HZ[-1]), ("cur", GPU_HZ[0])):
            self.write(f"{GPU}/{name}_freq", hz)
        self.write(CAP, 0)
        self.write(RATE, 204000000)
        self.write("nvpmodel_id", 0)
        self.write("fan", 0)
        self.write("calls", "")
        self.behave()
        (path / "var/lib/epochwatt").mkdir(parents=True)
        helper = HELPER.format(
            **{"python": sys.executable, "source": str(Path(epochwatt.__file__).parents[1])},
            **{"root": str(path), "cpu": CPU, "gpu": GPU, "cap": CAP, "rate": RATE},
        )
        self.write(jetson.INSTALLED, helper)
        (path / jetson.INSTALLED).chmod(0o755)
        medium = {"root": str(path), "mount": "", "block_device": ""}
        self.settings = {
            **{"backend": "fake", "root": str(path), "kind": "agx_xavier", "unit": ""},
            **{"storage": medium, "power_source": "sysfs", "settle": None},
        }

    def write(self, name, content):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(content))

    def read(self, name):
        return (self.path / name).read_text().strip()

    def behave(self, **behaviour):
        self.write("behaviour.json", json.dumps(behaviour))

    @property
    def calls(self):
        return self.read("calls").splitlines()

    def files(self):
        """Return what the helper may change."""
        names = ["nvpmodel_id", "fan", GPU + "/max_freq", GPU + "/cur_freq", CAP, RATE]
        names += [f"{CPU}/cpu{n}/cpufreq/scaling_max_freq" for n in range(2)]
        return {name: self.read(name) for name in [*names, f"{CPU}/cpu1/online"]}

    def open(self, **changes):
        board = JetsonBoard({**self.settings, **changes})
        board.patience_s = 0.0
        return board


@pytest.fixture
def files(tmp_path):
    return Board(tmp_path / "agx")


# -- which board it is -------------------------------------------------------------------------


# -- power mode and clocks ------------------------------------------------------------------------


def test_custom_mode_is_resolved_set_pinned_and_read_back(files):
    mode = {"cores": 1, "cpu_mhz": 1200, "gpu_mhz": 670, "emc_mhz": 1333}
    applied = files.open().apply(mode, "off")
    resolved = {"cores": 1, "cpu_mhz": 1190.4, "gpu_mhz": 675.75, "emc_mhz": 1331.2}
    assert json.loads(json.dumps(applied, allow_nan=False))["requested"] == mode
    assert applied["resolved"] == resolved
    assert {key: applied["read_back"][key] for key in resolved} == resolved
    assert (applied["verified"], applied["unverified"]) == (True, [])
    assert (applied["dvfs"], applied["fan"]) == ("off", "maximum")
    assert files.calls == [
        "custom-mode 1 1190400 675750000 1331200000",
        *("pin-clocks", "fan-max", "read-clocks"),
    ]


@pytest.mark.parametrize("dvfs", ["on", "off"])
def test_named_mode_is_set_and_its_limits_are_compared(files, dvfs):
    applied = files.open().apply({"nvpmodel": "MODE_15W"}, dvfs)
    assert applied["requested"] == {"nvpmodel": "MODE_15W"}
    assert applied["resolved"] == {
        **{"nvpmodel": "MODE_15W", "nvpmodel_id": 2, "cores": 1},
        **{"cpu_mhz": 1200.0, "gpu_mhz": 670.0, "emc_mhz": 1331.2},
    }
    assert applied["read_back"]["cpu_max_mhz"] == 1190.4
    assert applied["verified"]
    assert files.calls[:2] == ["named-mode 2", "status"]


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ({"cpu_mhz": 1500}, r"cpu_mhz: 1500 MHz is not a step(.|\n)*1113\.6 and 1190\.4"),
        ({"gpu_mhz": 1000}, r"gpu_mhz: 1000 MHz is not a step(.|\n)*675\.75 and 905\.25"),
        ({"emc_mhz": 1000}, r"emc_mhz: 1000 MHz is not a step(.|\n)*800 and 1065\.6"),
        ({"cores": 3}, r"cores: .*\n  found: 3\n  allowed: 1 to 2"),
        ({"nvpmodel": "MAXQ"}, r"\.conf: .*no power mode MAXQ\n  allowed: MAXN, MODE_15W"),
    ],
)
def test_mode_that_the_board_does_not_have_is_refused_before_anything_is_set(files, mode, told):
    with pytest.raises(ConfigError, match=told):
        files.open().apply(mode, "off")
    assert files.calls == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (f"{CPU}/cpu0/cpufreq/scaling_max_freq", 2265600, "cpu_mhz is 2265.6, wanted 1190.4"),
        (f"{GPU}/max_freq", 114750000, "gpu_mhz is 114.75, wanted 675.75"),
        (f"{CPU}/cpu1/online", 1, "cores is 2, wanted 1"),
        (CAP, 800000000, "emc_mhz is 800, wanted 1331.2"),
    ],
)
@pytest.mark.parametrize("dvfs", ["on", "off"])
def test_clock_that_was_not_taken_is_an_error_and_can_be_put_back(files, name, value, told, dvfs):
    before = files.files()
    files.behave(**{"not taken": {name: value}})
    board = files.open()
    with pytest.raises(BoardError, match=told):
        board.apply({"cores": 1, "cpu_mhz": 1200, "gpu_mhz": 670, "emc_mhz": 1333}, dvfs)
    board.restore()
    assert files.files() == before


@pytest.mark.parametrize(
    ("status", "answer", "error", "told"),
    [
        (2, {"ok": False, "error": "cores 9 is none of"}, BoardError, "was refused: cores 9"),
        (3, {"ok": False, "error": "nvpmodel timed out"}, BoardError, "failed: nvpmodel timed"),
        (4, {"ok": False, "error": "TPC mask"}, RebootNeeded, "restarted first: TPC mask"),
        (1, "", BoardError, "failed: no reason given"),
        (0, "no json", BoardError, "failed: no reason given"),
        (0, [1], BoardError, "failed: no reason given"),
    ],
)
def test_answer_of_the_helper_that_is_no_success_is_told(files, status, answer, error, told):
    files.behave(**{"custom-mode": [status, answer]})
    with pytest.raises(error, match=told):
        files.open().apply({"gpu_mhz": 900}, "on")


def test_helper_of_a_real_board_is_called_by_sudo_and_by_root_directly(files, monkeypatch):
    called = []

    def run(command, **options):
        called.append(command)
        assert options["start_new_session"]
        return jetson.subprocess.CompletedProcess(command, 1, "", "sudo: a password is required\n")

    monkeypatch.setattr(jetson.subprocess, "run", run)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    board = files.open()
    board.root = "/"
    for uid in (1000, 0):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        with pytest.raises(BoardError, match="a password is required") as caught:
            board.ask_helper("custom-mode", 1, 0, 0, 0)
        assert "make setup-jetson" in caught.value.do
    command = ["/usr/local/sbin/epochwatt-helper", "custom-mode", "1", "0", "0", "0"]
    assert called == [["sudo", "-n", *command], command]


# -- putting back -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_second_signal_does_not_cut_putting_back_and_comes_afterwards(files, number, monkeypatch):
    before = files.files()
    board = files.open()
    board.apply({"gpu_mhz": 900}, "on")
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
    assert files.files() == before


# -- page cache and events --------------------------------------------------------------------


# -- with the real helper and tools that behave like NVIDIA's -------------------------------------


@pytest.fixture
def make_real(tmp_path):
    """Return a function that makes a fake board of a kind with the real helper."""

    def make(name):
        fake = make_board(tmp_path / name, name)
        helper = fake.root / jetson.INSTALLED
        helper.write_bytes(helper_file(sys.executable))
        helper.chmod(0o755)
        medium = {"root": str(fake.root), "mount": "", "block_device": ""}
        settings = {
            "backend": "fake",
            "root": str(fake.root),
            "kind": fake.kind.board.name,
            "unit": fake.kind.serial,
            "storage": medium,
            "power_source": "sysfs",
            "settle": None,
        }
        return fake, JetsonBoard(settings)

    return make


@pytest.mark.parametrize(
    ("kind", "mode", "resolved"),
    [
        (
            "agx_xavier",
            {"cores": 4, "cpu_mhz": 1200, "gpu_mhz": 670, "emc_mhz": 1333},
            {"cores": 4, "cpu_mhz": 1190.4, "gpu_mhz": 675.75, "emc_mhz": 1331.2},
        ),
        (
            "nano",
            {"nvpmodel": "5W"},
            {"nvpmodel": "5W", "nvpmodel_id": 1, "cores": 2, "cpu_mhz": 918.0, "gpu_mhz": 640.0}
            | {"emc_mhz": 1600.0},
        ),
    ],
)
def test_real_helper_sets_what_is_asked_and_a_killed_job_is_put_back(
    make_real, kind, mode, resolved
):
    fake, board = make_real(kind)
    before = fake.snapshot()
    board.check()
    applied = board.apply(mode, "off")
    assert applied["resolved"] == resolved
    assert applied["verified"]
    assert applied["fan"] == "maximum"
    assert applied["read_back"]["gpu_mhz"] == applied["read_back"]["gpu_max_mhz"]
    assert fake.snapshot() != before
    successor = JetsonBoard(board.settings)  # the first one was killed
    assert successor.left_over()
    successor.restore()
    assert fake.snapshot() == before
    assert not board.left_over()


def test_mode_that_needs_a_restart_is_told_with_what_to_do_and_nothing_waits(make_real):
    fake, board = make_real("agx_orin-jp6")
    before = fake.snapshot()
    with pytest.raises(RebootNeeded, match=r"restarted first: .*sudo nvpmodel -m 0"):
        board.apply({"nvpmodel": "MAXN"}, "on")
    assert not board.left_over()
    assert fake.snapshot() == before


def test_tool_that_does_nothing_and_says_it_did_is_found_out(make_real):
    fake, board = make_real("agx_xavier")
    board.patience_s = 0.0
    (fake.root / "usr/sbin/nvpmodel").write_text(
        "#!/bin/sh\n# epochwatt stand-in\necho 'NV Power Mode: MAXN'; echo 0\n"
    )
    with pytest.raises(BoardError, match="did not take the power mode") as caught:
        board.apply({"gpu_mhz": 670}, "on")
    assert caught.value.found.startswith("gpu_mhz is 1377, wanted")
    board.restore()


# -- modes of a sweep ------------------------------------------------------------------------------

SWEPT = {"cores": 2, "cpu_mhz": 2112.0, "gpu_mhz": 905.25, "emc_mhz": 1331.2}


def test_one_mode_after_the_other_is_set_and_only_then_all_is_put_back(files):
    before = files.files()
    board = files.open()
    first = board.change({"cores": 1, "cpu_mhz": 1190.4, "gpu_mhz": 675.75}, "off")
    second = board.change(SWEPT, "off")
    assert (first["fan"], second["fan"]) == ("maximum", "maximum")
    assert second["resolved"] == SWEPT
    assert {key: second["read_back"][key] for key in SWEPT} == SWEPT
    assert first["unmet"] == second["unmet"] == board.unmet(second) == {}
    assert [call.split()[0] for call in files.calls] == [
        *("custom-mode", "pin-clocks", "fan-max", "read-clocks"),
        *("custom-mode", "pin-clocks", "read-clocks", "read-clocks"),
    ]
    board.restore()
    assert files.files() == before
