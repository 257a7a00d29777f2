"""List the idle powers that the selected runs need: one for each board and mode in use."""

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

from epochwatt import columns
from epochwatt.study.place import MEASURED
from epochwatt.study.runs import Run
from epochwatt.study.settings import Settings

_PLACE = ("backend", "device", "instance", "power_mode", "dvfs")
_SETTINGS = ("power_mode_settings", "dvfs", "board_settings")


@dataclass(frozen=True)
class Idle:
    """One idle power to measure."""

    id: str
    place: dict[str, Any]  # backend, device, instance, power_mode, dvfs
    settings: str  # JSON: mode, DVFS, power source, settling
    seconds: float
    python: tuple[str, ...]
    machine: str
    node: str  # as of the runs

    @property
    def receipt(self) -> str:
        """Path of the receipt that the measurement leaves."""
        return f"results/idle/{self.id}.json"


def idles(settings: Settings) -> dict[str, Idle]:
    """Return the idle powers by id: of boards that tell them, in each mode of a selected run."""
    wanted: dict[str, Idle] = {}
    for run in settings.table.runs.values():
        seconds = settings.devices.get(run.factors["device"], "the run").idle_s
        if run.factors["backend"] in ("jetson", "fake") and seconds:
            idle = _idle(run, seconds)
            if run.here or os.path.isdir(f"{MEASURED}/{idle.id}/idle"):
                wanted.setdefault(idle.id, idle)
    return wanted


def _idle(run: Run, seconds: float) -> Idle:
    f = run.factors
    settings = {key: f[key] for key in _SETTINGS if key in f}
    place = {key: f[key] for key in _PLACE}
    identity = json.dumps({**place, **settings, "seconds": seconds}, sort_keys=True)
    digest = hashlib.sha256(identity.encode("utf-8")).hexdigest()[:8]
    words = ["idle", f["backend"], f["device"], f["instance"], f["power_mode"], f"dvfs{f['dvfs']}"]
    return Idle(
        id="-".join([*words, f"p{columns.PROTOCOL}", digest]).lower(),
        place=place,
        settings=json.dumps(settings, sort_keys=True),
        seconds=seconds,
        python=run.python,
        machine=run.machine,
        node=run.node,
    )
