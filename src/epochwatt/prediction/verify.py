"""The one run that would confirm a recommended power mode: how to make it, and what it gave."""

from pathlib import Path

import numpy as np
import yaml

from epochwatt.errors import EpochwattError
from epochwatt.fields import FACTOR_DEFAULTS, TWIN
from epochwatt.prediction.advice import NAMES, Advice
from epochwatt.prediction.modes import Mode
from epochwatt.prediction.recommend import UNITS
from epochwatt.prediction.workloads import Workload, read_workloads
from epochwatt.study.config import FactorValues
from epochwatt.text import aligned, counted

RUNS = Path("results/runs")
EPOCHS = 3  # the first, and two that count, as the papers profile a mode


def verify_lines(advice: Advice, root: Path = Path()) -> list[str]:
    """Return what the run of the mode gave beside what was expected, or how to make the run.

    Raises
    ------
    EpochwattError : several runs of the mode are there that nothing tells apart
    """
    if advice.told.mode in advice.profiled:
        return ["", "verify: this mode is one of those that the models are fitted to"]
    paths = sorted((root / RUNS).glob(f"{_run_pattern(advice)}/epochs.csv"))
    modes = {path.parent.name: advice.told.mode for path in paths}
    found = read_workloads(map(str, paths), modes)
    same = [of for of in found if of.factors == advice.fit.workload]  # an id shows some of them
    names = [name for of in same for name in of.runs]
    if len(names) > 1:
        raise EpochwattError(
            f"several runs of the recommended mode: {', '.join(names)}\n  leave one there"
        )
    return _compared(advice, same[0]) if same else _planned(advice)


def label(mode: Mode) -> str:
    """Return the name of a mode for a device file and for run ids."""
    return f"c{mode.cores:g}cpu{mode.cpu_mhz:g}gpu{mode.gpu_mhz:g}emc{mode.emc_mhz:g}"


def _run_pattern(advice: Advice) -> str:
    """Return a pattern of the ids of the mode's runs: `study.runs.run_id` but for the hash."""
    return f"{advice.folder.parent.name}-{label(advice.told.mode)}-p*-*"


def study_name(advice: Advice) -> str:
    """Return the name of the study that holds the run."""
    return f"verify-{advice.asked.device}-{advice.asked.model}"


def blocks(advice: Advice) -> tuple[str, str]:
    """Return the power mode for `power_modes` of the device file, and the study, both YAML."""
    fit, mode = advice.fit, advice.told.mode
    numbers = {
        "cores": int(mode.cores),
        **{k: v for k, v in mode._asdict().items() if k != "cores"},
    }
    factors = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in fit.workload.items()
        if name in FactorValues.model_fields
        and value is not None
        and value != FACTOR_DEFAULTS.get(name)
    }
    backend = TWIN if fit.workload["backend"] == TWIN else "jetson"
    study = {
        "title": f"Does {label(mode)} hold what epochwatt recommend expects?",
        "setup": fit.workload["setup"],
        "backend": backend,
        "epochs": EPOCHS,
        "sweep": [{**factors, "power_mode": label(mode)}],
    }
    entry = yaml.safe_dump({label(mode): numbers}, sort_keys=False, default_flow_style=None)
    return entry, yaml.safe_dump({study_name(advice): study}, sort_keys=False)


def _planned(advice: Advice) -> list[str]:
    mode, study = blocks(advice)
    name = study_name(advice)
    profile = "profiles/host" if advice.asked.backend == TWIN else "profiles/jetson"
    return [
        "",
        f"verify: one run of {EPOCHS} epochs. Under power_modes of config/devices/"
        f"{advice.fit.workload['device']}.yaml:",
        "",
        *(f"  {line}" for line in mode.splitlines()),
        "",
        "in config/studies.yaml:",
        "",
        *study.splitlines(),
        "",
        "then, and after it this question again:",
        f"  .venv/bin/epochwatt plan {name}",
        f"  .venv/bin/snakemake --profile {profile} --config studies={name} -- runs",
    ]


def _compared(advice: Advice, run: Workload) -> list[str]:
    """Return what was expected beside the means over the valid epochs after the first."""
    later = run.observed.after_first()
    if not len(later.epoch):
        return ["", f"verify: {run.runs[0]} has no valid epoch after the first yet"]
    means = later.per_mode()
    found = {"epoch_s": float(means.time_s[0])}
    if not np.isnan(means.power_w[0]):
        found |= {"power_w": float(means.power_w[0]), "energy_wh": float(means.energy_wh[0])}
    gave = "simulated" if advice.asked.backend == TWIN else "measured"
    cells = [("", "expected", "90 % interval", gave, "off by", "in the interval")]
    for name, of in advice.told.estimates.items():
        if name in found:
            inside = "yes" if of.low <= found[name] <= of.high else "no"
            off = f"{100 * (found[name] / of.value - 1):+.1f} %"
            cells.append(
                (f"{NAMES[name]} {UNITS[name]}", f"{of.value:.4g}",
                 f"{of.low:.4g} to {of.high:.4g}", f"{found[name]:.4g}", off, inside)
            )  # fmt: skip
    told = f"verify: {run.runs[0]}, {counted(len(later.epoch), 'epochs')} after the first"
    return ["", told, *aligned(cells)]
