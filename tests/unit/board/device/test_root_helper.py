"""The root helper, called as sudo calls it, by its user and by an attacker."""

import io
import json
import os
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_board import MASK, TinyBoard

from epochwatt.board.device import root_helper
from epochwatt.board.device.helper_file import helper_file
from epochwatt.board.device.root_helper import FAILED, REBOOT, REFUSED

STATE = "var/lib/epochwatt/state.json"
FOLDER = "var/lib/epochwatt"
CPU3 = "sys/devices/system/cpu/cpu3/"
STORE = f"jetson_clocks --store {FOLDER}/l4t_dfs.conf"
UNPIN = f"jetson_clocks --restore {FOLDER}/l4t_dfs.conf"


def python_3_6():
    found = [shutil.which("python3.6"), *Path.home().glob(".pyenv/versions/3.6.*/bin/python3.6")]
    works = [
        str(p) for p in found if p and not subprocess.run([p, "-c", ""], check=False).returncode
    ]
    return works[0] if works else None


@pytest.fixture
def board(tmp_path):
    return TinyBoard(tmp_path / "board")


def nvpmodel_calls(board):
    return [call for call in board.calls() if call.startswith("nvpmodel")]


# -- what it does ----------------------------------------------------------------------------------
def test_status_says_board_mode_and_whether_something_is_stored(board):
    told = {"ok": True, "version": root_helper.VERSION, "stored": False, "kind": "agx_xavier"}
    assert board.ask("status") == (0, {**told, "nvpmodel": {"id": 0, "name": "SMALL"}})
    assert not (board.root / FOLDER).exists()
    board.ask("named-mode", "3")
    told["stored"] = True
    assert board.ask("status") == (0, {**told, "nvpmodel": {"id": 3, "name": "MAXN"}})


def test_a_named_mode_is_set_from_the_boards_own_file_after_storing_what_was(board):
    """All cores are online, and ranges open, before it is set."""
    status, answer = board.ask("named-mode", "3")
    assert (status, answer["nvpmodel"]["id"]) == (0, 3)  # exit status 255 of nvpmodel is no error
    set_mode = "nvpmodel -f etc/nvpmodel.conf -m 3"
    assert board.calls() == [STORE, "systemctl is-active nvfancontrol", set_mode]
    assert json.loads(board.read(STATE))["mode"] == 0
    assert board.read("found") == "1 115200 2265600"
    assert board.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq") == "2265600"


def test_a_custom_mode_goes_through_a_file_of_our_own(board):
    before = board.read("etc/nvpmodel.conf")
    status, _ = board.ask("custom-mode", "2", "1190400", "675750000", "1331200000")
    assert status == 0
    used = board.read("conf.used")
    assert nvpmodel_calls(board) == [f"nvpmodel -f {FOLDER}/nvpmodel.conf -m 3"]
    assert "< POWER_MODEL ID=3 NAME=EPOCHWATT >" in used
    assert "CPU_DENVER_0 MAX_FREQ 1190400" in used
    assert "CPU_DENVER_1 M" not in used
    assert board.read("etc/nvpmodel.conf") == before


def test_clocks_are_unpinned_before_the_next_mode(board):
    board.ask("pin-clocks")
    board.ask("named-mode", "3")
    changes = [c for c in board.calls() if not c.startswith("systemctl")]
    assert changes == [STORE, "jetson_clocks", UNPIN, "nvpmodel -f etc/nvpmodel.conf -m 3"]
    board.ask("named-mode", "0")
    assert board.calls().count(UNPIN) == 1


def test_a_store_that_an_earlier_run_left_is_not_taken_for_ours(board):
    folder = board.root / FOLDER
    folder.mkdir(mode=0o711)
    (folder / "l4t_dfs.conf").write_text("stale")
    assert board.ask("pin-clocks")[0] == 0
    assert (folder / "l4t_dfs.conf").read_text() == "stored\n"


