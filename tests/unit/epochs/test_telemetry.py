"""An epoch's columns from its samples: energy by power scope, usage, flags."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt import columns
from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.epochs import telemetry
from epochwatt.epochs.collect import collect_run
from epochwatt.tables import read_cells

EFFECTS = dict.fromkeys(columns.FLAGS, "informs") | {"power_negative": "voids_energy"}
START, END = 100.0, 110.0
REGULAR = {"power_sampling_regular"}  # of made-up, steady samples
STEPS_W = {"power_total_w": 0.001, "power_gpu_w": 0.001}
SENSOR = {"reads": "instant", "averaging_s": 0.0, "update_s": None, "step_w": STEPS_W}
SOUND = {"settings": {"sensor": SENSOR}, "step_mean_s": 0.1}
SOUND |= {"n_negative": 0, "stuck_s": 0.2, "rows_dropped": 0, "n_failed": 0}


def source(scope=None, total=None, **counts):
    return {**SOUND, "scope": scope, "total": total, **counts}


def record(sources, wait_s=2.0, compute_s=8.0):
    meta = {"t_start_mono_s": START, "t_end_mono_s": END, "e2e_s": END - START, "tail_s": 0.0}
    minibatch_s = np.array([[wait_s, 0.0, compute_s]], dtype=np.float32)
    return EpochRecord(meta, minibatch_s, {"sources": sources, "clock_jumps": 0}, "")


def steady(watt, column="power_total_w"):
    t_s = np.arange(START - 0.1, END + 0.15, 0.1)
    return {"t_mono_s": t_s, column: np.full(t_s.shape, watt)}


def test_steady_power_gives_its_energy_and_share_of_the_stall():
    sources = {"ina": source("module", "power_total_w")}
    (row,) = telemetry.energies(record(sources), {"ina": steady(36.0)})
    assert row["energy_wh"] == pytest.approx(0.1)
    assert row["power_mean_w"] == pytest.approx(36.0)
    assert row["stall_energy_j"] == pytest.approx(72.0, rel=1e-6)
    assert (row["power_scope"], row["energy_method"]) == ("module", "trapezoid")
    assert row["energy_paper_wh"] == pytest.approx(0.1, rel=0.2)
    assert 0 <= row["energy_paper_missing_pct"] <= 20
    assert row["flags"] == REGULAR


def test_a_counter_is_believed_before_the_samples_of_power():
    table = steady(99.0, "power_gpu_w")
    table["energy_gpu_j"] = 1e6 + 20.0 * table["t_mono_s"]
    (row,) = telemetry.energies(record({"nvml": source("gpu", "power_gpu_w")}), {"nvml": table})
    assert row["energy_method"] == "counter"
    assert row["power_mean_w"] == pytest.approx(20.0)
    assert 0 < row["energy_error_pct"] < 3


@given(
    watts=st.lists(st.floats(0.01, 1e3), min_size=120, max_size=120),
    e2e_s=st.floats(0.5, 10.0),
    is_counted=st.booleans(),
)
def test_mean_power_is_energy_over_e2e_of_the_same_row(watts, e2e_s, is_counted):
    table = {"t_mono_s": START - 0.5 + 0.1 * np.arange(120), "power_gpu_w": np.array(watts)}
    if is_counted:
        table["energy_gpu_j"] = np.cumsum(watts)
    epoch = record({"nvml": source("gpu", "power_gpu_w")})
    epoch.meta.update(t_end_mono_s=START + e2e_s, e2e_s=START + e2e_s - START)
    (row,) = telemetry.energies(epoch, {"nvml": table})
    mean_w = row["energy_wh"] * 3600 / epoch.meta["e2e_s"]
    assert row["power_mean_w"] == pytest.approx(mean_w, rel=1e-15)


def test_the_widest_scope_comes_first_and_none_is_mixed():
    sources = {"nvml": source("gpu", "power_gpu_w"), "ina": source("module", "power_total_w")}
    samples = {"nvml": steady(5.0, "power_gpu_w"), "ina": steady(12.0)}
    rows = telemetry.energies(record(sources), samples)
    assert [(r["power_scope"], round(r["power_mean_w"])) for r in rows] == [
        ("module", 12),
        ("gpu", 5),
    ]


@pytest.mark.parametrize(
    ("told", "flags"),
    [
        ({"n_negative": 3}, {"power_negative"}),
        ({"stuck_s": 31.0}, {"power_stuck"}),
        ({"settings": {"sensor": {**SENSOR, "seen_share": 0.25}}}, {"power_part_time"}),
        ({"settings": {"sensor": {**SENSOR, "seen_share": None}}}, set()),
    ],
)
def test_a_sensor_that_lies_or_looks_now_and_then_is_flagged(told, flags):
    sources = {"ina": source("module", "power_total_w", **told)}
    (row,) = telemetry.energies(record(sources), {"ina": steady(12.0)})
    assert row["flags"] == REGULAR | flags


def test_a_sensor_without_any_reading_is_missing_not_zero():
    sources = {"ina": source("module", "power_total_w")}
    (row,) = telemetry.energies(record(sources), {"ina": steady(np.nan)})
    assert "power_missing" in row["flags"]
    assert row["energy_paper_wh"] is row["energy_wh"] is row["stall_energy_j"] is None


def test_a_lying_sensor_voids_the_energy_of_its_epoch_and_of_no_other(tmp_path, measure):
    root, run = tmp_path / "measured", SimpleNamespace(id="run-a", factors={"model": "lenet"})
    for epoch, n_negative in ((0, 0), (1, 4)):
        measure(run, epoch, root, tail_s=0.25)
        folder = root / run.id / f"epoch-{epoch}"
        meta = json.loads((folder / "record.json").read_text())
        first, last = meta["t_start_mono_s"] - 0.1, meta["t_end_mono_s"] + 0.1
        t_s = np.linspace(first, last, 60)
        lines = ["t_mono_s,t_unix_s,power_total_w", *(f"{t!r},{t!r},10.0" for t in t_s.tolist())]
        (folder / "samples-ina.csv").write_text("\n".join(lines) + "\n")
        about = source("module", "power_total_w", n_negative=n_negative)
        (folder / "telemetry.json").write_text(json.dumps({"sources": {"ina": about}}))
        write_sums(str(folder))
    out = tmp_path / "out"
    collect_run(str(root), run.id, 2, EFFECTS, str(out / "epochs.csv"), str(out / "energy.csv"))
    rows = read_cells(out / "epochs.csv")
    assert float(rows[0]["power_mean_w"]) == pytest.approx(10.0)
    assert [row["power_scope"] for row in rows] == ["module", "module"]
    assert rows[1]["power_mean_w"] == rows[1]["energy_wh"] == ""
    assert "power_negative" in rows[1]["flags"]
    assert [row["valid"] for row in rows] == ["True", "True"]
    assert [row["epoch"] for row in read_cells(out / "energy.csv")] == ["0", "1"]


def disturbed(t_s, util_pct, tree_pct, minibatch_s, window):
    host = {"t_mono_s": t_s, "cpu_util_pct": util_pct, "tree_cpu_pct": tree_pct}
    meta = {"t_start_mono_s": window[0], "t_end_mono_s": window[1]}
    about = {"sources": {"host": {"settings": {"n_cpus": 4}}}, "cpu_s": 0.4, "wall_s": 10.0}
    epoch = EpochRecord(meta, np.array(minibatch_s, np.float32), about, "")
    return telemetry.disturbances(epoch, {"host": {k: np.array(v) for k, v in host.items()}})


SECONDS = np.arange(0.0, 11.0)
QUICK = [[0.1, 0.0, 0.1]] * 50


@pytest.mark.parametrize(("others_pct", "flags"), [(8.0, set()), (13.0, {"machine_shared"})])
def test_load_of_others_during_an_epoch_is_flagged(others_pct, flags):
    tree = np.where(SECONDS % 2, 60.0, 20.0)
    assert disturbed(SECONDS, tree + 1.0 + others_pct, tree, QUICK, (0.0, 10.0)) == flags
