"""`epochwatt import-2023`: logs of the papers' scripts made runs, in `imported/{run}/`.

What the logs do not say (device, model, medium, batch size, power mode) is told on the command line
and checked like a row of a study. The id is made as every run's, with a factor `imported` more, so
it is never that of a measurement of our own. Columns: docs/how-to/import-2023.md.
"""

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt import fields
from epochwatt.datasets.recipes import n_samples, recipe
from epochwatt.epochs.collect import OVERHEAD_TOLERANCE, is_valid, write_rows
from epochwatt.epochs.energy import (
    J_PER_WH,
    mean_power_w,
    paper_energy_wh,
    paper_missing_pct,
    trapezoid,
)
from epochwatt.epochs.telemetry import STUCK_S, TRAPEZOID, lacks_much, rate_mean
from epochwatt.epochs.windows import window_mean, window_median
from epochwatt.errors import ConfigError, RecordError
from epochwatt.records import files
from epochwatt.records.shapes import ANY
from epochwatt.study.config import Device, FactorValues, WorkloadRow
from epochwatt.study.imported import IMPORTED, SOURCE
from epochwatt.study.logs_2023 import Epoch, Logs, Series, read_folder
from epochwatt.study.runs import canonical_json, run_id
from epochwatt.study.settings import load_settings
from epochwatt.study.validation import validated
from epochwatt.text import counted

SETUPS = ("own", "sigmetrics2023", "hipcw2021")
FROM = "scripts-2023"  # value of the factor `imported`
TIMING = "imported_cuda_events"
POWER_RULE = "total of jtop 3.1: the rail with IN in its name, else the sum of all rails"
CLOCK_S = 0.5  # a log time further off than that says that the clock was set
LINE_S = 0.05  # a line is logged within that time

# What is empty where a flag voids the energy of an epoch.
_VALUES = tuple(
    f.name for f in fields.ENERGY_COLUMNS if f.kind == "float" and f.name != "sampler_period_s"
)
_MEANS: dict[
    str, Callable[..., float]
] = {  # iostat and jtop's CPUs tell means since the row before
    "cpu_util_pct": rate_mean,
    "gpu_util_pct": window_mean,
    "ram_used_mib": window_mean,
    "read_iops": rate_mean,
    "read_mib_s": rate_mean,
}

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Told:
    """What the command line says of all runs of a folder, as `fields.FACTORS` names it."""

    device: str
    instance: str
    model: str
    storage: str
    batch_size: int
    power_mode: str
    dvfs: str
    setup: str = "sigmetrics2023"


def import_folder(folder: Path, told: Told, root: Path = Path()) -> list[str]:
    """Import all runs of a folder, or none; return in lines what became of them.

    Parameters
    ----------
    folder : holds the logs
    told : what they do not say
    root : the checkout

    Raises
    ------
    ConfigError : something told is not in config/
    RecordError : logs are damaged, contradict each other or what was told
    """
    settings = load_settings(root=root)
    device = settings.devices.get(told.device, "--device")
    _check_told(told, device, settings.workloads)
    found: list[tuple[Path, dict[str, Any], Rows, Rows]] = []
    for logs in read_folder(folder):
        factors = make_factors(told, logs, device, settings.workloads[told.model])
        canonical = canonical_json(factors)
        run = run_id(factors, canonical)
        _check_size(logs, factors, folder)
        if device.board == "agx_orin" and "power_w" in logs.series:
            del logs.series["power_w"]
            logs.warnings.append("jtop 3.1 took one rail of an AGX Orin for all: no energy")
        source: dict[str, Any] = {
            **{"run": run, "factors": factors, "canonical": canonical, "epochs": len(logs.epochs)},
            **{"schema_version": fields.SCHEMA_VERSION, "told": asdict(told)},
            **{"files": logs.sha256, "warnings": logs.warnings, "power_rule": POWER_RULE},
        }
        target = root / IMPORTED / run
        _check_new(target, source, [path for path, *_ in found])
        found.append((target, source, *make_rows(logs, run, factors, settings.flag_effects)))
    lines = []
    for target, source, rows, energy_rows in found:
        _write(target, source, rows, energy_rows)
        n_valid = sum(row["valid"] for row in rows)
        lines.append(f"{target}: {counted(len(rows), 'epochs')}, {n_valid} of them valid")
        lines += [f"  warning: {warning}" for warning in source["warnings"]]
    return lines


# -- what was told --------------------------------------------------------------------------------


def _check_told(told: Told, device: Device, workloads: dict[str, WorkloadRow]) -> None:
    """Compare the command line with config/; ConfigError: option, value, what is allowed."""
    if "jetson" not in device.backends:
        raise ConfigError(
            f"--device is {told.device!r}, whose backends are {', '.join(device.backends)}\n"
            "  allowed: a device with backend jetson"
        )
    checks: list[tuple[str, str, Sequence[str]]] = [
        ("--instance", told.instance, device.instances),
        ("--storage", told.storage, list(device.storage)),
        ("--power-mode", told.power_mode, list(device.power_modes)),
        ("--dvfs", told.dvfs, device.dvfs),
        ("--model", told.model, [name for name, row in workloads.items() if not row.build]),
        ("--setup", told.setup, SETUPS),
    ]
    for option, value, allowed in checks:
        if value not in allowed:
            raise ConfigError(f"{option} is {value!r}\n  allowed: {', '.join(allowed)}")