def test_the_fan_is_turned_up_and_put_back_jetpack_5_and_6(board):
    shutil.rmtree(board.root / "sys/devices/pwm-fan")
    board.write("sys/class/hwmon/hwmon0/name", "ina3221\n")
    board.write("sys/class/hwmon/hwmon3/name", "pwmfan\n")
    board.write("sys/class/hwmon/hwmon3/pwm1", "60\n")
    assert board.ask("fan-max")[0] == 0
    assert board.read("sys/class/hwmon/hwmon3/pwm1") == "255"
    board.ask("restore")
    assert board.read("sys/class/hwmon/hwmon3/pwm1") == "60"


def test_restore_puts_back_mode_then_clocks_and_forgets(board):
    board.ask("custom-mode", "1", "0", "0", "0")
    board.ask("pin-clocks")
    status, answer = board.ask("restore")
    assert (status, answer["restored"]) == (0, True)
    assert board.calls()[-3:] == [UNPIN, "nvpmodel -f etc/nvpmodel.conf -m 0", UNPIN]
    assert board.read("mode") == "0"
    assert os.listdir(board.root / FOLDER) == []
    assert board.ask("restore") == (0, {"ok": True, "restored": False})


@pytest.mark.parametrize("limit", [resource.RLIMIT_FSIZE, resource.RLIMIT_CPU])
def test_a_limit_of_the_caller_cuts_nothing_short(board, limit, in_child):
    """Under `ulimit -f 1` the saved clocks lost their end, and `restore` said that all was well."""
    stored = "".join(f"/{CPU3}cpufreq/state{n}/disable:0\n" for n in range(100))
    board.write("to.store", stored + f"/{CPU3}online:0\n")

    def small():
        resource.setrlimit(limit, (1024, 1024))

    status, answer = board.ask("pin-clocks", preexec_fn=small)
    if not in_child(can_lift, limit):
        assert (status, "are limited: see ulimit" in answer["error"]) == (REFUSED, True)
        assert board.calls() == []
        return
    assert (board.root / FOLDER / "l4t_dfs.conf").read_text() == stored + f"/{CPU3}online:0\n"
    assert board.ask("restore", preexec_fn=small)[1]["restored"] is True
    assert board.read(CPU3 + "online") == "0"


def can_lift(limit):
    """Say whether this user may lift a limit: root may, but not in every container."""
    resource.setrlimit(limit, (1024, 1024))
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError:
        return False
    return True


def test_a_store_that_is_gone_is_no_success(board):
    board.ask("pin-clocks")
    (board.root / FOLDER / "l4t_dfs.conf").unlink()
    assert board.ask("restore")[0] == FAILED
    assert (board.root / STATE).exists()


def test_clocks_that_are_not_put_back_are_no_success(board):
    board.write("to.store", f"/{CPU3}online:0\n/sys/nowhere/online:1\n")
    board.ask("pin-clocks")
    board.ask("named-mode", "3")  # brings all cores online
    board.write("stuck", "")
    status, answer = board.ask("restore")
    assert (status, f"not as before: /{CPU3}online" in answer["error"]) == (FAILED, True)
    (board.root / "stuck").unlink()
    assert board.ask("restore")[1]["restored"] is True  # nothing is forgotten before it is done
    assert board.read(CPU3 + "online") == "0"


# -- crash and start -------------------------------------------------------------------------------
def test_a_helper_that_is_killed_leaves_what_restore_needs(board):
    board.write("kills", "")
    process = board.start("named-mode", "3")
    assert process.communicate()[0] == b""
    assert process.returncode == -9
    (board.root / "kills").unlink()  # nvpmodel may still be at work: then restore waits for it
    assert board.ask("restore")[1]["restored"] is True
    assert board.read("mode") == "0"


def test_after_a_start_of_the_board_only_the_mode_is_put_back(board):
    board.ask("named-mode", "3")
    board.ask("pin-clocks")
    board.ask("fan-max")
    board.write("proc/sys/kernel/random/boot_id", "second\n")
    board.write("calls", "")
    board.write("sys/devices/pwm-fan/target_pwm", "50\n")
    assert board.ask("restore")[1]["restored"] is True
    assert board.calls() == ["nvpmodel -f etc/nvpmodel.conf -m 0"]
    assert board.read("sys/devices/pwm-fan/target_pwm") == "50"


