"""The file for a bug report: what is in it, what is not."""

import json
import platform
import tarfile

import pytest
from fake_board import make_board
from fake_device import DEVICE, LIBRARIES

from epochwatt.doctor import bundle, examine
from epochwatt.doctor.bundle import disguised, disguised_value, make_bundle, names_of
from epochwatt.errors import EpochwattError

TOP = "epochwatt-bundle/"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(examine, "libraries", lambda subject: LIBRARIES)
    monkeypatch.setattr("epochwatt.board.device.machine.Machine.busy_pct", lambda self, over_s: 1.0)
    monkeypatch.setattr(examine.sensors, "other_sources", lambda *_: iter(()))
    monkeypatch.setattr(bundle, "TEGRASTATS_LINES", 1)
    monkeypatch.setattr(platform, "node", lambda: "garden-shed")
    monkeypatch.setattr(bundle.getpass, "getuser", lambda: "alice")


@pytest.fixture
def board(checkout, tmp_path):
    """A fake AGX Orin and the device that speaks of it."""
    fake = make_board(tmp_path / "board", "agx_orin-jp5")
    text = DEVICE.format(board="agx_orin", root=fake.root, modes="asis: {}")
    checkout.write("devices/fake.yaml", text)
    return fake


def members(path):
    with tarfile.open(path) as archive:
        assert all(member.isreg() for member in archive)
        return {m.name.removeprefix(TOP): archive.extractfile(m).read() for m in archive}


def test_it_holds_readings_recording_and_findings_and_no_name(board, checkout, tmp_path):
    make_bundle(tmp_path / "made.tar.gz", "fake", seconds=0.3, checkout=checkout.path)
    made = members(tmp_path / "made.tar.gz")
    assert made["files/proc/device-tree/model"].startswith(b"NVIDIA Jetson AGX Orin")
    assert b"rail_vdd_gpu_soc_w" in made["recording/samples-sysfs.csv"].split(b"\n")[0]
    assert "sysfs" in json.loads(made["recording/telemetry.json"])["sources"]
    assert b"VDD_GPU_SOC " in made["tegrastats.txt"]
    assert made["doctor.txt"].splitlines()[0].endswith(b"device fake, a fake board")
    topics = {finding["topic"] for finding in json.loads(made["doctor.json"])}
    assert {"board", "power", "sampler", "storage"} <= topics
    everything = b"\n".join(made.values())
    assert board.kind.serial.encode() not in everything
    assert b"garden-shed" not in everything
    assert made["files/proc/device-tree/serial-number"] == b"0" * len(board.kind.serial) + b"\0"
    assert b"0 or host-name" in b" ".join(made["doctor.txt"].split())


MOUNTS = r"""
22 1 179:1 / / rw,relatime shared:1 - ext4 /dev/mmcblk0p1 rw,data=ordered
31 22 8:1 / /media/alice/GRANDMA\040PICTURES ro,nosuid shared:2 - ext4 /dev/sda1 rw
32 22 0:44 / /mnt/lab rw - nfs4 files.acme.example:/export/alice rw,clientaddr=10.1.2.3
33 22 0:45 / /mnt/win rw - cifs //winbox/secret rw,username=alice,addr=10.1.2.4
34 22 253:0 /private /thesis rw - ext4 /dev/mapper/acme--vg-home rw
35 22 0:46 / /tmp/x rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/ABCDEF
36 22 0:5 / /proc rw - proc proc rw
"""


def test_labels_servers_and_the_start_of_the_machine_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "garden-shed")
    boot_id = "0f1e2d3c-1111-2222-3333-444455556666"
    for name, value in {"self/mountinfo": MOUNTS, "sys/kernel/random/boot_id": boot_id}.items():
        path = tmp_path / "proc" / name
        path.parent.mkdir(parents=True)
        path.write_text(value)
    names = names_of(str(tmp_path))
    text_sent = disguised_value("proc/self/mountinfo", MOUNTS.encode(), names).decode()
    text_sent += disguised_value("x/boot_id", boot_id.encode(), names).decode()
    text_sent += disguised("the data lie in /media/alice/GRANDMA PICTURES/x, /thesis/x", names)
    text_sent += disguised(f"files.acme.example is slow, says winbox; since {boot_id}", names)
    secrets = ("GRANDMA", "lab", "acme", "winbox", "secret", "alice", "10.1", "private", "thesis")
    assert [word for word in (*secrets, "ABCDEF", boot_id) if word in text_sent] == []
    assert "22 1 179:1 / / rw - ext4 /dev/mmcblk0p1 rw" in text_sent
    assert " 8:1 / /mount-1 ro - ext4 /dev/sda1 rw" in text_sent
    assert "36 22 0:5 / /proc rw - proc proc rw" in text_sent


def test_a_host_has_one_too_and_no_file_is_overwritten(checkout, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = make_bundle(seconds=0.1, checkout=checkout.path)
    (path,) = tmp_path.glob("epochwatt-bundle-host-*.tar.gz")
    assert lines[0].startswith(path.name)
    content = members(path)
    assert json.loads(content["bundle.json"])["nvpmodel"] is None
    assert "tegrastats.txt" not in content
    assert b"MemTotal" in content["files/proc/meminfo"]
    before = path.read_bytes()
    with pytest.raises(EpochwattError, match="exists already"):
        make_bundle(path, seconds=0.1, checkout=checkout.path)
    assert path.read_bytes() == before
