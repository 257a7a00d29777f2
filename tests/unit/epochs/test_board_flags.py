"""What an epoch on a board is flagged for: mode, clocks, events, load, settling."""

import copy

import numpy as np
import pytest

from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.epochs.board_flags import BUSY_PCT, MET, SWAP_KIB, board_flags, event_flags

START, END = 100.0, 110.0
LOW = "clock_below_request"
SOUND = {
    "t_start_mono_s": START,
    "t_end_mono_s": END,
    "events": {"before": {}, "after": {}},
    "board": {
        "power_mode": {
            "verified": True,
            "dvfs": "off",
            "resolved": {"cores": 2, "cpu_mhz": 1000.0, "gpu_mhz": 500.0, "emc_mhz": 800.0},
            "read_back": {"cpu_mhz": 1000.0, "cores_online": [0, 1, 2]},
        },
        "busy_pct": 1.0,
        "settled": None,
    },
}


def record(*path_and_value, **meta):
    """Return a record without a fault, but for one value at a path of keys below `board`."""
    told = {**copy.deepcopy(SOUND), **meta}
    if path_and_value:
        *path, key, value = path_and_value
        place = told["board"]
        for name in path:
            place = place[name]
        place[key] = value
    return EpochRecord(told, np.zeros((1, 3), np.float32), {}, "")


def samples(cpu_mhz=(1000.0, 1000.0), gpu_mhz=500.0, emc_mhz=800.0):
    """Return readings each second from 90 to 120 s; a clock is a number or one for each second."""
    t_s = np.arange(90.0, 121.0)
    cpus = {f"cpu{n}_mhz": np.full(t_s.shape, mhz) for n, mhz in enumerate(cpu_mhz)}
    board = {"gpu_mhz": np.full(t_s.shape, gpu_mhz), "emc_mhz": np.full(t_s.shape, emc_mhz)}
    host = {"t_mono_s": t_s, "cpu_util_pct": np.full(t_s.shape, 3.0), **cpus}
    return {"host": host, "board": {"t_mono_s": t_s, **board}}


@pytest.mark.parametrize(
    ("dvfs", "method", "waits_s", "slept"),
    [
        ("on", "cuda_events_synchronised", [3.0, 0.1, 0.6], True),
        ("on", "cuda_events_pooled", [3.0, 0.1, 0.6], True),
        ("on", "cuda_events_pooled", [3.0, 0.1, 0.4], False),  # workers start in the first wait
        ("on", "host_clock", [3.0, 0.1, 0.6], False),
        ("off", "cuda_events_synchronised", [3.0, 0.1, 0.6], False),  # jetson_clocks keeps it on
    ],
)
def test_a_gpu_that_may_have_been_switched_off_while_it_waited(dvfs, method, waits_s, slept):
    times = np.zeros((3, 3), np.float32)
    times[:, 0] = waits_s
    epoch = record("power_mode", "dvfs", dvfs, timing_method=method)._replace(minibatch_s=times)
    assert ("gpu_slept" in board_flags(epoch, samples())) == slept


class TestClocks:
    """Means of sampled clocks against what was asked for."""

    @pytest.mark.parametrize("clock", ["cpu_mhz", "gpu_mhz", "emc_mhz"])
    @pytest.mark.parametrize(("share", "low"), [(MET + 0.001, False), (MET - 0.001, True)])
    def test_below_95_percent_of_the_request_are_flagged(self, clock, share, low):
        wanted = SOUND["board"]["power_mode"]["resolved"][clock]
        found = share * wanted
        told = samples(**{clock: (wanted, found) if clock == "cpu_mhz" else found})
        assert board_flags(record(), told) == ({LOW} if low else set())

    def test_count_inside_the_epoch_only(self):
        t_s = np.arange(90.0, 121.0)
        inside = (t_s >= START) & (t_s <= END)
        assert board_flags(record(), samples(gpu_mhz=np.where(inside, 500.0, 100.0))) == set()
        assert board_flags(record(), samples(gpu_mhz=np.where(inside, 100.0, 500.0))) == {LOW}

    @pytest.mark.parametrize(
        ("mode", "sampled", "flags"),
        [
            ({"dvfs": "on"}, {"gpu_mhz": 100.0}, set()),  # left to the governors
            ({}, {"cpu_mhz": (1000.0, 800.0, 1000.0)}, {LOW}),  # one slow CPU is enough
            # without a request those that were pinned
            ({"resolved": {}, "read_back": {"gpu_mhz": 600.0}}, {"gpu_mhz": 500.0}, {LOW}),
            # CPUs that are offline do not count
            (
                {"read_back": {"cpu_mhz": 1000.0, "cores_online": [0]}},
                *({"cpu_mhz": (1000.0, 100.0)}, set()),
            ),
        ],
    )
    def test_of_what_counts(self, mode, sampled, flags):
        whole = {**SOUND["board"]["power_mode"], **mode}
        assert board_flags(record("power_mode", whole), samples(**sampled)) == flags


@pytest.mark.parametrize(
    ("path_and_value", "flags"),
    [
        (("busy_pct", BUSY_PCT), set()),
        (("busy_pct", BUSY_PCT + 0.1), {"machine_busy"}),
        (("busy_pct", None), set()),
        (("settled", {"steady": True}), set()),
        (("settled", {"steady": False}), {"settle_timeout"}),
        (("power_mode", "verified", False), {"mode_not_verified"}),  # it cannot be read back
        (("power_mode", "read_back", "held_back", True), {"throttled"}),
    ],
)
def test_what_was_found_before_the_epoch(path_and_value, flags):
    assert board_flags(record(*path_and_value), samples()) == flags


@pytest.mark.parametrize(
    ("counter", "enough", "flag"),
    [
        ("throttle", 1, "throttled"),
        ("over_current", 1, "over_current"),
        ("swap_kib", SWAP_KIB + 1, "swap_grown"),
    ],
)
def test_counters_that_grow_are_flagged(counter, enough, flag):
    def grown(by):
        return event_flags({"before": {counter: 70}, "after": {counter: 70 + by}})

    assert grown(enough) == {flag}
    assert grown(enough - 1) == grown(0) == grown(-5) == set()
