"""Collect `results/tables/idle.csv`: power of idle boards, by state and power mode.

State (i), metrics logged and nothing else, comes from the board's own sensors. In states (ii) to
(iv) nothing is logged by definition (SIGMETRICS 2023, section 5.6), so they come from a meter at
the plug and are entered by hand into config/idle_plug.csv. Simulated boards tell any state.
"""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.board.records import checksums, files
from epochwatt.board.records.record_shapes import EVENTS, IDLE_TELEMETRY, INSTANT
from epochwatt.board.records.samples import read_source, samples_path
from epochwatt.board.records.shapes import NUMBER
from epochwatt.columns import IDLE_COLUMNS, names, widest_scope
from epochwatt.epochs.board_flags import BUSY_PCT, event_flags
from epochwatt.epochs.energy import trapezoid
from epochwatt.epochs.sensor import AGE, sensor_in
from epochwatt.epochs.telemetry import power_flags
from epochwatt.errors import ConfigError, RecordError
from epochwatt.tables import Cells, read_table, write_table

DOUBTFUL = {"power_lost", "power_contradicted", "throttled", "over_current"}
NO_LOOP = np.empty(0)  # nothing repeats by a clock that a sensor's instants could keep to
_RECORD = {
    "t_start_mono_s": INSTANT,
    "t_end_mono_s": INSTANT,
    "events": EVENTS,
    "board": {"busy_pct?": (None, NUMBER)},
}
PLUG_STATES = {"ii": "off", "iii": "on", "iv": ""}  # state -> DVFS; asleep there is none
PLUG_PLACE = ("device", "instance", "power_mode", "state")

IdleRow = dict[str, Any]  # cells of idle.csv; what is not known is left out


def write_idle_table(idles: Sequence[dict[str, Any]], plug_csv: str, path: str) -> None:
    """Write one row per idle power: measured ones, simulated ones, then those entered by hand.

    Raises RecordError: a measurement is missing or damaged; ConfigError: a row of `plug_csv` is
    wrong.

    `idles`: `root`, `id` and `place` of those that have a record, in `{root}/{id}/idle/`;
    `plug_csv`: config/idle_plug.csv
    """
    rows = [recorded_row(idle["root"], idle) for idle in idles] + plug_rows(plug_csv)
    write_table(path, "the idle powers", names(IDLE_COLUMNS), rows)


def recorded_row(root: str, idle: dict[str, Any]) -> IdleRow:
    """Return the row of one record: mean power over its window, by the sensor of widest scope.

    `power_w` is left out where the board was busy or the power is in doubt. A `place` without a
    state is of a board, which can be measured in state i only.
    """
    folder = os.path.join(root, idle["id"], "idle")
    record = _checked(folder, "record.json", _RECORD)
    sources = _checked(folder, "telemetry.json", IDLE_TELEMETRY)["sources"]
    start_s, end_s = record["t_start_mono_s"], record["t_end_mono_s"]
    row = {"state": "i", **idle["place"], "duration_s": end_s - start_s}
    by_scope = {s["scope"]: (name, s) for name, s in sources.items() if s["total"]}
    scope = widest_scope(by_scope)
    if scope is None:
        return row
    name, source = by_scope[scope]
    table, total = read_source(folder, name, source), source["total"]
    if total not in table:
        raise RecordError(f"{samples_path(folder, name)} has no column {total}")
    energy = trapezoid(
        *(table["t_mono_s"], table[total], start_s, end_s),
        sensor_in(source, table, (start_s, end_s)),
        table.get(AGE),
        minibatch_starts_s=NO_LOOP,
    )
    flags = power_flags(source, energy.flags) | event_flags(record["events"])
    is_idle = (record["board"].get("busy_pct") or 0.0) <= BUSY_PCT
    if is_idle and not flags & DOUBTFUL and not math.isnan(energy.energy_j):
        row["power_w"] = energy.energy_j / (end_s - start_s)
    if not math.isnan(energy.error_pct):
        row["power_error_pct"] = energy.error_pct
    return {**row, "power_scope": scope}


def _checked(folder: str, name: str, shape: Any) -> Any:
    """Read a JSON file of a record; RecordError: its checksum or its shape is wrong."""
    path = os.path.join(folder, name)
    return files.parse_json(checksums.read_checked(path, checksums.read_sums(folder)), path, shape)


def plug_rows(path: str) -> list[IdleRow]:
    """Return the rows entered by hand; empty: no such file. Raises ConfigError as `_plug_row`."""
    if not os.path.exists(path):
        return []
    rows = read_table(Path(path), comment="#")
    return [_plug_row(row, f"{path}, row {n}") for n, (_, row) in enumerate(rows, 1)]


def _plug_row(row: Cells, where: str) -> IdleRow:
    """Return a row of idle.csv from one entered by hand; ConfigError: a cell is wrong."""
    required = (*PLUG_PLACE, "power_w")
    missing = [key for key in required if not row.get(key)]
    if missing:
        raise ConfigError(f"{missing[0]} is missing", where=where, do=f"enter all of {required}")
    if row["state"] not in PLUG_STATES:
        problem = "unknown state; the board itself measures state i"
        raise ConfigError(problem, where=where, found=row["state"], allowed=PLUG_STATES)
    try:
        power_w = float(row["power_w"])
    except ValueError:
        power_w = -1.0
    if not 0 <= power_w < math.inf:
        problem, allowed = "power_w is not a power", "a number >= 0, in W"
        raise ConfigError(problem, where=where, found=row["power_w"], allowed=allowed)
    place = {**{key: row[key] for key in PLUG_PLACE}, "dvfs": PLUG_STATES[row["state"]]}
    return {**place, "backend": "jetson", "power_scope": "socket", "power_w": power_w}
