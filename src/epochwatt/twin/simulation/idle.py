"""Write idle powers of simulated boards, as the files that a measurement leaves.

In `{output}/{idle}/idle/` as in `measured/{idle}/idle/`: record, telemetry, samples. The power is
the same in every sample: nothing is known of its spread.

Source of the states: SIGMETRICS 2023, section 5.6.
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import epochwatt
from epochwatt import columns
from epochwatt.board.records import files
from epochwatt.board.records.samples import write_samples
from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.numbers import Clocks, number
from epochwatt.twin.inputs.twin import Twin, load_twin
from epochwatt.twin.model.power import STATE, idle_w
from epochwatt.twin.simulation.records import epoch_telemetry
from epochwatt.twin.simulation.simulated_epoch import Samples

SOURCE = {"module": "twin", "socket": "plug"}  # scope -> name of what tells it
PERIOD_S = {"module": 1.0, "socket": 20.0}  # of jtop; of the papers' meter


def simulate_idle(idles: str, config: Path, output: str) -> None:
    """Write the idle powers of simulated boards, a job of the workflow."""
    write_idles(json.loads(idles), load_twin(config, []), output)


def write_idles(idles: Sequence[dict[str, Any]], twin: Twin, output: str) -> None:
    """Write all idle powers; what was there is replaced.

    `idles`: `id`, `place` (device, state, ...), `mode` (numbers), `power_scope`, `seconds`.

    Raises EpochwattError: a board or a state that the twin lacks; RecordWriteError: a file cannot
    be written.
    """
    unfinished = output.rstrip("/") + ".unfinished"
    with files.writing("simulated idle powers", output):
        shutil.rmtree(unfinished, ignore_errors=True)
        for idle in idles:
            _write(os.path.join(unfinished, idle["id"], "idle"), idle, idle_power_w(idle, twin))
        shutil.rmtree(output, ignore_errors=True)
        os.rename(unfinished, output)


def idle_power_w(idle: dict[str, Any], twin: Twin) -> float:
    """Return the power of one idle state, W."""
    place, mode = idle["place"], idle["mode"]
    clocks = Clocks(*(float(mode[k]) for k in columns.CLOCKS))
    if place["device"] not in twin.boards:
        problem = f"no simulated board {place['device']!r}"
        raise EpochwattError(problem, where="idle power", allowed=list(twin.boards))
    board = twin.boards[place["device"]]
    power_w = idle_w(board, STATE[place["state"]], clocks, idle["power_scope"], twin.parameters)
    return number(power_w)


def _write(folder: str, idle: dict[str, Any], power_w: float) -> None:
    os.makedirs(folder)
    scope, seconds = idle["power_scope"], idle["seconds"]
    t_s = np.linspace(0.0, seconds, round(seconds / PERIOD_S[scope]) + 1)
    total = f"power_{scope}_w"
    values = np.full((t_s.size, 1), power_w)
    source = Samples(SOURCE[scope], scope, PERIOD_S[scope], (total,), total, t_s, values)
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
    files.write_json(os.path.join(folder, "telemetry.json"), epoch_telemetry([source]), False)
    write_samples(folder, source.name, source.columns, t_s, t_s, values)
