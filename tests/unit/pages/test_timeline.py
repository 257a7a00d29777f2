"""One epoch on one time axis: groups of mini-batches keep sums and ends, series their extremes."""

from pathlib import Path

import numpy as np
import pytest

from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.pages.timeline import (
    MOST,
    clocks_of,
    minibatch_groups,
    read_epoch,
    timeline,
)

OLD_RUN = Path(__file__).resolve().parents[2] / (
    "data/schema-1/measured/host-local-slow-ssd-w0-bs16-native-p1-0123abcd"
)


@pytest.fixture
def record(make_meta):
    """Return a function that gives the record of an epoch of some mini-batches."""

    def make(minibatch_s, **changes):
        array = np.asarray(minibatch_s, dtype=np.float32)
        meta = make_meta(1, array, tail_s=0.0, **changes)
        return EpochRecord(meta, array, {}, "")

    return make


@pytest.mark.parametrize("n", [1, MOST, MOST + 1, 5 * MOST + 3])
def test_groups_keep_sums_ends_and_extremes(record, n):
    epoch = record(np.random.default_rng(0).uniform(0.001, 0.1, (n, 3)))
    groups, is_placed = minibatch_groups(epoch)
    together = -(-n // MOST)
    sizes = np.array([min(together, n - first) for first in range(0, n, together)])
    assert is_placed
    assert len(groups["start_s"]) == len(sizes) <= MOST
    for name in ("wait", "copy", "compute"):
        total = float(groups[f"{name}_ms"] @ sizes) / 1e3
        assert total == pytest.approx(epoch.meta[f"{name}_s"], rel=1e-6)
    in_all = 1e3 * epoch.minibatch_s.astype(float).sum(axis=1)
    assert groups["low_ms"].min() == pytest.approx(in_all.min())
    assert groups["high_ms"].max() == pytest.approx(in_all.max())
    assert (np.diff(groups["start_s"]) > 0).all()
    assert groups["start_s"][0] >= 0
    assert groups["end_s"][-1] <= epoch.meta["e2e_s"] + 1e-9


def test_samples_are_on_the_epochs_axis_and_what_lacks_is_named(record):
    epoch = record(np.full((2, 3), 0.5))  # from 1001 to 1004.25
    t_s = np.arange(999.0, 1008.0)
    table = {"t_mono_s": t_s, "t_unix_s": t_s, "power_module_w": np.arange(9.0)}
    table |= {"cpu0_mhz": np.full(9, 7.0), "cpu1_mhz": np.full(9, 7.0), "gpu_mhz": t_s * np.nan}
    shown = timeline(epoch, {"board": table})
    power, clock = shown["series"]
    assert (power["name"], clock["name"]) == ("module", "cpu, all alike")
    assert power["t_s"] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert power["value"] == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert shown["missing"] == ["temperature", "utilisation", "read_mib_s", "read_iops"]


def test_a_measured_epoch_of_an_old_version_is_shown():
    shown = timeline(*read_epoch(str(OLD_RUN), 1))
    assert "power" in {line["lane"] for line in shown["series"]}
    assert shown["n_minibatches"] == len(shown["minibatches"]["start_s"])


def test_clocks_are_those_that_the_mode_was_set_to(folder, add_epoch):
    mode = {"dvfs": "off", "fan": "", "requested": {}, "unverified": [], "verified": True}
    mode |= {"read_back": {"cores": 8, "cpu_mhz": 1000.0}, "resolved": {"cpu_mhz": 1190.4}}
    board = {"busy_pct": 0.0, "power_mode": mode, "settled": None}
    add_epoch(folder, 0, board=board, events={"before": {}, "after": {}})
    assert clocks_of(folder.path, 0) == {"cores": 8, "cpu_mhz": 1190.4}
    assert clocks_of("nowhere/at-all", 0) == {}
