"""`epochwatt import-2023`: turn logs of the 2023 scripts into records in `measured/{run}/`.

The records have the form of measured ones, so every table, figure and model takes them. Their
factor `imported` keeps their ids apart from those of our own measurements.
docs/how-to/import-2023.md lists where each column comes from.
"""

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrib.import_2023.logs import LoggedEpoch, Logs, Series, read_folder
from epochwatt.board.records import files
from epochwatt.board.records.run_folder import TELEMETRY, RunFolder
from epochwatt.board.records.samples import write_samples
from epochwatt.board.records.shapes import ANY
from epochwatt.board.telemetry.channel import Tally
from epochwatt.columns import FACTOR_NAMES, PROTOCOL, SCHEMA_VERSION, with_defaults
from epochwatt.datasets.recipes import n_samples, recipe
from epochwatt.errors import ConfigError, RecordError
from epochwatt.study.config import Device, FactorValues, WorkloadRow
from epochwatt.study.imported import SOURCE
from epochwatt.study.place import MEASURED
from epochwatt.study.runs import canonical_json, run_id
from epochwatt.study.settings import load_settings
from epochwatt.study.validation import validated
from epochwatt.text import counted

SETUPS = ("own", "sigmetrics2023", "hipcw2021")
SCRIPTS = "scripts-2023"  # value of the factor `imported`
TIMING = "imported_cuda_events"
POWER_RULE = "total of jtop 3.1: the rail with IN in its name, else the sum of all rails"
CLOCK_S = 0.5  # a log time further off than that shows that the clock was set
LINE_S = 0.05  # a line is logged within that time

# Columns that the logs do not tell, and bounds of energy: a reading may be a second older than its
# log time, so its place in a mini-batch is not known.
UNKNOWN = [
    "wait_s",
    "copy_s",
    "fetch_s",
    "preprocess_s",
    "host_wait_s",
    "loss",
    "protocol",
    "t_start_unix_s",
    "t_end_unix_s",
    "energy_error_pct",
    "stall_energy_j",
    "stall_energy_error_pct",
]
POWER = "jtop"
# Source of samples -> its columns in the logs; each source has its own instants.
SOURCES = {
    POWER: ("power_total_w",),
    "board": ("gpu_util_pct",),
    "host": ("cpu_util_pct",),
    "host-memory": ("ram_used_mib",),
    "host-disk": ("read_iops", "read_mib_s"),
}


@dataclass(frozen=True)
class RunOptions:
    """What the command line says of all runs of a folder, as `FACTORS` names it."""

    device: str
    instance: str
    model: str
    storage: str
    batch_size: int
    power_mode: str
    dvfs: str
    setup: str = "sigmetrics2023"


def import_folder(folder: Path, options: RunOptions, root: Path = Path()) -> list[str]:
    """Import all runs of a folder, or none; return a line for each and its warnings.

    Raises ConfigError: an option is not in config/; RecordError: logs are damaged, or contradict
    each other or the options.

    Parameters
    ----------
    folder : holds the logs
    options : what they do not tell
    root : the checkout
    """
    settings = load_settings(root=root)
    device = settings.devices.get(options.device, "--device")
    _check_options(options, device, settings.workloads)
    runs: dict[Path, tuple[Logs, dict[str, Any]]] = {}
    for logs in read_folder(folder):
        factors = make_factors(options, logs, device, settings.workloads[options.model])
        canonical = canonical_json(factors)
        _check_size(logs, factors, folder)
        if device.board == "agx_orin" and "power_total_w" in logs.series:
            del logs.series["power_total_w"]
            logs.warnings.append("jtop 3.1 took one rail of an AGX Orin for all: no energy")
        source: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "run": run_id(factors, canonical),
            "factors": factors,
            "canonical": canonical,
            "options": asdict(options),
            "files": logs.sha256,
            "warnings": logs.warnings,
            "power_rule": POWER_RULE,
        }
        target = root / MEASURED / source["run"]
        _check_new(target, source, runs)
        runs[target] = logs, source
    lines = []
    for target, (logs, source) in runs.items():
        _write(target, logs, source)
        lines.append(f"{target}: {counted(len(logs.epochs), 'epochs')}")
        lines += [f"  warning: {warning}" for warning in logs.warnings]
    return lines


# -- checks ---------------------------------------------------------------------------------------


