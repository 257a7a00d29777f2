"""Clocks under governors, from records and in closed form."""

import numpy as np
import pytest

from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.samples import write_samples
from epochwatt.claims.number_sources import closed_form_clocks, sampled_clocks, with_clocks

TOP = {"cpu_mhz": 2000.0, "gpu_mhz": 1000.0, "emc_mhz": 2000.0}
RECORD = EpochRecord({"t_start_mono_s": 0.0, "t_end_mono_s": 10.0}, np.zeros((0, 3)), {}, "")


def samples(cpu, gpu, emc):
    t_s = np.linspace(0.0, 10.0, len(cpu))
    return {
        "host": {"t_mono_s": t_s, "cpu0_mhz": np.array(cpu), "cpu4_mhz": np.zeros(len(cpu))},
        "board": {"t_mono_s": t_s, "gpu_mhz": np.array(gpu), "emc_mhz": np.array(emc)},
    }


@pytest.mark.parametrize(
    ("cpu", "gpu", "emc", "told"),
    [
        # half of the second half
        ([2000.0, 2000.0, 1000.0], [300.0, 300.0, 500.0], [2000.0] * 3, (350.0, 25.0, 0.0)),
        ([1810.0] * 2, [1000.0] * 2, [1910.0] * 2, (1000.0, 0.0, 0.0)),  # just below is the top
        ([1790.0] * 2, [1000.0] * 2, [1890.0] * 2, (1000.0, 100.0, 100.0)),
    ],
)
def test_share_of_time_below_the_top(cpu, gpu, emc, told):
    found = sampled_clocks(RECORD, samples(cpu, gpu, emc), TOP)
    names = ("gpu_freq_mhz", "cpu_below_peak_time_pct", "emc_below_max_time_pct")
    assert found == pytest.approx(dict(zip(names, told, strict=True)))


@pytest.mark.parametrize(("else_mhz", "below_pct"), [(1000.0, 75.0), (2000.0, 0.0)])
def test_in_closed_form_the_first_cluster_has_two_clocks(else_mhz, below_pct):
    row = {"cpu_mhz": 2000.0, "cpu_mhz_pct": 25.0, "gpu_mhz": 300.0, "emc_mhz": 1000.0}
    assert closed_form_clocks({**row, "cpu_else_mhz": else_mhz}, TOP) == {
        **{"gpu_freq_mhz": 300.0, "emc_below_max_time_pct": 100.0},
        "cpu_below_peak_time_pct": below_pct,
    }


def test_rows_get_the_clocks_of_their_record_where_it_is_of_a_board(checkout, measure):
    run, hosts = checkout.runs[:2]
    measure(hosts, 0)
    mode = {"verified": True, "dvfs": "off", "read_back": {}, "resolved": {"cpu_mhz": 2000.0}}
    board = {"power_mode": mode, "busy_pct": None, "settled": None}
    folder = measure(run, 0, board=board, events={"before": {}, "after": {}})
    stamps = np.array([10.0, 14.0])
    write_samples(
        folder.epoch_path(0), "host", ("cpu0_mhz",), stamps, stamps, np.full((2, 1), 1000.0)
    )
    (checkout.path / folder.epoch_path(0) / "telemetry.json").write_text(
        '{"sources": {"host": {"scope": null, "total": null, "step_mean_s": 1.0, "n_failed": 0, '
        '"n_negative": 0, "rows_dropped": 0, "stuck_s": 0.0}}}'
    )
    write_sums(folder.epoch_path(0))
    rows = [{"run": name, "epoch": 0} for name in (run.id, hosts.id, "other")]
    found = with_clocks(rows, {r.id: f"measured/{r.id}" for r in (run, hosts)})
    assert found == [{**rows[0], "cpu_below_peak_time_pct": 100.0}, *rows[1:]]
