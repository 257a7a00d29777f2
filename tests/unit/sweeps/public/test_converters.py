"""Converters: the authors' own files, in their units; what cannot be is named by file and line."""

import csv
import json

import pytest

from epochwatt.errors import ConfigError
from epochwatt.sweeps.public.convert import convert
from epochwatt.sweeps.public.readers import Wanted

WANTED = Wanted("theirs")

# The headers are the authors'; the numbers are ours.
TRANSLUCENCE = {
    **{"num_cores": "2.0", "core_freq": "1632000", "gpu_freq": "691200000"},
    **{"emc_freq": "665600000", "cache_pressure": "0", "swappiness": "10"},
    **{"inference_time": "12.5", "total_energy_consumption": "125000", "context-switches": "9"},
}
ZEUS = {
    **{"dataset": "cifar100", "network": "shufflenetv2", "batch_size": "1024"},
    **{"optimizer": "adadelta", "power_limit": "100", "time_per_epoch": "11.5"},
    **{"average_power": "86.25"},
}
OPML = {
    **{"model_name": "xception", "sample": "a.JPEG", "size": "200x200", "system_name": "TX2"},
    **{"core0_status": "1", "core1_status": "1", "core2_status": "0", "core_freq": "1113600"},
    **{"gpu_status": "1", "gpu_freq": "1300500000", "emc_freq": "1062400000"},
    **{"inference_time": "0.18", "power_consumption": "2733.2"},
}
CAFFE = {
    **{"appName": "caffe", "coreF": "1700", "memF": "3500", "time/s": "0.45", "power/W": "193.5"},
    "arg": "train --solver=googlenetimagenet-b128-GPU-solver.prototxt -gpu=0",
}
KERNEL = {
    **{"": "4", "appName": "BlackScholes", "coreF": "1600", "memF": "4000", "argNo": "input00"},
    **{"kernel": "BlackScholesGPU", "time/ms": "2.5", "power/W": "201.5"},
}
ALI = {
    **{"": "0", "ID": "0.0", "power_usage": "185.5", "sm_clock": "1409.7", "run_time": "7.25"},
    **{"application": "tpacf", "sm_app_clock": "1410"},
}
ELLIS = {
    **{"run_id": "clk1605_r1", "clock_target_mhz": "1605", "clock_applied_mhz": "1605"},
    **{"avg_clock_mhz": "1604.5", "runtime_s": "7.5", "avg_power_w": "39.5"},
}
LINES = {  # format -> name of a file, its usual line
    "translucence": ("tx1_5000_image_target.csv", TRANSLUCENCE),
    "zeus": ("summary_power_a40.csv", ZEUS),
    "opml19": ("output_xception_200x200.csv", OPML),
    "hkbu": ("gtx1080ti-dvfs-real-Performance-Power.csv", KERNEL),
    "ali": ("GA100-dvfs-accel-dcgm.csv", ALI),
    "ellis": ("memory/17_tanh.csv", ELLIS),
}


