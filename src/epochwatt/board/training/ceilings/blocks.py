"""Time calls block by block (board side: Python 3.6 grammar; needs no torch)."""

from time import perf_counter
from typing import Any, Callable, List, NamedTuple

from epochwatt.board.telemetry.client import Power


class Limits(NamedTuple):
    """Lengths of timing a kernel."""

    blocks: int = 10  # at least
    block_s: float = 0.004  # each, at least: short, so that some are not interrupted by others
    least_s: float = 0.25  # all of them together
    warm_up_s: float = 0.05  # before the first
    follow_s: float = 1.0  # instead, where a power sensor has to follow the load
    power_readings: int = 8  # during the blocks, at least, where there is a sensor
    power_patience_s: float = 10.0  # for these


LIMITS = Limits()


class Blocks(NamedTuple):
    """Times of the blocks of a kernel."""

    n_calls: int  # in each block
    start_s: float  # of the first, on the monotonic clock
    end_s: float  # of the last
    blocks_s: List[float]  # what each took
    n_power: int  # readings of power from the first begin to the last end


def time_blocks(
    call: Callable[[], Any],
    wait: Callable[[], Any],
    most_calls: int,
    power: Callable[[], Power],
    limits: Limits = LIMITS,
    clock: Callable[[], float] = perf_counter,
) -> Blocks:
    """Warm a kernel up, then time blocks of calls until times and power readings suffice.

    A block that would need more than `most_calls` calls is shorter, and ends when the calls are
    made, not when the device has finished: launches are timed so.

    `wait`: returns once the device has finished all calls; `power`: gives the readings since it was
    last called; `clock`: monotonic, s
    """
    has_sensor = power().scope is not None
    n_calls = min(_warm_up(call, wait, has_sensor, limits, clock), most_calls)
    is_queue = n_calls == most_calls
    power()  # drops the readings before the blocks
    blocks_s: List[float] = []
    n_power = 0
    start_s = end_s = clock()
    while not _is_enough(len(blocks_s), end_s - start_s, n_power, has_sensor, limits):
        begin_s = clock()
        for _ in range(n_calls):
            call()
        if not is_queue:
            wait()
        end_s = clock()
        blocks_s.append(end_s - begin_s)
        if is_queue:
            wait()
        if has_sensor:
            n_power += sum(t_s >= start_s for t_s in power().t_s)
    return Blocks(n_calls, start_s, end_s, blocks_s, n_power)


def _warm_up(
    call: Callable[[], Any],
    wait: Callable[[], Any],
    has_sensor: bool,
    limits: Limits,
    clock: Callable[[], float],
) -> int:
    """Call a kernel for `warm_up_s`, with a sensor `follow_s`; return the calls of a block."""
    call()  # may compile, or allocate
    wait()
    start_s, n_calls = clock(), 1
    least_s = limits.follow_s if has_sensor else limits.warm_up_s
    while True:
        begin_s = clock()
        for _ in range(n_calls):
            call()
        wait()
        now_s = clock()
        if now_s - begin_s < limits.block_s:
            n_calls *= 2
        elif now_s - start_s >= least_s:
            return n_calls


def _is_enough(
    n_blocks: int, timed_s: float, n_power: int, has_sensor: bool, limits: Limits
) -> bool:
    """Return whether blocks, their time and power readings reach the limits, or patience ended."""
    if n_blocks < limits.blocks or timed_s < limits.least_s:
        return False
    if not has_sensor or n_power >= limits.power_readings:
        return True
    return timed_s >= limits.power_patience_s
