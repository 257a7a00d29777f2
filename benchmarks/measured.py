"""`python -m benchmarks.measured [FOLDER]`: errors on a few modes of Jetson boards, by others.

Inference, not training. Each table is a folder with a README that says where it is from. A mode's
four numbers are those that nvpmodel gives the stock mode, where the table holds a governor's means
or the name only. Some ten minutes; writes benchmarks/tables/prediction/measured-*.csv.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from benchmarks.results import REPOSITORY, wide, write_tables
from epochwatt.prediction.data.modes import Mode, Numbers
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.harness import (
    Answers,
    Trial,
    leave_one_mode_out,
    random_subsets,
    score,
)
from epochwatt.prediction.models.times_power import Priors, predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Method, Predictor, Prior
from epochwatt.prediction.registry import load_method, load_methods
from epochwatt.prediction.selection.choose_power_modes import N_MODES
from epochwatt.twin.boards import Board, Clocks, load_boards
from epochwatt.twin.parameters import load_parameters
from epochwatt.twin.power import Load, parts

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

CONFIG, OUT = REPOSITORY / "config/twin", REPOSITORY / "benchmarks/tables/prediction"
SEED = 0  # not 1, of the worlds that were looked at when `beliefs` were set by hand
N_RANDOM = 200  # sets of four modes
PHYSICAL = "physical"  # whose intervals are judged
TARGETS = {"time_s": "time", "power_w": "power", "energy_wh": "energy"}

Tables = dict[str, Observations]


def _observed(rows: pd.DataFrame, processes: int) -> Tables:
    """Return by `name` the rows of mode (`cores` to `emc_mhz`), `time_s` and, if any, `power_w`."""
    return {
        str(name): observations_from_rows(
            str(name),
            [
                Mode(*mode)
                for mode in own[["cores", "cpu_mhz", "gpu_mhz", "emc_mhz"]].itertuples(index=False)
            ],
            own.time_s,
            own.power_w if "power_w" in own else None,
            processes=processes,
        )
        for name, own in rows.groupby("name", sort=False)
    }


def yolo(folder: Path = FOLDER) -> Tables:
    """Return latency and power of YOLOv3 on AGX Xavier in its seven stock modes, two kernels."""
    rows = pd.read_csv(folder / YOLO)
    return _observed(
        rows.assign(
            name="YOLOv3, " + rows.kernel + " kernel",
            cores=rows.cpus_online,
            cpu_mhz=np.take(CPU_MHZ, rows.power_mode),
            time_s=rows.latency_mean_s,
            power_w=rows.sum_rails_mw / 1e3,
        ),
        ON_THE_GPU,
    )


def krai(folder: Path = FOLDER) -> Tables:
    """Return latency of ResNet-50 on the CPU of AGX Xavier in five stock modes, two engines."""
    rows = pd.read_csv(folder / KRAI)
    rows = rows[rows.scenario.eq("singlestream")]
    stock = {"cores": CORES, "cpu_mhz": CPU_MHZ, "gpu_mhz": GPU_MHZ, "emc_mhz": EMC_MHZ}
    return _observed(
        rows.assign(
            name="ResNet-50, " + rows.cpu_engine,
            **{name: np.take(values, rows.power_mode_id) for name, values in stock.items()},
            time_s=rows.mean_latency_ns / 1e9,
        ),
        ON_THE_CPU,
    )


def tx2(folder: Path = FOLDER) -> Tables:
    """Return time per image on TX2, 13 GPU x 4 memory clocks; cores and CPU clock do not change.

    Nothing where the table is absent.
    """
    if not (folder / TX2).exists():
        return {}
    rows = pd.read_csv(folder / TX2)
    rows = rows[rows.series.eq("data_transfer_all")]
    clocks = {"gpu_mhz": rows.gpu_hz / 1e6, "emc_mhz": rows.emc_hz / 1e6}
    names = "TX2, " + rows.model
    return _observed(
        rows.assign(name=names, cores=6, cpu_mhz=2000.0, **clocks, time_s=1 / rows.fps), ON_THE_GPU
    )


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
        busy = np.ones(len(modes))
        load = Load(np.minimum(ON_THE_GPU, clocks.cores), busy, busy, moved)
        return np.asarray(parts(board, clocks, load, p).module_w)

    return watts


def judged(
    tables: Mapping[str, Observations],
    methods: Sequence[Method],
    priors: Priors | None = None,
    n_random: int = N_RANDOM,
) -> pd.DataFrame:
    """Return what methods answer from all modes but one, and from sets of four.

    Columns: those of `harness.Answers`, workload, profiled, and `held`: whether the interval of 90
    % of the physical model holds the truth; NaN of other methods.
    """
    frames = []
    for name, of in tables.items():
        modes = of.distinct()
        few = random_subsets(modes, N_MODES, n_random, SEED)
        for how, splits in (("all but one", leave_one_mode_out(modes)), ("4 modes", few)):
            answers = Answers()
            for draw, (train, test) in enumerate(splits):
                trial = Trial.of(of, of.only(train), test, draw)
                for method in methods:
                    if priors or not method.needs_prior:
                        answers.intervals = method.name == PHYSICAL
                        seen = trial.train, [trial.train], priors, answers.intervals
                        answers.add(predictors(method, *seen), trial, method.name)
            frame = answers.frame().assign(workload=name, profiled=how, n_splits=len(splits))
            frames.append(frame)
    found = pd.concat(frames)
    held = found.truth.between(found.low, found.high)
    return found.assign(held=held.where(found.low.notna()).astype(float))


def error_tables(title: str, found: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return a table of errors for each target: a row for each workload and way to profile."""
    made = {}
    profiled = found.profiled + ", " + found.n_splits.astype(str) + " times"
    keys = ["workload", "profiled", "method"]
    for target, part in found.assign(profiled=profiled).groupby("target", sort=False):
        cells = part.groupby(keys, sort=False).error_pct.agg(errors_cell)
        made[f"measured-{TARGETS[str(target)]}-{title}"] = wide(cells, "method")
    return made


