import os

import pytest

from tests.fakeboard import live


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def ticks(monkeypatch):
    """CPU ticks of a process tree, as the test sets them."""
    used = [0.0]

    class Tree:
        def __init__(self, proc, pid):
            assert (proc, pid) == ("/proc", 42)

        def totals(self):
            return used[0], 0.0, 0.0

    monkeypatch.setattr(live, "ProcessTree", Tree)
    return used


def test_load_is_the_share_of_all_cpus_and_settles(ticks):
    clock = Clock()
    load = live.Load(42, clock)
    per_s = os.sysconf("SC_CLK_TCK") * os.cpu_count()
    seen = []
    for _ in range(60):
        clock.now_s += 0.05
        ticks[0] += 0.05 * per_s / 2
        seen.append(load.read())
    assert seen == sorted(seen)
    assert seen[0] < 0.2
    assert seen[-1] == pytest.approx(0.5, abs=0.01)
