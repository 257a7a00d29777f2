"""List idle powers to measure, for each board and mode in use, and those to simulate.

The simulated ones are named in config/idle_simulated.yaml.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from pydantic import Field

from epochwatt import columns
from epochwatt.columns import CLOCKS
from epochwatt.errors import ConfigError
from epochwatt.study.config import Closed, Device
from epochwatt.study.devices import Devices
from epochwatt.study.place import MEASURED
from epochwatt.study.runs import TWIN, Run, RunTable

FILE = "config/idle_simulated.yaml"
_MODE_FACTORS = ("backend", "device", "instance", "power_mode", "dvfs")
_SETTINGS = ("power_mode_settings", "dvfs", "board_settings")
_DVFS = {"i": "off", "ii": "off", "iii": "on", "iv": ""}  # by state; asleep there is none


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


class IdleBlock(Closed):
    """Idle powers: the product of the lists."""

    device: list[str] = Field(min_length=1, description="device types, files of config/devices/")
    state: list[Literal["i", "ii", "iii", "iv"]] = Field(
        min_length=1,
        description="the paper's: i: metrics logged, DVFS off; ii: nothing logged; iii: and DVFS "
        "on; iv: asleep, Wake-on-LAN",
    )
    power_mode: list[str] = Field(
        default_factory=list, description="modes, named by the device; empty: its first"
    )


class IdleStudy(Closed):
    """config/idle_simulated.yaml: idle powers that the twin tells."""

    title: str = Field(description="what it is about, in a line")
    power_scope: Literal["module", "socket"] = Field(
        description="whose power: the module's own sensors', or a meter's at the plug"
    )
    seconds: float = Field(gt=0, description="how long each is, s")
    sweep: list[IdleBlock] = Field(min_length=1, description="what is simulated")


def idles(table: RunTable, devices: Devices) -> dict[str, Idle]:
    """Return the idle powers to measure, by id: in each power mode of a selected run on a board.

    Only boards whose device file sets `idle_s` have them; of other machines those measured already.
    """
    wanted: dict[str, Idle] = {}
    for run in table.runs.values():
        device = devices.of_run(run.factors)
        if device and device.idle_s and run.factors["backend"] in ("jetson", "fake"):
            idle = _idle(run, device.idle_s)
            if run.here or os.path.isdir(f"{MEASURED}/{idle.id}/idle"):
                wanted.setdefault(idle.id, idle)
    return wanted


def _idle(run: Run, seconds: float) -> Idle:
    """Return the idle power of a run's board in its power mode."""
    factors = run.factors
    settings = {key: factors[key] for key in _SETTINGS if key in factors}
    place = {key: factors[key] for key in _MODE_FACTORS}
    *words, dvfs = place.values()
    return Idle(
        id=_idle_id([*words, f"dvfs{dvfs}"], {**place, **settings, "seconds": seconds}),
        place=place,
        settings=json.dumps(settings, sort_keys=True),
        seconds=seconds,
        python=run.python,
        machine=run.machine,
        node=run.node,
    )


def _idle_id(words: list[str], identity: dict[str, Any]) -> str:
    """Return the id of an idle power: readable parts, protocol, start of a hash over `identity`."""
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode("utf-8")).hexdigest()[:8]
    return "-".join(["idle", *words, f"p{columns.PROTOCOL}", digest]).lower()


def simulated_idles(studies: dict[str, IdleStudy], devices: Devices) -> list[dict[str, Any]]:
    """Return the idle powers of these studies, each with its id and all that the twin needs.

    Keys: `id`, `place` (factors and state), `mode` (cores and clocks of the power mode),
    `power_scope`, `seconds`. Raises ConfigError: a device or power mode that cannot be simulated.
    """
    return [idle for name, study in studies.items() for idle in _expanded(name, study, devices)]


def _expanded(name: str, study: IdleStudy, devices: Devices) -> Iterator[dict[str, Any]]:
    """Yield the idle powers of one study, as `simulated_idles`."""
    scope, seconds = study.power_scope, study.seconds
    for n, block in enumerate(study.sweep):
        where = f"{FILE}: {name}.sweep[{n}]"
        for device_name, state in product(block.device, block.state):
            device = devices.get(device_name, f"{where}.device")
            if TWIN not in device.backends:
                raise ConfigError(
                    f"{where}.device is {device_name!r}",
                    allowed=f"a device with {TWIN} among its backends",
                )
            for power_mode in block.power_mode or list(device.power_modes)[:1]:
                mode = _cores_and_clocks(device, power_mode, where)
                place = {
                    "backend": TWIN,
                    "device": device_name,
                    "instance": device.instances[0],
                    "power_mode": power_mode,
                    "dvfs": _DVFS[state],
                    "state": state,
                }
                words = [TWIN, device_name, device.instances[0], power_mode, state, scope]
                identity = {"place": place, "mode": mode, "scope": scope, "seconds": seconds}
                yield {
                    "id": _idle_id(words, identity),
                    "place": place,
                    "mode": mode,
                    "power_scope": scope,
                    "seconds": seconds,
                }


def _cores_and_clocks(device: Device, mode: str, where: str) -> dict[str, Any]:
    """Return the settings of a device's power mode; ConfigError: not all of `CLOCKS` are set."""
    settings = device.power_modes.get(mode)
    mode_settings = settings.model_dump(exclude_none=True) if settings else {}
    if not mode_settings.keys() >= set(CLOCKS):
        raise ConfigError(
            f"{where}.power_mode is {mode!r}",
            allowed=f"a mode of the device with all of {', '.join(CLOCKS)}: "
            + ", ".join(device.power_modes),
        )
    return mode_settings