def test_what_an_earlier_start_left_has_to_be_restored_first(board):
    board.ask("named-mode", "3")
    board.write("proc/sys/kernel/random/boot_id", "second\n")
    for words in (["named-mode", "0"], ["pin-clocks"], ["fan-max"]):
        status, answer = board.ask(*words)
        assert status == REFUSED
        assert "restore" in answer["error"]
    assert len(nvpmodel_calls(board)) == 1


def test_another_mask_needs_a_start_and_nothing_changes(board):
    before = board.snapshot()
    status, answer = board.ask("named-mode", "7")
    assert status == REBOOT
    assert "mask 0, the mode has 5" in answer["error"]
    assert "sudo nvpmodel -m 7" in answer["error"]
    board.write(MASK, "5\n")
    assert board.ask("custom-mode", "1", "0", "0", "0")[0] == REBOOT
    board.write(MASK, "0\n")
    assert board.snapshot() == before


def test_the_question_of_nvpmodel_is_never_answered_with_yes(board):
    board.write("asks", "")
    status, answer = board.ask("named-mode", "3", stdin=subprocess.DEVNULL)
    assert status == REBOOT
    assert "nvpmodel asks for it" in answer["error"]
    assert "answer: " in board.read("calls") + " "
    assert "answer: Y" not in board.read("calls")


def test_a_mode_that_a_start_has_replaced_stays_when_its_mask_differs(board):
    board.ask("named-mode", "3")
    board.write("proc/sys/kernel/random/boot_id", "second\n")
    board.write(MASK, "5\n")
    status, answer = board.ask("restore")
    assert (status, answer["restored"]) == (0, False)
    assert not (board.root / STATE).exists()


# -- an attacker -----------------------------------------------------------------------------------
WRONG = [
    *([], [""], ["--help"], ["-c", "id"], ["__class__"], ["status;id"], ["status", "status"]),
    *([verb] for verb in ("named-mode", "../../../bin/sh")),
    *(["named-mode", word] for word in ("", "03", "3\n", "-3", "0x3", "$(reboot)", "4")),
    *(["named-mode", word] for word in ("\u0663", "9" * 12, "9" * 100000)),  # an Arabic three
    *(["custom-mode", *numbers.split()] for numbers in ("1 1 1", "5 0 0 0", "1 1200000 0 0")),
    *(["custom-mode", *numbers.split()] for numbers in ("1 0 675750001 0", "1 0 0 1", "-1 0 0 0")),
    *(["pin-clocks", "--fan"], ["drop-caches", "1"]),
]


@pytest.mark.parametrize(
    "words", WRONG, ids=lambda words: " ".join(words)[:30].encode("unicode_escape").decode()
)
def test_what_is_no_verb_or_no_number_of_the_board_is_refused_and_changes_nothing(board, words):
    before = board.snapshot()
    status, answer = board.ask(*words)
    assert status == REFUSED
    assert len(json.dumps(answer)) < 1000
    assert board.snapshot() == before


@given(st.lists(st.text() | st.from_regex(r"[0-9]{1,13}"), max_size=6), st.sampled_from(WRONG))
def test_only_verbs_with_as_many_plain_numbers_as_they_take_get_through(words, start):
    verbs = {**root_helper._LOOKS, **root_helper._CHANGES}
    for verb in [*verbs, "".join(start[:1])]:
        try:
            root_helper.act([verb, *words])
        except root_helper.HelperError as error:
            complaint = error.args[1]
        plain = all(word.isascii() and word.isdigit() and str(int(word)) == word for word in words)
        passes = verb in verbs and len(words) == verbs[verb][0] and plain
        passes = passes and all(len(word) <= 12 for word in words)
        assert ("works only as" in complaint) == passes  # refused only for where it is


