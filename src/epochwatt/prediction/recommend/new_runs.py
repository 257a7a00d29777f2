"""Runs that are still to be made: what to add to `config/` for them, to be pasted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from epochwatt.errors import EpochwattError
from epochwatt.fields import FACTOR_DEFAULTS, TWIN
from epochwatt.prediction.data.modes import Board, Mode
from epochwatt.study.config import Device, FactorValues, PowerMode
from epochwatt.study.power_mode import MODE_NUMBERS
from epochwatt.text import counted

EPOCHS = 3  # the first, and two that count, as the papers profile a mode
_WIDE = 1000  # characters: no entry is broken into lines


def place(workload: Mapping[str, Any]) -> str:
    """Return how the ids of a workload's runs begin (`study.runs.run_id`), up to the power mode."""
    words = [str(workload[name]) for name in ("backend", "device", "instance", "model", "storage")]
    n_workers, batch_size = workload["num_workers"], workload["batch_size"]
    return "-".join([*words, f"w{n_workers}", f"bs{batch_size}"]).lower()


def labels(mode: Mode, device: Device, board: Board) -> list[str]:
    """Return the names that a device file has for a mode; where it has none, the one to give it.

    Parameters
    ----------
    mode : of the board's own steps
    device : whose modes are resolved to such steps, too
    board : its tables
    """
    known = [name for name, told in device.power_modes.items() if _on_steps(told, board) == mode]
    return known or [_new_label(mode)]


def _new_label(mode: Mode) -> str:
    return f"c{mode.cores:g}cpu{mode.cpu_mhz:g}gpu{mode.gpu_mhz:g}emc{mode.emc_mhz:g}"


def _on_steps(told: PowerMode, board: Board) -> Mode | None:
    """Return the mode that an entry of a device file sets; None: it leaves a number open."""
    numbers = told.model_dump(include=set(MODE_NUMBERS), exclude_none=True)
    try:
        return board.resolve(Mode(**numbers)) if len(numbers) == len(MODE_NUMBERS) else None
    except EpochwattError:  # of another board's tables
        return None


@dataclass(frozen=True)
class NewRuns:
    """A study of one workload under some modes.

    Attributes
    ----------
    study : its name
    title : what it asks
    workload : factors of its runs but the power mode, `backend` and `setup` among them
    modes : of the board's own steps
    device : its configuration
    board : its tables
    """

    study: str
    title: str
    workload: Mapping[str, Any]
    modes: Sequence[Mode]
    device: Device
    board: Board

    @property
    def profile(self) -> str:
        """Snakemake's profile to make them with."""
        return "profiles/host" if self.workload["backend"] == TWIN else "profiles/jetson"

    @property
    def labels(self) -> list[str]:
        """Name of each mode."""
        return [labels(mode, self.device, self.board)[0] for mode in self.modes]

    def entries(self) -> str:
        """Return the modes that the device file lacks, for its `power_modes`, as YAML."""
        lacking = {
            label: {"cores": int(mode.cores)} | dict(zip(MODE_NUMBERS[1:], mode[1:4], strict=True))
            for label, mode in zip(self.labels, self.modes, strict=True)
            if label not in self.device.power_modes
        }
        lines = [yaml.safe_dump({k: v}, sort_keys=False, width=_WIDE, default_flow_style=None)
                 for k, v in lacking.items()]  # fmt: skip
        return "".join(lines)

    def block(self) -> str:
        """Return the study for config/studies.yaml, as YAML."""
        factors = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name in FactorValues.model_fields
            if (value := self.workload.get(name)) not in (None, FACTOR_DEFAULTS.get(name))
        }
        names = self.labels
        study = {
            "title": self.title,
            "setup": self.workload["setup"],
            "backend": TWIN if self.workload["backend"] == TWIN else "jetson",
            "epochs": EPOCHS,
            "sweep": [{**factors, "power_mode": names if len(names) > 1 else names[0]}],
        }
        return yaml.safe_dump({self.study: study}, sort_keys=False, width=_WIDE)

    def lines(self) -> list[str]:
        """Return both with the places that they belong to."""
        said = f"{counted(len(self.modes), 'runs')} of {EPOCHS} epochs"
        entries, studies = self.entries(), f"{said}. In config/studies.yaml:"
        if entries:
            where = f"config/devices/{self.workload['device']}.yaml"
            before = [f"{said}. Under power_modes of {where}:", ""]
            before += [*(f"  {line}" for line in entries.splitlines()), ""]
            studies = "in config/studies.yaml:"
        else:
            before = []
        return [*before, studies, "", *self.block().splitlines(), ""]
