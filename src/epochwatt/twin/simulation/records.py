"""Write simulated epochs as the files that a measurement leaves, and their tables.

::

    results/simulated/{run}/epoch-0/record.json, minibatches.npy, telemetry.json, samples-*.csv
    results/runs/{run}/epochs.csv, energy.csv

The records have the form of `measured/{run}/` and can be read as those (`records.run_folder`); the
tables pass the checks and flags of measured epochs (`epochs.collect`). All of it says that it is
simulated: backend `twin`, timing method `simulated`. Both clocks are the run's own, which begins at
0, so the same run always leaves the same files.

Records are kept of a run's first `KEPT_EPOCHS` epochs. Later ones, of the 15-hour runs, have their
rows in the tables and nothing else.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import epochwatt
from epochwatt.board.records import files
from epochwatt.board.records.run_folder import (
    TELEMETRY,
    EpochRecord,
    RunFolder,
    check_meta,
    check_minibatches,
    write_record,
)
from epochwatt.board.records.samples import write_samples
from epochwatt.board.telemetry.source import WRITTEN_W, sensor_facts
from epochwatt.columns import MINIBATCH_COLUMNS, PROTOCOL, SCHEMA_VERSION, TWIN
from epochwatt.epochs import telemetry
from epochwatt.epochs.collect import write_tables
from epochwatt.twin.inputs.numbers import Factors
from epochwatt.twin.simulation.simulated_epoch import Samples, SimulatedEpoch

KEPT_EPOCHS = 10  # more than any run but the 15-hour ones has
STAMP_DIGITS = 6  # of seconds, in sample files; bounds of epochs are rounded alike
TIMING = "simulated"


def write_run(
    run: str,
    output: str,
    factors: Factors,
    epochs: Sequence[SimulatedEpoch],
    flag_effects: dict[str, str],
    tables: str,
) -> None:
    """Write the records and the tables of a simulated run.

    Raises RecordError: an epoch contradicts itself; RecordWriteError: a file cannot be written.

    Parameters
    ----------
    output : folder of its records; what was there is replaced
    flag_effects : flag -> "invalidates", "voids_energy" or "informs"
    tables : folder of `epochs.csv` and `energy.csv`
    """
    root, name = os.path.split(os.path.normpath(output))
    unfinished = RunFolder(root, name + ".unfinished")
    with files.writing("a simulated run", output):
        shutil.rmtree(unfinished.path, ignore_errors=True)
        os.makedirs(unfinished.path)
        write_tables(
            run,
            _observed(unfinished, run, factors, epochs),
            flag_effects,
            os.path.join(tables, "epochs.csv"),
            os.path.join(tables, "energy.csv"),
        )
        shutil.rmtree(output, ignore_errors=True)
        os.rename(unfinished.path, output)


def _observed(
    folder: RunFolder, run: str, factors: Factors, epochs: Sequence[SimulatedEpoch]
) -> Iterator[tuple[EpochRecord, telemetry.Samples]]:
    """Give record and samples of each epoch, checked; the first ones are written on the way."""
    for epoch in epochs:
        place = folder.epoch_path(epoch.epoch)
        minibatch_s = epoch.times_s.astype(np.float32)
        meta = epoch_meta(run, factors, epoch, minibatch_s)
        measured = epoch_telemetry(epoch.sources)
        check_meta({**meta, "minibatches_sha256": ""}, place, run, epoch.epoch)
        check_minibatches(minibatch_s, meta, place)
        if epoch.epoch < KEPT_EPOCHS:
            os.mkdir(place)
            meta = write_record(place, meta, minibatch_s, durable=False)
            files.write_json(os.path.join(place, TELEMETRY), measured, durable=False)
            for source in epoch.sources:
                t_s = source.t_s.round(STAMP_DIGITS)
                write_samples(place, source.name, source.columns, t_s, t_s, source.values)
        samples = {}  # what a reader of each source's file gets
        for source in epoch.sources:
            columns = np.ascontiguousarray(source.values.T)
            table = dict(zip(source.columns, columns, strict=True))
            samples[source.name] = {"t_mono_s": source.t_s.round(STAMP_DIGITS), **table}
        yield EpochRecord(meta, minibatch_s, measured, place), samples


def epoch_meta(
    run: str, factors: Factors, epoch: SimulatedEpoch, minibatch_s: np.ndarray
) -> dict[str, Any]:
    """Return the record of an epoch without the checksum of its mini-batches."""
    start_s = round(epoch.t_start_s, STAMP_DIGITS)
    end_s = round(epoch.t_start_s + epoch.e2e_s, STAMP_DIGITS)
    totals = minibatch_s.sum(axis=0, dtype=np.float64).tolist()
    first = epoch.epoch == 0
    dropped = first or factors["cache_policy"] == "dropped"
    return {
        "schema_version": SCHEMA_VERSION,
        "protocol": PROTOCOL,
        "run": run,
        "epoch": epoch.epoch,
        "backend": TWIN,
        "factors": factors,
        "t_start_mono_s": start_s,
        "t_end_mono_s": end_s,
        "t_start_unix_s": start_s,
        "t_end_unix_s": end_s,
        "e2e_s": end_s - start_s,
        **dict(zip(MINIBATCH_COLUMNS, totals, strict=True)),
        "fetch_s": epoch.fetch_s,
        "preprocess_s": epoch.preprocess_s,
        "tail_s": 0.0,  # the simulation spreads worker shut-down like all overhead
        "host_wait_s": None,
        "n_minibatches": len(minibatch_s),
        "n_samples": epoch.n_samples,
        "loss": None,
        "timing_method": TIMING,
        "cold_process": first,
        "flags": ["cold_process"] if first else [],
        "machine": {key: factors[key] for key in ("device", "instance")},
        "software": {"epochwatt": epochwatt.__version__},
        "board": {"power_mode": _mode(factors), "busy_pct": 0.0, "settled": None},
        "events": {"before": {}, "after": {}},
        "cache": {
            "action": "dropped" if dropped else None,
            "before_pct": epoch.cached_before_pct,
            "after_pct": epoch.cached_after_pct,
        },
        "measurement_id": f"{run}/{epoch.epoch}",
        "boot_id": TWIN,
    }


def _mode(factors: Factors) -> dict[str, Any]:
    """Return the power mode as `Machine.apply` does: a simulated board has what was asked for."""
    requested = factors["power_mode_settings"]
    return {
        "requested": requested,
        "resolved": requested,
        "read_back": {**requested, "cores_online": list(range(int(requested["cores"])))},
        "unverified": [],
        "dvfs": factors["dvfs"],
        "fan": "as it is",
        "verified": True,
    }


def epoch_telemetry(sources: Sequence[Samples]) -> dict[str, Any]:
    """Return `telemetry.json` of an epoch or an idle power: what the sampler would say."""
    return {
        "schema_version": SCHEMA_VERSION,
        "epochwatt": epochwatt.__version__,
        "lost": False,
        "clock_jumps": 0,
        "sources": {source.name: _described(source) for source in sources},
    }


def _described(source: Samples) -> dict[str, Any]:
    """Return what `telemetry.channel` would count of a source."""
    steps_s = np.diff(source.t_s)
    total_w, settings = None, {}
    if source.total is not None:  # its sensor shows the instant
        settings = {"sensor": sensor_facts("instant", 0.0, None, {source.total: WRITTEN_W})}
        total_w = source.values[:, source.columns.index(source.total)]
    return {
        "columns": list(source.columns),
        "scope": source.scope,
        "total": source.total,
        "period_s": source.period_s,
        "settings": settings,
        "n_samples": len(source.t_s),
        "n_failed": 0,
        "n_gaps": 0,
        "rows_dropped": 0,
        "error": None,
        "step_mean_s": float(steps_s.mean()) if steps_s.size else None,
        "step_sd_s": float(steps_s.std()) if steps_s.size else None,
        "step_max_s": float(steps_s.max()) if steps_s.size else None,
        "n_nan": 0 if total_w is None else int(np.isnan(total_w).sum()),
        "n_negative": 0 if total_w is None else int((total_w < 0).sum()),
        "stuck_s": 0.0 if total_w is None else stuck_s(source.t_s, total_w),
    }


def stuck_s(t_s: np.ndarray, values: np.ndarray) -> float:
    """Return the longest time over which the same value was read again and again, s.

    Parameters
    ----------
    t_s : float (n,), s, ascending
    values : float (n,)
    """
    if not t_s.size:
        return 0.0
    changes = np.flatnonzero(np.diff(values) != 0)
    since = np.concatenate([[0], changes + 1])
    until = np.concatenate([changes, [t_s.size - 1]])
    return float((t_s[until] - t_s[since]).max())