def test_it_works_only_where_it_is_installed(board):
    elsewhere = board.root / "helper"
    shutil.copy(board.helper, elsewhere)
    done = subprocess.run([elsewhere, "drop-caches"], capture_output=True, check=False)
    assert done.returncode == REFUSED
    assert board.read("proc/sys/vm/drop_caches") == "0"


@pytest.mark.parametrize(
    ("uid", "owner", "mode", "problem"),
    [
        (1000, 0, 0o755, "only as root"),
        *(
            (0, owner, mode, "root's alone")
            for owner, mode in ((1000, 0o755), (0, 0o775), (0, 0o757))
        ),
    ],
)
def test_on_a_real_root_it_works_for_root_alone_who_alone_may_write_it(
    monkeypatch, uid, owner, mode, problem
):
    installed = f"/{root_helper.INSTALLED}/epochwatt/board/device/root_helper.py"
    monkeypatch.setattr(root_helper, "__file__", installed)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    about = os.stat_result((0o100000 | mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))
    monkeypatch.setattr(os, "stat", lambda path: about)
    for verb in ("status", "restore", "drop-caches"):
        with pytest.raises(root_helper.HelperError, match=problem):
            root_helper.act([verb])


def test_the_environment_of_the_caller_reaches_no_tool(board, tmp_path):
    evil = tmp_path / "evil"
    evil.mkdir()
    for name in ("sh", "cat", "env", "mkdir", "sed", "nvpmodel", "systemctl"):
        (evil / name).write_text(f"#!/bin/sh\ntouch {evil}/hit\n")
        (evil / name).chmod(0o755)
    for name in ("json.py", "sitecustomize.py", "usercustomize.py"):
        (evil / name).write_text(f"open({str(evil / 'hit')!r}, 'w')\n")
    names = ("PYTHONPATH", "PYTHONHOME_", "BASH_ENV", "ENV", "IFS", "LD_LIBRARY_PATH", "HOME")
    environment = {**dict.fromkeys(names, str(evil)), "PATH": f"{evil}:{os.environ['PATH']}"}
    environment |= {"PYTHONSTARTUP": f"{evil}/json.py", "PYTHONINSPECT": "1"}
    status, _ = board.ask("named-mode", "3", env=environment, cwd=evil)
    assert status == 0
    assert not (evil / "hit").exists()
    assert str(evil) not in board.read("environment").replace(f"OLDPWD={evil}", "")
    assert "PATH=/usr/sbin:/usr/bin:/sbin:/bin" in board.read("environment").splitlines()


@pytest.mark.parametrize("verb", ["pin-clocks", "restore"])
def test_a_folder_that_is_a_link_is_not_followed(board, tmp_path, verb):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (board.root / FOLDER).symlink_to(elsewhere)
    assert board.ask(verb)[0] == FAILED
    assert os.listdir(elsewhere) == []
    assert board.calls() == []


def test_a_folder_that_others_can_write_or_own_is_refused(board):
    folder = board.root / FOLDER
    folder.mkdir()
    for mode in (0o777, 0o775, 0o722):
        folder.chmod(mode)
        assert board.ask("named-mode", "3")[0] == REFUSED
    if os.geteuid() == 0:
        folder.chmod(0o711)
        os.chown(folder, 1234, 1234)
        assert board.ask("named-mode", "3")[0] == REFUSED
    assert board.calls() == []


def test_others_cannot_open_the_folder_and_hold_its_lock(board):
    board.ask("named-mode", "3")
    assert (board.root / FOLDER).stat().st_mode & 0o777 == 0o711
    assert (board.root / STATE).stat().st_mode & 0o777 == 0o600


def test_links_in_place_of_state_and_new_state_are_not_followed(board, tmp_path):
    board.ask("named-mode", "3")
    state, target = tmp_path / "state.json", tmp_path / "target"
    (board.root / STATE).rename(state)
    (board.root / STATE).symlink_to(state)
    before = board.snapshot()
    for verb in ("restore", "pin-clocks"):
        assert board.ask(verb)[0] == REFUSED
    assert board.snapshot() == before
    (board.root / STATE).unlink()
    target.write_text("precious")
    (board.root / (STATE + ".new")).symlink_to(target)
    assert board.ask("named-mode", "3")[0] == FAILED
    assert target.read_text() == "precious"
    assert len(nvpmodel_calls(board)) == 1


