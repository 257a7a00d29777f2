"""List the kinds of Jetson boards: clocks, rails, modes, files (board side: Python 3.6 grammar).

An entry of `kinds.json` beside this module holds everything that differs between boards. The board
code and the root helper, the telemetry, the configuration, the simulator, the predictors and the
fake boards read it. To add a kind, add an entry (docs/how-to/add-a-kind.md).

A kind is named as NVIDIA names the product, in lower case: Jetson AGX Orin is `agx_orin`. What
nobody has published is None or empty, and code that needs it reports that it is not known.

Sources: docs/reference/sources.md, and `sources` of an entry. The root helper carries a copy of
module and file, so it imports only the standard library.
"""

import json
import os
import sys
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

Steps = Tuple[int, ...]
Range = Tuple[int, int]  # lowest and highest

JETPACK_5, JETPACK_6 = 34, 36  # first major number of their L4T releases


class Rail(NamedTuple):
    """A supply rail with a power sensor."""

    label: str
    parent: Optional[str]  # the rail that feeds it
    feeds: Mapping[str, float]  # share of each of `POWER_PARTS` that passes through it
    chip: str = ""  # bus and address of its sensor; empty: not known
    channel: int = 0  # of the chip, from 1; 0: not known
    volt_mv: int = 5000  # usual voltage, rounded
    sensor: str = "ina3221"  # driver of its sensor


class StockMode(NamedTuple):
    """A power mode of NVIDIA's nvpmodel.conf; highest clock -1: no limit, `emc_hz` 0: no cap."""

    id: int
    name: str
    cores: int
    cpu_khz: Range
    gpu_hz: Range
    emc_hz: int = 0
    tpc_mask: Optional[int] = None  # parts of the GPU that are gated off
    dla_hz: Optional[int] = None
    fbp_mask: Optional[int] = None
    gpu_mask: Optional[int] = None

    @property
    def masks(self) -> Dict[str, int]:
        """Return the masks that it has: TPC, FBP, GPU."""
        pairs = (("FBP", self.fbp_mask), ("TPC", self.tpc_mask), ("GPU", self.gpu_mask))
        return {name: mask for name, mask in pairs if mask is not None}


EMC_CAPS = ("sys/kernel/nvpmodel_emc_cap/emc_iso_cap", "sys/kernel/nvpmodel_clk_cap/emc")


class Release(NamedTuple):
    """A release of NVIDIA's Linux on a kind of board: what its files and tools look like."""

    l4t: str
    tegrastats: str  # dialect of its lines: jp4, jp5, jp6
    gpu_device: str  # folder of the GPU
    zones: Tuple[str, ...]  # types of thermal_zone0, 1, ...
    modes: Tuple[StockMode, ...]
    default_mode: int
    hwmon: Tuple[str, ...] = ()  # names of hwmon0, 1, ..., sensors by their chip; none on JetPack 4
    cpu_khz: Steps = ()  # where they differ from the kind's, as all of these
    gpu_hz: Steps = ()
    emc_hz: Steps = ()
    compatible: Tuple[str, ...] = ()
    model: str = ""
    clock_per_core: bool = False  # nvpmodel names a clock of each core, not of each cluster
    dla: Mapping[str, Tuple[str, ...]] = {}

    @property
    def l4t_major(self) -> int:
        """Return the first number of the release of NVIDIA's Linux."""
        return int(self.l4t.partition(".")[0])

    @property
    def emc_cap(self) -> str:
        """Return the file of nvpmodel's limit of the memory's clock."""
        return EMC_CAPS[self.l4t_major >= JETPACK_6]


