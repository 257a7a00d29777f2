"""Parts of the model: CPU work, kernels, the loader, storage, page cache, power, governors."""

import heapq
from collections import OrderedDict, deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.errors import EpochwattError
from epochwatt.twin.boards import Clocks
from epochwatt.twin.compute import last_end_s
from epochwatt.twin.loader import (
    MEDIA,
    Stages,
    file_s,
    hit_share,
    response_s,
    steady_wait_s,
    waits_s,
)
from epochwatt.twin.power import STATES, Load, check_clocks, governed, idle_w, parts, socket_w
from epochwatt.twin.predicted import Reading, predict

BOARDS = ("agx", "nx", "nano", "orin")
SHARES = st.floats(0, 1)

# -- CPU work and kernels --------------------------------------------------------------------------


KERNELS = st.integers(1, 30).flatmap(
    lambda n: st.lists(st.tuples(SHARES, SHARES), min_size=n, max_size=n)
)


def ends_s(exec_s, launch_s, front_s):
    """Return when the last kernel ends, kernel by kernel."""
    launched = ready = end = 0.0
    for execution, launch in zip(exec_s, launch_s, strict=True):
        launched += launch
        ready = max(ready, launched) + front_s
        end = max(end, ready) + execution
    return end


@given(st.lists(KERNELS, min_size=1, max_size=3), SHARES)
def test_last_end_is_that_of_the_recursion(rows, front_s):
    for row in rows:
        exec_s, launch_s = np.array(row).T[:, None]
        ended_s = last_end_s(exec_s, launch_s, np.array([front_s]))
        assert ended_s == pytest.approx([ends_s(exec_s[0], launch_s[0], front_s)], abs=1e-12)


# -- the loader: torch's rule of prefetching, played event by event in two ways --------------------


class Loader:
    """A data loader's processes and queues as torch has them, one event after another.

    Indices go to the workers in turn: `prefetch_factor` to each at the start, and one whenever the
    loop has taken a mini-batch. A worker prepares what is in its own queue, one by one. The loop
    takes mini-batches in order, and waits where the next one is not there.
    """

    def __init__(self, prepare_s, take_s, rest_s, workers, prefetch_factor, first_s):
        self.prepare_s, self.take_s, self.rest_s = prepare_s, take_s, rest_s
        self.workers, self.idle = [deque() for _ in range(workers)], [False] * workers
        self.sent, self.there, self.next, self.asked_s = 0, set(), 0, 0.0
        self.waiting, self.waits, self.events, self.n_events = False, [], [], 0
        for worker in range(workers):
            self.at(first_s, "free", worker)
        for _ in range(prefetch_factor * workers):
            self.send(first_s)
        self.at(0.0, "ask", None)

    def at(self, time_s, kind, what):
        self.n_events += 1
        heapq.heappush(self.events, (time_s, self.n_events, kind, what))

    def play(self):
        while self.events:
            now_s, _, kind, what = heapq.heappop(self.events)
            getattr(self, kind)(now_s, what)
        return self.waits

    def send(self, now_s):
        if self.sent < len(self.prepare_s):
            worker = self.sent % len(self.workers)
            self.workers[worker].append(self.sent)
            self.sent += 1
            self.work(now_s, worker)

    def work(self, now_s, worker):
        if self.idle[worker] and self.workers[worker]:
            self.idle[worker] = False
            number = self.workers[worker].popleft()
            self.at(now_s + self.prepare_s[number], "done", (number, worker))

    def done(self, now_s, what):
        self.there.add(what[0])
        self.take(now_s)
        self.free(now_s, what[1])

    def free(self, now_s, worker):
        self.idle[worker] = True
        self.work(now_s, worker)

    def ask(self, now_s, _):
        self.asked_s, self.waiting = now_s, True
        self.take(now_s)

    def take(self, now_s):
        if self.waiting and self.next in self.there:
            self.waiting = False
            self.at(now_s + self.take_s[self.next], "taken", self.next)

    def taken(self, now_s, number):
        self.waits.append(now_s - self.asked_s)
        self.next += 1
        self.send(now_s)
        if self.next < len(self.prepare_s):
            self.at(now_s + self.rest_s[number], "ask", None)


