"""The command of a container, what is wrong with it in words, and real ones where podman is."""

import os
import resource
import subprocess
from itertools import pairwise

import pytest

from epochwatt.board.device import container, host
from epochwatt.errors import TrainingError

IMAGE = {"engine": "docker", "image": "epochwatt:r35", "rootfs": "", "runtime": "nvidia"}
ROOTFS = {"engine": "podman", "image": "", "rootfs": "/", "runtime": "runc"}


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Return a function that puts a fake docker or podman on the PATH: a shell script."""

    def make(name, script):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return make


def words_of(settings, **folders):
    given = {"readable": [], "writable": [], **folders}
    return container.command(settings, ["-m", "job", "{}"], "epochwatt-7", **given)


def following(words, option):
    return [after for word, after in pairwise(words) if word == option]


@pytest.mark.parametrize("settings", [IMAGE, ROOTFS], ids=["docker", "podman"])
def test_what_would_tell_inside_from_outside_is_the_same(settings):
    words = words_of(settings)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert f"--ulimit=nofile={soft}:{hard}" in words
    user = f"{os.geteuid()}:{os.getegid()}"
    same = {
        "--shm-size": f"{host.shm_mib()}m",
        "--network": "none",
        "--uts": "host",
        "--user": user,
    }
    assert {option: following(words, option) for option in same} == {
        k: [v] for k, v in same.items()
    }


def test_only_records_and_temporary_files_can_be_written(tmp_path, machine_tmp):
    data, records = tmp_path / "data", tmp_path / "measured"
    data.mkdir()
    mounts = following(
        words_of(IMAGE, readable=[str(data), str(tmp_path / "gone")], writable=[str(records)]),
        "--volume",
    )
    assert f"{data}:{data}:ro" in mounts
    assert not any("gone" in mount for mount in mounts)  # docker would make it
    changing = [mount for mount in mounts if not mount.endswith(":ro")]
    assert sorted(changing) == sorted([f"{p}:{p}" for p in (str(records), str(machine_tmp))])


@pytest.mark.parametrize(
    ("script", "problem", "do"),
    [
        ("echo No such image >&2; exit 1", "docker has no image epochwatt:r35", "make container"),
        ("echo permission denied, docker.sock >&2; exit 1", "may not use docker", "usermod"),
        ("echo Cannot connect to the daemon >&2; exit 1", "does not answer", "systemctl start"),
    ],
)
def test_what_is_wrong_and_what_to_type(script, problem, do, engine):
    engine("docker", f'[ "$1" = --version ] || {{ {script}; }}')
    with pytest.raises(TrainingError, match=problem) as caught:
        container.describe(IMAGE)
    assert do in caught.value.do


def test_an_interrupted_job_kills_its_container(engine, tmp_path, monkeypatch):
    engine("docker", f'[ "$1" = kill ] && echo $2 > {tmp_path}/killed || cat >/dev/null')
    real = subprocess.Popen.wait

    def interrupted(process, *arguments, **options):
        monkeypatch.setattr(subprocess.Popen, "wait", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        container.run(IMAGE, ["docker", "run"], "epochwatt-7")
    assert (tmp_path / "killed").read_text("utf-8") == "epochwatt-7\n"
