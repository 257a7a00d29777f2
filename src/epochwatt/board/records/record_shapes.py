"""List the parts of a record that its readers rely on (board side: Python 3.6 grammar).

Only what is computed with is named: an older record lacks what came later, and a newer one may hold
more.
"""

from typing import Any, Dict

from epochwatt import columns
from epochwatt.board.records.shapes import (
    AMOUNT,
    ANY_KEY,
    COUNT,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    WHOLE,
    WORD,
    Kind,
    is_number,
)

LONGEST_S = 1e7  # of an epoch: four months
_LATEST_S = 1e11  # of a clock: what is later has no date

DURATION = Kind("seconds, 0 to 1e7", lambda value: is_number(value) and 0 <= value <= LONGEST_S)
LENGTH = Kind("seconds above 0, to 1e7", lambda value: is_number(value) and 0 < value <= LONGEST_S)
INSTANT = Kind("seconds, 0 to 1e11", lambda value: is_number(value) and 0 <= value <= _LATEST_S)
_OF_KIND = {"str": WORD, "int": WHOLE, "float": NUMBER, "bool": TRUTH}

_CLOCKS = {
    "cores_online?": (None, [COUNT]),
    "cpu_mhz?": (None, NUMBER),
    "gpu_mhz?": (None, NUMBER),
    "emc_mhz?": (None, NUMBER),
    "held_back?": TRUTH,
}
_BOARD = {
    "power_mode": {
        "verified": TRUTH,
        "dvfs": TEXT,
        "read_back": (None, _CLOCKS),
        "resolved": (None, _CLOCKS),
    },
    "busy_pct": (None, NUMBER),
    "settled": (None, {"steady": TRUTH}),
}
FACTORS: Dict[str, Any] = {f.name + "?": (_OF_KIND[f.kind], None) for f in columns.FACTORS}
FACTORS["board_settings?"] = {"power_source?": TEXT}
FACTORS["container_settings?"] = {ANY_KEY: TEXT}
FACTORS["power_mode_settings?"] = {ANY_KEY: (NUMBER, TEXT)}

EVENTS = {"before": {ANY_KEY: NUMBER}, "after": {ANY_KEY: NUMBER}}

# Without these a record cannot be read at all.
_REQUIRED: Dict[str, Any] = {
    "run": WORD,
    "epoch": COUNT,
    "protocol": WHOLE,
    "t_start_mono_s": INSTANT,
    "t_end_mono_s": INSTANT,
    "t_start_unix_s": INSTANT,
    "t_end_unix_s": INSTANT,
    "e2e_s": LENGTH,
    "wait_s": AMOUNT,
    "copy_s": AMOUNT,
    "compute_s": AMOUNT,
    "fetch_s": AMOUNT,
    "preprocess_s": AMOUNT,
    "factors": FACTORS,
    "n_minibatches": COUNT,
    "n_samples": (WHOLE, None),
    "loss": (NUMBER, None),
    "timing_method": (WORD, None),
    "cold_process": (TRUTH, None),
    "flags": [WORD],
    "machine": OBJECT,
    "software": OBJECT,
    "measurement_id": TEXT,
    "boot_id": TEXT,
    "minibatches_sha256": TEXT,
}
_CACHE = {
    "before_pct?": (None, NUMBER),
    "after_pct?": (None, NUMBER),
    "action?": (None, TEXT),
    "in_memory?": (None, TRUTH),
}

# Also what becomes a column of epochs.csv as it stands, and what columns are made of.
RECORD: Dict[str, Any] = {
    f.name + "?": (_OF_KIND[f.kind], None)
    for f in columns.RUN_EPOCH_COLUMNS
    if f.name not in _REQUIRED
}
RECORD.update(_REQUIRED)
RECORD.update(
    {
        "unknown?": [WORD],
        "tail_s?": NUMBER,
        "cache?": (None, _CACHE),
        "board?": (None, _BOARD),
        "events?": EVENTS,
        "environment?": {ANY_KEY: TEXT},
        "torch_threads_used?": COUNT,
        "power_source?": (None, TEXT),
    }
)

ATTEMPT = {"started_unix_s": INSTANT}

# Of a mode of a sweep: what an epoch's record has of a run is its sweep and mode.
_OF_EPOCHS = ("run", "epoch", "fetch_s", "preprocess_s")
MODE: Dict[str, Any] = {k: v for k, v in RECORD.items() if k not in _OF_EPOCHS}
MODE.update({"sweep": WORD, "mode": {ANY_KEY: NUMBER}, "task": WORD, "repeat": COUNT})

# Of the ceilings of one mode: what was timed, block by block.
CEILINGS: Dict[str, Any] = {
    "schema_version": WHOLE,
    "ceilings": WORD,
    "mode": {ANY_KEY: NUMBER},
    "backend": WORD,
    "processor": WORD,
    "t_start_unix_s": INSTANT,
    "t_start_mono_s": INSTANT,
    "t_end_mono_s": INSTANT,
    "flags": [WORD],
    "events": EVENTS,
    "board?": (None, _BOARD),
    "clocks_set?": (None, _BOARD["power_mode"]),
    "telemetry_lost": TRUTH,
    "kernels": [
        {
            "kernel": WORD,
            "precision": WORD,
            "size": COUNT,
            "flops": AMOUNT,
            "bytes": AMOUNT,
            "way": WORD,
            "n_calls": COUNT,
            "start_s": INSTANT,
            "end_s": INSTANT,
            "blocks_s": [AMOUNT],
            "n_power": COUNT,
        }
    ],
}

_READING = {
    "reads?": (None, TEXT),
    "averaging_s?": (None, NUMBER),
    "update_s?": (None, NUMBER),
    "counter_update_s?": (None, NUMBER),
    "seen_share?": (None, NUMBER),
    "is_centred?": TRUTH,
    "step_w?": (None, {ANY_KEY: (None, NUMBER)}),
}
_SENSOR = {
    "scope": (None, TEXT),
    "total": (None, TEXT),
    "columns?": [WORD],
    "n_samples?": COUNT,
    "n_negative": COUNT,
    "stuck_s": NUMBER,
    "settings?": {
        "contradictions?": (None, NUMBER),
        "n_cpus?": (None, COUNT),
        "sensor?": (None, _READING),
    },
}
_SAMPLED = {
    "write_error?": (None, TEXT),
    "step_mean_s": (None, NUMBER),
    "n_failed": COUNT,
    "rows_dropped": COUNT,
}
TELEMETRY = {
    "clock_jumps?": COUNT,
    "cpu_s?": NUMBER,
    "wall_s?": NUMBER,
    "sources?": {ANY_KEY: {**_SENSOR, **_SAMPLED}},
}
IDLE_TELEMETRY = {"sources": {ANY_KEY: ({"scope": (None, TEXT), "total": None}, _SENSOR)}}
