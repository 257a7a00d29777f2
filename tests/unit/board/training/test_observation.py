"""Around an epoch: the page cache is emptied when the policy says so, and looked at twice."""

import os
from typing import ClassVar

import pytest

from epochwatt.board.device import page_cache
from epochwatt.board.training import observation

STATISTICS = {
    "lost": False,
    "sources": {
        "host": {"scope": None, "step_mean_s": 1.0},
        "ina": {"scope": "module", "step_mean_s": 0.1},
    },
}


class FakeSampler:
    refused: ClassVar = {"nvml": "a part of a card"}

    def __init__(self):
        self.calls = []

    def begin(self, folder):
        self.calls.append(("begin", folder))

    def end(self, folder):
        self.calls.append("end")
        return STATISTICS

    def stop(self):
        self.calls.append("stop")


@pytest.fixture
def sampler(monkeypatch):
    sampler = FakeSampler()
    monkeypatch.setattr(observation.Sampler, "start", lambda *_, **__: sampler)
    return sampler


@pytest.fixture
def paths(tmp_path, monkeypatch):
    drop = page_cache.drop
    nowhere = str(tmp_path / "no" / "switch")
    monkeypatch.setattr(page_cache, "drop", lambda paths: drop(paths, drop_caches=nowhere))
    for name in "ab":
        (tmp_path / name).write_bytes(os.urandom(1 << 16))
    paths = [str(tmp_path / name) for name in "ab"]
    page_cache.drop(paths)
    if page_cache.resident_pct(paths) != 0.0:
        pytest.skip("this file system keeps its pages whatever is advised (tmpfs)")
    return paths


def epoch(watch, number, paths):
    """Read every file inside the epoch, as a training does; return what was seen of the cache."""
    watch.drop_cache(number)
    watch.begin("folder")
    for path in paths:
        with open(path, "rb") as handle:
            handle.read()
    return watch.end()["cache"]


@pytest.mark.parametrize(("policy", "second"), [("kept", 100.0), ("dropped", 0.0)])
def test_the_second_epoch_finds_what_the_policy_leaves(sampler, machine, paths, policy, second):
    watch = observation.EpochObserver(paths, False, {"cache_policy": policy, "seed": 0}, machine)
    caches = [epoch(watch, number, paths) for number in (0, 1)]
    assert [cache["before_pct"] for cache in caches] == [0.0, second]
    assert [cache["after_pct"] for cache in caches] == [100.0, 100.0]
    assert caches[0]["action"] == page_cache.ADVISED
    assert caches[1]["action"] == (None if policy == "kept" else page_cache.ADVISED)
