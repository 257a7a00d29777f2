"""Converters: the authors' own files, in their units; what cannot be is named by file and line."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochwatt.errors import ConfigError
from epochwatt.sweeps.public.convert import convert
from epochwatt.sweeps.public.readers import FORMATS, Wanted

WANTED = Wanted("theirs")

# The headers are the authors'; the numbers are ours.
TRANSLUCENCE = {
    "num_cores": "2.0",
    "core_freq": "1632000",
    "gpu_freq": "691200000",
    "emc_freq": "665600000",
    "cache_pressure": "0",
    "swappiness": "10",
    "memory_growth": "0.9",
    "inference_time": "12.5",
    "total_energy_consumption": "125000",
    "context-switches": "9499",
}
ZEUS = {
    "dataset": "cifar100",
    "network": "shufflenetv2",
    "batch_size": "1024",
    "optimizer": "adadelta",
    "power_limit": "100",
    "time_per_epoch": "11.5",
    "average_power": "86.25",
}
OPML = {
    "model_name": "xception",
    "sample": "a.JPEG",
    "size": "200x200",
    "system_name": "TX2",
    "config_name": "Config0",
    "core0_status": "1",
    "core1_status": "1",
    "core2_status": "0",
    "core3_status": "0",
    "core_freq": "1113600",
    "gpu_status": "1",
    "gpu_freq": "1300500000",
    "emc_status": "1",
    "emc_freq": "1062400000",
    "inference_time": "0.18",
    "power_consumption": "2733.2",
}
CAFFE = {
    "appName": "caffe",
    "coreF": "1700",
    "memF": "3500",
    "arg": "train --solver=googlenetimagenet-b128-GPU-solver.prototxt -gpu=0",
    "time/s": "0.45",
    "power/W": "193.5",
}
KERNEL = {
    "": "4",
    "appName": "BlackScholes",
    "coreF": "1600",
    "memF": "4000",
    "argNo": "input00",
    "kernel": "BlackScholesGPU",
    "time/ms": "2.5",
    "blocks": "(224000 1 1) (128 1 1)",
    "power/W": "201.5",
}
ALI = {
    "": "0",
    "ID": "0.0",
    "power_usage": "185.5",
    "sm_clock": "1409.7",
    "run_time": "7.25",
    "application": "tpacf",
    "sm_app_clock": "1410",
}
ELLIS = {
    "run_id": "clk1605_r1",
    "clock_target_mhz": "1605",
    "clock_applied_mhz": "1605",
    "avg_clock_mhz": "1604.5",
    "runtime_s": "7.5",
    "avg_power_w": "39.5",
    "energy_j": "296.25",
    "log_path": "data\\raw\\memory\\logs\\x.csv",
}
LINES = {
    "translucence": TRANSLUCENCE,
    "zeus": ZEUS,
    "opml19": OPML,
    "hkbu": KERNEL,
    "ali": ALI,
    "ellis": ELLIS,
}
NAMES = {
    "translucence": "tx1_5000_image_target.csv",
    "zeus": "summary_power_a40.csv",
    "opml19": "output_xception_200x200.csv",
    "hkbu": "gtx1080ti-dvfs-real-Performance-Power.csv",
    "ali": "GA100-dvfs-accel-dcgm.csv",
    "ellis": "17_tanh.csv",
}


def write(path, *lines, delimiter=","):
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, lines[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(lines)
    return path


def original(folder, format_, *changes):
    """Write a file of a format as its authors name it: one line per change of its usual one."""
    lines = [LINES[format_] | change for change in changes or ({},)]
    delimiter = " " if format_ == "opml19" else ","
    return write(folder / NAMES[format_], *lines, delimiter=delimiter)


def rows(format_, *paths, wanted=WANTED):
    tables, _ = convert(format_, paths, wanted)
    return [row for table in tables for row in table.rows]


def row(format_, *paths, wanted=WANTED):
    (only,) = rows(format_, *paths, wanted=wanted)
    return only


def test_translucence(tmp_path):
    found_row = row("translucence", original(tmp_path, "translucence"))
    assert (found_row.cores, found_row.cpu_mhz, found_row.gpu_mhz) == (2, 1632, 691.2)
    assert found_row.emc_mhz == 665.6
    assert (found_row.time_s, found_row.power_w, found_row.power_scope) == (12.5, 10, "module")
    assert (found_row.device, found_row.workload) == ("tx1", "image")
    assert (found_row.work, found_row.provenance) == ("5000 images", "public")


def test_translucence_of_another_board_has_no_power_where_it_is_of_some_rails(tmp_path):
    energies_mj = ("28000", "30000", "400000")  # a median of 2.4 W
    lines = [
        TRANSLUCENCE | {"num_cores": str(i + 1), "total_energy_consumption": energy}
        for i, energy in enumerate(energies_mj)
    ]
    path = write(tmp_path / "xavier_image_source.csv", *lines)
    for found_row in rows("translucence", path):
        assert (found_row.device, found_row.work) == ("xavier", "all image inputs")
        assert (found_row.power_w, found_row.power_scope) == (None, "")
        assert found_row.flags == "power_of_some_rails"
        assert found_row.valid
    nlp = write(tmp_path / "xavier_nlp_target.csv", TRANSLUCENCE)
    assert row("translucence", nlp).workload == "nlp"


@pytest.mark.parametrize(("gpu", "device"), [("a40", "A40"), ("p100", "P100"), ("new7", "NEW7")])
def test_zeus_takes_the_gpu_from_the_name_of_the_file(gpu, device, tmp_path):
    found_row = row("zeus", write(tmp_path / f"summary_power_{gpu}.csv", ZEUS))
    assert found_row.device == device
    assert found_row.workload == "shufflenetv2-cifar100-adadelta"
    assert (found_row.batch_size, found_row.work, found_row.task) == (1024, "epoch", "train")
    assert (found_row.power_limit_w, found_row.time_s) == (100, 11.5)
    assert (found_row.power_w, found_row.power_scope) == (86.25, "gpu")


def test_zeus_windows_have_the_power_of_all_gpus(tmp_path):
    path = tmp_path / "A40+resnet18+gpu0,1.csv"
    header = "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n"
    windows = "1.5,__GlobalPowerLimitOptimizer_250,10,1300,1400\n9.5,epoch,10,1300,1400\n"
    path.write_text(header + windows)
    (table,), left_out = convert("zeus", [path], WANTED)
    (found_row,) = table.rows
    assert (found_row.device, found_row.workload) == ("A40", "resnet18 on 2 GPUs")
    assert (found_row.power_limit_w, found_row.time_s, found_row.power_w) == (250, 10, 270)
    assert left_out == [f"{path}, line 3: window epoch is of no power limit"]


def test_a_device_that_nobody_names_is_asked_for(tmp_path):
    path = write(tmp_path / "copy.csv", ZEUS)
    with pytest.raises(ConfigError, match="--device"):
        convert("zeus", [path], WANTED)
    assert row("zeus", path, wanted=Wanted("theirs", "V100")).device == "V100"


def test_energy_time_fairness_reads_networks_and_kernels(tmp_path):
    part = {"exec_time": {"114750000": 180739}, "gpu_power": {"114750000": 498}}
    path = tmp_path / "resnet18_profile.json"
    kernels = {"conv2d": {"kernel_name": "conv2d", **part}}
    path.write_text(json.dumps({"model_name": "resnet18", **part, "kernel_profile": kernels}))
    whole, kernel = rows("energy-time-fairness", path)
    assert (whole.device, whole.workload, whole.work) == ("tx2", "resnet18", "inference")
    assert (kernel.workload, kernel.work) == ("resnet18 conv2d", "kernel")
    assert (whole.gpu_mhz, whole.time_s, whole.power_w) == (114.75, 0.180739, 0.498)
    path.write_text("[]")
    with pytest.raises(ConfigError, match="not a profile"):
        convert("energy-time-fairness", [path], WANTED)


def test_ali(tmp_path):
    found_row = row("ali", original(tmp_path, "ali"))
    assert (found_row.device, found_row.workload) == ("GA100", "tpacf")
    assert (found_row.gpu_mhz, found_row.time_s, found_row.power_w) == (1410, 7.25, 185.5)


def test_opml19_counts_cores_and_takes_no_sum_for_power(tmp_path):
    found_row = row("opml19", original(tmp_path, "opml19"))
    assert (found_row.cores, found_row.cpu_mhz) == (2, 1113.6)
    assert (found_row.gpu_mhz, found_row.emc_mhz) == (1300.5, 1062.4)
    assert (found_row.device, found_row.workload) == ("tx2", "xception 200x200")
    assert (found_row.time_s, found_row.power_w) == (0.18, None)


def test_hkbu_reads_caffe_and_kernels_in_the_unit_of_the_column(tmp_path):
    caffe = row("hkbu", write(tmp_path / "titanX-caffe-googlenet.csv", CAFFE))
    assert (caffe.device, caffe.workload) == ("titanX", "googlenetimagenet-b128")
    assert (caffe.task, caffe.work, caffe.batch_size) == ("train", "iteration", 128)
    assert (caffe.gpu_mhz, caffe.emc_mhz, caffe.time_s) == (1700, 3500, 0.45)
    timed = CAFFE | {"arg": "time -model=vgg.train_val.prototxt.txt -gpu=1 -iterations=500"}
    vgg = row("hkbu", write(tmp_path / "titanX-vgg.csv", timed))
    assert (vgg.workload, vgg.work) == ("vgg.train_val", "forward and backward pass")
    kernel = row("hkbu", original(tmp_path, "hkbu"))
    assert (kernel.device, kernel.time_s) == ("gtx1080ti", 0.0025)
    assert kernel.workload == "BlackScholes BlackScholesGPU input00"


def bronco_log(path, rails_mw, off=4):
    loads = [f"CPU {n} Load (%)" for n in range(12)]
    rails = ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "VDDQ_VDD2_1V8AO")
    columns = ["Index", "Time (mS)", "CPU Frequency (MHz)", *loads]
    columns += [f"{rail} {kind} (mW)" for rail in rails for kind in ("Current", "Average")]
    power = [cell for mw in rails_mw for cell in (mw, 1)]
    load = ["off" if n >= 12 - off else "3" for n in range(12)]
    with path.open("w", newline="") as handle:
        handle.write('"Thu Oct 24 10:34:56 PM UTC 2024\n"\n')
        writer = csv.writer(handle)
        writer.writerow(columns)
        for i, mhz in enumerate((729, 1728, 1190)):
            writer.writerow([i, 8000 + 1000 * i, mhz, *load, *power])
    return path


def test_broncospace_adds_three_rails_and_takes_the_mode_from_the_name(tmp_path):
    rails_mw = (9000, 3000, 6000, 2000)  # the last is a part of the third
    path = bronco_log(tmp_path / "resnet_training_30W.csv", rails_mw)
    found_row = row("broncospace", path)
    assert (found_row.device, found_row.task, found_row.cores) == ("agx_orin", "train", 8)
    assert (found_row.cpu_mhz, found_row.gpu_mhz, found_row.emc_mhz) == (1728, 612, 3199)
    assert (found_row.power_w, found_row.power_scope) == (pytest.approx(18), "module")
    assert (found_row.time_s, found_row.gpu_share) == (3, 0.5)
    strongest = row("broncospace", bronco_log(tmp_path / "resnet_training.csv", rails_mw, 0))
    assert (strongest.cores, strongest.gpu_mhz) == (12, 1300.5)
    other = bronco_log(tmp_path / "phi_30W.csv", rails_mw)
    _, left_out = convert("broncospace", [path, other], WANTED)
    assert "not known to do the same work" in left_out[0]
    other.write_text("Index,Time\n")
    with pytest.raises(ConfigError, match=r"no column Time \(mS\)"):
        convert("broncospace", [other], WANTED)


def test_hkbu_refuses_clocks_that_are_offsets(tmp_path):
    path = write(tmp_path / "titanX-caffe-vgg.csv", CAFFE | {"coreF": "-100", "memF": "500"})
    with pytest.raises(ConfigError, match="offsets"):
        convert("hkbu", [path], WANTED)


def test_ellis_flags_clocks_that_were_not_kept(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    path = original(folder, "ellis", {}, {"clock_applied_mhz": "3105"})
    kept, lower = rows("ellis", path)
    assert (kept.workload, kept.gpu_mhz, kept.valid) == ("memory 17_tanh", 1605, True)
    assert (lower.gpu_mhz, lower.valid, lower.flags) == (3105, False, "clock_below_request")


@pytest.mark.parametrize("format_", LINES)
@pytest.mark.parametrize("column_of", ["time", "clock"])
def test_text_in_a_number_is_named(format_, column_of, tmp_path):
    words = {
        "time": ("inference_time", "time_per_epoch", "time/ms", "run_time", "runtime_s"),
        "clock": ("core_freq", "power_limit", "coreF", "sm_app_clock", "clock_applied_mhz"),
    }[column_of]
    (column,) = set(words) & set(LINES[format_])
    path = original(tmp_path, format_, {}, {column: "fast"})
    with pytest.raises(ConfigError) as caught:
        convert(format_, [path], WANTED)
    assert caught.value.where == f"{path}, line 3"
    assert column in str(caught.value)
    assert "'fast'" in str(caught.value)
    assert "number" in str(caught.value.allowed)


@pytest.mark.parametrize(
    ("format_", "column"),
    [
        ("translucence", "emc_freq"),
        ("translucence", "inference_time"),
        ("zeus", "network"),
        ("opml19", "gpu_freq"),
        ("hkbu", "time/ms"),
        ("ali", "application"),
        ("ellis", "runtime_s"),
    ],
)
def test_a_missing_column_is_named_with_those_there_are(format_, column, tmp_path):
    line = {name: cell for name, cell in LINES[format_].items() if name != column}
    delimiter = " " if format_ == "opml19" else ","
    path = write(tmp_path / NAMES[format_], line, delimiter=delimiter)
    with pytest.raises(ConfigError) as caught:
        convert(format_, [path], WANTED)
    assert column in caught.value.problem
    assert caught.value.where == str(path)


@pytest.mark.parametrize("clock", ["1632", "1632000000", "0", "nan", "-1632000"])
def test_a_clock_in_another_unit_is_refused(clock, tmp_path):
    path = original(tmp_path, "translucence", {"core_freq": clock})
    with pytest.raises(ConfigError, match="core_freq"):
        convert("translucence", [path], WANTED)


@pytest.mark.parametrize("nothing", ["", "nan", "0"])
def test_a_line_without_a_time_is_left_out_and_one_without_power_stays(nothing, tmp_path):
    path = original(tmp_path, "zeus", {}, {"time_per_epoch": nothing}, {"average_power": nothing})
    (table,), left_out = convert("zeus", [path], WANTED)
    assert [r.power_w for r in table.rows] == [86.25, None]
    assert left_out == [f"{path}, line 3: no time"]


def test_a_workload_that_says_nothing_is_left_out_beside_one_that_does(tmp_path):
    clocks, noise = range(510, 1410, 15), (1.0, 2.0, 1.5, 0.7)
    lines = [
        {"sm_app_clock": str(mhz), "run_time": str(time_s), "application": name, "power_usage": ""}
        for i, mhz in enumerate(clocks)
        for name, time_s in (("lstm", 3000 / mhz), ("noise", noise[i % len(noise)]))
    ]
    path = original(tmp_path, "ali", *lines)
    (table,), left_out = convert("ali", [path], WANTED)
    assert table.key.workload == "lstm"
    assert "GA100 noise: neither time nor power" in left_out[0]
    alone = [line for line in lines if line["application"] == "noise"]
    with pytest.raises(ConfigError, match="says nothing"):
        convert("ali", [original(tmp_path, "ali", *alone)], WANTED)


def test_a_file_without_a_line_of_use_is_refused(tmp_path):
    path = original(tmp_path, "zeus", {"time_per_epoch": ""})
    with pytest.raises(ConfigError, match="no line of use"):
        convert("zeus", [path], WANTED)
    with pytest.raises(ConfigError, match="no such format"):
        convert("zeuss", [path], WANTED)
    with pytest.raises(ConfigError, match="cannot be read"):
        convert("zeus", [tmp_path / "summary_power_v100.csv"], WANTED)


def test_further_columns_and_a_byte_order_mark_are_ignored(tmp_path):
    path = write(tmp_path / "summary_power_a40.csv", ZEUS | {"counter": "x", "": "7"})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert row("zeus", path).time_s == 11.5


clock_khz = st.integers(102_000, 2_300_000)


@settings(max_examples=30, deadline=None)
@given(
    core_khz=clock_khz,
    gpu_hz=st.integers(76_800_000, 1_400_000_000),
    time_s=st.floats(1e-3, 1e4),
    power_w=st.floats(5, 60),
)
def test_units_of_translucence(core_khz, gpu_hz, time_s, power_w, tmp_path_factory):
    change = {
        "core_freq": f"{core_khz}",
        "gpu_freq": f"{gpu_hz}",
        "inference_time": repr(time_s),
        "total_energy_consumption": repr(power_w * time_s * 1e3),
    }
    found_row = row("translucence", original(tmp_path_factory.mktemp("t"), "translucence", change))
    assert found_row.cpu_mhz * 1e3 == pytest.approx(core_khz, rel=1e-12)
    assert found_row.gpu_mhz * 1e6 == pytest.approx(gpu_hz, rel=1e-12)
    assert found_row.power_w == pytest.approx(power_w, rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(limits=st.lists(st.sampled_from([100, 125, 150, 175]), min_size=1, max_size=30))
def test_repeats_of_a_mode_are_numbered_in_order(limits, tmp_path_factory):
    changes = [{"power_limit": str(w), "time_per_epoch": str(i + 1)} for i, w in enumerate(limits)]
    result = rows("zeus", original(tmp_path_factory.mktemp("t"), "zeus", *changes))
    for watts in set(limits):
        of_mode = [r for r in result if r.power_limit_w == watts]
        assert [r.repeat for r in of_mode] == list(range(limits.count(watts)))
        assert [r.time_s for r in of_mode] == sorted(r.time_s for r in of_mode)


def test_every_format_has_a_test_here_and_says_what_its_files_are():
    assert set(FORMATS) == {*LINES, "energy-time-fairness", "broncospace"}
    assert all(form.title and form.files for form in FORMATS.values())


def test_only_some_tables_of_a_file(tmp_path):
    lines = [
        {"table": name, **TRANSLUCENCE} for name in ("tx1_5000_image_target", "tx2_5000_image_x")
    ]
    path = write(Path(tmp_path) / "all.csv", *lines)
    assert row("translucence", path, wanted=Wanted("theirs", only="tx2_*")).device == "tx2"
