"""Read CPU, memory, disk and the trainer's share of them (board side: Python 3.6 grammar).

Rates are means since the row before, so a mean over an epoch weights each row with the time since
the row before it. The first row of a window has none: its rates are NaN.
"""

import os
import time
from typing import Callable, Dict, List, Optional, Tuple

from epochwatt.board.device import board_files, storage
from epochwatt.board.device.board_files import text
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.open_files import Handle, contents, number, readable
from epochwatt.board.telemetry.process_tree import ProcessTree, added
from epochwatt.board.telemetry.source import NAN, Source

MAX_CLOCKS = 16  # each costs a read a second; a board has at most four
_SECTORS_PER_MIB = 2048.0  # the kernel counts sectors of 512 bytes whatever the disk's are
_MIB = 2.0**20

_RATES = (
    "cpu_util_pct",  # of all CPUs together: 100 = all busy
    "read_iops",
    "read_mib_s",
    "write_mib_s",
    "tree_cpu_pct",  # of all CPUs together, as above
    "tree_read_mib_s",  # from and to storage: what the page cache gave is not in it
    "tree_write_mib_s",
)

# moment, /proc/stat, `stat` and `io` of each process of the tree; the other files
Taken = Tuple[float, bytes, List[Tuple[bytes, bytes]], List[bytes]]


class HostSource(Source):
    """CPU, memory and disk use of the machine and the trainer, clocks and temperature of the CPU.

    One row a second, from the kernel's files, which stay open.

    `cpu{n}_mhz` is the clock of core n and of all cores of its cluster.

    `root`: `/`, or the folder of a made-up system
    `pid`: the trainer; its children are found each second
    `data_path`: any path on the file system that holds the data set
    `clock`: seconds of the monotonic clock
    `board_root`: where the CPU's clocks and temperature are; None: in `root`. A fake board has some
    of its own, while the training's processes and disks are the real machine's
    """

    name = "host"
    period_s = 1.0

    def __init__(
        self,
        root: str,
        pid: int,
        data_path: str,
        clock: Callable[[], float] = time.monotonic,
        board_root: Optional[str] = None,
    ) -> None:
        self._clock = clock
        proc = os.path.join(root, "proc")
        self._stat = Handle(os.path.join(proc, "stat"), 512)
        self._device = block_device(root, data_path)
        disk = os.path.join(root, "sys/dev/block", self._device or "none", "stat")
        self._tree = ProcessTree(proc, pid)
        board_root = root if board_root is None else board_root
        clocks = cpu_clocks(board_root)
        self._zone, temperature = cpu_thermal_zone(board_root)
        self._files = [readable(disk), readable(os.path.join(proc, "meminfo"))]
        self._files += [handle for _, handle in clocks]
        self._files += [] if temperature is None else [temperature]
        self._n_cpus = os.cpu_count() or 1
        self._ticks_per_s = float(os.sysconf("SC_CLK_TCK"))
        self._before: Optional[Tuple[float, List[float]]] = None
        self.columns = (
            _RATES
            + ("ram_used_mib", "swap_used_mib")
            + tuple(f"cpu{n}_mhz" for n, _ in clocks)
            + (("cpu_temp_c",) if temperature else ())
        )

    def start(self) -> None:
        """Forget the counters: the time between two windows belongs to neither."""
        self._before = None

    def take(self) -> Taken:
        """Return what each file holds; raises OSError."""
        return self._clock(), self._stat.read(), self._tree.take(), contents(self._files)

    def values(self, taken: Taken) -> List[float]:
        """Return a value of each of `columns`: rates since the row before, all else as it is now.

        The counters are kept for the next row, so readings must come in order.
        """
        # the other files in the order of `_files`
        t_s, stat, processes, (disk, meminfo, *clocks_and_temperature) = taken
        counters = _counters(stat, disk) + list(added(processes))
        values = self._rates(t_s, counters)
        self._before = (t_s, counters)
        for total, free in ((b"MemTotal:", b"MemAvailable:"), (b"SwapTotal:", b"SwapFree:")):
            values.append((_kib(meminfo, total) - _kib(meminfo, free)) / 1024.0)  # to MiB
        # from kHz and thousandths of a degree to MHz and degrees
        values.extend(number(content) / 1e3 for content in clocks_and_temperature)
        return values

    def _rates(self, t_s: float, counters: List[float]) -> List[float]:
        """Return the values of `_RATES` since the row before; NaN where a counter has fallen."""
        if self._before is None or t_s <= self._before[0]:
            return [NAN] * len(_RATES)
        before_s, counters_before = self._before
        step_s = t_s - before_s
        busy, total, reads, read, written, tree, tree_read, tree_written = [
            now - before if now >= before else NAN for now, before in zip(counters, counters_before)
        ]
        ticks_of_all_cpus = self._ticks_per_s * self._n_cpus * step_s
        return [
            100.0 * min(1.0, busy / total) if total > 0 else NAN,
            reads / step_s,
            read / _SECTORS_PER_MIB / step_s,
            written / _SECTORS_PER_MIB / step_s,
            100.0 * tree / ticks_of_all_cpus,
            tree_read / _MIB / step_s,
            tree_written / _MIB / step_s,
        ]

    def settings(self) -> Document:
        """Return what the rates are of and where they come from."""
        return {
            "rates": "means since the row before; NaN in the first row of a window",
            "cpu_tick_s": 1.0 / self._ticks_per_s,
            "n_cpus": self._n_cpus,
            "block_device": self._device if self._files[0] is not None else None,
            "cpu_thermal_zone": self._zone,
        }

    def close(self) -> None:
        """Close all handles."""
        self._tree.close()
        for handle in [self._stat] + self._files:
            if handle is not None:
                handle.close()


