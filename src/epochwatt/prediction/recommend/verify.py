"""Compare what runs gave with what was recommended; plan the run that would confirm a mode."""

from collections.abc import Mapping
from fnmatch import filter as matching
from pathlib import Path

import numpy as np

from epochwatt.columns import CLOCKS, TWIN
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Board, Mode
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import ProfiledWorkload, read_workloads
from epochwatt.prediction.recommend.command import NAMES, Advice, run_prefix
from epochwatt.prediction.recommend.recommend import UNITS
from epochwatt.study.config import Device, PowerMode
from epochwatt.text import aligned, counted

RUNS = Path("results/runs")
EPOCHS_CSV = "epochs.csv"


def labels(mode: Mode, device: Device, board: Board) -> list[str]:
    """Return the names of a mode in a device file; where it has none, the name to give it."""
    names = [name for name, row in device.power_modes.items() if _on_steps(row, board) == mode]
    new = f"c{mode.cores:g}cpu{mode.cpu_mhz:g}gpu{mode.gpu_mhz:g}emc{mode.emc_mhz:g}"
    return names or [new]


def _on_steps(row: PowerMode, board: Board) -> Mode | None:
    """Return the mode that an entry of a device file sets; None: it leaves a number open."""
    numbers = row.model_dump(include=set(CLOCKS), exclude_none=True)
    try:
        return board.resolve(Mode(**numbers)) if len(numbers) == len(CLOCKS) else None
    except EpochwattError:  # of another board's tables
        return None


def run_patterns(advice: Advice, mode: Mode) -> list[str]:
    """Return patterns of the ids of a mode's runs: `study.runs.run_id` without the hash."""
    names = labels(mode, advice.device, advice.files.board)
    return [f"{run_prefix(advice.fitted.workload)}-{name.lower()}-p*-*" for name in names]


def profiled_means(advice: Advice, root: Path) -> Mapping[Mode, Mapping[str, float]]:
    """Return what was observed in the profiled modes, of those runs whose epochs are here."""
    modes = {
        run: mode
        for mode in advice.profiled
        for pattern in run_patterns(advice, mode)
        for run in matching(advice.fitted.runs, pattern)
    }
    paths = (root / RUNS / run / EPOCHS_CSV for run in modes)
    workloads = read_workloads([str(path) for path in paths if path.is_file()], modes)
    return {mode: row for workload in workloads for mode, row in means(workload.metered).items()}


def means(observed: Observations) -> dict[Mode, dict[str, float]]:
    """Return mode -> means of its epochs after the first: epoch_s; power_w, energy_wh if known."""
    later = observed.after_first().per_mode()
    columns = (later.time_s.tolist(), later.power_w.tolist(), later.energy_wh.tolist())
    return {
        mode: {"epoch_s": s} | ({} if np.isnan(w) else {"power_w": w, "energy_wh": wh})
        for mode, s, w, wh in zip(later.mode_of_row, *columns, strict=True)
    }


def verify_lines(advice: Advice, root: Path = Path()) -> list[str]:
    """Return the result of the run of the mode beside the expectation, or how to make the run.

    Raises EpochwattError: there are several runs of the mode that no factor tells apart.
    """
    mode = advice.recommendation.mode
    if mode in advice.profiled:
        return ["", "verify: this mode is one of those that the models are fitted to"]
    patterns = run_patterns(advice, mode)
    paths = sorted(p for name in patterns for p in (root / RUNS).glob(f"{name}/{EPOCHS_CSV}"))
    workloads = read_workloads(map(str, paths), {path.parent.name: mode for path in paths})
    # an id shows only some of the factors
    same = [w for w in workloads if w.factors == advice.fitted.workload]
    runs = [run for workload in same for run in workload.runs]
    if len(runs) > 1:
        raise EpochwattError(
            "several runs of the recommended mode", found=runs, do="keep one of them there"
        )
    return _compared(advice, same[0]) if same else _planned(advice)


def _planned(advice: Advice) -> list[str]:
    from epochwatt.prediction.recommend.new_runs import profile_of, study_lines

    mode, workload = advice.recommendation.mode, advice.fitted.workload
    device, board = advice.device, advice.files.board
    label = labels(mode, device, board)[0]
    title = f"Does {label} hold what epochwatt recommend expects?"
    study = f"verify-{run_prefix(workload)}-{label}"  # as the run's id: two questions, two names
    first, *others = study_lines(study, title, workload, [mode], device, board)
    profile = profile_of(workload)
    return [
        "",
        f"verify: {first}",
        *others,
        "then, and after it this question again:",
        f"  .venv/bin/epochwatt plan {study}",
        f"  .venv/bin/snakemake --profile {profile} --config studies={study} -- runs",
    ]


def _compared(advice: Advice, workload: ProfiledWorkload) -> list[str]:
    """Return what was expected beside the means over the valid epochs after the first."""
    n_epochs = len(workload.metered.after_first().epoch)
    if not n_epochs:
        return ["", f"verify: {workload.runs[0]} has no valid epoch after the first yet"]
    result = means(workload.metered)[advice.recommendation.mode]
    column = "simulated" if advice.request.backend == TWIN else "measured"
    cells = [("", "expected", "90 % interval", column, "off by", "in the interval")]
    for name, estimate in advice.recommendation.estimates.items():
        if name in result:
            value, low, high = estimate
            off = f"{100 * (result[name] / value - 1):+.1f} %"
            inside = ""
            if low is not None and high is not None:
                inside = "yes" if low <= result[name] <= high else "no"
            cells.append(
                (
                    f"{NAMES[name]} {UNITS[name]}",
                    *(f"{value:.4g}", estimate.interval, f"{result[name]:.4g}", off, inside),
                )
            )
    head = f"verify: {workload.runs[0]}, {counted(n_epochs, 'epochs')} after the first"
    return ["", head, *aligned(cells)]
