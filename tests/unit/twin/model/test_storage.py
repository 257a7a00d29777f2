"""Storage media: a file, and readers that wait for each other."""

import heapq

import numpy as np
import pytest
from hypothesis import strategies as st

from epochwatt.twin.model.storage import MEDIA, file_s, response_s

SECONDS = st.floats(1e-6, 10.0)


@pytest.mark.parametrize("medium", MEDIA)
def test_one_reader_pays_the_whole_access_and_the_transfer(twin, medium):
    p = twin.parameters
    expected_s = 1e-3 * p[f"{medium}_access_ms"] + 1.0 / p[f"{medium}_mb_per_s"]
    assert file_s(1e6, medium, 1, p) == pytest.approx(expected_s)


@pytest.mark.parametrize("medium", MEDIA)
def test_a_queue_saves_access_time_but_no_more_than_its_gain(twin, medium):
    p = twin.parameters
    times_s = file_s(0.0, medium, np.array([1, 2, 4, 8, 1e9]), p)
    assert (np.diff(times_s) < 0).all()
    assert times_s[-1] == pytest.approx(times_s[0] * (1 - p[f"{medium}_queue_gain"]), abs=1e-9)


# -- mean value analysis: cases with a known answer ----------------------------------------------


def test_configurations_side_by_side_are_those_one_by_one():
    service_s, think_s = np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.0, 0.5])
    readers = np.array([4, 2, 1])
    found = response_s(service_s, think_s, readers)
    rows = zip(service_s, think_s, readers, strict=True)
    assert found == pytest.approx([float(response_s(*row)) for row in rows])


def simulated_response_s(service_s, think_s, readers, n=60_000):
    """Return the mean response of a medium with exponential service, event by event."""
    random = np.random.default_rng(3)
    wanting = [(float(random.random()) * think_s, reader) for reader in range(readers)]
    heapq.heapify(wanting)
    free_s, total_s = 0.0, 0.0
    for service in service_s * random.exponential(size=n):
        asked_s, reader = heapq.heappop(wanting)  # first come, first served
        free_s = max(free_s, asked_s) + float(service)
        total_s += free_s - asked_s
        heapq.heappush(wanting, (free_s + think_s, reader))
    return total_s / n


@pytest.mark.parametrize(
    ("think_s", "readers"), [(0.0, 4), (1.0, 2), (3.0, 4), (4.0, 8), (20.0, 4)]
)
def test_an_event_simulation_with_irregular_service_says_the_same(think_s, readers):
    found = simulated_response_s(1.0, think_s, readers)
    assert response_s(1.0, think_s, readers) == pytest.approx(found, rel=0.03)
