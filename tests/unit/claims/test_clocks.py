"""Clocks under governors, from records and in closed form."""

import numpy as np
import pytest

from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.samples import write_samples
from epochwatt.claims.clocks import in_closed_form, sampled, with_clocks

TOP = {"cpu_mhz": 2000.0, "gpu_mhz": 1000.0, "emc_mhz": 2000.0}
RECORD = EpochRecord({"t_start_mono_s": 0.0, "t_end_mono_s": 10.0}, np.zeros((0, 3)), {}, "")


def samples(cpu, gpu, emc):
    t_s = np.linspace(0.0, 10.0, len(cpu))
    return {
        "host": {"t_mono_s": t_s, "cpu0_mhz": np.array(cpu), "cpu4_mhz": np.zeros(len(cpu))},
        "board": {"t_mono_s": t_s, "gpu_mhz": np.array(gpu), "emc_mhz": np.array(emc)},
    }


def test_share_of_time_below_the_top():
    told = sampled(
        RECORD, samples([2000.0, 2000.0, 1000.0], [300.0, 300.0, 500.0], [2000.0] * 3), TOP
    )
    assert told["gpu_freq_mhz"] == pytest.approx(350.0)
    assert told["cpu_below_peak_time_pct"] == pytest.approx(25.0)  # half of the second half
    assert told["emc_below_max_time_pct"] == 0.0


def test_just_below_the_top_is_the_top():
    told = sampled(RECORD, samples([1810.0] * 2, [1000.0] * 2, [1910.0] * 2), TOP)
    assert (told["cpu_below_peak_time_pct"], told["emc_below_max_time_pct"]) == (0.0, 0.0)
    told = sampled(RECORD, samples([1790.0] * 2, [1000.0] * 2, [1890.0] * 2), TOP)
    assert (told["cpu_below_peak_time_pct"], told["emc_below_max_time_pct"]) == (100.0, 100.0)


def test_what_was_not_sampled_or_has_no_top_is_left_out():
    nan = float("nan")
    assert sampled(RECORD, {}, TOP) == {}
    told = sampled(RECORD, samples([2000.0] * 2, [nan] * 2, [2000.0] * 2), {"cpu_mhz": 2000.0})
    assert told == {"cpu_below_peak_time_pct": 0.0}


def test_in_closed_form_the_first_cluster_has_two_clocks():
    row = {"cpu_mhz": 2000.0, "cpu_mhz_pct": 25.0, "gpu_mhz": 300.0, "emc_mhz": 1000.0}
    told = {"gpu_freq_mhz": 300.0, "emc_below_max_time_pct": 100.0}
    assert in_closed_form({**row, "cpu_else_mhz": 1000.0}, TOP) == {
        **told,
        "cpu_below_peak_time_pct": 75.0,
    }
    assert in_closed_form({**row, "cpu_else_mhz": 2000.0}, TOP) == {
        **told,
        "cpu_below_peak_time_pct": 0.0,
    }


def test_rows_get_the_clocks_of_their_record(checkout, measure):
    run = checkout.runs[0]
    mode = {"verified": True, "dvfs": "off", "read_back": {}, "resolved": {"cpu_mhz": 2000.0}}
    board = {"power_mode": mode, "busy_pct": None, "settled": None}
    folder = measure(run, 0, board=board, events={"before": {}, "after": {}})
    write_samples(
        folder.epoch_path(0),
        "host",
        ("cpu0_mhz",),
        np.array([10.0, 14.0]),
        np.array([10.0, 14.0]),
        np.array([[1000.0], [1000.0]]),
    )
    (checkout.path / folder.epoch_path(0) / "telemetry.json").write_text(
        '{"sources": {"host": {"scope": null, "total": null, "step_mean_s": 1.0, "n_failed": 0, '
        '"n_negative": 0, "rows_dropped": 0, "stuck_s": 0.0}}}'
    )
    write_sums(folder.epoch_path(0))
    rows = [{"run": run.id, "epoch": 0}, {"run": "other", "epoch": 0}]
    found = with_clocks(rows, {run.id: f"measured/{run.id}"})
    assert found == [{**rows[0], "cpu_below_peak_time_pct": 100.0}, rows[1]]


def test_a_record_without_a_board_has_no_clocks(checkout, measure):
    run = checkout.runs[0]
    measure(run, 0)
    row = {"run": run.id, "epoch": 0}
    assert with_clocks([row], {run.id: f"measured/{run.id}"}) == [row]
