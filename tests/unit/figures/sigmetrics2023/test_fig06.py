"""Figure 6: the numbers plotted; panels c and d are read from the telemetry of the epochs."""

import numpy as np
import pytest

from epochwatt.board.records import files
from epochwatt.board.records.samples import write_samples
from epochwatt.figures.common.runs import read_runs
from epochwatt.figures.common.series import series
from epochwatt.figures.sigmetrics2023.fig06 import draw

CPU_MHZ = 1000.0
T_S = np.array([99.0, 100.0, 101.0, 102.0, 103.0, 105.0])  # the epoch is from 100 to 104


@pytest.fixture
def records(tmp_path):
    """Return a function that writes the telemetry of epochs; it gives the folder.

    Each epoch has six samples, the first and the last of them outside its bounds.
    """

    def write(
        *epochs, name="a", gpu_mhz=(9, 300, 300, 600, 600, 9), cpu_mhz=(9, 400, 600, 800, 1e3, 9)
    ):
        for epoch in epochs:
            folder = tmp_path / name / f"epoch-{epoch}"
            folder.mkdir(parents=True)
            record = {"t_start_mono_s": 100.0, "t_end_mono_s": 104.0, "e2e_s": 4.0}
            record["factors"] = {"power_mode_settings": {"cpu_mhz": CPU_MHZ}}
            files.write_json(str(folder / "record.json"), record)
            board = np.array(gpu_mhz, dtype=float)[:, None]
            host = np.column_stack([cpu_mhz, cpu_mhz]).astype(float)
            write_samples(str(folder), "board", ("gpu_mhz",), T_S, T_S, board)
            write_samples(str(folder), "host", ("cpu0_mhz", "cpu1_mhz"), T_S, T_S, host)
        return str(tmp_path / name)

    return write


@pytest.fixture
def drawn(job_of, made_up, gone, records):
    """LeNet with DVFS off for three epochs and on for two, ResNet without records or not at all."""
    told = {"energy_paper_wh": 0.25, "gpu_util_pct": 20.0}
    paths = [
        made_up({}, told, told, dvfs="off"),
        made_up({}, {**told, "e2e_s": 5.0}, dvfs="on"),
        made_up({}, told, model="resnet", dvfs="on"),
    ]
    folders = {"run-0": records(0, 1, 2, name="off", gpu_mhz=(600,) * 6), "run-1": records(0, 1)}
    missing = [gone(model="resnet", dvfs="off")]
    draw(job_of("fig06", *paths, missing=missing, records=folders))


class TestSeries:
    """A column over the training time."""

    def test_epochs_follow_each_other_and_samples_outside_are_left_out(self, made_up, records):
        (run,) = read_runs([made_up({}, {"valid": False}, {})], [])
        told = series(run, records(0, 1, 2), "board", "gpu_mhz")
        assert told.t_s.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
        assert told.values.tolist() == [300.0, 300.0, 600.0, 600.0] * 2
        assert told.epoch.tolist() == [0] * 4 + [2] * 4
        assert (told.bounds_s, told.missing) == ([4.0, 8.0], "")

    def test_of_several_cores_it_is_the_mean(self, made_up, records):
        (run,) = read_runs([made_up({})], [])
        folder = records(0, cpu_mhz=(1, 2, 3, 4, 5, 6))
        assert series(run, folder, "host", "cpu*_mhz").values.tolist() == [2.0, 3.0, 4.0, 5.0]

    @pytest.mark.parametrize("column", ["nvdec_mhz", "gpu_mhz"])
    def test_without_readings_it_says_so(self, made_up, records, column):
        (run,) = read_runs([made_up({})], [])
        told = series(run, records(0, gpu_mhz=(np.nan,) * 6), "board", column)
        assert (told.values.size, told.missing) == (0, f"no {column} of a valid epoch")


def test_time_and_energy_with_dvfs_off_and_on(drawn, numbers):
    told = numbers("fig06a", "model", "dvfs", "quantity", "value", "missing")
    assert told[:4] == [
        ("lenet", "off", "e2e_s", "4.0", ""),
        ("lenet", "on", "e2e_s", "5.0", ""),
        ("resnet", "on", "e2e_s", "4.0", ""),
        ("resnet", "off", "e2e_s", "", "out of memory"),
    ]
    assert [row[3] for row in told[4:]] == ["0.25", "0.25", "0.25", ""]
    assert ("resnet", "on", "e2e_s", "358.0") in numbers(
        "fig06a", "model", "dvfs", "quantity", "published"
    )


def test_load_of_the_gpu(drawn, numbers):
    told = numbers("fig06b", "dvfs", "quantity", "value", "published", "published_hi")
    assert told[:2] == [
        ("off", "gpu_util_pct", "20.0", "7.0", ""),
        ("on", "gpu_util_pct", "20.0", "14.0", "34.0"),
    ]


def test_gpu_clock_of_as_many_epochs_as_both_have(drawn, numbers):
    told = numbers("fig06c", "dvfs", "epoch", "t_s", "value")
    on = [("on", str(k), str(4.0 * k + t), mhz) for k in (0, 1)
          for t, mhz in enumerate(("300.0", "300.0", "600.0", "600.0"))]  # fmt: skip
    off = [("off", str(k), str(4.0 * k + t), "600.0") for k in (0, 1) for t in range(4)]
    assert told == off + on


