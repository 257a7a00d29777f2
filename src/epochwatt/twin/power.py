"""Compute the electrical power of a module and of its plug, and the clocks that governors choose.

**Power.** A clocked part of a chip takes P = c f V^2 while it works, a share of that while it only
ticks, and at any clock what it leaks. Voltage is flat up to a knee and then rises linearly to that
of the highest clock. A GPU takes less while its kernels wait for memory than while they compute.
The memory's controller follows the memory's clock, and each byte moved costs energy:

    cores  = c_core V_cpu^2 (leak f_max cores + f_cpu (idle cores + (1 - idle) busy))
    gpu    = c_gpu g cuda_cores V_gpu^2 (leak f_max
             + f_gpu (waiting (util - computing) + computing))
    memory = soc + c_emc f_emc V_soc^2 + e bytes/s
    module = cores + gpu + memory
    socket = (module + carrier) / efficiency of the adapter

So the energy of a GPU that computes is a U over its clock: below the knee leakage is paid for
longer, above it voltage rises. `SPLIT` divides the third line between a module's rails.

Disks and USB hang on the carrier: the module's sensors do not see them (SIGMETRICS 2023, 4.5).

**Governors**, where clocks are not pinned (DVFS on). CPU: schedutil sets each cluster to 1.25 times
the utilisation of its busiest core (Linux Documentation/scheduler/schedutil.rst). A process that
polls the GPU keeps its core fully busy. GPU and memory: the lowest clock at which the load stays
below a target (devfreq and actmon of L4T); and the memory is not slower in its range than the
fastest CPU in its own (ASSUME: L4T's CPU driver asks for bandwidth by its clock).
"""

from typing import NamedTuple

import numpy as np

from epochwatt.board.device.frequencies import WITHIN
from epochwatt.errors import EpochwattError
from epochwatt.twin.boards import Array, Board, Clocks, Values

SCHEDUTIL_MARGIN = 1.25
STATES = ("logging_on_dvfs_off", "logging_off_dvfs_off", "logging_off_dvfs_on", "wol")
STATE = dict(zip(("i", "ii", "iii", "iv"), STATES, strict=True))  # by the papers' number (5.6)
SCOPES = ("module", "socket")
# What no clock moves, what follows the memory's clock, and traffic: shares that each rail sees.
# SOURCE: SOC, SYS5V and VDDRQ of an AGX Xavier in its stock modes (config/twin/rails.csv)
SPLIT = {"soc": (0.2, 0.7, 0.4), "io": (0.7, 0.3, 0.2), "memory": (0.1, 0.0, 0.4)}


def check_clocks(board: Board, clocks: Clocks) -> None:
    """Raise EpochwattError where a power mode asks for what the board cannot do.

    Nominal clocks are rounded: an end may be left by as much as on a board.
    """
    limits = ((1, board.cores), board.cpu_mhz, board.gpu_mhz, board.emc_mhz)
    for name, values, (low, high) in zip(Clocks._fields, clocks, limits, strict=True):
        lowest, highest = np.min(values), np.max(values)
        if not (low * (1.0 - WITHIN) <= lowest and highest <= high * (1.0 + WITHIN)):
            wrong = lowest if lowest < low else highest
            problem = f"a simulated {board.title} cannot have {name} {wrong:g}"
            raise EpochwattError(problem, allowed=f"{low:g} to {high:g}")


class Load(NamedTuple):
    """The load of a board, as a mean over some time."""

    busy_cores: Array  # CPU cores at work, 0 to cores
    gpu_util: Array  # share of the time in which kernels execute, 0 to 1
    gpu_computing: Array  # the same in which they compute on all its cores, at most `gpu_util`
    bytes_per_s: Array  # moved in memory


class Parts(NamedTuple):
    """Power of the module's parts, W."""

    soc_w: Array
    io_w: Array
    cpu_w: Array
    gpu_w: Array
    memory_w: Array

    @property
    def module_w(self) -> Array:
        """Power of the whole module, the sum of its sensors, W."""
        return self.soc_w + self.io_w + self.cpu_w + self.gpu_w + self.memory_w