def errors_cell(errors_pct: ArrayLike) -> str:
    """Return median / 90th percentile / worst error."""
    told = score(errors_pct)
    return f"{told.median_pct:.1f} / {told.p90_pct:.0f} / {told.worst_pct:.0f}"


def held_table(found: pd.DataFrame) -> pd.DataFrame:
    """Return how many measured modes the intervals of the physical models hold, in %."""
    found = found[found.method.eq(PHYSICAL) & found.target.isin((TIME, POWER))]
    shares = 100 * found.groupby(["workload", "profiled", "target"], sort=False).held.mean()
    return wide(shares.map("{:.0f}".format).rename(index=TARGETS, level="target"), "target", "-")


def measured_tables(folder: Path, n_random: int = N_RANDOM) -> dict[str, pd.DataFrame]:
    """Return the tables by name."""
    listed = yolo(folder)
    readings = listed | without_gated_mode(listed) | with_gpu_share(listed)
    watts = busy_power(load_boards(CONFIG)["agx"], load_parameters(CONFIG))
    methods = [method for method in load_methods().values() if method.is_scored]
    plain = [method for method in methods if not method.needs_prior]
    on_prior = [_with_physical_time(method) for method in methods if method.needs_prior]
    on_xavier = judged(readings, [*plain, *on_prior], {POWER: watts}, n_random)
    on_tx2 = judged(tx2(folder), plain, n_random=n_random)
    of_prior = on_xavier.method.isin([method.name for method in on_prior])
    made = error_tables("yolov3", on_xavier[~of_prior | on_xavier.target.ne(TIME)])
    made |= {
        name: table
        for title, found in (
            ("cpu", judged(krai(folder), plain, n_random=n_random)),
            ("tx2", on_tx2),
        )
        for name, table in error_tables(title, found).items()
    }
    made["measured-intervals"] = held_table(pd.concat([on_xavier, on_tx2]))
    made["measured-summary"] = summary(made)
    return made


SUMMARY = {  # row of the summary -> its table, and how its workloads end
    "YOLOv3 on AGX Xavier, seven stock modes, two kernels": ("measured-time-yolov3", "kernel"),
    "the same without the 10 W mode, which changes more than its four numbers say (this reading "
    "was chosen after the first had misfitted)": ("measured-time-yolov3", "6 modes"),
    "all seven, with the share of the GPU that the mode leaves on": (
        "measured-time-yolov3",
        "GPU share given",
    ),
    "ResNet-50 on the CPU of AGX Xavier, two engines": ("measured-time-cpu", ""),
    "three networks on TX2, clocks of GPU and memory alone, 51 modes known": (
        "measured-time-tx2",
        "",
    ),
}


def summary(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return median errors of time in %, from all modes but one: a row per set of workloads."""
    rows = []
    for text, (name, end) in SUMMARY.items():
        table = tables[name]
        table = table[table.workload.str.endswith(end) & table.profiled.str.startswith("all but")]
        medians = table[["paper", "log", "physical"]].map(lambda cell: cell.split(" / ")[0])
        rows.append([text, *medians.agg(", ".join)])
    return pd.DataFrame(rows, columns=["workloads", "paper, %", "log, %", "physical, %"])


def _with_physical_time(method: Method) -> Method:
    """Return a method on a prior that takes the physical model where there is none of time."""
    physical_time = load_method("physical")

    def fit(observations: Observations, context: Context) -> Predictor:
        return (physical_time if context.prior is None else method).fit(observations, context)

    return replace(method, fit=fit)


if __name__ == "__main__":
    write_tables(OUT, measured_tables(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
