"""The text of a fake board's nvpmodel.conf, from the facts of its kind."""

from epochwatt.fakeboard.kinds import Kind, Mode
from epochwatt.fakeboard.tools.board_files import CPU, EMC_CAP

_GPU_POWER = "/sys/devices/gpu.0/power/control"


def nvpmodel_conf(kind: Kind) -> str:
    """Return all parameters and power modes of a board in the grammar of nvpmodel.conf."""
    blocks = ["# made up for a fake board (epochwatt stand-in)\n"]
    blocks += [
        _block(f"PARAM TYPE={type_} NAME={name}", paths) for type_, name, paths in _params(kind)
    ]
    blocks += [
        _block(f"POWER_MODEL ID={mode.id} NAME={mode.name}", _settings(kind, mode))
        for mode in kind.modes
    ]
    blocks.append(f"< PM_CONFIG DEFAULT={kind.default_mode} >\n")
    return "\n".join(blocks)


def _block(header: str, lines: list[str]) -> str:
    return "\n".join([f"< {header} >", *lines, ""])


def _params(kind: Kind) -> list[tuple[str, str, list[str]]]:
    """Return type, name and lines `ARGUMENT path` of each parameter."""
    cores = [cpu for cluster in kind.clusters for cpu in cluster]
    params = [("FILE", "CPU_ONLINE", [f"CORE_{n} /{CPU}cpu{n}/online" for n in cores])]
    if _has_tpc_mask(kind):
        params.append(("FILE", "TPC_POWER_GATING", ["TPC_PG_MASK /sys/devices/gpu.0/tpc_pg_mask"]))
    params.append(("FILE", "GPU_POWER_CONTROL_ENABLE", [f"GPU_PWR_CNTL_EN {_GPU_POWER}"]))
    params.append(("FILE", "GPU_POWER_CONTROL_DISABLE", [f"GPU_PWR_CNTL_DIS {_GPU_POWER}"]))
    for n, cluster in enumerate(kind.clusters):
        folder = f"/{CPU}cpu{cluster[0]}/cpufreq/scaling_"
        lines = _clock_lines(
            f"{folder}available_frequencies", f"{folder}max_freq", f"{folder}min_freq"
        )
        params.append(("CLOCK", kind.cpu_param.format(n), lines))
    gpu = f"/{kind.gpu}/"
    lines = _clock_lines(f"{gpu}available_frequencies", f"{gpu}max_freq", f"{gpu}min_freq")
    params.append(("CLOCK", "GPU", lines))
    params.append(("CLOCK", "EMC", [f"MAX_FREQ /{EMC_CAP}"]))
    params += [("CLOCK", name, [f"MAX_FREQ /{path}"]) for name, path in kind.dla_params.items()]
    return params


def _clock_lines(table: str, highest: str, lowest: str) -> list[str]:
    return [f"FREQ_TABLE {table}", f"MAX_FREQ {highest}", f"MIN_FREQ {lowest}"]


def _settings(kind: Kind, mode: Mode) -> list[str]:
    """Return the lines of one mode; a cluster that is off has no clocks."""
    cores = [cpu for cluster in kind.clusters for cpu in cluster]
    lines = [f"CPU_ONLINE CORE_{n} {int(place < mode.cores)}" for place, n in enumerate(cores)]
    if mode.tpc_mask is not None:
        lines.append(f"TPC_POWER_GATING TPC_PG_MASK {mode.tpc_mask}")
    lines.append("GPU_POWER_CONTROL_ENABLE GPU_PWR_CNTL_EN on")
    for n, cluster in enumerate(kind.clusters):
        if cluster[0] < mode.cores:
            param = kind.cpu_param.format(n)
            lines.append(f"{param} MIN_FREQ {mode.cpu_khz[0]}")
            lines.append(f"{param} MAX_FREQ {mode.cpu_khz[1]}")
    lines.append(f"GPU MIN_FREQ {mode.gpu_hz[0]}")
    lines.append(f"GPU MAX_FREQ {mode.gpu_hz[1]}")
    lines.append("GPU_POWER_CONTROL_DISABLE GPU_PWR_CNTL_DIS auto")
    lines.append(f"EMC MAX_FREQ {mode.emc_hz}")
    lines += [f"{name} MAX_FREQ {mode.dla_hz}" for name in kind.dla_params]
    return lines


def _has_tpc_mask(kind: Kind) -> bool:
    return any(mode.tpc_mask is not None for mode in kind.modes)
