"""Write the stock nvpmodel configuration of a kind of board (board side: Python 3.6 grammar).

Made of the facts in `kinds`, because NVIDIA's own file may not be passed on. It serves boards that
are not at hand: simulated ones and fake ones.
"""

from typing import Dict, Iterator, List, Optional, Tuple

from epochwatt.board.device.board_files import Conf, Mode, Param, conf_text, parse_conf
from epochwatt.board.device.kinds import EMC_CAPS, JETPACK_5, JETPACK_6, Kind, Release, StockMode

_CPU = "/sys/devices/system/cpu/cpu{}/"
_GPU = ("/sys/devices/gpu.0/", "/sys/devices/platform/gpu.0/")  # since JetPack 6 the second
GPU_MASK = "sys/kernel/gpu_static_pg/gpu_pg_mask"  # SOURCE: NVIDIA's nv-gpu-static-pg.ko (GPL-2.0)
# folders of the GPU's clocks that the files name though the kernel lists them elsewhere
_FORMER_GPU = {
    "tegra210": "sys/devices/gpu.0/devfreq/57000000.gpu",
    "tegra234": "sys/devices/17000000.ga10b/devfreq/17000000.ga10b",
}


def stock_conf(kind: Kind, release: Release) -> Conf:
    """Return parameters and power modes of a board in the form of its own configuration."""
    modes = [Mode(mode.id, mode.name, _settings(kind, release, mode)) for mode in release.modes]
    return parse_conf(conf_text(_params(kind, release), modes, release.default_mode))


def gpu_folder(release: Release) -> str:
    """Return the folder of the GPU's clocks in devfreq."""
    return "{}/devfreq/{}".format(release.gpu_device, release.gpu_device.rpartition("/")[2])


def _params(kind: Kind, release: Release) -> Dict[str, Param]:
    """Return the parameters of nvpmodel.conf by name, with the paths that the JetPack's file has.

    Since JetPack 5 an argument has a second path, `ARG_KNEXT`, for the newer kernel.
    """
    has_knext = release.l4t_major >= JETPACK_5
    is_jp6 = release.l4t_major >= JETPACK_6

    def param(type_: str, paths: Dict[str, str], knext: Optional[Dict[str, str]] = None) -> Param:
        paths = dict(paths)
        if has_knext:
            for arg, path in list((paths if knext is None else knext).items()):
                paths[arg + "_KNEXT"] = path
        return Param(type_, paths)

    def gpu_file(arg: str, name: str) -> Param:
        old, new = ({arg: folder + name} for folder in _GPU)
        return param("FILE", old, new) if is_jp6 else Param("FILE", old)

    cores = {f"CORE_{n}": _CPU.format(n) + "online" for n in range(kind.cores)}
    params = {"CPU_ONLINE": Param("FILE", cores)}
    for name in sorted({name for mode in release.modes for name in mode.masks}):
        arg = name + "_PG_MASK"
        if name == "GPU":
            params["GPU_POWER_GATING"] = Param("FILE", {arg: "/" + GPU_MASK})
        else:
            params[name + "_POWER_GATING"] = gpu_file(arg, arg.lower())
    params["GPU_POWER_CONTROL_ENABLE"] = gpu_file("GPU_PWR_CNTL_EN", "power/control")
    params["GPU_POWER_CONTROL_DISABLE"] = gpu_file("GPU_PWR_CNTL_DIS", "power/control")
    for name, cpus in _cpu_clocks(kind, release):
        params[name] = param("CLOCK", _clock_files(_CPU.format(cpus[0]) + "cpufreq/scaling_"))
    old = _FORMER_GPU.get(kind.soc, gpu_folder(release))
    new = release.gpu_device.replace("bus@0/", "") + "/devfreq_dev"
    if release.gpu_device.endswith("/gpu-gpc-0"):
        new = "sys/class/devfreq/gpu-gpc-0"
    params["GPU"] = param("CLOCK", _clock_files(f"/{old}/"), _clock_files(f"/{new}/"))
    # name -> file of the limit until JetPack 5, and since 6
    limits = {"EMC": EMC_CAPS, **(release.dla or kind.dla)}
    for name, files in limits.items():
        old, new = "/" + files[0], "/" + files[-1 if is_jp6 else 0]
        params[name] = param("CLOCK", {"MAX_FREQ": old}, {"MAX_FREQ": new})
    return params


def _cpu_clocks(kind: Kind, release: Release) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    """Yield the name of each clock of the CPU and the cores that it counts for."""
    cores = tuple((core,) for core in range(kind.cores))
    for n, cpus in enumerate(cores if release.clock_per_core else kind.clusters):
        yield kind.cpu_param.format(n), cpus


def _clock_files(folder: str) -> Dict[str, str]:
    names = {"FREQ_TABLE": "available_frequencies", "MAX_FREQ": "max_freq", "MIN_FREQ": "min_freq"}
    return {argument: folder + name for argument, name in names.items()}


def _settings(kind: Kind, release: Release, mode: StockMode) -> List[Tuple[str, str, str]]:
    """Return the lines (parameter, argument, value) of a mode; an offline cluster has no clocks."""
    rows = [("CPU_ONLINE", f"CORE_{n}", int(n < mode.cores)) for n in range(kind.cores)]  # type: List[Tuple[str, str, object]]
    for name, mask in mode.masks.items():
        rows.append((name + "_POWER_GATING", name + "_PG_MASK", mask))
    rows.append(("GPU_POWER_CONTROL_ENABLE", "GPU_PWR_CNTL_EN", "on"))
    limits = [(name, mode.cpu_khz) for name, c in _cpu_clocks(kind, release) if c[0] < mode.cores]
    for name, (lowest, highest) in limits + [("GPU", mode.gpu_hz)]:
        rows += [(name, "MIN_FREQ", lowest), (name, "MAX_FREQ", highest)]
    rows.append(("GPU_POWER_CONTROL_DISABLE", "GPU_PWR_CNTL_DIS", "auto"))
    rows.append(("EMC", "MAX_FREQ", mode.emc_hz))
    rows += [(name, "MAX_FREQ", mode.dla_hz) for name in release.dla or kind.dla]
    return [(name, argument, str(value)) for name, argument, value in rows]
