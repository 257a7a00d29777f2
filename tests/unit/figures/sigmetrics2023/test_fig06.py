"""Figure 6: the numbers plotted; panels c and d are read from the telemetry of the epochs."""

import numpy as np
import pytest
from panels import words

from epochwatt.board.records import files
from epochwatt.board.records.samples import write_samples
from epochwatt.figures.common.runs import read_runs
from epochwatt.figures.common.series import series
from epochwatt.figures.sigmetrics2023.fig06 import draw

T_S = np.array([99.0, 100.0, 101.0, 102.0, 103.0, 105.0])  # the epoch is from 100 to 104
GPU_MHZ, CPU_MHZ = (9, 300, 300, 600, 600, 9), (9, 400, 600, 800, 1e3, 9)


@pytest.fixture
def records(tmp_path):
    """Return a function that writes the telemetry of epochs; it gives the folder."""

    def write(*epochs, name="a", gpu_mhz=GPU_MHZ, cpu_mhz=CPU_MHZ):
        for epoch in epochs:
            folder = tmp_path / name / f"epoch-{epoch}"
            folder.mkdir(parents=True)
            record = {"t_start_mono_s": 100.0, "t_end_mono_s": 104.0, "e2e_s": 4.0}
            record["factors"] = {"power_mode_settings": {"cpu_mhz": 1000.0}}
            files.write_json(str(folder / "record.json"), record)
            board = np.array(gpu_mhz, dtype=float)[:, None]
            host = np.column_stack([cpu_mhz, cpu_mhz]).astype(float)
            write_samples(str(folder), "board", ("gpu_mhz",), T_S, T_S, board)
            write_samples(str(folder), "host", ("cpu0_mhz", "cpu1_mhz"), T_S, T_S, host)
        return str(tmp_path / name)

    return write


def test_series_puts_epochs_together_and_leaves_out_what_lies_between(made_up, records):
    (run,) = read_runs([made_up({}, {"valid": False}, {})], [])
    folder = records(0, 1, 2)
    told = series(run, folder, "board", "gpu_mhz")
    assert told.t_s.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert told.values.tolist() == [300.0, 300.0, 600.0, 600.0] * 2
    assert told.epoch.tolist() == [0] * 4 + [2] * 4
    assert (told.bounds_s, told.missing) == ([4.0, 8.0], "")
    cores = series(run, folder, "host", "cpu*_mhz")  # of several cores the mean
    assert cores.values.tolist() == [400.0, 600.0, 800.0, 1000.0] * 2
    empty = series(run, folder, "board", "nvdec_mhz")
    assert (empty.values.size, empty.missing) == (0, "no nvdec_mhz of a valid epoch")
    dead = series(run, records(0, name="b", gpu_mhz=(np.nan,) * 6), "board", "gpu_mhz")
    assert (dead.values.size, dead.missing) == (0, "no gpu_mhz of a valid epoch")


def test_dvfs_off_and_on(job_of, made_up, gone, records, numbers):
    """LeNet with DVFS off for three epochs and on for two, ResNet without records or not at all."""
    told = {"energy_paper_wh": 0.25, "gpu_util_pct": 20.0}
    paths = [
        made_up({}, told, told, dvfs="off"),
        made_up({}, {**told, "e2e_s": 5.0}, dvfs="on"),
        made_up({}, told, model="resnet", dvfs="on"),
    ]
    folders = {"run-0": records(0, 1, 2, name="off", gpu_mhz=(600,) * 6), "run-1": records(0, 1)}
    missing = [gone(model="resnet", dvfs="off")]
    job = job_of("fig06", *paths, missing=missing, records=folders)
    draw(job)
    found = numbers("fig06a", "model", "dvfs", "quantity", "value", "missing")
    assert found[:4] == [
        ("lenet", "off", "e2e_s", "4.0", ""),
        ("lenet", "on", "e2e_s", "5.0", ""),
        ("resnet", "on", "e2e_s", "4.0", ""),
        ("resnet", "off", "e2e_s", "", "out of memory"),
    ]
    assert [row[3] for row in found[4:8]] == ["0.25", "0.25", "0.25", ""]
    printed = numbers("fig06a", "model", "dvfs", "quantity", "published")
    assert ("resnet", "on", "e2e_s", "358.0") in printed
    loads = numbers("fig06b", "dvfs", "value", "published", "published_hi")
    assert loads[:2] == [("off", "20.0", "7.0", ""), ("on", "20.0", "14.0", "34.0")]
    on = [("on", str(k), str(4.0 * k + t), mhz) for k in (0, 1)
          for t, mhz in enumerate(("300.0", "300.0", "600.0", "600.0"))]  # fmt: skip
    off = [("off", str(k), str(4.0 * k + t), "600.0") for k in (0, 1) for t in range(4)]
    assert numbers("fig06c", "dvfs", "epoch", "t_s", "value") == off + on  # as many epochs of both
    names = [text for text in words(job, "fig06c") if text.startswith("published: ")]
    assert names == [f"published: DVFS {dvfs}" for dvfs in ("off", "on", "on")]
    shares = numbers("fig06d", "model", "clock", "value", "published", "missing")
    assert shares[:5] == [
        ("lenet", "0 to 50 % of peak", "25.0", "", ""),
        ("lenet", "50 to 70 % of peak", "25.0", "", ""),
        ("lenet", "70 to 90 % of peak", "25.0", "", ""),
        ("lenet", "90 % of peak and above", "25.0", "", ""),
        ("lenet", "", "75.0", "50.0", ""),
    ]
    nothing = "no cpu*_mhz of a valid epoch"
    assert [row[2:] for row in shares[5:]] == [*[("", "", nothing)] * 4, ("", "90.0", nothing)]


def test_bars_and_shares_are_of_the_papers_epochs_after_the_first(
    job_of, made_up, records, numbers
):
    told = {"energy_paper_wh": 0.25, "gpu_util_pct": 20.0}
    off = made_up(*[told] * 9, dvfs="off", setup="sigmetrics2023")
    on = made_up({}, {}, {}, dvfs="on", setup="sigmetrics2023")
    records(0, name="z", cpu_mhz=(9, 1e3, 1e3, 1e3, 1e3, 9))
    job = job_of("fig06", off, on, records={"run-1": records(1, 2, name="z")})
    draw(job)
    assert any("2 runs of LeNet-5, 7 epochs" in text for text in words(job, "fig06a"))
    columns = ("quantity", "value", "epoch_set", "n_epochs")
    assert numbers("fig06d", *columns)[-1] == ("cpu_below_peak_time_pct", "75.0", "1+", "2")
