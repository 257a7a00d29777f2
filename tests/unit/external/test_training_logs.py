"""Real training on an AGX Orin: our parser, rails and integral, on made-up and on real logs."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.external import training_logs
from epochwatt.external.check import AGREES, DIFFERS
from epochwatt.external.inputs import Inputs, NotHereError
from epochwatt.external.training_logs import RUNS, findings, read_log

REPOSITORY = Path(__file__).resolve().parents[3]
REAL = Path("/work/shared/data/sweeps")  # of the machine this was written on
LOGS = REAL / "broncospace_agx_orin_training_modes"
WATTS = {"VDD_GPU_SOC": 10.0, "VDD_CPU_CV": 3.0, "VIN_SYS_5V0": 5.0, "VDDQ_VDD2_1V8AO": 2.0}
MODULE_W = 18.0  # the last rail is a part of the third


def line(second, gpu_pct, factor=1.0):
    """Return a line of tegrastats as JetPack 6 prints it."""
    mw = {label: round(1000 * factor * watts) for label, watts in WATTS.items()}
    rails = " ".join(f"{label} {now}mW/{now}mW" for label, now in mw.items())
    stamp = f"10-28-2024 12:{second // 60:02}:{second % 60:02}"
    return (
        f"{stamp} RAM 2959/30698MB (lfb 2x4MB) CPU [19%@1113,off] GR3D_FREQ {gpu_pct}% "
        f"cpu@46.687C soc2@42.75C {rails}"
    )


def log_of(path, lines):
    path.write_bytes(gzip.compress("\n".join(["Mon Oct 28 UTC 2024", *lines, ""]).encode()))
    return path


def table_of(folder, printed):
    """Write the authors' table of a run: the same readings for each, of lines 1 to 3 of the log."""
    rails = [f"{label} Current (mW)" for label in WATTS]
    cells = [f"{1000 * w}" for w in WATTS.values()]
    rows = [",".join([str(k), str(1000 * k), *cells]) for k in (1, 2, 3)]
    header = ",".join(["Index", "Time (mS)", *rails])
    text = "\n".join(['"Fri Oct 25 07:20:14 PM UTC 2024', '"', header, *rows, ""])
    (folder / f"{printed.run}.csv").write_text(text)


@pytest.fixture
def inputs(tmp_path):
    """A clone of the authors' repository with all tables and one log, and no simulated board."""
    folder = tmp_path / "scales-hardware/docs/data"
    folder.mkdir(parents=True)
    for printed in RUNS:
        table_of(folder, printed)
    lines = [line(0, 0, 0.1), *(line(k, 99) for k in (1, 2, 3)), line(5, 0, 0.1)]
    (folder / "resnet_training_50W.txt").write_text("\n".join(["Mon Oct 28 2024", *lines, ""]))
    return Inputs(REPOSITORY, tmp_path, None)


def test_rail_below_another_counts_once_and_only_training_counts(tmp_path):
    lines = [line(0, 3, 0.1), line(1, 80), line(2, 20), line(4, 90), line(9, 10, 0.1)]
    readings = read_log(log_of(tmp_path / "a.txt.gz", lines), 1, 3)
    assert np.diff(readings.t_s).tolist() == [1, 2]
    assert readings.module_w.tolist() == [MODULE_W] * 3
    assert readings.integral_w == pytest.approx(MODULE_W)


def test_integral_weighs_readings_by_time(tmp_path):
    lines = [line(0, 99), line(1, 99), line(11, 99, 2.0)]
    readings = read_log(log_of(tmp_path / "a.txt.gz", lines), 0, 2)
    assert readings.module_w.mean() == pytest.approx(MODULE_W * 4 / 3)
    assert readings.integral_w == pytest.approx(MODULE_W * (1 + 15) / 11)


def test_each_run_is_judged_by_what_is_here(inputs):
    found = {f.subject: f for f in findings(inputs)}
    assert "50W: energy of an epoch, three rails" in found
    assert "30W: energy of an epoch, three rails" not in found  # no raw log
    ours = found["30W: energy of an epoch by our integral, three rails"]
    assert (ours.expected, ours.observed, ours.verdict) == ("5.49", "5.49", AGREES)
    printed = found["30W: energy of an epoch as printed, four rails"]
    assert (printed.observed, printed.verdict) == ("6.59", DIFFERS)
    assert printed.deviation_pct == pytest.approx(100 * (21.6 / MODULE_W - 1))
    assert found["mode with the least energy of an epoch"].observed.startswith("MAXN 2.36, MAXN, ")
    assert found["mode with the least energy of an epoch"].verdict == DIFFERS


def test_missing_logs_are_said_with_where_to_get_them(tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(NotHereError, match="BroncoSpace-Lab/scales-hardware"):
            list(findings(Inputs(REPOSITORY, folder, None)))


def test_a_missing_run_is_named(inputs):
    (inputs.folder / "scales-hardware/docs/data/resnet_training_15W.csv").unlink()
    with pytest.raises(ConfigError, match="tables of runs are missing") as caught:
        list(findings(inputs))
    assert caught.value.allowed == "resnet_training_15W"


def test_damaged_logs_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="fewer lines than the table"):
        read_log(log_of(tmp_path / "a.txt.gz", [line(0, 3)]), 0, 1)
    (tmp_path / "b.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_log(tmp_path / "b.txt.gz", 0, 1)
    (tmp_path / "t.csv").write_text("run,Time (mS)\na,x\n")
    with pytest.raises(ConfigError, match="not a table of readings"):
        training_logs.read_table(tmp_path / "t.csv")


@pytest.mark.skipif(not LOGS.is_dir(), reason=f"logs without a licence are not in {LOGS}")
def test_real_training_costs_what_three_rails_say():
    inputs = Inputs(REPOSITORY, REAL, None)
    found = {f.subject: f for f in findings(inputs)}
    end = ": energy of an epoch, three rails"
    energies = {name: found[f"{name}{end}"].observed for name in ("50W", "30W", "15W")}
    assert energies == {"50W": "4.82", "30W": "5.60", "15W": "7.32"}
    assert found["MAXN: energy of an epoch by our integral, three rails"].observed == "5.87"
    for name, f in found.items():
        assert (f.verdict == DIFFERS) == ("as printed" in name), name
    assert found["mode with the least energy of an epoch"].observed.startswith("50W 4.82, 30W 5.60")
    strongest, weaker = training_logs.module_powers(inputs)
    assert (round(strongest.power_w, 1), round(weaker.power_w, 1)) == (44.8, 29.4)