def make_factors(told: Told, logs: Logs, device: Device, workload: WorkloadRow) -> dict[str, Any]:
    """Return all factors of an imported run: names of files, what was told, what the scripts do.

    They train on the originals, drop the page cache once, leave the threads to torch and train all
    epochs in one process.
    """
    row = {
        "model": told.model,
        "batch_size": told.batch_size,
        "num_workers": logs.num_workers,
        **({"prefetch_factor": logs.prefetch_factor} if logs.num_workers else {}),
        "epochs_per_job": len(logs.epochs),
    }
    values = validated(FactorValues, row, "the logs and the command line").model_dump()
    factors = {
        **{name: values[name] for name in fields.names(fields.FACTORS) if name in values},
        **asdict(told),
        "backend": "jetson",
        "dataset": workload.dataset,
        "dataset_source": "official",
        "dataset_scale": 1,
        "torch_threads": 0,
        "recipe": recipe(workload.dataset, "official", 1),
        IMPORTED: FROM,
    }
    if logs.num_workers == 0:
        factors["prefetch_factor"] = None
    if mode := device.power_modes[told.power_mode].model_dump(exclude_none=True):
        factors["power_mode_settings"] = mode
    return fields.with_defaults(factors)


def _check_size(logs: Logs, factors: dict[str, Any], folder: Path) -> None:
    """Compare the mini-batches with data set and batch size; RecordError."""
    samples = n_samples(factors["dataset"], "official", 1)
    wanted = math.ceil(samples / factors["batch_size"])
    for k, epoch in enumerate(logs.epochs):
        if epoch.fetch_s.size != wanted:
            raise RecordError(
                f"{folder}, nw{logs.num_workers}_pf{logs.prefetch_factor}: epoch {k} has "
                f"{counted(epoch.fetch_s.size, 'mini-batches')}\n  {samples} samples of "
                f"{factors['dataset']} at --batch-size {factors['batch_size']} are {wanted}: is "
                "--model or --batch-size another, or the data set not the whole original?"
            )


def _check_new(target: Path, source: dict[str, Any], others: list[Path]) -> None:
    """Refuse other logs in the place of those that are, or just become, the same run."""
    if target in others:
        raise RecordError(
            f"two logs of the folder are one run, {target.name}\n"
            "  without workers nothing is prefetched: move one of them out of the folder"
        )
    if (target / SOURCE).exists():
        before = files.read_json(str(target / SOURCE), {"files": ANY})
        if before["files"] != source["files"]:
            raise RecordError(
                f"{target} was imported from other logs\n"
                "  remove that folder first, or tell another --instance"
            )


# -- rows -----------------------------------------------------------------------------------------


def make_rows(
    logs: Logs, run: str, factors: dict[str, Any], flag_effects: dict[str, str]
) -> tuple[Rows, Rows]:
    """Return the rows of epochs.csv and energy.csv; `flags` are sets, what is unknown is None."""
    rows, energy_rows = [], []
    samples = n_samples(factors["dataset"], factors["dataset_source"], factors["dataset_scale"])
    for k, epoch in enumerate(logs.epochs):
        row: dict[str, Any] = dict.fromkeys(fields.names(fields.RUN_EPOCH_COLUMNS))
        row.update((name, value) for name, value in factors.items() if name in row)
        row.update(run=run, epoch=k, n_samples=samples, cold_process=k == 0, **_times(epoch))
        flags = {"imported"} | ({"cold_process"} if k == 0 else set())
        if row["overhead_s"] < -OVERHEAD_TOLERANCE * row["e2e_s"]:
            flags.add("overhead_negative")
        energy = None
        if clock_jumped(epoch, logs.epochs[k - 1] if k else None):
            flags.add("clock_jumped")  # so nothing that the monitor told can be given its time
        else:
            row.update(_usage(epoch, logs.series))
            row.update(_cached(k, logs))
            energy = energy_row(epoch, logs.series.get("power_w"), flag_effects)
        if energy is None:
            flags.add("sampler_lost")
        else:
            row.update((name, value) for name, value in energy.items() if name != "flags")
            energy_rows.append({**energy, "run": run, "epoch": k})
            flags |= energy["flags"]
        row.update(flags=flags, valid=is_valid(flags, flag_effects))
        rows.append(row)
    return rows, energy_rows


def _times(epoch: Epoch) -> dict[str, Any]:
    """Return the times of an epoch; wait and copy were timed as one and stay unknown."""
    stall_s, compute_s = float(epoch.fetch_s.sum()), float(epoch.compute_s.sum())
    return {
        "schema_version": fields.SCHEMA_VERSION,  # the protocol is not ours: none
        "e2e_s": float(epoch.e2e_s),
        "stall_s": stall_s,
        "compute_s": compute_s,
        "overhead_s": float(epoch.e2e_s) - stall_s - compute_s,
        "n_minibatches": epoch.fetch_s.size,
        "timing_method": TIMING,
    }