def stages(fetch_s, preprocess_s, handover_s, rest_s):
    """Return stages whose compute is all of the loop's own time."""
    arrays = [np.asarray(s, dtype=float) for s in (fetch_s, preprocess_s, handover_s, rest_s)]
    none = np.zeros_like(arrays[0])
    return Stages(arrays[0], arrays[1], arrays[2], none, arrays[3], none)


TICKS = st.integers(0, 20)  # whole numbers: sums of them are exact


@given(
    times=st.lists(st.tuples(TICKS, TICKS, TICKS, TICKS), min_size=1, max_size=40),
    workers=st.integers(1, 9),
    prefetch_factor=st.integers(1, 4),
    first_s=TICKS,
)
def test_waits_are_those_of_processes_with_queues(times, workers, prefetch_factor, first_s):
    fetch_s, preprocess_s, take_s, rest_s = map(list, zip(*times, strict=True))
    prepare_s = [f + p for f, p in zip(fetch_s, preprocess_s, strict=True)]
    played = Loader(prepare_s, take_s, rest_s, workers, prefetch_factor, first_s).play()
    of_stages = stages(fetch_s, preprocess_s, take_s, rest_s)
    assert waits_s(of_stages, workers, prefetch_factor, float(first_s)).tolist() == played


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("rest_s", [0.01, 2.0])
def test_long_run_is_the_closed_form(workers, rest_s):
    n = 2000
    alike = stages(0.6, 0.5, 0.02, rest_s)
    played = waits_s(Stages(*(np.full(n, stage) for stage in alike)), workers, 2, 0.0)
    own_s = rest_s + (0.02 if workers else 0.0)
    expected_s = float(steady_wait_s(alike, workers))
    assert played[-n // 2 :].mean() == pytest.approx(expected_s, abs=1e-3 * own_s)


# -- storage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("medium", MEDIA)
def test_one_reader_pays_the_whole_access_and_a_queue_saves_its_gain(twin, medium):
    p = twin.parameters
    expected_s = 1e-3 * p[f"{medium}_access_ms"] + 1.0 / p[f"{medium}_mb_per_s"]
    assert file_s(1e6, medium, 1, p) == pytest.approx(expected_s)
    times_s = file_s(0.0, medium, np.array([1, 2, 4, 8, 1e9]), p)
    assert (np.diff(times_s) < 0).all()
    assert times_s[-1] == pytest.approx(times_s[0] * (1 - p[f"{medium}_queue_gain"]), abs=1e-9)


def simulated_response_s(service_s, think_s, readers, n=30_000):
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


@pytest.mark.parametrize(("think_s", "readers"), [(0.0, 4), (3.0, 4), (4.0, 8)])
def test_event_simulation_with_irregular_service_says_the_same(think_s, readers):
    simulated_s = simulated_response_s(1.0, think_s, readers)
    assert response_s(1.0, think_s, readers) == pytest.approx(simulated_s, rel=0.03)


# -- page cache ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("cached", [0.05, 0.5, 0.95])
def test_cache_played_file_by_file_hits_as_often(cached):
    simulated = simulated_hit_share(4000, round(4000 * cached), 8)
    assert hit_share(cached) == pytest.approx(simulated, abs=0.01)


# -- power -----------------------------------------------------------------------------------------


def top(board):
    return Clocks(board.cores, board.cpu_mhz[1], board.gpu_mhz[1], board.emc_mhz[1])


def test_busy_module_takes_the_power_of_its_equation(twin):
    board, p = twin.boards["agx"], twin.parameters
    busy = parts(board, top(board), Load(8.0, 1.0, 0.75, 1e9), p)
    core_mhz = 2265.6 * (1 + p["core_leak_share"])
    assert busy.cpu_w == pytest.approx(8e-3 * p["agx_core_w_per_ghz_v2"] * core_mhz * 1.06**2)
    gpu_mhz = 1377 * (p["gpu_leak_share"] + 0.25 * p["gpu_waiting_share"] + 0.75)
    assert busy.gpu_w == pytest.approx(512e-6 * p["gpu_mw_per_ghz_v2"] * gpu_mhz)
    rest_w = p["agx_soc_w"] * p["soc_factor"] + p["emc_w_per_ghz_v2"] * 2.133
    rest_w += 1e-3 * p["memory_pj_per_byte"]
    assert busy.soc_w + busy.io_w + busy.memory_w == pytest.approx(rest_w)
    assert busy.module_w == pytest.approx(sum(busy))
    at_plug_w = (10.0 + p["agx_carrier_w"]) / p["adapter_efficiency"]
    assert socket_w(board, 10.0, p) == pytest.approx(at_plug_w)


@pytest.mark.parametrize("name", BOARDS)
def test_energy_of_a_computing_gpu_is_a_u_over_its_clock_with_its_least_at_the_knee(twin, name):
    board = twin.boards[name]
    mhz = np.linspace(*board.gpu_mhz, 400)
    clocks = top(board)._replace(gpu_mhz=mhz)
    energies = parts(board, clocks, Load(1.0, 1.0, 1.0, 0.0), twin.parameters).gpu_w / mhz
    least = energies.argmin()
    assert mhz[least] == pytest.approx(board.gpu_knee_mhz, abs=0.08 * board.gpu_mhz[1])
    assert (np.diff(energies[: least + 1]) < 0).all()
    assert (np.diff(energies[least:]) > 0).all()
    assert energies[-1] > 1.1 * energies[least]


@given(
    name=st.sampled_from(BOARDS),
    clock=st.sampled_from(["cpu_mhz", "gpu_mhz", "emc_mhz"]),
    shares=st.tuples(SHARES, SHARES),
    load=st.tuples(st.floats(0, 4), SHARES, SHARES, st.floats(0, 1e10)),
)
def test_higher_clock_under_the_same_load_never_takes_less(twin, name, clock, shares, load):
    board = twin.boards[name]
    low, high = getattr(board, clock)
    watts = []
    for share in sorted(shares):
        clocks = top(board)._replace(**{clock: low + share * (high - low)})
        watts.append(parts(board, clocks, Load(*load), twin.parameters).module_w)
    assert watts[0] <= watts[1] + 1e-9


@pytest.mark.parametrize("name", BOARDS)
def test_each_idle_state_takes_less_than_the_one_before(twin, name):
    board, p = twin.boards[name], twin.parameters
    at_plug_w = [float(idle_w(board, state, top(board), "socket", p)) for state in STATES]
    assert at_plug_w == sorted(at_plug_w, reverse=True)
    assert len(set(at_plug_w)) == len(at_plug_w)
    for state, socket in zip(STATES[:3], at_plug_w, strict=False):
        assert idle_w(board, state, top(board), "module", p) < socket


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cores": 9}, r"cannot have cores 9\n  allowed: 1 to 8"),
        ({"cpu_mhz": 3000.0}, r"cpu_mhz 3000\n  allowed: 115.2 to 2265.6"),
        ({"emc_mhz": np.array([1600.0, 9000.0])}, r"emc_mhz 9000\n  allowed: 204 to 2133"),
        ({"emc_mhz": float("nan")}, "emc_mhz nan"),
    ],
)
def test_clocks_beyond_the_boards_are_refused_with_its_limits(twin, change, message):
    board = twin.boards["agx"]
    with pytest.raises(EpochwattError, match=message):
        check_clocks(board, top(board)._replace(**change))


