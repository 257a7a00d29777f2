"""Sweeps of power modes and clocks that others measured: Jetson boards and graphics cards.

Each table is a folder of `shared/data/sweeps` with a README that says where it is from. Nothing of
the models was set on them but `beliefs.TIME_WITH_POWER`. Where a sweep does not change a part of
the mode, that part is a constant. One row for each mode, the mean of its repeats.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.observations import PROCESSES, Observations, observations_from_rows

FOLDER = Path(__file__).resolve().parents[2] / "shared/data/sweeps"
TRANSLUCENCE = "translucence_jetson_tx1_tx2/configs.csv"
XCEPTION = "opml19_jetson_tx2_xception/xception_inference.csv"
CAFFE = "dlbench_caffe_gpu_core_mem_clocks/iteration_time_power.csv"
KERNELS = "hkbu_gpu_core_mem_clocks/kernel_time_power.csv"
NETWORKS = "etf_jetson_tx2_gpu_clocks/tx2_profiles.csv"
A100 = "ali_a100_core_clocks/run_time_power.csv"
OPERATORS = "ellis_operator_core_clocks/operators.csv"

CORES, CPU_MHZ, EMC_MHZ = 4, 2000.0, 2000.0  # where a sweep does not change them
THREADS, ON_THE_GPU = 4, 1  # processes: a thread for each core there is; one that feeds the GPU
LEAST_MODES = 6
REACHED_MHZ = 2400  # of the laptop's GPU: higher locks were not reached

Row = tuple[str, Mode, float, float]  # name, mode, s, W; NaN: power was not measured
Tables = dict[str, Observations]


def sweeps(folder: Path = FOLDER) -> dict[str, Tables]:
    """Return by sweep its workloads by name."""
    return {
        **{f"Jetson {t[:3].upper()}, {t[4:]}": own for t, own in _recognition(folder).items()},
        "Jetson TX2, Xception": tables(_xception(folder), THREADS),
        "Jetson TX2, ResNets (GPU rail)": tables(_resnets(folder), ON_THE_GPU),
        "Caffe training, three cards": tables(_caffe(folder), ON_THE_GPU),
        **{f"{gpu}, kernels": tables(own, ON_THE_GPU) for gpu, own in _kernels(folder).items()},
        "A100, applications": tables(_a100(folder), ON_THE_GPU),
        "laptop GPU, operators": tables(_operators(folder), ON_THE_GPU),
    }


def _recognition(folder: Path) -> dict[str, Tables]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in read(folder / TRANSLUCENCE):
        mode = _mode(row, "num_cores", "core_freq", "gpu_freq", "emc_freq")
        time_s = float(row["inference_time"])
        watts = float(row["total_energy_consumption"]) / 1e3 / time_s
        name = " ".join(row["table"].split("_")[:2])
        found[name].append((name, mode, time_s, watts))
    return {name: tables(rows, THREADS) for name, rows in found.items()}


def _xception(folder: Path) -> Iterable[Row]:
    for row in read(folder / XCEPTION):
        mode = _mode(row, "cpu_cores", "cpu_khz", "gpu_hz", "emc_hz")
        yield f"{row['image_size']} px", mode, float(row["inference_time_s"]), np.nan


def _resnets(folder: Path) -> Iterable[Row]:
    for row in read(folder / NETWORKS):
        if row["kernel"] == "(whole network)":
            mode = Mode(CORES, CPU_MHZ, float(row["gpu_hz"]) / 1e6, EMC_MHZ)
            watts = float(row["gpu_power_mw"]) / 1e3
            yield row["network"], mode, float(row["time_us"]) / 1e6, watts


def _caffe(folder: Path) -> Iterable[Row]:
    for row in read(folder / CAFFE):
        if row["clock_kind"] == "absolute":
            name = f"{row['gpu']}, {row['network']}, {row['command_arguments'].split()[0]}"
            yield name, _card(row), float(row["iteration_s"]), float(row["power_w"])


def _kernels(folder: Path) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in read(folder / KERNELS):
        name = f"{row['application']} {row['argument']} {row['kernel']}"
        time_s, watts = float(row["time_ms"]) / 1e3, float(row["power_w"] or "nan")
        if time_s > 0 and "micro" not in row["gpu"]:
            found[row["gpu"]].append((name, _card(row), time_s, watts))
    return found


def _a100(folder: Path) -> Iterable[Row]:
    for row in read(folder / A100):
        if row["source_table"].startswith("GA100"):
            mode = Mode(CORES, CPU_MHZ, float(row["core_mhz"]), EMC_MHZ)
            yield row["application"], mode, float(row["run_time_s"]), float(row["power_w"])


def _operators(folder: Path) -> Iterable[Row]:
    for row in read(folder / OPERATORS):
        if row["locked_core_mhz"].replace(".", "").isdigit():
            mode = Mode(CORES, CPU_MHZ, float(row["locked_core_mhz"]), EMC_MHZ)
            if mode.gpu_mhz <= REACHED_MHZ:
                yield row["operator"], mode, float(row["run_time_s"]), float(row["mean_power_w"])


def _card(row: dict[str, str]) -> Mode:
    return Mode(CORES, CPU_MHZ, float(row["core_mhz"]), float(row["memory_mhz"] or EMC_MHZ))


def _mode(row: dict[str, str], cores: str, cpu_khz: str, gpu_hz: str, emc_hz: str) -> Mode:
    clocks = (float(row[cpu_khz]) / 1e3, float(row[gpu_hz]) / 1e6, float(row[emc_hz]) / 1e6)
    return Mode(int(float(row[cores])), *clocks)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def tables(rows: Iterable[Row], processes: int, least: int = LEAST_MODES) -> Tables:
    """Return by name the observations of rows, one for each mode; too few modes are left out."""
    found: dict[str, dict[Mode, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for name, mode, time_s, watts in rows:
        found[name][mode].append((time_s, watts))
    told = {}
    for name, own in found.items():
        if len(own) >= least:
            time_s, watts = np.array([np.mean(of, axis=0) for of in own.values()]).T
            power = None if np.isnan(watts).any() else watts.tolist()
            told[name] = observations_from_rows(
                name, list(own), time_s.tolist(), power, processes=processes
            )
    return told


# -- stock modes of AGX Orin 64 GB ---------------------------------------------------------------

# cores, CPU, GPU and memory clock, share of the eight GPU parts that TPC_PG_MASK leaves on
# SOURCE: shared/data/nvpmodel, nvpmodel_p_verbose_agx_orin_64gb_jp5_or_6.log: masks 0, 0, 240, 248
ORIN = {
    "maxn": (12, 2201.6, 1300.5, 3199.0, 1.0),
    "50w": (12, 1497.6, 816.0, 3199.0, 1.0),
    "30w": (8, 1728.0, 612.0, 3199.0, 4 / 8),
    "15w": (4, 1113.6, 408.0, 2133.0, 3 / 8),
}
# SOURCE: shared/data/sweeps/broncospace_agx_orin_training_modes/README.md, times that they print;
# power by the rule of three rails, from their logs
TRAINING = {"maxn": (131, 44.8), "50w": (164, 29.4), "30w": (305, 18.4), "15w": (634, 11.6)}
SUBGRAPHS = "branes_orin_subgraph_rooflines/subgraphs.csv.gz"


def orin(folder: Path, share_told: bool) -> dict[str, Tables]:
    """Return workloads in the four stock modes of AGX Orin, with or without the GPU's share.

    Training of ResNet-50 (time, power), and forward passes of networks, as the sum of their parts
    (time alone). Clocks were not locked.
    """
    training = [("ResNet-50", _stock(name, share_told), *of) for name, of in TRAINING.items()]
    sums: dict[tuple[str, str], float] = defaultdict(float)
    with gzip.open(folder / SUBGRAPHS, "rt", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            name = row["hardware_id"].rpartition("_")[2]
            if row["hardware_id"].startswith("jetson_orin_") and name in ORIN:
                sums[row["file"], name] += float(row["latency_ms_mean"]) / 1e3
    passes = [
        (file, _stock(name, share_told), time_s, np.nan) for (file, name), time_s in sums.items()
    ]
    return {
        "AGX Orin, training": tables(training, PROCESSES, len(ORIN)),
        "AGX Orin, forward passes": tables(passes, ON_THE_GPU, len(ORIN)),
    }


def _stock(name: str, share_told: bool) -> Mode:
    return Mode(*(ORIN[name] if share_told else ORIN[name][:4]))
