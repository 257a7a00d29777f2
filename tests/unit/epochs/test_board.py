"""What an epoch on a board is flagged for: mode, clocks, events, load, settling."""

import copy

import numpy as np
import pytest

from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.epochs.board import BUSY_PCT, MET, SWAP_KIB, board_flags, event_flags

START, END = 100.0, 110.0
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


def test_a_mode_that_cannot_be_read_back_is_flagged():
    assert board_flags(record("power_mode", "verified", False), samples()) == {"mode_not_verified"}


class TestClocks:
    """Means of sampled clocks against what was asked for."""

    @pytest.mark.parametrize("clock", ["cpu_mhz", "gpu_mhz", "emc_mhz"])
    @pytest.mark.parametrize(("share", "low"), [(MET + 0.001, False), (MET - 0.001, True)])
    def test_below_95_percent_of_the_request_are_flagged(self, clock, share, low):
        wanted = SOUND["board"]["power_mode"]["resolved"][clock]
        found = share * wanted
        told = samples(**{clock: (wanted, found) if clock == "cpu_mhz" else found})
        assert board_flags(record(), told) == ({"clock_below_request"} if low else set())

    def test_are_left_to_the_governors_with_dvfs_on(self):
        assert board_flags(record("power_mode", "dvfs", "on"), samples(gpu_mhz=100.0)) == set()

    def test_count_inside_the_epoch_only(self):
        t_s = np.arange(90.0, 121.0)
        inside = (t_s >= START) & (t_s <= END)
        assert board_flags(record(), samples(gpu_mhz=np.where(inside, 500.0, 100.0))) == set()
        assert board_flags(record(), samples(gpu_mhz=np.where(inside, 100.0, 500.0))) == {
            "clock_below_request"
        }

    def test_of_one_slow_cpu_are_enough(self):
        assert board_flags(record(), samples(cpu_mhz=(1000.0, 800.0, 1000.0))) == {
            "clock_below_request"
        }

    def test_of_no_request_are_those_that_were_pinned(self):
        mode = {"verified": True, "dvfs": "off", "resolved": {}, "read_back": {"gpu_mhz": 600.0}}
        assert board_flags(record("power_mode", mode), samples(gpu_mhz=500.0)) == {
            "clock_below_request"
        }

    def test_of_cpus_that_are_offline_do_not_count(self):
        told = samples(cpu_mhz=(1000.0, 100.0))
        read_back = {"cpu_mhz": 1000.0, "cores_online": [0]}
        assert board_flags(record("power_mode", "read_back", read_back), told) == set()


class TestStart:
    """What was found before the epoch."""

    @pytest.mark.parametrize(
        ("busy_pct", "flags"),
        [(BUSY_PCT, set()), (BUSY_PCT + 0.1, {"machine_busy"}), (None, set())],
    )
    def test_other_load_is_flagged_above_its_limit(self, busy_pct, flags):
        assert board_flags(record("busy_pct", busy_pct), samples()) == flags

    @pytest.mark.parametrize(("steady", "flags"), [(True, set()), (False, {"settle_timeout"})])
    def test_a_board_that_was_still_restless_is_flagged(self, steady, flags):
        assert board_flags(record("settled", {"steady": steady}), samples()) == flags


class TestEvents:
    """Counters before and after."""

    @pytest.mark.parametrize(
        ("counter", "enough", "flag"),
        [
            ("throttle", 1, "throttled"),
            ("over_current", 1, "over_current"),
            ("swap_kib", SWAP_KIB + 1, "swap_grown"),
        ],
    )
    def test_that_grow_are_flagged(self, counter, enough, flag):
        def grown(by):
            return event_flags({"before": {counter: 70}, "after": {counter: 70 + by}})

        assert grown(enough) == {flag}
        assert grown(enough - 1) == grown(0) == grown(-5) == set()