def _counters(stat: bytes, disk: bytes) -> List[float]:
    """Return the growing counters: busy CPU ticks, all CPU ticks, reads, sectors read, written."""
    cpu = [int(n) for n in stat.partition(b"\n")[0].split()[1:9]]
    total = sum(cpu)  # user nice system idle iowait irq softirq steal; guests are in user
    cells = disk.split()
    disk_counters = [NAN] * 3  # the disk was taken away
    if len(cells) > 6:
        disk_counters = [float(cells[n]) for n in (0, 2, 6)]  # reads, sectors read, written
    return [float(total - cpu[3] - cpu[4]), float(total)] + disk_counters


def _kib(meminfo: bytes, key: bytes) -> float:
    start = meminfo.find(key)
    if start < 0:
        return NAN
    return float(meminfo[start + len(key) : start + len(key) + 40].split(None, 1)[0])


def block_device(root: str, path: str) -> Optional[str]:
    """Return `major:minor` of the block device that holds a path; None: there is none.

    A file system that spans devices (btrfs) has its own number: the device it was mounted from
    is taken. tmpfs, overlay and network file systems have none.
    """
    try:
        number = os.stat(path).st_dev
        name = f"{os.major(number)}:{os.minor(number)}"
        if os.path.exists(os.path.join(root, "sys/dev/block", name, "stat")):
            return name
        for mount in storage.mounts(root):
            if mount.number == name and mount.source.startswith("/dev/"):
                number = os.stat(os.path.join(root, mount.source[1:])).st_rdev
                return f"{os.major(number)}:{os.minor(number)}"
    except OSError:
        pass
    return None


def cpu_clocks(root: str) -> List[Tuple[int, Handle]]:
    """Return the open file of each CPU clock, ascending by the number of a core that has it.

    The cores of a cluster have one clock and one folder for it. The number is that of the first of
    them that is on: readers leave out the clock of a core that is off.
    """
    clocks: Dict[str, Tuple[int, Handle]] = {}
    online = board_files.online(root)
    for cpu in sorted(board_files.cpus(root), key=lambda cpu: (cpu not in online, cpu)):
        folder = os.path.realpath(os.path.join(board_files.cpu_folder(root, cpu), "cpufreq"))
        if folder in clocks or len(clocks) == MAX_CLOCKS:
            continue
        handle = readable(os.path.join(folder, "scaling_cur_freq"), 64)
        if handle is not None:
            clocks[folder] = (cpu, handle)
    return sorted(clocks.values(), key=lambda clock: clock[0])


def cpu_thermal_zone(root: str) -> Tuple[Optional[str], Optional[Handle]]:
    """Return type and open file of the first thermal zone that is the CPU's, or twice None."""
    zones = os.path.join(root, "sys/class/thermal")
    names = sorted(os.listdir(zones)) if os.path.isdir(zones) else []
    for name in names:
        kind = text(os.path.join(zones, name), "type")
        if "cpu" in kind.lower() or kind == "x86_pkg_temp":
            handle = readable(os.path.join(zones, name, "temp"), 64)
            if handle is not None:
                return kind, handle
    return None, None
