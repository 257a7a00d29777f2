"""Power modes that others measured on Jetson boards: inference, not training.

Each table is a folder with a README that says where it is from. A mode's four numbers are those
that nvpmodel gives the stock mode, where the table holds a governor's means or the name only.
"""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.harness import Split
from epochwatt.prediction.predictor import LEVEL, Predictor, Prior
from epochwatt.twin.boards import Board, Clocks
from epochwatt.twin.power import Load, parts

REPOSITORY = Path(__file__).resolve().parents[1]
# TX2 has no licence, so it is in the first folder only, beside the repository
FOLDERS = REPOSITORY.parent / "shared/data/measured", REPOSITORY / "tests/data/measured"
FOLDER = next(folder for folder in FOLDERS if folder.is_dir())
YOLO = "waggle_agx_xavier_power_modes/power_modes_summary.csv"
KRAI = "mlperf_krai_agx_xavier_power_modes/cpu_latency_by_power_mode.csv"
TX2 = "thynics_tx2_gpu_emc_dvfs/fps_by_gpu_emc_freq.csv"

# AGX Xavier's stock modes 0 to 6
CORES = (8, 2, 4, 8, 6, 4, 2)
CPU_MHZ = (2265.6, 1190.4, 1190.4, 1190.4, 1420.8, 1804.8, 2112.0)
GPU_MHZ = (1377.0, 522.75, 675.75, *[905.25] * 4)
EMC_MHZ = (2133.0, 1065.6, 1331.2, *[1600.0] * 4)
GATED_MHZ = 600  # the clock of its mode of 10 W lies below, those of all others above

ON_THE_GPU, ON_THE_CPU = 1, 8  # processes: one feeds the GPU; one thread for each core there is
MEMORY_SHARE = 0.5  # ASSUME: memory is half busy

Tables = dict[str, Observations]


def yolo(folder: Path = FOLDER) -> Tables:
    """Return latency and power of YOLOv3 on AGX Xavier in its seven stock modes, two kernels."""
    rows = (
        (
            f"YOLOv3, {row['kernel']} kernel",
            float(row["cpus_online"]),
            CPU_MHZ[int(row["power_mode"])],
            float(row["gpu_mhz"]),
            float(row["emc_mhz"]),
            float(row["latency_mean_s"]),
            float(row["sum_rails_mw"]) / 1e3,
        )
        for row in _read(folder / YOLO)
    )
    return _tables(rows, ON_THE_GPU)


def krai(folder: Path = FOLDER) -> Tables:
    """Return latency of ResNet-50 on the CPU of AGX Xavier in five stock modes, two engines."""
    rows = (
        (row, int(row["power_mode_id"]))
        for row in _read(folder / KRAI)
        if row["scenario"] == "singlestream"
    )
    latencies = (
        (
            f"ResNet-50, {row['cpu_engine']}",
            *(part[mode] for part in (CORES, CPU_MHZ, GPU_MHZ, EMC_MHZ)),
            float(row["mean_latency_ns"]) / 1e9,
        )
        for row, mode in rows
    )
    return _tables(latencies, ON_THE_CPU)


def tx2(folder: Path = FOLDER) -> Tables:
    """Return time per image on TX2, 13 GPU x 4 memory clocks; cores and CPU clock do not change.

    Nothing where the table is absent.
    """
    if not (folder / TX2).exists():
        return {}
    rows = (
        (
            f"TX2, {row['model']}",
            *(6, 2000.0, float(row["gpu_hz"]) / 1e6, float(row["emc_hz"]) / 1e6),
            1 / float(row["fps"]),
        )
        for row in _read(folder / TX2)
        if row["series"] == "data_transfer_all"
    )
    return _tables(rows, ON_THE_GPU)


def without_gated_mode(tables: Mapping[str, Observations]) -> Tables:
    """Leave out the mode of 10 W, which gates two of the GPU's four parts off (its TPC mask)."""
    return {
        f"{name}, 6 modes": of.only([m for m in of.distinct() if m.gpu_mhz > GATED_MHZ])
        for name, of in tables.items()
    }


def with_gpu_share(tables: Mapping[str, Observations]) -> Tables:
    """Tell how much of the GPU that mode leaves on: half of it."""
    half = {
        name: np.where(of.modes[:, 2:3] > GATED_MHZ, 1, [1, 1, 1, 1, 0.5, 1])
        for name, of in tables.items()
    }
    return {
        f"{name}, GPU share given": replace(of, modes=of.modes * half[name])
        for name, of in tables.items()
    }


def busy_power(board: Board, p: Mapping[str, float]) -> Prior:
    """Return what a simulated board expects the module to take while its GPU never rests, W.

    All that a simulated board can say of a network that it cannot count: the table counts only
    samples in which the GPU is busy, so it is taken to be so all the time.
    """

    def watts(modes: Numbers) -> Numbers:
        clocks = Clocks(*modes[:, :4].T)
        clocks = clocks._replace(gpu_mhz=clocks.gpu_mhz * modes[:, 4])  # half of it: half the clock
        moved = MEMORY_SHARE * 1e6 * clocks.emc_mhz * board.emc_bytes_per_clock
        load = Load(np.minimum(ON_THE_GPU, clocks.cores), np.ones(len(modes)), moved)
        return np.asarray(parts(board, clocks, load, p).module_w)

    return watts


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _tables(rows: Iterable[tuple[str | float, ...]], processes: int) -> Tables:
    """Return by name the rows of (name, four numbers of the mode, s[, W])."""
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for name, *numbers in rows:
        found[str(name)].append(tuple(map(float, numbers)))
    return {
        name: observations_from_rows(
            name,
            [Mode(int(row[0]), *row[1:4]) for row in own],
            [row[4] for row in own],
            [row[5] for row in own] if len(own[0]) > 5 else None,
            processes=processes,
        )
        for name, own in found.items()
    }


def coverage(
    fit: Callable[[Observations], Predictor],
    observations: Observations,
    splits: Iterable[Split],
    level: float = LEVEL,
) -> tuple[int, int]:
    """Return how many test modes the intervals hold, and of how many.

    Parameters
    ----------
    fit : of a method that has intervals
    observations : of one workload; the mean of each mode counts
    splits : which modes train and which test
    level : of the intervals
    """
    held = n_modes = 0
    for split in splits:
        predictor = fit(observations.only(split.train))
        test = observations.only(split.test).per_mode()
        interval = predictor.interval(test.modes, level)
        if interval is None:
            raise PredictionError(f"this predictor of {predictor.target} has no interval")
        value = getattr(test, predictor.target)
        held += int(((interval[0] <= value) & (value <= interval[1])).sum())
        n_modes += len(value)
    return held, n_modes