def _check_options(options: RunOptions, device: Device, workloads: dict[str, WorkloadRow]) -> None:
    """Refuse what config/ does not have; ConfigError: option, value, what is allowed."""
    if "jetson" not in device.backends:
        raise ConfigError(
            f"--device is {options.device!r}, whose backends are {', '.join(device.backends)}",
            allowed="a device with backend jetson",
        )
    checks: list[tuple[str, str, Sequence[str]]] = [
        ("--instance", options.instance, device.instances),
        ("--storage", options.storage, list(device.storage)),
        ("--power-mode", options.power_mode, list(device.power_modes)),
        ("--dvfs", options.dvfs, device.dvfs),
        ("--model", options.model, [name for name, row in workloads.items() if not row.build]),
        ("--setup", options.setup, SETUPS),
    ]
    for option, value, allowed in checks:
        if value not in allowed:
            raise ConfigError(f"{option} is {value!r}", allowed=allowed)


def make_factors(
    options: RunOptions, logs: Logs, device: Device, workload: WorkloadRow
) -> dict[str, Any]:
    """Return all factors of an imported run: file names, options, what the scripts always do.

    They train on the originals, drop the page cache once, leave the threads to torch and train all
    epochs in one process.
    """
    row = {
        "model": options.model,
        "batch_size": options.batch_size,
        "num_workers": logs.num_workers,
        **({"prefetch_factor": logs.prefetch_factor} if logs.num_workers else {}),
        "epochs_per_job": len(logs.epochs),
    }
    values = validated(FactorValues, row, "the logs and the command line").model_dump()
    factors = {
        **{name: values[name] for name in FACTOR_NAMES if name in values},
        **asdict(options),
        "backend": "jetson",
        "dataset": workload.dataset,
        "dataset_source": "official",
        "dataset_scale": 1,
        "torch_threads": 0,
        "recipe": recipe(workload.dataset, "official", 1),
        "imported": SCRIPTS,
    }
    if logs.num_workers == 0:
        factors["prefetch_factor"] = None
    if mode := device.power_modes[options.power_mode].model_dump(exclude_none=True):
        factors["power_mode_settings"] = mode
    return with_defaults(factors)


def _check_size(logs: Logs, factors: dict[str, Any], folder: Path) -> None:
    """Compare the mini-batches with data set and batch size; RecordError."""
    samples = n_samples(factors["dataset"], "official", 1)
    expected = math.ceil(samples / factors["batch_size"])
    for k, epoch in enumerate(logs.epochs):
        if epoch.stall_s.size != expected:
            raise RecordError(
                f"epoch {k} has {counted(epoch.stall_s.size, 'mini-batches')}, but {samples} "
                f"samples of {factors['dataset']} at --batch-size {factors['batch_size']} make "
                f"{expected}",
                where=f"{folder}, nw{logs.num_workers}_pf{logs.prefetch_factor}",
                do="check --model and --batch-size, and whether the whole data set was trained on",
            )


def _check_new(
    target: Path, source: dict[str, Any], others: dict[Path, tuple[Logs, dict[str, Any]]]
) -> None:
    """Refuse other logs in the place of those that are, or just become, the same run."""
    if target in others:
        raise RecordError(
            f"two logs of the folder are one run, {target.name}: without workers nothing is "
            "prefetched",
            do="move one of them out of the folder",
        )
    if (target / SOURCE).exists():
        before = files.read_json(str(target / SOURCE), {"files": ANY})
        if before["files"] != source["files"]:
            raise RecordError(
                f"{target} was imported from other logs",
                do="remove that folder first, or give another --instance",
            )


# -- records --------------------------------------------------------------------------------------


def _write(target: Path, logs: Logs, source: dict[str, Any]) -> None:
    """Write a run under another name and rename it, so that it is whole or not there."""
    unfinished = target.parent / f".import-{target.name}"
    with files.writing("an imported run", str(target)):
        shutil.rmtree(unfinished, ignore_errors=True)
        folder = RunFolder(str(unfinished), target.name)
        for k, epoch in enumerate(logs.epochs):
            folder.begin(k)
            is_timed = not clock_jumped(epoch, logs.epochs[k - 1] if k else None)
            seen = samples_of(epoch, logs.series) if is_timed else {}
            flags = {"imported"}
            flags |= {"cold_process"} if k == 0 else set()
            flags |= set() if is_timed else {"clock_jumped"}
            flags |= set() if POWER in seen else {"sampler_lost"}
            _write_samples(folder.attempt_path(k), seen)
            cached = _cached(k, logs) if is_timed else (None, None)
            meta = epoch_meta(k, epoch, source, sorted(flags), cached)
            folder.finish(k, meta, epoch.minibatch_s)
        files.write_json(os.path.join(folder.path, SOURCE), source)
        if target.exists():
            shutil.rmtree(target)
        os.rename(folder.path, target)
        unfinished.rmdir()


