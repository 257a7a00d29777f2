"""Set priority, wake-ups and end of the sampler process (board side: Python 3.6 grammar).

All of it may be refused: the sampler then wakes later or ends later, and its statistics say so.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
from typing import Any

NICENESS = -5
SLICE_NS = 100000  # the shortest time slice there is; a row takes less
RUNAWAY_US = 300000  # CPU time in one go that no row takes
_PR_SET_PDEATHSIG, _PR_SET_TIMERSLACK = 1, 29  # linux/prctl.h
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # asm/unistd.h
_SCHED_ATTR = "=IIQiIQQQ"  # size, policy, flags, nice, priority, runtime, deadline, period


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends.

    SIGKILL also ends a reading that hangs. Rows not yet written are of an epoch that is lost with
    the trainer anyway.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def wake_exactly() -> None:
    """Schedule this process in real time, else niced with short slices, to wake up on time.

    A row costs the same whenever it is taken, so this takes nothing from the training. Measured
    with two busy processes on two cores, p99: 18 ms as it is; 4 ms in a separate session, which
    the scheduler weighs against the training's as a whole (the client sees to it); 3 to 4 ms with
    short slices and niceness as well; 0.1 ms in real time, which only a privileged process gets.
    """

    def leave_real_time(number: int, frame: Any) -> None:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        _shorten_slice()

    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # ns; the default of 50 us saves power
    try:
        # should a reading never block, it must not hold a CPU against everybody else
        resource.setrlimit(resource.RLIMIT_RTTIME, (RUNAWAY_US, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXCPU, leave_real_time)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except (OSError, ValueError):
        _shorten_slice()


def scheduling() -> str:
    """Return how this process is scheduled, for the record."""
    if os.sched_getscheduler(0) == os.SCHED_FIFO:
        return "real time"
    return f"nice {os.nice(0)}"


def _shorten_slice() -> None:
    """Lower this process's niceness, if allowed, and its time slice (sched_setattr).

    A process that wants a short slice is let in before one that is in the middle of a long one
    (Linux 6.12 and later; older kernels take no notice).
    """
    try:
        nice = os.nice(NICENESS)
    except OSError:
        nice = os.nice(0)
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None:
        attributes = struct.pack(
            _SCHED_ATTR, struct.calcsize(_SCHED_ATTR), 0, 0, nice, 0, SLICE_NS, 0, 0
        )
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)
