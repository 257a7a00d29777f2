"""Write tables of sweeps of simulated boards: all modes of a workload in one call."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt import columns
from epochwatt.sweeps.facts import SweepFacts
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables
from epochwatt.sweeps.modes import SweepMode, mode_rows
from epochwatt.twin.inputs.twin import Twin, load_twin
from epochwatt.twin.simulation.sweep import simulate_sweep


def write_simulated_sweep(
    facts: Mapping[str, Any], config: Path, workload: str, table: Path
) -> None:
    """Simulate a sweep and write its table of modes.

    `facts`: `epochwatt.sweeps.facts.SweepFacts` as plain values.

    Raises EpochwattError: a board, a network or a mode that cannot be simulated; RecordWriteError:
    the table cannot be written.
    """
    sweep = SweepFacts(**facts)
    write_mode_tables(table, tables_of(simulated_rows(sweep, load_twin(config, [workload]))))


def simulated_rows(sweep: SweepFacts, twin: Twin) -> list[SweepRow]:
    """Return the rows of a simulated sweep.

    `twin`: simulated boards, with the counts of the sweep's network.

    Raises EpochwattError: a board, a network or a mode that cannot be simulated.
    """
    factors = columns.with_defaults(json.loads(sweep.factors))
    modes = [SweepMode(*mode) for mode in sweep.modes]
    time_s, power_w = simulate_sweep(mode_rows(modes), factors, twin, twin.parameters)
    return [
        SweepRow(
            **sweep.columns(),
            **mode._asdict(),
            gpu_share=1.0,
            time_s=float(time),
            power_w=float(power),
            power_scope="module",
        )
        for mode, time, power in zip(modes, np.asarray(time_s), np.asarray(power_w), strict=True)
    ]
