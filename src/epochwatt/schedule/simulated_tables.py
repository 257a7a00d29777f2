"""Simulate the mode tables of a study of schedules: apart, as the rest needs no simulator."""

from collections.abc import Iterable
from pathlib import Path

from epochwatt.schedule.config import ScheduleStudy, required_schedule
from epochwatt.sweeps.mode_table import ModeTable, tables_of, write_mode_tables
from epochwatt.sweeps.modes import SweepFacts
from epochwatt.sweeps.table import load_sweep
from epochwatt.twin.sweep import simulated_rows
from epochwatt.twin.twin import Twin, load_twin


def write_simulated_tables(counts: Iterable[str], path: Path) -> None:
    """Simulate all that the study needs, and write it as one file of mode tables.

    `counts`: paths of the counts of its networks, of training and inference.

    Raises ConfigError: no study, or a network, device or grid that cannot be.
    """
    twin = load_twin(Path("config/twin"), counts)
    write_mode_tables(path, simulated_tables(required_schedule(), twin))


def simulated_tables(study: ScheduleStudy, twin: Twin) -> list[ModeTable]:
    """Return the mode tables of a study.

    `twin`: simulated boards, with the counts of all networks of the study.
    """
    return tables_of(
        row
        for name, entry in study.sweeps()
        for row in simulated_rows(SweepFacts(**load_sweep(name, entry)[0].facts), twin)
    )
