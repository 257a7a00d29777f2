"""Count CPU time and disk traffic of a process and its descendants (board side: Python 3.6)."""

import os
from typing import Dict, List, Optional, Tuple

from epochwatt.board.device.board_files import text
from epochwatt.board.telemetry.open_files import Handle, readable
from epochwatt.board.telemetry.source import NAN

# `stat` and `io` of a process (None: another user's is closed to us), kept open: they go stale with
# it, never to another
_Member = Tuple[Handle, Optional[Handle]]


class ProcessTree:
    """The processes below and including one, as they come and go.

    The kernel adds what a reaped child has used to its parent, so the sums over the living never
    lose what the dead have used. The sampler is a child of the trainer: it is left out. `proc` is
    where /proc is, `pid` the process at the root of the tree.
    """

    def __init__(self, proc: str, pid: int) -> None:
        self._proc = proc
        self._pid = pid
        self._left_out = os.getpid()
        self._members: Dict[int, _Member] = {}
        self._parents: Dict[int, int] = {}  # of all processes; used without `children` files
        self._by_children = os.path.exists(f"{proc}/{pid}/task/{pid}/children")
        self._newest = b""
        self._loadavg = readable(os.path.join(proc, "loadavg"))

    def take(self) -> List[Tuple[bytes, bytes]]:
        """Return what `stat` and `io` of each process hold, for `added`."""
        self._add_new()
        taken = []
        for pid, (stat, io) in list(self._members.items()):
            try:
                taken.append((stat.read(), b"" if io is None else io.read()))
            except OSError:  # it has ended
                _close(self._members.pop(pid))
        return taken

    def totals(self) -> Tuple[float, float, float]:
        """Return what `added` does, of a reading now."""
        return added(self.take())

    def close(self) -> None:
        """Close all files."""
        for member in self._members.values():
            _close(member)
        self._members = {}
        if self._loadavg is not None:
            self._loadavg.close()
            self._loadavg = None

    def _add_new(self) -> None:
        """Add new descendants to the members, if any process was made since the last time."""
        if self._loadavg is not None:
            newest = self._loadavg.read().rpartition(b" ")[2]  # the latest process id given out
            if newest and newest == self._newest:
                return
            self._newest = newest
        if not self._by_children:
            self._update_parents()
        pending = [self._pid]
        seen = {self._left_out}
        while pending:
            pid = pending.pop()
            if pid in seen:
                continue
            seen.add(pid)
            if pid not in self._members:
                folder = f"{self._proc}/{pid}"
                try:
                    self._members[pid] = Handle(folder + "/stat"), readable(folder + "/io")
                except OSError:  # it has ended already
                    continue
            pending.extend(self._children(pid))

    def _children(self, pid: int) -> List[int]:
        if not self._by_children:
            return [child for child, parent in self._parents.items() if parent == pid]
        tasks = f"{self._proc}/{pid}/task"
        try:
            threads = os.listdir(tasks)
        except OSError:
            return []
        return [int(c) for t in threads for c in text(f"{tasks}/{t}", "children").split()]

    def _update_parents(self) -> None:
        """Renew the parent of each process on the machine, reading only those not seen yet.

        BOARD: kernels without CONFIG_PROC_CHILDREN.
        """
        present = [int(name) for name in os.listdir(self._proc) if name.isdigit()]
        before = self._parents
        self._parents = {}
        for pid in present:
            parent = before.get(pid)
            if parent is None:
                after_name = text(f"{self._proc}/{pid}", "stat").rpartition(")")[2].split()
                parent = int(after_name[1]) if after_name else 0
            self._parents[pid] = parent


def _close(member: _Member) -> None:
    for handle in member:
        if handle is not None:
            handle.close()


def added(taken: List[Tuple[bytes, bytes]]) -> Tuple[float, float, float]:
    """Add up CPU ticks, bytes read and bytes written of processes; NaN: none could be read.

    `taken`: what `stat` and `io` of each held
    """
    used = []
    for stat, io in taken:
        try:
            used.append(_used(stat, io))
        except (ValueError, IndexError):  # it was about to end
            continue
    if not used:
        return NAN, NAN, NAN
    ticks, read_bytes, written_bytes = map(sum, zip(*used))
    return ticks, read_bytes, written_bytes


def _used(stat: bytes, io: bytes) -> Tuple[float, float, float]:
    """Return CPU ticks (reaped children included), bytes read and bytes written of a process."""
    after_name = stat.rpartition(b")")[2].split()
    user, system, reaped_user, reaped_system = map(int, after_name[11:15])
    ticks = float(user + system + reaped_user + reaped_system)
    if not io:
        return ticks, NAN, NAN
    cells = io.split()
    return ticks, float(cells[9]), float(cells[11])
