"""Planted worlds under the paper's power modes, a board's tables, measured tables of others."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from epochwatt.device.reading import Tables
from epochwatt.fakeboard.kinds import KINDS
from epochwatt.prediction.modes import Board, Mode
from epochwatt.prediction.observations import PROCESSES, of_rows
from epochwatt.prediction.shapes import TIME, design

# AGX Xavier's own steps nearest to modes a to j of SIGMETRICS 2023, Table 3
NAMED = {
    "a": Mode(4, 1190.4, 675.75, 1331.2),
    "b": Mode(8, 1190.4, 675.75, 1331.2),
    "c": Mode(8, 1190.4, 905.25, 1331.2),
    "d": Mode(8, 1190.4, 905.25, 1600),
    "e": Mode(8, 2112, 905.25, 1600),
    "f": Mode(2, 2112, 905.25, 1600),
    "g": Mode(8, 2265.6, 1377, 2133),
    "h": Mode(8, 2265.6, 1377, 1065.6),
    "i": Mode(8, 2265.6, 1377, 1331.2),
    "j": Mode(8, 2265.6, 1377, 1600),
}
MEASURED = Path(__file__).resolve().parents[4] / "shared/data/measured"
# what nvpmodel lets AGX Xavier's stock modes 0 to 6 have; the table holds means of a governor's
CPU_MHZ = (2265.6, 1190.4, 1190.4, 1190.4, 1420.8, 1804.8, 2112.0)


@pytest.fixture(scope="session")
def named():
    return NAMED


@pytest.fixture(scope="session")
def modes():
    return tuple(NAMED.values())


@pytest.fixture(scope="session")
def efij():
    return tuple(NAMED[name] for name in "efij")


@pytest.fixture(scope="session")
def agx():
    kind = KINDS["agx"]
    tables = Tables(kind.cpu_khz, kind.gpu_hz, kind.emc_hz)
    return Board(kind.kind, sum(map(len, kind.clusters)), tables)


@pytest.fixture(scope="session")
def plant():
    """Return a function: shares of `terms` -> observations of a world of just these shapes."""

    def call(shares, terms=TIME, deviation=0.0, seed=0, whole=300.0, power_w=None, name="planted"):
        rows = design(terms, tuple(NAMED.values()), 5)
        values = whole * (rows / rows.mean(0)) @ np.asarray(shares)
        values = values * np.exp(deviation * np.random.default_rng(seed).standard_normal(len(rows)))
        if terms == TIME:
            power = None if power_w is None else [power_w] * len(values)
            return of_rows(name, tuple(NAMED.values()), values, power)
        return of_rows(name, tuple(NAMED.values()), [300.0] * len(values), values)

    return call


def _read(path):
    if not path.exists():
        pytest.skip(f"no {path} beside the repository")
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _tables(rows, processes=PROCESSES):
    found = defaultdict(list)
    for workload, *numbers in rows:
        found[workload].append(numbers)
    return {
        name: of_rows(
            name, [Mode(*row[:4]) for row in rows], *np.array(rows)[:, 4:].T, processes=processes
        )
        for name, rows in found.items()
    }


@pytest.fixture(scope="session")
def yolo():
    """Inference latency and power of AGX Xavier in its stock modes 1 to 6: not training."""
    rows = _read(MEASURED / "waggle_agx_xavier_power_modes/power_modes_summary.csv")
    return _tables(
        (
            f"YOLOv3, {row['kernel']} kernel",
            float(row["cpus_online"]),
            CPU_MHZ[int(row["power_mode"])],
            float(row["gpu_mhz"]),
            float(row["emc_mhz"]),
            float(row["latency_mean_s"]),
            float(row["sum_rails_mw"]) / 1e3,
        )
        for row in rows
    )


@pytest.fixture(scope="session")
def krai():
    """Latency of ResNet-50 on the CPU of AGX Xavier in five stock modes: no GPU, not training."""
    rows = _read(MEASURED / "mlperf_krai_agx_xavier_power_modes/cpu_latency_by_power_mode.csv")
    cores, gpu_mhz = (8, 2, 4, 8, 6, 4), (1377, 522.75, 675.75, *[905.25] * 3)
    emc_mhz = (2133, 1065.6, 1331.2, *[1600] * 3)
    latencies = [
        (
            f"ResNet-50, {row['cpu_engine']}",
            *(part[int(row["power_mode_id"])] for part in (cores, CPU_MHZ, gpu_mhz, emc_mhz)),
            float(row["mean_latency_ns"]) / 1e9,
        )
        for row in rows
        if row["scenario"] == "singlestream"
    ]
    return _tables(latencies, processes=8)  # one thread for each core there is


@pytest.fixture(scope="session")
def tx2():
    """Time per image of inference on TX2, 13 GPU x 4 memory clocks: not training."""
    rows = _read(MEASURED / "thynics_tx2_gpu_emc_dvfs/fps_by_gpu_emc_freq.csv")
    return _tables(
        (
            f"TX2 {row['model']}",
            *(6, 2000.0, float(row["gpu_hz"]) / 1e6, float(row["emc_hz"]) / 1e6),
            1 / float(row["fps"]),
        )
        for row in rows
        if row["series"] == "data_transfer_all"
    )