def write(path, *lines, delimiter=","):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, lines[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(lines)
    return path


def original(folder, format_, *changes):
    """Write a file of a format as its authors name it: one line per change of its usual one."""
    name, usual = LINES[format_]
    delimiter = " " if format_ == "opml19" else ","
    return write(folder / name, *[usual | c for c in changes or ({},)], delimiter=delimiter)


def rows(format_, *paths, wanted=WANTED):
    tables, _ = convert(format_, paths, wanted)
    return [row for table in tables for row in table.rows]


TIMED = CAFFE | {"arg": "time -model=vgg.train_val.prototxt.txt -gpu=1 -iterations=500"}


@pytest.mark.parametrize(
    ("format_", "name", "line", "expected"),
    [
        (
            *("translucence", *LINES["translucence"]),
            {
                **{"cores": 2, "cpu_mhz": 1632, "gpu_mhz": 691.2, "emc_mhz": 665.6},
                **{"time_s": 12.5, "power_w": 10, "power_scope": "module", "device": "tx1"},
                **{"workload": "image", "work": "5000 images", "provenance": "public"},
            },
        ),
        (
            *("translucence", "xavier_nlp_target.csv", TRANSLUCENCE),
            {"device": "xavier", "workload": "nlp", "work": "all nlp inputs"},
        ),
        (
            *("zeus", *LINES["zeus"]),
            {
                **{"device": "A40", "workload": "shufflenetv2-cifar100-adadelta", "task": "train"},
                **{"batch_size": 1024, "work": "epoch", "power_limit_w": 100, "time_s": 11.5},
                **{"power_w": 86.25, "power_scope": "gpu"},
            },
        ),
        ("zeus", "summary_power_new7.csv", ZEUS, {"device": "NEW7"}),
        (
            *("ali", *LINES["ali"]),
            {"device": "GA100", "workload": "tpacf", "gpu_mhz": 1410, "time_s": 7.25}
            | {"power_w": 185.5},
        ),
        (
            *("opml19", *LINES["opml19"]),
            {
                **{"cores": 2, "cpu_mhz": 1113.6, "gpu_mhz": 1300.5, "emc_mhz": 1062.4},
                **{"device": "tx2", "workload": "xception 200x200", "time_s": 0.18},
                **{"power_w": None},
            },
        ),
        (
            *("hkbu", "titanX-caffe-googlenet.csv", CAFFE),
            {
                **{"device": "titanX", "workload": "googlenetimagenet-b128", "task": "train"},
                **{"work": "iteration", "batch_size": 128, "gpu_mhz": 1700, "emc_mhz": 3500},
                **{"time_s": 0.45, "power_w": 193.5},
            },
        ),
        (
            *("hkbu", "titanX-vgg.csv", TIMED),
            {"workload": "vgg.train_val", "work": "forward and backward pass"},
        ),
        (
            *("hkbu", *LINES["hkbu"]),
            {"device": "gtx1080ti", "time_s": 0.0025}
            | {"workload": "BlackScholes BlackScholesGPU input00"},
        ),
        (
            *("ellis", *LINES["ellis"]),
            {"workload": "memory 17_tanh", "gpu_mhz": 1605, "valid": True, "flags": ""},
        ),
        (
            *("ellis", "memory/17_tanh.csv", ELLIS | {"clock_applied_mhz": "3105"}),
            {"gpu_mhz": 3105, "valid": False, "flags": "clock_below_request"},
        ),
    ],
)
def test_a_line_of_each_format(format_, name, line, expected, tmp_path):
    delimiter = " " if format_ == "opml19" else ","
    (row,) = rows(format_, write(tmp_path / name, line, delimiter=delimiter))
    assert {column: getattr(row, column) for column in expected} == expected


def test_translucence_has_no_power_where_it_is_of_some_rails_and_tables_are_told_apart(tmp_path):
    lines = [
        {"table": table, **TRANSLUCENCE, "num_cores": cores, "total_energy_consumption": mj}
        for table in ("tx1_5000_image_target", "tx2_5000_image_x")
        for cores, mj in (("1", "28000"), ("2", "30000"), ("3", "400000"))  # a median of 2.4 W
    ]
    path = write(tmp_path / "all.csv", *lines)
    found = rows("translucence", path, wanted=Wanted("theirs", only="tx2_*"))
    assert len(found) == 3
    for row in found:
        assert (row.device, row.power_w, row.power_scope) == ("tx2", None, "")
        assert (row.flags, row.valid) == ("power_of_some_rails", True)


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
    (row,) = rows("broncospace", path)
    assert (row.device, row.task, row.cores) == ("agx_orin", "train", 8)
    assert (row.cpu_mhz, row.gpu_mhz, row.emc_mhz) == (1728, 612, 3199)
    assert (row.power_w, row.power_scope) == (pytest.approx(18), "module")
    assert (row.time_s, row.gpu_share) == (3, 0.5)
    (strongest,) = rows("broncospace", bronco_log(tmp_path / "resnet_training.csv", rails_mw, 0))
    assert (strongest.cores, strongest.gpu_mhz) == (12, 1300.5)
    other = bronco_log(tmp_path / "phi_30W.csv", rails_mw)
    _, left_out = convert("broncospace", [path, other], WANTED)
    assert "not known to do the same work" in left_out[0]
    other.write_text("Index,Time\n")
    with pytest.raises(ConfigError, match=r"no column Time \(mS\)"):
        convert("broncospace", [other], WANTED)


@pytest.mark.parametrize(
    ("format_", "column"),
    [
        *(("translucence", "inference_time"), ("translucence", "core_freq")),
        *(("zeus", "time_per_epoch"), ("zeus", "power_limit"), ("hkbu", "time/ms")),
        *(("hkbu", "coreF"), ("ali", "run_time"), ("ali", "sm_app_clock")),
        *(("ellis", "runtime_s"), ("ellis", "clock_applied_mhz"), ("opml19", "gpu_freq")),
    ],
)
def test_text_in_a_number_and_a_missing_column_are_named(format_, column, tmp_path):
    path = original(tmp_path, format_, {}, {column: "fast"})
    with pytest.raises(ConfigError) as caught:
        convert(format_, [path], WANTED)
    assert caught.value.where == f"{path}, line 3"
    assert column in str(caught.value)
    assert "'fast'" in str(caught.value)
    assert "number" in str(caught.value.allowed)
    name, usual = LINES[format_]
    line = {name: cell for name, cell in usual.items() if name != column}
    write(tmp_path / name, line, delimiter=" " if format_ == "opml19" else ",")
    with pytest.raises(ConfigError) as caught:
        convert(format_, [path], WANTED)
    assert column in caught.value.problem
    assert caught.value.where == str(path)


@pytest.mark.parametrize("clock", ["1632", "1632000000", "0", "nan", "-1632000"])
def test_a_clock_in_another_unit_or_an_offset_is_refused(clock, tmp_path):
    path = original(tmp_path, "translucence", {"core_freq": clock})
    with pytest.raises(ConfigError, match="core_freq"):
        convert("translucence", [path], WANTED)
    path = write(tmp_path / "titanX-caffe-vgg.csv", CAFFE | {"coreF": "-100", "memF": "500"})
    with pytest.raises(ConfigError, match="offsets"):
        convert("hkbu", [path], WANTED)


@pytest.mark.parametrize("nothing", ["", "nan", "0"])
def test_a_line_without_a_time_is_left_out_and_one_without_power_stays(nothing, tmp_path):
    path = original(tmp_path, "zeus", {}, {"time_per_epoch": nothing}, {"average_power": nothing})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # a byte order mark is ignored
    (table,), left_out = convert("zeus", [path], WANTED)
    assert [row.power_w for row in table.rows] == [86.25, None]
    assert left_out == [f"{path}, line 3: no time"]


@pytest.mark.parametrize(
    ("format_", "name", "problem"),
    [
        ("zeus", "summary_power_a40.csv", "no line of use"),
        ("zeuss", "summary_power_a40.csv", "no such format"),
        ("zeus", "summary_power_v100.csv", "cannot be read"),
    ],
)
def test_a_file_without_a_line_of_use_is_refused(format_, name, problem, tmp_path):
    original(tmp_path, "zeus", {"time_per_epoch": ""})
    with pytest.raises(ConfigError, match=problem):
        convert(format_, [tmp_path / name], WANTED)