def test_share_of_time_at_cpu_clocks(drawn, numbers):
    told = numbers("fig06d", "model", "clock", "value", "published", "missing")
    assert told[:5] == [
        ("lenet", "0 to 50 % of peak", "25.0", "", ""),
        ("lenet", "50 to 70 % of peak", "25.0", "", ""),
        ("lenet", "70 to 90 % of peak", "25.0", "", ""),
        ("lenet", "90 % of peak and above", "25.0", "", ""),
        ("lenet", "", "75.0", "50.0", ""),
    ]
    assert told[5:] == [
        *(("resnet", clock, "", "", "no cpu*_mhz of a valid epoch") for _, clock, *_ in told[:4]),
        ("resnet", "", "", "90.0", "no cpu*_mhz of a valid epoch"),
    ]


def test_published_bounds_on_what_dvfs_changes_are_beside_ours(job_of, made_up, records, numbers):
    paths = [
        made_up({}, {"e2e_s": e2e, "energy_paper_wh": 1.0}, model="resnet", dvfs=dvfs)
        for dvfs, e2e in (("off", 4.0), ("on", 5.0))
    ]
    folders = {f"run-{n}": records(0, 1, name=f"r{n}") for n in range(2)}
    draw(job_of("fig06", *paths, records=folders))
    told = numbers("fig06a", "published_id", "value", "is_relation")
    assert [row[:2] for row in told if row[2]] == [("RS5.5.1-01", "25.0"), ("RS5.5.1-02", "0.0")]


def test_the_bound_on_what_dvfs_changes_is_held_to_each_network(job_of, made_up, records, numbers):
    paths = [
        made_up({}, {"e2e_s": 4.0, "energy_paper_wh": energy}, model=model, dvfs=dvfs)
        for model, energies in (("lenet", (1.0, 0.8)), ("resnet", (1.0, 1.01)))
        for dvfs, energy in zip(("off", "on"), energies, strict=True)
    ]
    folders = {f"run-{n}": records(0, 1, name=f"h{n}") for n in range(4)}
    job = job_of("fig06", *paths, records=folders)
    draw(job)
    found = {text.get_text(): text.get_color() for text, _, _ in job.saved["fig06a"]}
    assert {"within 3 %, here -20.0 %", "within 3 %, here +1.0 %"} < set(found)
    assert "within 2 %, here +0.0 %" in found
    told = numbers("fig06a", "model", "published_id", "value", "is_relation")
    assert [(*row[:2], round(float(row[2]), 6)) for row in told if row[3]] == [
        *(("lenet", "RS5.5.1-01", 0.0), ("resnet", "RS5.5.1-01", 0.0)),
        *(("lenet", "RS5.5.1-02", 20.0), ("resnet", "RS5.5.1-02", 1.0)),
    ]


def test_published_clocks_are_named_by_their_dvfs(job_of, made_up, records):
    runs = [made_up({}, dvfs=dvfs) for dvfs in ("off", "on")]
    job = job_of("fig06", *runs, made_up({}, model="resnet", dvfs="on"),
                 records={f"run-{n}": records(0, name=f"c{n}") for n in range(3)})  # fmt: skip
    draw(job)
    words = [text.get_text() for text, _, _ in job.saved["fig06c"]]
    assert [word for word in words if word in ("off", "on", "off and on")] == ["off", "on", "on"]


def test_utilisation_ends_at_100_and_bars_are_of_the_papers_epochs(job_of, made_up):
    told = {"energy_paper_wh": 0.25, "gpu_util_pct": 20.0}
    runs = [made_up(*[told] * 9, dvfs=dvfs, setup="sigmetrics2023") for dvfs in ("off", "on")]
    job = job_of("fig06", *runs)
    draw(job)
    for panel in ("fig06a", "fig06b"):
        words = " ".join(text.get_text() for text, _, _ in job.saved[panel])
        assert "2 runs, 10 epochs" in words
        assert ", epochs 1+" in words


def test_shares_of_cpu_clocks_are_of_the_epochs_after_the_first(
    job_of, made_up, records, numbers, tmp_path
):
    path = made_up({}, {}, {}, dvfs="on")
    folder = records(0, name="z", cpu_mhz=(9, 1e3, 1e3, 1e3, 1e3, 9))
    records(1, 2, name="z")
    draw(job_of("fig06", path, records={"run-0": folder}))
    (below,) = [
        row
        for row in numbers("fig06d", "quantity", "value", "epoch_set", "n_epochs")
        if row[0] == "cpu_below_peak_time_pct"
    ]
    assert below[1:] == ("75.0", "1+", "2")


def test_without_a_later_epoch_no_share_is_drawn(job_of, made_up, records, numbers):
    draw(job_of("fig06", made_up({}, dvfs="on"), records={"run-0": records(0, name="y")}))
    assert set(numbers("fig06d", "value", "missing")) == {("", "no epoch after the first")}
