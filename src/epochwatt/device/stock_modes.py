"""Stock nvpmodel configuration of a kind of board (board side: Python 3.6 grammar).

Made of the facts in `kinds`, because NVIDIA's own file may not be passed on. It serves boards that
are not at hand: simulated ones and fake ones.
"""

from typing import Dict, List, Tuple

from epochwatt.device.board_files import Conf, Mode, Param
from epochwatt.device.kinds import Kind, Release, StockMode

_CPU = "/sys/devices/system/cpu/cpu{}/"
_GPU = "/sys/devices/gpu.0/"


def stock_conf(kind: Kind, release: Release) -> Conf:
    """Return parameters and power modes of a board in the form of its own configuration."""
    modes = [Mode(mode.id, mode.name, _settings(kind, mode)) for mode in release.modes]
    return Conf(_params(kind, release), modes, release.default_mode)


def gpu_folder(release: Release) -> str:
    """Return the folder of the GPU's clocks in devfreq."""
    return "{}/devfreq/{}".format(release.gpu_device, release.gpu_device.rpartition("/")[2])


def _params(kind: Kind, release: Release) -> Dict[str, Param]:
    def file(name: str, path: str) -> Param:
        return Param("FILE", {name: path})

    cores = {f"CORE_{n}": _CPU.format(n) + "online" for n in range(kind.cores)}
    params = {"CPU_ONLINE": Param("FILE", cores)}
    if any(mode.tpc_mask is not None for mode in release.modes):
        params["TPC_POWER_GATING"] = file("TPC_PG_MASK", _GPU + "tpc_pg_mask")
    params["GPU_POWER_CONTROL_ENABLE"] = file("GPU_PWR_CNTL_EN", _GPU + "power/control")
    params["GPU_POWER_CONTROL_DISABLE"] = file("GPU_PWR_CNTL_DIS", _GPU + "power/control")
    for n, cluster in enumerate(kind.clusters):
        folder = _CPU.format(cluster[0]) + "cpufreq/scaling_"
        params[kind.cpu_param.format(n)] = _clock(folder)
    params["GPU"] = _clock(f"/{gpu_folder(release)}/")
    if kind.emc_cap is not None:
        params["EMC"] = Param("CLOCK", {"MAX_FREQ": "/" + kind.emc_cap})
    for name, path in kind.dla.items():
        params[name] = Param("CLOCK", {"MAX_FREQ": "/" + path})
    return params


def _clock(folder: str) -> Param:
    names = {"FREQ_TABLE": "available_frequencies", "MAX_FREQ": "max_freq", "MIN_FREQ": "min_freq"}
    return Param("CLOCK", {argument: folder + name for argument, name in names.items()})


def _settings(kind: Kind, mode: StockMode) -> List[Tuple[str, str, str]]:
    """Return the lines of a mode; a cluster that is off has no clocks."""
    rows = [("CPU_ONLINE", f"CORE_{n}", int(n < mode.cores)) for n in range(kind.cores)]  # type: List[Tuple[str, str, object]]
    if mode.tpc_mask is not None:
        rows.append(("TPC_POWER_GATING", "TPC_PG_MASK", mode.tpc_mask))
    rows.append(("GPU_POWER_CONTROL_ENABLE", "GPU_PWR_CNTL_EN", "on"))
    limits = [("GPU", mode.gpu_hz)]
    clusters = enumerate(kind.clusters)
    limits[:0] = [
        (kind.cpu_param.format(n), mode.cpu_khz) for n, c in clusters if c[0] < mode.cores
    ]
    for name, (lowest, highest) in limits:
        rows += [(name, "MIN_FREQ", lowest), (name, "MAX_FREQ", highest)]
    rows.append(("GPU_POWER_CONTROL_DISABLE", "GPU_PWR_CNTL_DIS", "auto"))
    if kind.emc_cap is not None:
        rows.append(("EMC", "MAX_FREQ", mode.emc_hz))
    rows += [(name, "MAX_FREQ", mode.dla_hz) for name in kind.dla]
    return [(name, argument, str(value)) for name, argument, value in rows]
