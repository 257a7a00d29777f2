"""What a path lies on: by mount point and by block device."""

import pytest

from epochwatt.board.device import storage
from epochwatt.errors import BoardError

# As /proc/self/mountinfo of an AGX Xavier shows them: eMMC, NVMe, microSD, a USB disk.
MOUNTS = r"""
22 1 179:1 / / rw,relatime - ext4 /dev/mmcblk0p1 rw,data=ordered
23 22 0:4 / /proc rw,nosuid - proc proc rw
24 22 0:5 / /dev/shm rw,nosuid - tmpfs tmpfs rw
30 22 259:1 / /media/ssd rw,relatime - ext4 /dev/nvme0n1p1 rw
31 22 179:33 / /media/sd\040card rw,relatime - ext4 /dev/mmcblk1p1 rw
32 22 8:1 / /media/usb rw,relatime - ext4 /dev/sda1 rw
33 22 8:17 / /media/sata rw,relatime - ext4 /dev/sdb1 rw
34 22 0:50 / /mnt/nfs rw,relatime - nfs4 server:/export rw
35 22 259:2 / /media/old ro,relatime - ext4 /dev/nvme0n1p2 ro
36 22 7:0 / /snap/core ro,nodev - squashfs /dev/loop0 ro
37 22 179:2 / /boot/efi rw,relatime - vfat /dev/mmcblk0p2 rw
38 22 253:0 / /media/zram rw,relatime - ext4 /dev/zram0 rw
39 22 259:1 /deep /home/deep rw,relatime - ext4 /dev/nvme0n1p1 rw
40 22 0:60 / /media/btrfs rw,relatime - btrfs /dev/nvme1n1 rw
41 22 252:0 / /media/crypt rw,relatime - ext4 /dev/mapper/crypt rw
42 22 0:61 / /media/odd rw,relatime - fuse.something something rw
"""
DISKS = {  # name -> (number, where it hangs, turns, files)
    "mmcblk0": ("179:0", "devices/3460000.sdhci/mmc_host/mmc0", "0", {"device/type": "MMC"}),
    "mmcblk0/mmcblk0p1": ("179:1", "devices/3460000.sdhci/mmc_host/mmc0", None, {}),
    "mmcblk0/mmcblk0p2": ("179:2", "devices/3460000.sdhci/mmc_host/mmc0", None, {}),
    "mmcblk1": ("179:32", "devices/3400000.sdhci/mmc_host/mmc1", "0", {"device/type": "SD"}),
    "mmcblk1/mmcblk1p1": ("179:33", "devices/3400000.sdhci/mmc_host/mmc1", None, {}),
    "nvme0n1": ("259:0", "devices/14180000.pcie/nvme/nvme0", "0", {}),
    "nvme0n1/nvme0n1p1": ("259:1", "devices/14180000.pcie/nvme/nvme0", None, {}),
    "nvme0n1/nvme0n1p2": ("259:2", "devices/14180000.pcie/nvme/nvme0", None, {}),
    "nvme1n1": ("259:5", "devices/14180000.pcie/nvme/nvme1", "0", {}),
    "sda": ("8:0", "devices/3610000.xhci/usb2/2-3/host0/block", "1", {}),
    "sda/sda1": ("8:1", "devices/3610000.xhci/usb2/2-3/host0/block", None, {}),
    "sdb": ("8:16", "devices/3507000.ahci/ata1/host1/block", "1", {}),
    "sdb/sdb1": ("8:17", "devices/3507000.ahci/ata1/host1/block", None, {}),
    "zram0": ("253:0", "devices/virtual/block", "0", {}),
    "dm-0": ("252:0", "devices/virtual/block", "0", {}),
}


@pytest.fixture
def root(tmp_path):
    """The files of a made-up system that tell its storage."""
    sys = tmp_path / "sys"
    for folder in ("dev/block", "class/block"):
        (sys / folder).mkdir(parents=True)
    for path, (number, where, rotational, files) in DISKS.items():
        folder, name = sys / where / path, path.split("/")[-1]
        folder.mkdir(parents=True)
        if rotational is None:
            files = {"partition": "1"}
        else:
            files = {"queue/rotational": rotational, **files}
        for file, content in files.items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(content + "\n")
        (sys / "dev/block" / number).symlink_to(folder)
        (sys / "class/block" / name).symlink_to(folder)
    (sys / "devices/virtual/block/dm-0/slaves").mkdir()
    (sys / "devices/virtual/block/dm-0/slaves/sdb1").symlink_to(sys / "class/block/sdb1")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTS)
    for mount in ("media/ssd", "media/usb", "media/sata", "media/sd card", "home/deep"):
        (tmp_path / mount).mkdir(parents=True)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("path", "device", "transport", "rotational"),
    [
        ("/home/user/data", "mmcblk0p1", "emmc", False),
        ("/media/ssd", "nvme0n1p1", "nvme", False),
        ("/media/ssd/data/mnist-digits-x1", "nvme0n1p1", "nvme", False),
        ("/media/ssd-of-another", "mmcblk0p1", "emmc", False),
        ("/media/sd card/data", "mmcblk1p1", "sd", False),
        ("/media/usb/data", "sda1", "usb", True),
        ("/media/sata/data", "sdb1", "sata", True),
        ("/dev/shm/data", "", "ram", None),
        ("/media/zram/data", "zram0", "ram", False),
        ("/mnt/nfs/data", "", "network", None),
        ("/media/btrfs/data", "nvme1n1", "nvme", False),
        ("/media/odd/data", "", "unknown", None),
    ],
)
def test_path_lies_on_a_medium(root, path, device, transport, rotational):
    found = storage.medium_of(path, root)
    assert (found.device, found.transport, found.rotational) == (device, transport, rotational)
    assert transport in storage.TRANSPORTS


def test_medium_that_is_not_mounted_is_told_with_where_the_data_lies(root):
    with pytest.raises(BoardError) as raised:
        storage.check_medium("/media/hdd/data", "/media/hdd", "", root)
    assert raised.value.problem.startswith("/media/hdd/data is on another medium")
    assert raised.value.found == "mmcblk0p1 (emmc, mounted at /)"
    assert raised.value.allowed == "`mount` in config/devices/: /media/hdd"
