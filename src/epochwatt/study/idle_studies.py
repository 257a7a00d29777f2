"""List the simulated idle powers of config/idle_simulated.yaml."""

import hashlib
import json
from collections.abc import Iterator
from itertools import product
from typing import Any, Literal

from pydantic import Field

from epochwatt import columns
from epochwatt.columns import CLOCKS
from epochwatt.errors import ConfigError
from epochwatt.study.config import Closed, Device
from epochwatt.study.devices import Devices
from epochwatt.study.runs import TWIN

FILE = "config/idle_simulated.yaml"
_DVFS = {"i": "off", "ii": "off", "iii": "on", "iv": ""}  # by state; asleep there is none


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


def simulated_idles(studies: dict[str, IdleStudy], devices: Devices) -> list[dict[str, Any]]:
    """Return the idle powers of these studies, each with its id and all that the twin needs.

    `place` holds the factors and the state, `mode` the numbers of the power mode.

    Raises ConfigError: a device or a power mode that cannot be simulated.
    """
    return [idle for name, study in studies.items() for idle in _expanded(name, study, devices)]


def _expanded(name: str, study: IdleStudy, devices: Devices) -> Iterator[dict[str, Any]]:
    for n, block in enumerate(study.sweep):
        where = f"{FILE}: {name}.sweep[{n}]"
        for device_name, state in product(block.device, block.state):
            device = devices.get(device_name, f"{where}.device")
            if TWIN not in device.backends:
                raise ConfigError(
                    f"{where}.device is {device_name!r}",
                    allowed=f"a device with {TWIN} among its backends",
                )
            for mode in block.power_mode or list(device.power_modes)[:1]:
                place = {
                    "backend": TWIN,
                    "device": device_name,
                    "instance": device.instances[0],
                    "power_mode": mode,
                    "dvfs": _DVFS[state],
                    "state": state,
                }
                yield _simulated_idle(place, _numbers(device, mode, where), study)


def _numbers(device: Device, mode: str, where: str) -> dict[str, Any]:
    """Return cores and clocks of a device's power mode."""
    settings = device.power_modes.get(mode)
    numbers = settings.model_dump(exclude_none=True) if settings else {}
    if not numbers.keys() >= set(CLOCKS):
        raise ConfigError(
            f"{where}.power_mode is {mode!r}",
            allowed=f"a mode of the device with all of {', '.join(CLOCKS)}: "
            + ", ".join(device.power_modes),
        )
    return numbers


def _simulated_idle(
    place: dict[str, Any], mode: dict[str, Any], study: IdleStudy
) -> dict[str, Any]:
    identity = {"place": place, "mode": mode, "scope": study.power_scope, "seconds": study.seconds}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode("utf-8")).hexdigest()[:8]
    words = [place[key] for key in ("device", "instance", "power_mode", "state")]
    name = "-".join(["idle", TWIN, *words, study.power_scope, f"p{columns.PROTOCOL}", digest])
    return {
        "id": name.lower(),
        "place": place,
        "mode": mode,
        "power_scope": study.power_scope,
        "seconds": study.seconds,
    }