def epoch_meta(
    k: int,
    epoch: LoggedEpoch,
    source: dict[str, Any],
    flags: list[str],
    cached: tuple[float | None, float | None],
) -> dict[str, Any]:
    """Return the record of an epoch without the checksum of its mini-batches.

    `wait_s` holds wait and copy, which were timed as one; the monotonic clock is the log time.
    """
    factors = source["factors"]
    samples = n_samples(factors["dataset"], factors["dataset_source"], factors["dataset_scale"])
    return {
        "schema_version": SCHEMA_VERSION,
        "protocol": PROTOCOL,
        "run": source["run"],
        "epoch": k,
        "factors": factors,
        "unknown": UNKNOWN,
        "t_start_mono_s": epoch.start_s,
        "t_end_mono_s": epoch.end_s,
        "t_start_unix_s": epoch.start_s,
        "t_end_unix_s": epoch.end_s,
        "e2e_s": epoch.e2e_s,
        "wait_s": float(epoch.stall_s.sum()),
        "copy_s": 0.0,
        "compute_s": float(epoch.compute_s.sum()),
        "fetch_s": 0.0,
        "preprocess_s": 0.0,
        "tail_s": 0.0,
        "n_minibatches": epoch.stall_s.size,
        "n_samples": samples,
        "loss": None,
        "timing_method": TIMING,
        "cold_process": k == 0,
        "flags": flags,
        "machine": {key: factors[key] for key in ("device", "instance")},
        "software": {},
        "cache": {"action": None, "before_pct": cached[0], "after_pct": cached[1]},
        "measurement_id": f"{source['run']}/{k}",
        "boot_id": SCRIPTS,
    }


def clock_jumped(epoch: LoggedEpoch, before: LoggedEpoch | None) -> bool:
    """Return whether log times and durations of an epoch do not fit, so that the clock was set."""
    busy_s = np.cumsum(epoch.stall_s + epoch.compute_s)
    early = epoch.logged_s < epoch.start_s + busy_s - CLOCK_S
    late = epoch.logged_s > epoch.end_s - (busy_s[-1] - busy_s) + CLOCK_S
    overlap = before is not None and epoch.start_s < before.end_s - CLOCK_S
    return bool(early.any() or late.any() or overlap)


def samples_of(
    epoch: LoggedEpoch, series: dict[str, Series]
) -> dict[str, tuple[tuple[str, ...], np.ndarray, np.ndarray]]:
    """Return source -> columns, t_s (n,), values (n, c): readings inside, and one beyond each end.

    A source without a reading inside the epoch is left out; power needs two.
    """
    seen = {}
    for source, names in SOURCES.items():
        columns = tuple(name for name in names if name in series)
        if not columns:
            continue
        t_s = series[columns[0]].t_s
        values = np.column_stack([series[name].values for name in columns])
        read = np.flatnonzero(np.isfinite(values).all(axis=1))
        first, last = np.searchsorted(t_s[read], [epoch.start_s, epoch.end_s])
        last += int(last < read.size and t_s[read[last]] == epoch.end_s)
        if last - first < (2 if source == POWER else 1):
            continue
        rows = slice(read[max(first - 1, 0)], read[min(last, read.size - 1)] + 1)
        seen[source] = columns, t_s[rows], values[rows]
    return seen


def _write_samples(
    path: str, seen: dict[str, tuple[tuple[str, ...], np.ndarray, np.ndarray]]
) -> None:
    """Write the samples of an epoch, and the statistics that a sampler keeps of them."""
    sources = {}
    for source, (columns, t_s, values) in seen.items():
        write_samples(path, source, columns, t_s, t_s, values)
        total = columns[0] if source == POWER else None
        tally = Tally(columns, total)
        for t, row in zip(t_s.tolist(), values.tolist(), strict=True):
            tally.add(t, None, 0.0, 0.0, row)
        sources[source] = {
            "columns": list(columns),
            "scope": "module" if total else None,
            "total": total,
            "settings": {},
            "n_samples": len(t_s),
            "rows_dropped": 0,
            **tally.summary(),
        }
    statistics = {"lost": not sources, "clock_jumps": 0, "sources": sources}
    files.write_json(os.path.join(path, TELEMETRY), statistics)


def _cached(k: int, logs: Logs) -> tuple[float | None, float | None]:
    """Return the cached share before and after an epoch, if vmtouch looked just there, %."""
    if "cached_pct" not in logs.series:
        return None, None
    epochs, share = logs.epochs, logs.series["cached_pct"]
    ends = [-math.inf, *(epoch.end_s for epoch in epochs)]
    starts = [*(epoch.start_s for epoch in epochs), math.inf]

    def latest(place: int) -> float | None:
        low, high = ends[place] - LINE_S, starts[place] + LINE_S
        seen = share.values[(share.t_s >= low) & (share.t_s <= high) & np.isfinite(share.values)]
        return float(seen[-1]) if seen.size else None

    return latest(k), latest(k + 1)