def test_each_rail_of_an_agx_xavier_is_within_a_quarter_in_the_median(evidence, twin):
    readings = [fact for fact in evidence.facts if isinstance(fact, Reading)]
    watts = predict(readings, twin, twin.parameters)
    errors = {
        rail: [watts[r.id][0] / r.value - 1 for r in readings if r.rail == rail]
        for rail in twin.boards["agx"].rails
        if rail != "CV"
    }
    medians = {rail: float(np.median(np.abs(of_rail))) for rail, of_rail in errors.items()}
    assert len(readings) == 70
    assert max(medians.values()) < 0.25, medians


# -- governors -------------------------------------------------------------------------------------


def test_governors_choose_between_the_lowest_clock_and_the_modes(twin, modes):
    board, mode, p = twin.boards["agx"], modes["agx"]["g"], twin.parameters
    assert governed(board, mode, 1.0, 1.0, 1.0, p) == mode
    lowest = Clocks(8, board.cpu_mhz[0], board.gpu_mhz[0], board.emc_mhz[0])
    assert governed(board, mode, 0.0, 0.0, 0.0, p) == lowest
    half = 0.5 * p["gpu_governor_load"], 0.5 * p["emc_governor_load"]
    chosen = governed(board, mode, 0.0, *half, p)
    assert chosen[2:] == pytest.approx((mode.gpu_mhz / 2, mode.emc_mhz / 2))
