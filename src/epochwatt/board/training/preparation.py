"""Prepare the machine for a run, and restore it however the job ends (board side: Python 3.6)."""

import logging
import os
import signal
from contextlib import contextmanager
from types import FrameType
from typing import Any, Dict, Iterator, Optional

from epochwatt.board.device.machine import Machine
from epochwatt.board.telemetry.settle import settle
from epochwatt.columns import Factors

log = logging.getLogger(__name__)

BUSY_S = 0.5  # how long the load of other programs is looked at
BUSY_LOOKS = 8  # at most: the workflow itself is busy for a moment after it has started a job
CALM_PCT = 5.0  # below it nobody looks again
ENDING = (signal.SIGTERM, signal.SIGHUP)  # a lost ssh connection sends the second


@contextmanager
def prepared(machine: Machine, factors: Factors, first_epoch: int) -> Iterator[Dict[str, Any]]:
    """Set the run's power mode; put back what was there before, also when the job is ended.

    Call it under the machine's lock: what a crashed job left behind is put back first.

    Raises BoardError: this is not the run's board, unit or medium, or a setting was not met;
    RebootNeeded: the board has to be restarted first.

    Parameters
    ----------
    factors : the run's factors
    first_epoch : before epoch 0 the board may settle

    Yields
    ------
    dict : what the record says of the board: `power_mode` as it was set and read back, `busy_pct`
        before the start, `settled`; empty on a host, where a run sets nothing
    """
    with put_back(machine):
        yield _conditions(machine, factors, first_epoch)


@contextmanager
def put_back(machine: Machine) -> Iterator[None]:
    """Put back the settings from before the block however it ends, a killed job's first of all.

    Raises as `prepared`.
    """
    machine.check()
    if machine.left_over():
        log.warning("a job before this one was killed: its settings are put back first")
        machine.restore()
    with _ended_by_exception():
        try:
            yield
        finally:
            machine.restore()


def _conditions(machine: Machine, factors: Factors, first_epoch: int) -> Dict[str, Any]:
    settings = factors.get("power_mode_settings", {})
    if machine.backend == "host":
        machine.apply(settings, factors["dvfs"])  # refuses whatever there is to set
        return {}
    busy_pct = others_pct(machine)
    mode = machine.apply(settings, factors["dvfs"])
    limits = machine.settings["settle"]
    settled: Optional[Dict[str, Any]] = None
    if limits is not None and first_epoch == 0:
        settled = settle(machine.root, limits)
    return {"power_mode": mode, "busy_pct": busy_pct, "settled": settled}


def others_pct(machine: Machine) -> Optional[float]:
    """Return the load of other programs in % of all CPUs: the least of a few short looks."""
    least: Optional[float] = None
    for _ in range(BUSY_LOOKS):
        busy_pct = machine.busy_pct(BUSY_S)
        if busy_pct is None:
            return None
        least = busy_pct if least is None else min(least, busy_pct)
        if least < CALM_PCT:
            break
    return least


@contextmanager
def _ended_by_exception() -> Iterator[None]:
    """Turn signals that end a process into SystemExit, so that `finally` is reached."""
    owner = os.getpid()

    def end(number: int, frame: Optional[FrameType]) -> None:
        if os.getpid() != owner:  # a loader worker, forked with this handler
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        log.warning("ended by %s: the machine is put back", signal.Signals(number).name)
        raise SystemExit(128 + number)

    heard = [n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN]  # else: nohup
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
