"""Plan the runs that a recommendation still needs, and compare what runs gave with it."""

from collections.abc import Mapping, Sequence
from fnmatch import filter as matching
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from epochwatt.columns import CLOCKS, FACTOR_DEFAULTS, TWIN, Factors, unit
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Board, Mode
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import read_workloads
from epochwatt.prediction.recommend.command import NAMES, Advice, run_prefix
from epochwatt.study.config import Config, Device, FactorValues, PowerMode
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.text import aligned, counted

RUNS = Path("results/runs")
EPOCHS_CSV = "epochs.csv"
EPOCHS = 3  # the first, and two that count, as the papers profile a mode
_WIDE = 1000  # characters: no entry is broken into lines


# -- runs to make ----------------------------------------------------------------------------------


def labels(mode: Mode, device: Device, board: Board) -> list[str]:
    """Return the names of a mode in a device file; where it has none, the name to give it."""

    def on_steps(row: PowerMode) -> Mode | None:
        """Return the mode that an entry sets; None: a number is open, or of another board."""
        numbers = row.model_dump(include=set(CLOCKS), exclude_none=True)
        try:
            return board.resolve(Mode(**numbers)) if len(numbers) == len(CLOCKS) else None
        except EpochwattError:
            return None

    names = [name for name, row in device.power_modes.items() if on_steps(row) == mode]
    new = f"c{mode.cores:g}cpu{mode.cpu_mhz:g}gpu{mode.gpu_mhz:g}emc{mode.emc_mhz:g}"
    return names or [new]


def _study(
    study: str, title: str, workload: Factors, modes: Sequence[Mode], device: Device, board: Board
) -> list[str]:
    """Return a study of a workload in some modes, as YAML with the places that it belongs to."""
    names = [labels(mode, device, board)[0] for mode in modes]
    lines = [f"{counted(len(modes), 'runs')} of {EPOCHS} epochs"]
    new = {n: mode for n, mode in zip(names, modes, strict=True) if n not in device.power_modes}
    if new:
        lines += [f"under power_modes of config/devices/{workload['device']}.yaml:", ""]
        for name, mode in new.items():
            numbers = {**dict(zip(CLOCKS, mode, strict=False)), "cores": int(mode.cores)}
            lines.append(f"  {_yaml({name: numbers}, flow=None)}")
        lines.append("")
    factors = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name in FactorValues.model_fields
        if (value := workload.get(name)) not in (None, FACTOR_DEFAULTS.get(name))
    }
    entry = {
        "title": title,
        "setup": workload["setup"],
        "backend": TWIN if workload["backend"] == TWIN else "jetson",
        "epochs": EPOCHS,
        "sweep": [{**factors, "power_mode": names if len(names) > 1 else names[0]}],
    }
    return [*lines, "in config/studies.yaml:", "", *_yaml({study: entry}).splitlines(), ""]


def _yaml(content: Any, flow: bool | None = False) -> str:
    text = yaml.safe_dump(content, sort_keys=False, width=_WIDE, default_flow_style=flow)
    return str(text).rstrip("\n")


def _snakemake(workload: Factors) -> str:
    """Return the command that makes runs of a workload, without targets."""
    profile = "profiles/host" if workload["backend"] == TWIN else "profiles/jetson"
    return f"  .venv/bin/snakemake --profile {profile}"


def profiling_recipe(
    workload: Factors, modes: Sequence[Mode], device: Device, board: Board, root: Path
) -> str:
    """Return what to add to `config/` to profile a workload, and the commands."""
    from epochwatt.study.settings import CONFIG  # slow to import

    study = f"profile-{run_prefix(workload)}"
    title = f"Profile {workload['model']} for epochwatt recommend"
    studies = validated(Config, read_yaml(root / CONFIG), CONFIG).studies
    names = dict.fromkeys([*([studies] if isinstance(studies, str) else studies), study])
    verb = "simulate" if workload["backend"] == TWIN else "measure"
    first, *others = _study(study, title, workload, modes, device, board)
    lines = [
        f"{verb} {first}",
        *others,
        f"in {CONFIG}, in place of its studies:",
        "",
        f"studies: [{', '.join(names)}]",
        "",
        "then, and after it this question again:",
        "  .venv/bin/epochwatt plan",
        f"{_snakemake(workload)} results/models/{workload['backend']}/scores.html",
    ]
    return "\n".join(lines)


# -- runs that were made ---------------------------------------------------------------------------


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

    Means are those over the valid epochs after the first. Raises EpochwattError: there are several
    runs of the mode that no factor tells apart.
    """
    mode, workload = advice.recommendation.mode, advice.fitted.workload
    if mode in advice.profiled:
        return ["", "verify: this mode is one of those that the models are fitted to"]
    patterns = run_patterns(advice, mode)
    paths = sorted(p for name in patterns for p in (root / RUNS).glob(f"{name}/{EPOCHS_CSV}"))
    workloads = read_workloads(map(str, paths), {path.parent.name: mode for path in paths})
    same = [w for w in workloads if w.factors == workload]  # an id shows only some of the factors
    runs = [run for its_workload in same for run in its_workload.runs]
    if len(runs) > 1:
        raise EpochwattError(
            "several runs of the recommended mode", found=runs, do="keep one of them there"
        )
    if not same:
        device, board = advice.device, advice.files.board
        label = labels(mode, device, board)[0]
        title = f"Does {label} hold what epochwatt recommend expects?"
        study = (
            f"verify-{run_prefix(workload)}-{label}"  # as the run's id: two questions, two names
        )
        first, *others = _study(study, title, workload, [mode], device, board)
        return [
            "",
            f"verify: {first}",
            *others,
            "then, and after it this question again:",
            f"  .venv/bin/epochwatt plan {study}",
            f"{_snakemake(workload)} --config studies={study} -- runs",
        ]
    n_epochs = len(same[0].metered.after_first().epoch)
    if not n_epochs:
        return ["", f"verify: {runs[0]} has no valid epoch after the first yet"]
    result = means(same[0].metered)[mode]
    column = "simulated" if advice.request.backend == TWIN else "measured"
    cells = [["", "expected", "90 % interval", column, "off by", "in the interval"]]
    for name, estimate in advice.recommendation.estimates.items():
        if name in result:
            value, low, high = estimate
            off, inside = f"{100 * (result[name] / value - 1):+.1f} %", ""
            if low is not None and high is not None:
                inside = "yes" if low <= result[name] <= high else "no"
            title, seen = f"{NAMES[name]} {unit(name)}", f"{result[name]:.4g}"
            cells.append([title, f"{value:.4g}", estimate.interval, seen, off, inside])
    head = f"verify: {runs[0]}, {counted(n_epochs, 'epochs')} after the first"
    return ["", head, *aligned(cells)]
