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


def test_load_never_leaves_its_bounds(ticks):
    clock = Clock()
    load = live.Load(42, clock)
    clock.now_s, ticks[0] = 1.0, 1e9
    assert load.read() == 1.0
    assert load.read() == 1.0  # no time has passed
    clock.now_s, ticks[0] = 2.0, float("nan")  # the tree has ended
    assert load.read() == 1.0


def test_without_a_tree_the_machine_counts():
    load = live.Load(None)
    assert 0.0 <= load.read() <= 1.0
