"""Installing the root helper and taking it away, below a folder that plays the board."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from epochwatt.board.device.root_helper import FOLDER, INSTALLED, STATE
from epochwatt.errors import BoardError
from epochwatt.maintenance import board_setup
from epochwatt.maintenance.board_setup import PROFILE, SUDOERS, remove_jetson, setup_jetson, sudoers

VISUDO = shutil.which("visudo", path="/usr/sbin:/sbin:/usr/bin:/bin")
needs_visudo = pytest.mark.skipif(VISUDO is None, reason="visudo is not installed (package sudo)")


@pytest.fixture
def root(tmp_path):
    tree = tmp_path / "proc/device-tree"
    tree.mkdir(parents=True)
    (tree / "compatible").write_bytes(b"nvidia,p2972-0000\0nvidia,tegra194\0")
    return str(tmp_path)


@pytest.fixture
def link(root):
    return Path(root, pwd.getpwuid(os.geteuid()).pw_dir.lstrip("/"), PROFILE)


def mode(*parts):
    return Path(*parts).stat().st_mode & 0o7777


# -- the sudoers file ------------------------------------------------------------------------------
@needs_visudo
@pytest.mark.parametrize("user", ["nvidia", "ann.b-1_c"])
def test_visudo_accepts_the_sudoers_file(tmp_path, user):
    path = tmp_path / "epochwatt"
    path.write_text(sudoers(user))
    done = subprocess.run([VISUDO, "-cf", path], capture_output=True, check=False)
    assert done.returncode == 0, done


def test_the_sudoers_file_lets_one_user_call_the_helper_by_its_verbs_and_nothing_else():
    text = sudoers("nvidia")
    assert "nvidia ALL = (root) NOPASSWD: EPOCHWATT\n" in text
    calls = text.partition("EPOCHWATT = \\\n")[2].partition("\nDefaults")[0].split(", \\\n")
    assert all(call.strip().startswith("/usr/local/sbin/epochwatt-helper ") for call in calls)
    verbs = {call.split()[1] for call in calls}
    assert len(calls) == len(verbs) == 8
    assert {"named-mode", "custom-mode", "restore", "status"} <= verbs


@pytest.mark.parametrize(
    "user", ["", "a b", "ALL, root", "%sudo", "#0", "x\nALL ALL=(ALL) ALL", "a,b", "a=b", "ü"]
)
def test_a_name_that_means_something_in_a_sudoers_file_is_refused(user):
    with pytest.raises(BoardError, match="user name"):
        sudoers(user)


# -- setup -----------------------------------------------------------------------------------------
@needs_visudo
def test_setup_installs_helper_sudoers_file_and_link(root, link):
    done = setup_jetson(root)
    assert len(done) == 3
    assert mode(root, INSTALLED) == 0o755
    assert mode(root, SUDOERS) == 0o440
    assert Path(root, INSTALLED).read_bytes().startswith(b"#!/usr/bin/python3 -IS\n")
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert Path(root, SUDOERS).read_text() == sudoers(user)
    assert os.readlink(link) == str(board_setup.CHECKOUT / "profiles/jetson")


@needs_visudo
def test_setup_again_renews_everything_and_leaves_no_other_file(root, link):
    setup_jetson(root)
    helper = Path(root, INSTALLED)
    helper.write_text("old")
    link.unlink()
    link.symlink_to("/elsewhere")
    Path(root, SUDOERS + ".new").write_text("left by a crash")
    setup_jetson(root)
    assert helper.read_bytes().startswith(b"#!")
    assert os.readlink(link).endswith("profiles/jetson")
    assert os.listdir(Path(root, SUDOERS).parent) == ["epochwatt"]
    assert os.listdir(helper.parent) == ["epochwatt-helper"]


@needs_visudo
def test_a_sudoers_file_that_visudo_refuses_is_not_installed(root, monkeypatch):
    monkeypatch.setattr(board_setup, "sudoers", lambda user: "this is no sudoers file\n")
    with pytest.raises(BoardError, match="visudo refuses"):
        setup_jetson(root)
    assert os.listdir(Path(root, SUDOERS).parent) == []
    assert not Path(root, INSTALLED).exists()


def test_without_visudo_nothing_is_installed(root, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    with pytest.raises(BoardError, match="visudo is missing"):
        setup_jetson(root)
    assert os.listdir(Path(root, SUDOERS).parent) == []
    assert not Path(root, INSTALLED).exists()


@pytest.mark.parametrize("work", [setup_jetson, remove_jetson])
@pytest.mark.parametrize(("euid", "name"), [(1000, "nvidia"), (0, "root"), (0, None)])
def test_a_real_board_takes_root_and_an_ordinary_user(monkeypatch, work, euid, name):
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    monkeypatch.delenv("SUDO_USER", raising=False)
    if name:
        monkeypatch.setenv("SUDO_USER", name)
    with pytest.raises(BoardError, match="make setup-jetson"):
        work("/")


# -- remove ----------------------------------------------------------------------------------------
@needs_visudo
def test_remove_takes_everything_away(root, link):
    setup_jetson(root)
    Path(root, FOLDER).mkdir(parents=True)
    assert len(remove_jetson(root)) == 4
    assert not Path(root, INSTALLED).exists()
    assert not Path(root, SUDOERS).exists()
    assert not Path(root, FOLDER).exists()
    assert not os.path.lexists(link)
    assert remove_jetson(root) == []


@pytest.mark.parametrize("status", [0, 3])
def test_remove_puts_the_boards_settings_back_first(root, status):
    helper, state = Path(root, INSTALLED), Path(root, FOLDER, STATE)
    for path in (helper, state):
        path.parent.mkdir(parents=True)
    state.write_text("{}")
    called = Path(root, "called")
    helper.write_text(
        f"import sys; open({str(called)!r}, 'w').write(sys.argv[1]); sys.exit({status})"
    )
    if status == 0:
        assert str(helper) in remove_jetson(root)
        assert not helper.exists()
    else:
        with pytest.raises(BoardError, match="cannot be put back"):
            remove_jetson(root)
        assert helper.exists()
        assert state.exists()
    assert called.read_text() == "restore"
