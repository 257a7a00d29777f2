"""Write simulated epochs and idle powers as the files that a measurement leaves, and their tables.

::

    results/simulated/{run}/epoch-0/record.json, minibatches.npy, telemetry.json, samples-*.csv
    results/runs/{run}/epochs.csv, energy.csv
    results/simulated/idle/{idle}/idle/record.json, telemetry.json, samples-*.csv

The records have the form of `measured/` and can be read as those (`records.run_folder`); the tables
pass the checks and flags of measured epochs (`epochs.collect`). All of it says that it is
simulated: backend `twin`, timing method `simulated`. Both clocks are the run's own, which begins at
0, so the same run always leaves the same files.

Records are kept of a run's first `KEPT_EPOCHS` epochs. Later ones, of the 15-hour runs, have their
rows in the tables and nothing else. An idle power is the same in every sample: nothing is known of
its spread (SIGMETRICS 2023, section 5.6, for the states).
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import epochwatt
from epochwatt import columns
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
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.source import WRITTEN_W, sensor_facts
from epochwatt.epochs import telemetry
from epochwatt.epochs.collect import write_tables
from epochwatt.errors import EpochwattError
from epochwatt.twin.boards import Clocks, Factors, number
from epochwatt.twin.power import STATE, idle_w
from epochwatt.twin.run import Samples, SimulatedEpoch
from epochwatt.twin.twin import Twin, load_twin

KEPT_EPOCHS = 10  # more than any run but the 15-hour ones has
STAMP_DIGITS = 6  # of seconds, in sample files; bounds of epochs are rounded alike
TIMING = "simulated"
IDLE_SOURCE = {"module": "twin", "socket": "plug"}  # power scope -> the source that reads it
IDLE_PERIOD_S = {"module": 1.0, "socket": 20.0}  # of jtop; of the papers' meter


def write_run(
    run: str,
    output: str,
    factors: Factors,
    epochs: Sequence[SimulatedEpoch],
    flag_effects: dict[str, str],
    tables: str,
) -> None:
    """Write the records and the tables of a simulated run, replacing former ones.

    Raises RecordError: an epoch contradicts itself; RecordWriteError: a file cannot be written.

    `output`: folder of its records
    `flag_effects`: flag -> "invalidates", "voids_energy" or "informs"
    `tables`: folder of `epochs.csv` and `energy.csv`
    """
    root, name = os.path.split(os.path.normpath(output))
    unfinished = RunFolder(root, name + ".unfinished")
    with files.writing("a simulated run", output):
        shutil.rmtree(unfinished.path, ignore_errors=True)
        os.makedirs(unfinished.path)
        write_tables(
            run,
            _records(unfinished, run, factors, epochs),
            flag_effects,
            os.path.join(tables, "epochs.csv"),
            os.path.join(tables, "energy.csv"),
        )
        shutil.rmtree(output, ignore_errors=True)
        os.rename(unfinished.path, output)


def _records(
    folder: RunFolder, run: str, factors: Factors, epochs: Sequence[SimulatedEpoch]
) -> Iterator[tuple[EpochRecord, telemetry.Samples]]:
    """Yield checked record and samples of each epoch; write the first `KEPT_EPOCHS` to `folder`."""
    for epoch in epochs:
        path = folder.epoch_path(epoch.epoch)
        minibatch_s = epoch.times_s.astype(np.float32)
        meta = epoch_meta(run, factors, epoch, minibatch_s)
        measured = telemetry_facts(epoch.sources)
        check_meta({**meta, "minibatches_sha256": ""}, path, run, epoch.epoch)
        check_minibatches(minibatch_s, meta, path)
        if epoch.epoch < KEPT_EPOCHS:
            os.mkdir(path)
            meta = write_record(path, meta, minibatch_s, durable=False)
            files.write_json(os.path.join(path, TELEMETRY), measured, durable=False)
            for source in epoch.sources:
                t_s = source.t_s.round(STAMP_DIGITS)
                write_samples(path, source.name, source.columns, t_s, t_s, source.values)
        samples = {}  # what a reader of each source's file gets
        for source in epoch.sources:
            values = np.ascontiguousarray(source.values.T)
            table = dict(zip(source.columns, values, strict=True))
            samples[source.name] = {"t_mono_s": source.t_s.round(STAMP_DIGITS), **table}
        yield EpochRecord(meta, minibatch_s, measured, path), samples


def epoch_meta(
    run: str, factors: Factors, epoch: SimulatedEpoch, minibatch_s: np.ndarray
) -> Document:
    """Return `record.json` of a simulated epoch, without the checksum of its mini-batches.

    Its power mode is reported as `Machine.apply` does where a board has what was asked for.
    """
    start_s = round(epoch.t_start_s, STAMP_DIGITS)
    end_s = round(epoch.t_start_s + epoch.e2e_s, STAMP_DIGITS)
    totals = minibatch_s.sum(axis=0, dtype=np.float64).tolist()
    first = epoch.epoch == 0
    dropped = first or factors["cache_policy"] == "dropped"
    mode = factors["power_mode_settings"]
    power_mode = {
        "requested": mode,
        "resolved": mode,
        "read_back": {**mode, "cores_online": list(range(int(mode["cores"])))},
        "unverified": [],
        "dvfs": factors["dvfs"],
        "fan": "as it is",
        "verified": True,
    }
    return {
        "schema_version": columns.SCHEMA_VERSION,
        "protocol": columns.PROTOCOL,
        "run": run,
        "epoch": epoch.epoch,
        "backend": columns.TWIN,
        "factors": factors,
        "t_start_mono_s": start_s,
        "t_end_mono_s": end_s,
        "t_start_unix_s": start_s,
        "t_end_unix_s": end_s,
        "e2e_s": end_s - start_s,
        **dict(zip(columns.MINIBATCH_COLUMNS, totals, strict=True)),
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
        "board": {"power_mode": power_mode, "busy_pct": 0.0, "settled": None},
        "events": {"before": {}, "after": {}},
        "cache": {
            "action": "dropped" if dropped else None,
            "before_pct": epoch.cached_before_pct,
            "after_pct": epoch.cached_after_pct,
        },
        "measurement_id": f"{run}/{epoch.epoch}",
        "boot_id": columns.TWIN,
    }


def telemetry_facts(sources: Sequence[Samples]) -> Document:
    """Return `telemetry.json` of an epoch or an idle power, as the sampler would write it.

    The statistics of a source are those that `telemetry.channel` would count.
    """
    facts = {}
    for source in sources:
        steps_s = np.diff(source.t_s)
        total_w, settings = np.empty(0), {}
        if source.total is not None:  # its sensor shows the instant
            settings = {"sensor": sensor_facts("instant", 0.0, None, {source.total: WRITTEN_W})}
            total_w = source.values[:, source.columns.index(source.total)]
        facts[source.name] = {
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
            "n_nan": int(np.isnan(total_w).sum()),
            "n_negative": int((total_w < 0).sum()),
            "stuck_s": stuck_s(source.t_s, total_w) if total_w.size else 0.0,
        }
    return {
        "schema_version": columns.SCHEMA_VERSION,
        "epochwatt": epochwatt.__version__,
        "lost": False,
        "clock_jumps": 0,
        "sources": facts,
    }


def stuck_s(t_s: np.ndarray, values: np.ndarray) -> float:
    """Return the longest time over which a sensor read the same value again and again, s.

    `t_s`: float (n,), s, ascending, n above 0; `values`: float (n,).
    """
    changes = np.flatnonzero(np.diff(values) != 0)
    since = np.concatenate([[0], changes + 1])
    until = np.concatenate([changes, [t_s.size - 1]])
    return float((t_s[until] - t_s[since]).max())


def simulate_idle(idles: str, config: Path, output: str) -> None:
    """Write the idle powers of simulated boards as a job of the workflow; `idles`: JSON."""
    write_idles(json.loads(idles), load_twin(config, []), output)


def write_idles(idles: Sequence[dict[str, Any]], twin: Twin, output: str) -> None:
    """Write records of all idle powers into `output`, replacing what was there.

    `idles`: dicts of `id`, `place` (device, state, ...), `mode` (cores, MHz), `power_scope`,
    `seconds`

    Raises EpochwattError: a board or a state that the twin lacks; RecordWriteError: a file cannot
    be written.
    """
    unfinished = output.rstrip("/") + ".unfinished"
    with files.writing("simulated idle powers", output):
        shutil.rmtree(unfinished, ignore_errors=True)
        for idle in idles:
            folder = os.path.join(unfinished, idle["id"], "idle")
            os.makedirs(folder)
            scope, seconds = idle["power_scope"], idle["seconds"]
            t_s = np.linspace(0.0, seconds, round(seconds / IDLE_PERIOD_S[scope]) + 1)
            total = f"power_{scope}_w"
            values = np.full((t_s.size, 1), idle_power_w(idle, twin))
            period_s = IDLE_PERIOD_S[scope]
            source = Samples(IDLE_SOURCE[scope], scope, period_s, (total,), total, t_s, values)
            record = {
                "schema_version": columns.SCHEMA_VERSION,
                "protocol": columns.PROTOCOL,
                "backend": columns.TWIN,
                "idle": idle["id"],
                "t_start_mono_s": 0.0,
                "t_end_mono_s": seconds,
                "t_start_unix_s": 0.0,
                "events": {"before": {}, "after": {}},
                "board": {"busy_pct": 0.0, "settled": None},
                "software": {"epochwatt": epochwatt.__version__},
            }
            files.write_json(os.path.join(folder, "record.json"), record, durable=False)
            facts = telemetry_facts([source])
            files.write_json(os.path.join(folder, TELEMETRY), facts, durable=False)
            write_samples(folder, source.name, source.columns, t_s, t_s, values)
        shutil.rmtree(output, ignore_errors=True)
        os.rename(unfinished, output)


def idle_power_w(idle: dict[str, Any], twin: Twin) -> float:
    """Return the power of an idle state, W; EpochwattError: the board is not simulated."""
    place, mode = idle["place"], idle["mode"]
    clocks = Clocks(*(float(mode[k]) for k in columns.CLOCKS))
    if place["device"] not in twin.boards:
        problem = f"no simulated board {place['device']!r}"
        raise EpochwattError(problem, where="idle power", allowed=list(twin.boards))
    board = twin.boards[place["device"]]
    return number(
        idle_w(board, STATE[place["state"]], clocks, idle["power_scope"], twin.parameters)
    )
