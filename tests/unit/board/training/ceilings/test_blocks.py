"""Timing of micro-kernels by blocks, with a clock and a sensor that a test plants."""

import pytest

from epochwatt.board.telemetry.client import NO_POWER, Power
from epochwatt.board.training.ceilings.blocks import LIMITS, time_blocks

LAUNCH_S = 1e-5


class Device:
    """A clock, and a device that works off what is started, one after the other."""

    def __init__(self, work_s, has_queue=False, reads_every_s=0.0):
        self.now_s = self.done_s = self._read_s = 0.0
        self._work_s, self._has_queue, self._every_s = work_s, has_queue, reads_every_s
        self.n_calls = 0

    def clock(self):
        return self.now_s

    def call(self):
        self.n_calls += 1
        self.now_s += LAUNCH_S
        self.done_s = max(self.done_s, self.now_s) + self._work_s
        if not self._has_queue:
            self.wait()

    def wait(self):
        self.now_s = max(self.now_s, self.done_s)

    def power(self):
        if not self._every_s:
            return NO_POWER
        n = int((self.now_s - self._read_s) / self._every_s)
        t_s = [self._read_s + (k + 1) * self._every_s for k in range(n)]
        self._read_s += n * self._every_s
        return Power("module", self._every_s, t_s, [5.0] * n)

    def time(self, most_calls=10**6, **limits):
        limits = LIMITS._replace(**limits)
        return time_blocks(self.call, self.wait, most_calls, self.power, limits, self.clock)


@pytest.mark.parametrize("work_s", [1e-6, 3e-5, 0.002, 0.05])
def test_planted_times_come_back(work_s):
    blocks = Device(work_s).time()
    assert [b / blocks.n_calls for b in blocks.blocks_s] == pytest.approx(
        [work_s + LAUNCH_S] * len(blocks.blocks_s)
    )
    assert len(blocks.blocks_s) >= LIMITS.blocks
    assert min(blocks.blocks_s) >= LIMITS.block_s * 0.999
    assert blocks.end_s - blocks.start_s >= LIMITS.least_s


def test_launches_are_timed_without_the_work_that_they_start():
    device = Device(5e-5, has_queue=True)
    blocks = device.time(most_calls=100)
    assert blocks.n_calls == 100
    assert [b / 100 for b in blocks.blocks_s] == pytest.approx([LAUNCH_S] * len(blocks.blocks_s))


def test_a_sensor_is_followed_and_read_often_enough():
    device = Device(1e-3, reads_every_s=0.1)
    blocks = device.time()
    assert blocks.start_s >= LIMITS.follow_s
    assert blocks.n_power == LIMITS.power_readings
    assert 0.7 < blocks.end_s - blocks.start_s < 1.0


def test_a_slow_sensor_is_not_waited_for_without_end():
    blocks = Device(1e-3, reads_every_s=4.0).time()
    assert blocks.n_power == 2
    length_s = blocks.end_s - blocks.start_s
    assert LIMITS.power_patience_s <= length_s < LIMITS.power_patience_s + 0.1
