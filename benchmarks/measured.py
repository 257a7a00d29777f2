"""Power modes that others measured on Jetson boards: inference, not training; a training on Orin.

Each table is a folder with a README that says where it is from. A mode's four numbers are those
that nvpmodel gives the stock mode, where the table holds a governor's means or the name only.
`measured_tables` are a part of the benchmark `prediction`: how far the models are off on these
modes, and what each belief moves in them. The four stock modes of an AGX Orin are too few for
`epochwatt score`, which judges all methods on sweeps.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from benchmarks.results import REPOSITORY, wide
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import PROCESSES, Observations, observations_from_rows
from epochwatt.prediction.harness import (
    Answers,
    Split,
    Trial,
    cross_validate,
    leave_one_mode_out,
    random_subsets,
    score,
)
from epochwatt.prediction.models import linear_model, physical
from epochwatt.prediction.models import residual_gp as deviations
from epochwatt.prediction.models.physical import fit_physical_time, fit_power
from epochwatt.prediction.models.times_power import Priors, with_energy
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Context, Method, Predictor, Prior
from epochwatt.prediction.registry import load_method, load_methods
from epochwatt.prediction.selection.choose_power_modes import N_MODES
from epochwatt.twin.boards import Board, Clocks
from epochwatt.twin.power import Load, parts
from epochwatt.twin.twin import Twin

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

SWEEPS = "sweeps"  # folder beside that of `--measured`
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

DEVICE = "agx"  # SIGMETRICS 2023, 5.7
SEED = 0  # not 1, of the worlds that were looked at when `beliefs` were set by hand
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


def orin(folder: Path, share_told: bool) -> dict[str, list[Observations]]:
    """Return workloads in the four stock modes of AGX Orin, with or without the GPU's share.

    Training of ResNet-50 (time, power), and forward passes of networks, as the sum of their parts
    (time alone).
    """
    modes = [Mode(*(numbers if share_told else numbers[:4])) for numbers in ORIN.values()]
    time_s, power_w = zip(*(TRAINING[name] for name in ORIN), strict=True)
    rows = pd.read_csv(folder / SUBGRAPHS, usecols=["hardware_id", "file", "latency_ms_mean"])
    rows = rows[rows.hardware_id.str.startswith("jetson_orin_")]
    mode = rows.hardware_id.str.rpartition("_")[2]
    sums = (rows.latency_ms_mean / 1e3).groupby([rows.file, mode], sort=False).sum().unstack()
    sums = sums.reindex(rows.file[mode.isin(list(ORIN))].unique())[list(ORIN)].dropna()
    return {
        "AGX Orin, training": [
            observations_from_rows("ResNet-50", modes, time_s, power_w, processes=PROCESSES)
        ],
        "AGX Orin, forward passes": [
            observations_from_rows(str(file), modes, passes.tolist(), processes=ON_THE_GPU)
            for file, passes in sums.iterrows()
        ],
    }


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


def stock_table(folder: Path) -> pd.DataFrame:
    """Return what holds of two modes that gate parts of the GPU off and of two that do not."""
    rows = []
    for given, share_told in {"not given": False, "given": True}.items():
        for name, tables in orin(folder, share_told).items():
            answers = Answers(intervals=True)
            for of in tables:
                for draw, split in enumerate(leave_one_mode_out(of.distinct())):
                    trial = Trial.of(of, of.only(split.train), split.test, draw)
                    fitted: dict[str, Predictor] = {TIME: fit_physical_time(trial.train)}
                    if not np.isnan(of.power_w).any():
                        fitted[POWER] = fit_power(trial.train)
                    answers.add(with_energy(fitted), trial, "physical")
            found = answers.frame()
            found["held"] = found.truth.between(found.low, found.high)
            by_target = dict(iter(found.groupby("target")))
            row = {"sweep": name, "profiled": "all but one", "share of the GPU": given}
            for target, title in TARGETS.items():
                part = by_target.get(target)
                row[f"{title}, held"] = "-" if part is None else f"{100 * part.held.mean():.0f}"
            for target in (TIME, POWER):
                part = by_target.get(target)
                told = None if part is None else score(part.error_pct)
                row[f"{TARGETS[target]}, error"] = (
                    "-" if told is None else f"{told.median_pct:.1f} / {told.p90_pct:.0f}"
                )
            rows.append(row)
    return pd.DataFrame(rows)


def measured_tables(twin: Twin, folder: Path, n_random: int = 200) -> dict[str, pd.DataFrame]:
    """Return the tables of what others measured, by name; none of a folder that is absent.

    Parameters
    ----------
    twin : simulated boards, for a prior of power
    n_random : how many sets of four modes are drawn
    folder : of tables of a few modes; stock modes of Orin lie in the folder `sweeps` beside it
    """
    made: dict[str, pd.DataFrame] = {}
    sweeps = folder.parent / SWEEPS
    if sweeps.is_dir():
        made["sweeps-agx-orin"] = stock_table(sweeps)
    if not folder.is_dir():
        print(f"measured by others: skipped, there is no folder {folder}", file=sys.stderr)
        return made
    listed = yolo(folder)
    readings = listed | without_gated_mode(listed) | with_gpu_share(listed)
    watts = busy_power(twin.boards[DEVICE], twin.parameters)
    methods = [method for method in load_methods().values() if method.is_scored]
    plain = [method for method in methods if not method.needs_prior]
    on_prior = [_with_physical_time(method) for method in methods if method.needs_prior]
    priors = {name: {"power_w": watts} for name in readings}

    def few(modes: Sequence[Mode]) -> list[Split]:
        return random_subsets(modes, N_MODES, n_random, SEED)

    made |= _error_tables("yolov3", readings, [*plain, *on_prior], few, priors)
    made |= _error_tables("cpu", krai(folder), plain, few)
    made |= _error_tables("tx2", tx2(folder), plain, few)
    made["measured-intervals"] = _measured_held(readings | tx2(folder), few)
    beliefs = listed | without_gated_mode(listed)
    made["measured-priors-changed"] = _beliefs_table(beliefs)
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


def _error_tables(
    title: str,
    tables: Mapping[str, Observations],
    methods: Sequence[Method],
    few: Callable[[Sequence[Mode]], list[Split]],
    priors: Mapping[str, Priors] | None = None,
) -> dict[str, pd.DataFrame]:
    """Return a table of errors for each target: a row for each workload and way to profile.

    Without priors for time alone.
    """
    on_prior = {method.name for method in methods if method.needs_prior}
    cells: dict[str, dict[tuple[str, str, str], str]] = {}
    for name, of in tables.items():
        modes = of.distinct()
        for how, splits in (("all but one", leave_one_mode_out(modes)), ("4 modes", few(modes))):
            expected = {of.workload: (priors or {}).get(name, {})}
            answers = cross_validate(methods, [of], splits, expected)
            for (method, target), part in answers.groupby(["method", "target"], sort=False):
                if method not in on_prior if target == TIME else priors:
                    key = (name, f"{how}, {len(splits)} times", str(method))
                    cells.setdefault(str(target), {})[key] = errors_cell(part["error_pct"])
    names = ["workload", "profiled", "method"]
    return {
        f"measured-{TARGETS[target]}-{title}": wide(
            pd.Series(list(of.values()), pd.MultiIndex.from_tuples(of, names=names)), "method"
        )
        for target, of in cells.items()
    }


def errors_cell(errors_pct: ArrayLike) -> str:
    """Return median / 90th percentile / worst error."""
    told = score(errors_pct)
    return f"{told.median_pct:.1f} / {told.p90_pct:.0f} / {told.worst_pct:.0f}"


def _measured_held(
    tables: Mapping[str, Observations], few: Callable[[Sequence[Mode]], list[Split]]
) -> pd.DataFrame:
    """Return how many measured modes intervals of 90 % of the physical models hold, in %."""
    rows = []
    for name, of in tables.items():
        splits = {"all but one": leave_one_mode_out(of.distinct()), "4 modes": few(of.distinct())}
        for how, own in splits.items():
            cells = []
            for fit in (fit_physical_time, fit_power):
                is_known = fit is fit_physical_time or not np.isnan(of.power_w).any()
                held = coverage(fit, of, own) if is_known else None
                cells.append(f"{100 * held[0] / held[1]:.0f}" if held else "-")
            rows.append([name, how, *cells])
    return pd.DataFrame(rows, columns=["workload", "profiled", "time", "power"])


def _beliefs_table(tables: Mapping[str, Observations]) -> pd.DataFrame:
    """Return how medians move with each belief that was set with these tables at hand.

    Median error in % of all modes but one, generic / rt kernel.
    """
    fits = {
        "time, log": ("time_s", load_method("log")),
        "time, physical": ("time_s", replace(load_method("physical"), targets=("time_s",))),
        "power, physical": ("power_w", replace(load_method("physical"), targets=("power_w",))),
    }
    kinds = {  # as listed and without the gated mode, each of both kernels
        "as listed": [of for name, of in tables.items() if not name.endswith("modes")],
        "6 modes": [of for name, of in tables.items() if name.endswith("modes")],
    }

    def cells(processes: int = ON_THE_GPU) -> list[str]:
        return [
            " / ".join(_median(fit, replace(of, processes=processes), target) for of in own)
            for own in kinds.values()
            for target, fit in fits.values()
        ]

    rows = [["as they are", *cells()], ["five processes in place of one", *cells(5)]]
    for said, (module, name, value) in _other_beliefs().items():
        with mock.patch.object(module, name, value):
            rows.append([said, *cells()])
    head = ["belief", *(f"{name}, {kind}" for kind in kinds for name in fits)]
    return pd.DataFrame(rows, columns=head)


def _median(method: Method, of: Observations, target: str) -> str:
    answers = cross_validate([method], [of], leave_one_mode_out(of.distinct()))
    return f"{score(answers[answers['target'] == target]['error_pct']).median_pct:.1f}"


def _other_beliefs() -> dict[str, tuple[ModuleType, str, Any]]:
    """Return constants halved and doubled, and shares of which one part is given a half."""
    owners = {
        **{"DEVIATION": linear_model, "LENGTH": deviations, "OWN": deviations},
        **{"SHARE_SD": physical, "EXPONENT_SD": physical},
    }
    found: dict[str, tuple[ModuleType, str, Any]] = {
        f"`{name}` x {by:g}": (owner, name, by * getattr(owner, name))
        for name, owner in owners.items()
        for by in (0.5, 2)
    }
    parts = {
        "TIME_SHARES": {"GPU": [0], "memory": [1], "CPU": [2]},
        "POWER_SHARES": {"GPU": [0, 1], "CPU": [2, 3], "memory": [4], "base load": [5]},
    }
    for name, places in parts.items():
        for part, own in places.items():
            shares = np.array(getattr(physical, name))
            is_own = np.isin(np.arange(len(shares)), own)
            half = 0.5 * shares / np.where(is_own, shares[is_own].sum(), shares[~is_own].sum())
            found[f"`{name}`: half of it {part}"] = (physical, name, tuple(half))
    return found
