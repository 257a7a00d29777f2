"""What the models do on the four stock modes of an AGX Orin, which others measured.

A part of the benchmark `prediction`: its table. Too few modes for `epochwatt score`, which
judges all methods on sweeps. Of two modes the share of the GPU is given, or not; clocks were not
locked.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.results import Table
from epochwatt.prediction.data.modes import Mode, Numbers
from epochwatt.prediction.data.observations import PROCESSES, Observations, observations_from_rows
from epochwatt.prediction.harness import Split, absolute_errors_pct, leave_one_mode_out, score
from epochwatt.prediction.models.physical import fit_physical_time, fit_power
from epochwatt.prediction.models.times_power import TimesPower
from epochwatt.prediction.predictor import Predictor

FOLDER = "sweeps"  # beside the folder of `--measured`
ON_THE_GPU = 1  # processes: one feeds the GPU
LEVEL = 0.9
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


class Tried(NamedTuple):
    """New modes of one fit, each (n,): what intervals hold, and absolute errors in %."""

    held: Mapping[str, Numbers]  # of time, power and energy; the last two where there is power
    errors_pct: Mapping[str, Numbers]


def stock_table(folder: Path) -> Table:
    """Return what holds of two modes that gate parts of the GPU off and of two that do not."""
    rows = []
    for share_told in (False, True):
        for name, tables in orin(folder, share_told).items():
            splits = ((of, split) for of in tables for split in leave_one_mode_out(of.distinct()))
            tried = [_one(of, split) for of, split in splits]
            given = "given" if share_told else "not given"
            rows.append([name, "all but one", given, *_cells(tried)])
    held = [f"{of}, held" for of in ("time", "power", "energy")]
    head = ["sweep", "profiled", "share of the GPU", *held, "time, error", "power, error"]
    return [head, *rows]


def orin(folder: Path, share_told: bool) -> dict[str, list[Observations]]:
    """Return workloads in the four stock modes of AGX Orin, with or without the GPU's share.

    Training of ResNet-50 (time, power), and forward passes of networks, as the sum of their parts
    (time alone).
    """
    modes = [Mode(*(numbers if share_told else numbers[:4])) for numbers in ORIN.values()]
    time_s, power_w = zip(*(TRAINING[name] for name in ORIN), strict=True)
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with gzip.open(folder / SUBGRAPHS, "rt", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            name = row["hardware_id"].rpartition("_")[2]
            if row["hardware_id"].startswith("jetson_orin_") and name in ORIN:
                sums[row["file"]][name] += float(row["latency_ms_mean"]) / 1e3
    return {
        "AGX Orin, training": [
            observations_from_rows("ResNet-50", modes, time_s, power_w, processes=PROCESSES)
        ],
        "AGX Orin, forward passes": [
            observations_from_rows(
                file, modes, [passes[name] for name in ORIN], processes=ON_THE_GPU
            )
            for file, passes in sums.items()
            if passes.keys() == ORIN.keys()
        ],
    }


def _one(of: Observations, split: Split) -> Tried:
    own, test = of.only(split.train), of.only(split.test)
    time = fit_physical_time(own)
    errors = {"time": absolute_errors_pct(time.predict(test.modes), test.time_s)}
    held = {"time": _inside(time, test)}
    if not np.isnan(of.power_w).any():
        power = fit_power(own)
        errors["power"] = absolute_errors_pct(power.predict(test.modes), test.power_w)
        held["power"] = _inside(power, test)
        held["energy"] = _inside(TimesPower(time, power), test)
    return Tried(held, errors)


def _inside(predictor: Predictor, test: Observations) -> Numbers:
    interval, values = predictor.interval(test.modes, LEVEL), getattr(test, predictor.target)
    assert interval is not None
    low, high = interval
    return np.asarray((low <= values) & (values <= high), float)


def _cells(tried: list[Tried]) -> Iterator[str]:
    for of in ("time", "power", "energy"):
        held = [one.held[of] for one in tried if of in one.held]
        yield f"{100 * float(np.concatenate(held).mean()):.0f}" if held else "-"
    for of in ("time", "power"):
        errors = [one.errors_pct[of] for one in tried if of in one.errors_pct]
        told = score(np.concatenate(errors)) if errors else None
        yield "-" if told is None else f"{told.median_pct:.1f} / {told.p90_pct:.0f}"