def parts(board: Board, clocks: Clocks, load: Load, p: Values) -> Parts:
    """Return the power of each part of a module, W (formulas: docstring of the module)."""
    cpu_v, gpu_v, soc_v = (
        np.interp(mhz, (knee_mhz, limits_mhz[1]), limits_v)
        for mhz, knee_mhz, limits_mhz, limits_v in (
            (clocks.cpu_mhz, board.cpu_knee_mhz, board.cpu_mhz, board.cpu_v),
            (clocks.gpu_mhz, board.gpu_knee_mhz, board.gpu_mhz, board.gpu_v),
            (clocks.emc_mhz, board.soc_knee_mhz, board.emc_mhz, board.soc_v),
        )
    )
    idle = p["core_idle_share"]
    leaking_mhz = p["core_leak_share"] * board.cpu_mhz[1] * clocks.cores
    cores_mhz = leaking_mhz + clocks.cpu_mhz * (
        idle * clocks.cores + (1.0 - idle) * load.busy_cores
    )
    util, computing = load.gpu_util, np.minimum(load.gpu_computing, load.gpu_util)
    waiting = p["gpu_waiting_share"] * (util - computing)
    gpu_mhz = p["gpu_leak_share"] * board.gpu_mhz[1] + clocks.gpu_mhz * (waiting + computing)
    # constant, the memory's controller (its constant is of 64 bytes a clock), traffic
    uncore_w = (
        p[f"{board.power}_soc_w"] * p["soc_factor"],
        1e-3 * p["emc_w_per_ghz_v2"] * board.emc_bytes_per_clock / 64.0 * clocks.emc_mhz * soc_v**2,
        1e-12 * p["memory_pj_per_byte"] * load.bytes_per_s,
    )
    soc_w, io_w, dram_w = (
        sum(share * watts for share, watts in zip(shares, uncore_w, strict=True))
        for shares in SPLIT.values()
    )
    return Parts(
        soc_w=soc_w,
        io_w=io_w,
        cpu_w=1e-3 * p[f"{board.power}_core_w_per_ghz_v2"] * cpu_v**2 * cores_mhz,
        gpu_w=1e-6
        * p["gpu_mw_per_ghz_v2"]
        * board.gpu_power
        * board.cuda_cores
        * gpu_v**2
        * gpu_mhz,
        memory_w=dram_w,
    )


def socket_w(board: Board, module_w: Array, p: Values) -> Array:
    """Return the power at the plug, W: carrier board and the adapter's loss added."""
    return (module_w + p[f"{board.power}_carrier_w"]) / p["adapter_efficiency"]


def idle_w(board: Board, state: str, clocks: Clocks, scope: str, p: Values) -> Array:
    """Return the mean power of a board that does not train, W.

    `clocks`: of the power mode; with DVFS on they fall to the lowest.

    Raises EpochwattError: an unknown state or scope, or the module's power in Wake-on-LAN; clocks
    that the board does not have.
    """
    check_clocks(board, clocks)
    if state not in STATES or scope not in SCOPES or (state == "wol" and scope == "module"):
        raise EpochwattError(
            f"no idle power of state {state!r} in scope {scope!r}",
            allowed=f"{', '.join(STATES)}; {', '.join(SCOPES)}; wol: socket only",
        )
    if state == "wol":
        return np.asarray(p[f"{board.power}_suspend_w"])
    if state == "logging_off_dvfs_on":
        clocks = Clocks(clocks.cores, board.cpu_mhz[0], board.gpu_mhz[0], board.emc_mhz[0])
    busy = p["monitor_cores"] / board.ipc if state == "logging_on_dvfs_off" else 0.0
    module_w = parts(board, clocks, Load(busy, 0.0, 0.0, 0.0), p).module_w
    return module_w if scope == "module" else socket_w(board, module_w, p)


def governed(
    board: Board, top: Clocks, core_util: Array, gpu_util: Array, emc_util: Array, p: Values
) -> Clocks:
    """Return the clocks that the governors choose, at most those of the power mode `top`.

    `core_util`, `gpu_util`, `emc_util`: of the busiest core, GPU and memory at the mode's clocks,
    0 to 1.
    """
    fastest_mhz = cpu_mhz(board, top, core_util)
    traffic_share = emc_util / p["emc_governor_load"]
    emc_share = np.maximum(traffic_share, fastest_mhz / top.cpu_mhz)
    return Clocks(
        top.cores,
        fastest_mhz,
        np.clip(gpu_util / p["gpu_governor_load"] * top.gpu_mhz, board.gpu_mhz[0], top.gpu_mhz),
        np.clip(emc_share * top.emc_mhz, board.emc_mhz[0], top.emc_mhz),
    )


def cpu_mhz(board: Board, top: Clocks, core_util: Array) -> Array:
    """Return the clock of a cluster, MHz.

    `core_util`: of its busiest core at the mode's clock, 0 to 1.
    """
    return np.clip(SCHEDUTIL_MARGIN * core_util * top.cpu_mhz, board.cpu_mhz[0], top.cpu_mhz)
