"""Recipes for runs that are still to be made: what to add to `config/`, and the commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from epochwatt.columns import CLOCKS, FACTOR_DEFAULTS, TWIN, Factors
from epochwatt.prediction.data.modes import Board, Mode
from epochwatt.prediction.recommend.command import run_prefix
from epochwatt.prediction.recommend.verify import labels
from epochwatt.study.config import Config, Device, FactorValues
from epochwatt.study.settings import CONFIG
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.text import counted

EPOCHS = 3  # the first, and two that count, as the papers profile a mode
_WIDE = 1000  # characters: no entry is broken into lines


def profile_of(workload: Factors) -> str:
    """Return Snakemake's profile to make runs of a workload with."""
    return "profiles/host" if workload["backend"] == TWIN else "profiles/jetson"


def study_lines(
    study: str,
    title: str,
    workload: Factors,
    modes: Sequence[Mode],
    device: Device,
    board: Board,
) -> list[str]:
    """Return a study of a workload in some modes, as YAML with the places that it belongs to."""
    names = [labels(mode, device, board)[0] for mode in modes]
    lines = [f"{counted(len(modes), 'runs')} of {EPOCHS} epochs"]
    new = {n: mode for n, mode in zip(names, modes, strict=True) if n not in device.power_modes}
    if new:
        lines += [f"under power_modes of config/devices/{workload['device']}.yaml:", ""]
        lines += [f"  {_yaml({name: _numbers(mode)}, flow=None)}" for name, mode in new.items()]
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


def _numbers(mode: Mode) -> dict[str, float]:
    return {"cores": int(mode.cores)} | dict(zip(CLOCKS[1:], mode[1:4], strict=True))


def _yaml(content: Any, flow: bool | None = False) -> str:
    text = yaml.safe_dump(content, sort_keys=False, width=_WIDE, default_flow_style=flow)
    return str(text).rstrip("\n")


def profiling_recipe(
    workload: Factors, modes: Sequence[Mode], device: Device, board: Board, root: Path
) -> str:
    """Return what to add to `config/` to profile a workload, and the commands."""
    study = f"profile-{run_prefix(workload)}"
    title = f"Profile {workload['model']} for epochwatt recommend"
    studies = validated(Config, read_yaml(root / CONFIG), CONFIG).studies
    names = dict.fromkeys([*([studies] if isinstance(studies, str) else studies), study])
    verb = "simulate" if workload["backend"] == TWIN else "measure"
    page = f"results/models/{workload['backend']}/scores.html"
    first, *others = study_lines(study, title, workload, modes, device, board)
    lines = [
        f"{verb} {first}",
        *others,
        f"in {CONFIG}, in place of its studies:",
        "",
        f"studies: [{', '.join(names)}]",
        "",
        "then, and after it this question again:",
        "  .venv/bin/epochwatt plan",
        f"  .venv/bin/snakemake --profile {profile_of(workload)} {page}",
    ]
    return "\n".join(lines)