GOOD = {
    "boot_id": "first",
    "mode": 0,
    "pinned": True,
    "fan": {"target_pwm": "77"},
    "fan_service": False,
    "fan_is_max": True,
}


@pytest.mark.parametrize(
    "state",
    [
        *("", "{", "[3]", "7", "{}"),
        json.dumps({**GOOD, "mode": True}),
        json.dumps({**GOOD, "mode": "/etc/shadow"}),
        json.dumps({**GOOD, "more": 1}),
        json.dumps({**GOOD, "fan": []}),
    ],
)
def test_a_state_that_was_rewritten_is_refused(board, state):
    (board.root / FOLDER).mkdir(mode=0o711)
    board.write(STATE, state)
    for verb in ("restore", "pin-clocks"):
        status, answer = board.ask(verb)
        assert status == REFUSED
        assert "state.json" in answer["error"]
    assert board.calls() == []


def test_of_a_long_state_only_the_beginning_is_read_and_no_unknown_mode_is_set(board):
    (board.root / FOLDER).mkdir(mode=0o711)
    board.write(STATE, json.dumps({**GOOD, "mode": 99}))
    assert board.ask("restore")[0] == FAILED
    assert board.calls() == []
    board.write(STATE, json.dumps(GOOD) + " " * 70000 + "x")
    board.write(f"{FOLDER}/l4t_dfs.conf", "stored\n")
    assert board.ask("restore")[1]["restored"] is True


def test_helpers_at_the_same_time_work_one_after_the_other(board):
    processes = [board.start("named-mode", mode) for mode in ("3", "0", "3", "0")]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert len(nvpmodel_calls(board)) == 4
    assert "two at once" not in board.calls()
    assert board.calls().count(STORE) == 1
    assert json.loads(board.read(STATE))["mode"] == 0


@pytest.mark.parametrize("number", [1, 2, 15, 20])  # HUP, INT, TERM, TSTP
def test_what_the_caller_can_send_does_not_cut_it_in_the_middle(board, number):
    script = f"kill -{number} $PPID\n"
    tool = board.root / "usr/bin/jetson_clocks"
    tool.write_text(tool.read_text().replace("if [", script + "if [", 1))
    assert board.ask("named-mode", "3")[0] == 0
    assert board.read("mode") == "3"


# -- the file --------------------------------------------------------------------------------------


def test_the_file_names_its_interpreter_isolated_shows_its_text_and_holds_nothing_else():
    assert helper_file("/opt/python").startswith(b"#!/opt/python -IS\n")
    content = helper_file()
    assert content.startswith(b"#!/usr/bin/python3 -IS\n")
    package = ["__init__.py", "board/__init__.py", "board/device/__init__.py"]
    modules = ("kinds.py", "kinds.json", "board_files.py", "root_helper.py")
    package += [f"board/device/{name}" for name in modules]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["__main__.py", *(f"epochwatt/{name}" for name in package)]
    for name in modules:
        assert (Path(root_helper.__file__).parent / name).read_bytes() in content


@pytest.mark.parametrize("python", [sys.executable, python_3_6()], ids=["this one", "3.6"])
def test_it_runs_isolated_on_old_and_new_interpreters(tmp_path, python):
    if python is None:
        pytest.skip("there is no python3.6 here")
    board = TinyBoard(tmp_path / "board", python)
    assert board.ask("custom-mode", "3", "1190400", "0", "0")[0] == 0
    assert board.ask("restore")[1]["restored"] is True
    done = subprocess.run([python, "-I", board.helper, "status"], capture_output=True, check=False)
    assert json.loads(done.stdout)["kind"] == "agx_xavier"
