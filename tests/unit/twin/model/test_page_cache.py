"""The page cache: what it holds, and what it saves under least recently used."""

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.twin.model.page_cache import capacity_mib, hit_share


def simulated_hit_share(n_files, n_cached, n_epochs, seed=1):
    """Return the share of hits of a least recently used cache, file by file."""
    random, cache, hits = np.random.default_rng(seed), OrderedDict(), 0
    for k in range(n_epochs + 1):
        for file in random.permutation(n_files).tolist():
            if file in cache:
                cache.move_to_end(file)
                hits += k > 0  # the first epoch fills it
            elif n_cached:
                cache[file] = None
                if len(cache) > n_cached:
                    cache.popitem(last=False)
    return hits / (n_files * n_epochs)


@pytest.mark.parametrize("cached", [0.05, 0.2, 0.5, 0.8, 0.95])
def test_a_cache_played_file_by_file_hits_as_often(cached):
    found = simulated_hit_share(4000, round(4000 * cached), 8)
    assert hit_share(cached) == pytest.approx(found, abs=0.01)


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_cache_never_hits_less_and_never_more_than_it_holds(one, other):
    low, high = sorted((one, other))
    assert hit_share(low) <= hit_share(high) + 1e-12
    assert hit_share(low) + 1e-12 >= 0.0
    assert hit_share(low) <= low + 1e-12


def test_what_is_left_of_the_memory_is_never_below_zero(twin):
    p, nano = twin.parameters, twin.boards["nano"]
    assert capacity_mib(nano, 8, 1e6, p) == 0.0
    roomy = replace(nano, ram_mib=1e6)
    assert capacity_mib(roomy, 0, 100.0, p) - capacity_mib(roomy, 2, 300.0, p) == pytest.approx(
        2 * p["worker_mib"] + 200.0
    )
