"""What `epochwatt plan` says of sweeps: modes, those measured, how long the rest may take."""

from epochwatt.errors import RecordError
from epochwatt.records.mode_folder import SweepFolder
from epochwatt.study.place import MEASURED
from epochwatt.study.plan import GUESS, JOB_S, duration
from epochwatt.study.settings import Settings
from epochwatt.sweeps.modes import SweepMode
from epochwatt.sweeps.table import Sweep, SweepTable
from epochwatt.text import aligned
from epochwatt.training.procedure import procedure_of

# ASSUME: to set a mode and read it back; until the power has followed. PowerTrain collects in 12 to
# 24 s a mode, 54 s with all that is around it (FGCS 2024: 16.3 h for a quarter of 4,368).
SET_S = 3.0
FOLLOW_S = 8.0
SLOWER = 1.5  # ASSUME: a first guess of a network's speed is of the strongest mode, and hopeful

_HEADER = ("sweep", "modes", "measured", "s per mode", "left")


def sweep_lines(table: SweepTable, settings: Settings) -> list[str]:
    """Return the selected sweeps as lines, and what they may take; none where none is selected."""
    rows, total_s = [], 0.0
    for sweep in table.sweeps.values():
        if sweep.is_simulated:
            rows.append((sweep.name, str(len(sweep.modes)), "-", "simulated", "seconds"))
            continue
        n_modes, n_left = len(sweep.modes), len(modes_left(sweep))
        left_s, basis = left_estimate_s(sweep, settings)
        total_s += left_s
        mode_s = f"{left_s / n_left:.3g} ({basis})" if n_left else "-"
        left = duration(left_s) if n_left else "-"
        rows.append((sweep.name, str(n_modes), str(n_modes - n_left), mode_s, left))
    lines = aligned([_HEADER, *rows]) if rows else []
    lines += [f"left alone: sweep {sweep.name}: {why}" for sweep, why in table.elsewhere]
    return lines + ([f"sweeps: the rest takes about {duration(total_s)}"] if total_s else [])


def modes_left(sweep: Sweep) -> list[SweepMode]:
    """Return the modes that are not measured yet."""
    folder = SweepFolder(MEASURED, sweep.id)
    return [mode for mode in sweep.modes if not folder.has(mode.settings())]


def left_estimate_s(sweep: Sweep, settings: Settings) -> tuple[float, str]:
    """Return the seconds that the rest of a sweep takes, and where they come from."""
    chunks_s, basis = chunk_estimates_s(sweep, settings)
    return sum(chunk_s + JOB_S for chunk_s in chunks_s if chunk_s), basis


def chunk_estimates_s(sweep: Sweep, settings: Settings) -> tuple[list[float], str]:
    """Return the seconds that the rest of each chunk takes, and where they come from.

    0: nothing is left of it. What a job takes besides its modes is not in them.
    """
    left = set(modes_left(sweep))
    mode_s, basis = mode_estimate_s(sweep, settings)
    highest_mhz = max((mode.gpu_mhz or 0.0 for mode in sweep.modes), default=0.0)
    return [
        sum(mode_s * slowness(mode, highest_mhz) for mode in sweep.modes[a : b + 1] if mode in left)
        for a, b in sweep.chunks
    ], basis


def mode_estimate_s(sweep: Sweep, settings: Settings) -> tuple[float, str]:
    """Return the seconds that a mode takes, and where they come from.

    They are those of the strongest mode where nothing is measured, else a mean of what is.
    """
    if (measured_s := _measured_s(sweep)) is not None:
        return measured_s, "measured"
    f = sweep.run.factors
    device = settings.devices.get(f["device"], "the sweep")
    guess = device.guess_samples_per_s.get(
        f["model"], settings.workloads[f["model"]].guess_samples_per_s
    )
    training_s = SLOWER * f["minibatches"] * f["batch_size"] / guess
    return _around_s(sweep) + training_s, GUESS


def _around_s(sweep: Sweep) -> float:
    """Return what a mode takes besides its mini-batches: a rest, and training before they count."""
    procedure = procedure_of(sweep.run.factors)
    if not sweep.board:  # nobody sees the power follow
        return procedure.idle_s + procedure.warm_up_s
    return SET_S + procedure.idle_s + FOLLOW_S


def _measured_s(sweep: Sweep) -> float | None:
    """Return the mean time of a measured mode, relative to its own slowness; None: none yet."""
    folder = SweepFolder(MEASURED, sweep.id)
    highest_mhz = max((mode.gpu_mhz or 0.0 for mode in sweep.modes), default=0.0)
    times = []
    for mode in sweep.modes:
        if folder.has(mode.settings()):
            try:
                times.append(
                    folder.read(mode.settings()).meta["took_s"] / slowness(mode, highest_mhz)
                )
            except (RecordError, KeyError):
                continue
    return sum(times) / len(times) if times else None


def slowness(mode: SweepMode, highest_mhz: float) -> float:
    """Return how much longer a mode may take than one with the highest GPU clock of its sweep.

    ASSUME: half of a mode's time goes with the GPU's clock, the rest is switching and settling.
    """
    return 1.0 if mode.gpu_mhz is None else 0.5 + 0.5 * highest_mhz / mode.gpu_mhz
