"""Plan sweeps: their modes, those measured, how long the rest may take."""

import json
from statistics import fmean
from typing import NamedTuple

from epochwatt.board.device.cpu_clocks import CpuClocks
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.training.procedure import procedure_of
from epochwatt.errors import RecordError
from epochwatt.study.place import MEASURED
from epochwatt.study.plan import GUESS, JOB_S, duration
from epochwatt.study.settings import Settings
from epochwatt.sweeps.modes import SweepMode
from epochwatt.sweeps.table import Sweep, SweepTable
from epochwatt.text import aligned

# ASSUME: to set a mode and read it back; until the power has followed. PowerTrain collects in 12 to
# 24 s a mode, 54 s with all that is around it (FGCS 2024: 16.3 h for a quarter of 4,368).
SET_S = 3.0
FOLLOW_S = 8.0
MOST_READ = 100  # records, of modes all over the sweep
SLOWER = 1.5  # ASSUME: a first guess of a network's speed is of the strongest mode, and hopeful


def sweep_lines(table: SweepTable, settings: Settings) -> list[str]:
    """Write the plan of the selected sweeps as lines: modes, those measured, time that is left."""
    rows, fixed_clocks, total_s = [("sweep", "modes", "measured", "s per mode", "left")], [], 0.0
    for sweep in table.sweeps.values():
        if sweep.is_simulated:
            rows.append((sweep.name, str(len(sweep.modes)), "-", "simulated", "seconds"))
            continue
        n_modes, n_left = len(sweep.modes), len(modes_left(sweep))
        chunks_s, basis = chunk_estimates_s(sweep, settings)
        left_s = sum(chunk_s + JOB_S for chunk_s in chunks_s if chunk_s)
        total_s += left_s
        mode_s = f"{left_s / n_left:.3g} ({basis})" if n_left else "-"
        left = duration(left_s) if n_left else "-"
        rows.append((sweep.name, str(n_modes), str(n_modes - n_left), mode_s, left))
        is_host_here = sweep.run.factors["backend"] == "host" and sweep.run.here
        root = json.loads(sweep.run.machine)["root"] if is_host_here else ""
        if is_host_here and (why := CpuClocks(root).why_fixed()):
            note = "modes are threads alone; CPU clocks cannot be set here"
            fixed_clocks.append(f"sweep {sweep.name}: {note}: {why}")
    return [
        *(aligned(rows) if table.sweeps else []),
        *(f"left alone: sweep {sweep.name}: {why}" for sweep, why in table.elsewhere),
        *fixed_clocks,
        *([f"sweeps: the rest takes about {duration(total_s)}"] if total_s else []),
    ]


def modes_left(sweep: Sweep) -> list[SweepMode]:
    """Return the modes that are not measured yet."""
    folder = SweepFolder(MEASURED, sweep.id)
    return [mode for mode in sweep.modes if not folder.has(mode.settings())]


def chunk_estimates_s(sweep: Sweep, settings: Settings) -> tuple[list[float], str]:
    """Estimate the seconds that the unmeasured modes of each chunk take, and name the basis.

    0: nothing is left of the chunk. What a job takes besides its modes is not counted.
    """
    left = set(modes_left(sweep))
    expected = _measured_mode_time(sweep) or guessed_mode_time(sweep, settings)
    slower = clock_ratios(sweep)
    seconds = [
        sum(
            expected.around_s + expected.training_s * slower[mode]
            for mode in sweep.modes[first : last + 1]
            if mode in left
        )
        for first, last in sweep.chunks
    ]
    return seconds, expected.basis


class ModeTime(NamedTuple):
    """Duration of a mode."""

    around_s: float  # besides the mini-batches that count: setting, rest, following
    training_s: float  # these mini-batches, at the highest GPU clock of the sweep
    basis: str  # where the numbers come from


def guessed_mode_time(sweep: Sweep, settings: Settings) -> ModeTime:
    """Guess how long a mode takes, before any is measured, from the speed that files state."""
    f, procedure = sweep.run.factors, procedure_of(sweep.run.factors)
    usual = settings.workloads[f["model"]].guess_samples_per_s
    guesses = settings.devices.get(f["device"], "the sweep").guess_samples_per_s
    training_s = SLOWER * f["minibatches"] * f["batch_size"] / guesses.get(f["model"], usual)
    # nobody sees the power of most hosts follow
    follow_s = SET_S + FOLLOW_S if sweep.board else procedure.warm_up_s
    return ModeTime(procedure.idle_s + follow_s, training_s, GUESS)


def _measured_mode_time(sweep: Sweep) -> ModeTime | None:
    """Average how long the sweep's measured modes took; None where none can be read.

    At most some `MOST_READ` records, spread over the sweep, are read.
    """
    folder = SweepFolder(MEASURED, sweep.id)
    slower = clock_ratios(sweep)
    modes = [mode for mode in sweep.modes if folder.has(mode.settings())]
    around_s, training_s = [], []
    for mode in modes[:: 1 + len(modes) // MOST_READ]:
        try:
            meta = folder.read(mode.settings()).meta
            around_s.append(meta["took_s"] - meta["e2e_s"])
            training_s.append(meta["e2e_s"] / slower[mode])
        except (RecordError, KeyError):
            continue
    return ModeTime(fmean(around_s), fmean(training_s), "measured") if training_s else None


def clock_ratios(sweep: Sweep) -> dict[SweepMode, float]:
    """Estimate how much slower each mode trains than at the highest GPU clock of its sweep.

    ASSUME: in proportion to the clock, which is the worst case.
    """
    highest_mhz = max((mode.gpu_mhz or 0.0 for mode in sweep.modes), default=0.0)
    return {mode: highest_mhz / mode.gpu_mhz if mode.gpu_mhz else 1.0 for mode in sweep.modes}