def clock_jumped(epoch: Epoch, before: Epoch | None) -> bool:
    """Say whether log times and durations of an epoch do not fit, so that the clock was set."""
    busy_s = np.cumsum(epoch.fetch_s + epoch.compute_s)
    early = epoch.logged_s < epoch.start_s + busy_s - CLOCK_S
    late = epoch.logged_s > epoch.end_s - (busy_s[-1] - busy_s) + CLOCK_S
    overlap = before is not None and epoch.start_s < before.end_s - CLOCK_S
    return bool(early.any() or late.any() or overlap)


def _inside(epoch: Epoch, series: Series) -> np.ndarray:
    """Say of each reading whether there is one and it lies in the epoch; bool (n,)."""
    t_s = series.t_s
    return (t_s >= epoch.start_s) & (t_s <= epoch.end_s) & np.isfinite(series.values)


def _usage(epoch: Epoch, found: dict[str, Series]) -> dict[str, float]:
    """Return utilisation, memory and reads; nothing of what was not read inside the epoch."""
    columns = {}
    for name, mean in _MEANS.items():
        if name not in found or not _inside(epoch, found[name]).any():
            continue
        about = (found[name].t_s, found[name].values, epoch.start_s, epoch.end_s)
        columns[name] = mean(*about)
        if name.endswith("_util_pct"):
            columns[name.replace("_pct", "_median_pct")] = window_median(*about)
    return {name: value for name, value in columns.items() if not math.isnan(value)}


def _cached(k: int, logs: Logs) -> dict[str, float | None]:
    """Return the cached share before and after an epoch, if vmtouch looked just there."""
    if "cached_pct" not in logs.series:
        return {}
    epochs, share = logs.epochs, logs.series["cached_pct"]
    ends = [-math.inf, *(epoch.end_s for epoch in epochs)]
    starts = [*(epoch.start_s for epoch in epochs), math.inf]

    def latest(place: int) -> float | None:
        low, high = ends[place] - LINE_S, starts[place] + LINE_S
        seen = share.values[(share.t_s >= low) & (share.t_s <= high) & np.isfinite(share.values)]
        return float(seen[-1]) if seen.size else None

    return {"cached_pct": latest(k), "cached_after_pct": latest(k + 1)}


def energy_row(
    epoch: Epoch, power: Series | None, flag_effects: dict[str, str]
) -> dict[str, Any] | None:
    """Return the energy of an epoch with its `flags`; None where power was not read twice in it.

    The energy of the stalls stays unknown, and so does the bound of the energy: a reading is up to
    a second older than its log time, so its place in a mini-batch is not known.
    """
    inside = None if power is None else _inside(epoch, power)
    if power is None or inside is None or inside.sum() < 2:
        return None
    about = (power.t_s, power.values, epoch.start_s, epoch.end_s)
    energy = trapezoid(*about)
    flags = set(energy.flags)
    if _stuck_s(power.t_s[inside], power.values[inside]) > STUCK_S:
        flags.add("power_stuck")
    missing_pct, length_s = paper_missing_pct(*about), epoch.end_s - epoch.start_s
    row: dict[str, Any] = {
        "power_scope": "module",
        "energy_method": TRAPEZOID,
        "sampler_period_s": energy.mean_period_s,
        "energy_wh": energy.energy_j / J_PER_WH,
        "energy_error_pct": None,
        "energy_paper_wh": (
            math.nan if lacks_much(missing_pct, length_s) else paper_energy_wh(*about)
        ),
        "energy_paper_missing_pct": missing_pct,
        "stall_energy_j": None,
        "stall_energy_error_pct": None,
        "power_mean_w": mean_power_w(energy.energy_j, float(epoch.e2e_s)),
    }
    if any(flag_effects[flag] == "voids_energy" for flag in flags):
        row.update(dict.fromkeys(_VALUES))
    known = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
    return {**known, "flags": flags}


def _stuck_s(t_s: np.ndarray, power_w: np.ndarray) -> float:
    """Return the longest time in which the power did not move."""
    bounds = np.flatnonzero(np.diff(power_w)) + 1
    return max(float(np.ptp(part)) for part in np.split(t_s, bounds))


def _write(target: Path, source: dict[str, Any], rows: Rows, energy_rows: Rows) -> None:
    """Write the folder of a run under another name and rename it; it is whole or not there."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    with files.writing("an imported run", str(target)):
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unfinished.mkdir(parents=True)
        write_rows(str(unfinished / "epochs.csv"), fields.names(fields.RUN_EPOCH_COLUMNS), rows)
        write_rows(
            str(unfinished / "energy.csv"), fields.names(fields.RUN_ENERGY_COLUMNS), energy_rows
        )
        files.write_json(str(unfinished / SOURCE), source)
        if target.exists():
            shutil.rmtree(target)
        unfinished.rename(target)