class Kind(NamedTuple):
    """One kind of board."""

    name: str
    title: str
    pattern: str  # of its part numbers in `compatible`, or words in `model`, of the device tree
    compatible: Tuple[str, ...]
    model: str
    soc: str
    cores: int
    cluster_cores: int  # that share a clock
    cpu_khz: Steps
    gpu_hz: Steps
    emc_hz: Steps  # no file of a board lists them
    gpu_name: str  # pattern of the end of its GPU's folder in devfreq
    emc_files: Mapping[str, str]  # of its memory's clock: min, max, now, wanted, locked
    rails: Tuple[Rail, ...]
    total_rule: str  # how the total power is made of the rails; empty: not known
    not_seen: str  # what that total does not contain
    rails_source: str
    scope: str = "module"  # whose power that total is: the module's, or the whole `board`'s
    ram_mib: Optional[int] = None  # as the kernel counts it
    seen_only: Tuple[str, ...] = ()  # clocks (cpu, gpu, emc) whose steps are not all known
    emc_top_is_0: bool = False  # nvpmodel takes the highest memory clock only as 0, no cap
    cpu_param: str = "CPU_{}"  # nvpmodel's name of a cluster's clocks
    # nvpmodel's names of the accelerators' clocks -> file; of two, JetPack 6 has the second
    dla: Mapping[str, Tuple[str, ...]] = {}
    tpcs: Optional[int] = None  # parts of the GPU that `tpc_mask` counts
    gpcs: int = 1  # GPU clocks in a line of tegrastats
    has_gpu_load: bool = True  # its GPU has a file of its load; False: NVML tells it
    idle_states: Tuple[str, ...] = ()
    not_connected: Tuple[Tuple[str, int], ...] = ()  # chip and channel of sensors without a rail
    releases: Tuple[Release, ...] = ()  # oldest first; none: only what is above is known

    @property
    def clusters(self) -> Tuple[Tuple[int, ...], ...]:
        """Return the numbers of the cores that share a clock."""
        size = self.cluster_cores
        return tuple(
            tuple(range(first, min(first + size, self.cores)))
            for first in range(0, self.cores, size)
        )


# Parts of a board that take power. `io` is what neither CPU, GPU, memory nor SoC takes.
POWER_PARTS = ("soc", "io", "cpu", "gpu", "memory")


def _steps(steps: Any) -> Steps:
    """Return steps that are listed, or evenly spaced but for the last."""
    if isinstance(steps, list):
        return tuple(steps)
    return tuple(range(steps["from"], steps["to"], steps["step"])) + (steps["to"],)


def _fields(entry: Dict[str, Any]) -> Dict[str, Any]:
    """Return the fields of a kind, release or mode with tuples for lists."""
    fields: Dict[str, Any] = {}
    for name, value in entry.items():
        if name in ("cpu_khz", "gpu_hz", "emc_hz") and not isinstance(value, int):
            fields[name] = _steps(value)
        elif name == "dla":
            fields[name] = {clock: tuple(files) for clock, files in value.items()}
        elif name != "sources":
            fields[name] = tuple(value) if isinstance(value, list) else value
    return fields


def _kind(entry: Dict[str, Any], emc_files: Dict[str, Dict[str, str]]) -> Kind:
    """Return a kind; a release `like` another of it differs from that one in what it names."""
    releases: Dict[str, Release] = {}
    for fields in map(_fields, entry.pop("releases", ())):
        if "modes" in fields:
            fields["modes"] = tuple(StockMode(**_fields(mode)) for mode in fields["modes"])
        like = fields.pop("like", None)
        release = releases[like]._replace(**fields) if like else Release(**fields)
        releases[release.l4t] = release
    fields = _fields(entry)
    fields["rails"] = tuple(Rail(**rail) for rail in fields["rails"])
    fields["not_connected"] = tuple(map(tuple, fields.get("not_connected", ())))
    if isinstance(fields["emc_files"], str):
        fields["emc_files"] = emc_files[fields["emc_files"]]
    return Kind(releases=tuple(releases.values()), **fields)


def _read() -> Dict[str, Kind]:
    """Read the kinds by name; a module is of the first whose pattern is found."""
    loader: Any = sys.modules[__name__].__loader__  # the root helper's reads from its archive
    path = os.path.join(os.path.dirname(__file__), "kinds.json")
    content = json.loads(loader.get_data(path).decode("utf-8"))
    kinds = [_kind(entry, content["emc_files"]) for entry in content["kinds"]]
    return {kind.name: kind for kind in kinds}


KINDS = _read()

# Files of the memory's clock now, Hz; the second is that of older kernels.
EMC_CLOCK_FILES = tuple(
    dict.fromkeys(
        [KINDS["agx_orin"].emc_files["now"], "sys/kernel/debug/clk/emc/clk_rate"]
        + [kind.emc_files["now"] for kind in KINDS.values()]
    )
)
