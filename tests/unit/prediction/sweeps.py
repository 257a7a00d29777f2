"""Mode tables of which the truth is known."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from epochwatt.sweeps.mode_table import ModeTable, SweepRow, tables_of

CPU, GPU, EMC = (400, 900, 1500, 2200), (150, 400, 800, 1300), (600, 1100, 1600)
GRID = [(8, *clocks) for clocks in product(CPU, GPU, EMC)]  # 48 modes


def seconds(mode: Sequence[float]) -> float:
    """A time of which the physical model has every term."""
    return 90 / mode[2] + 40 / mode[3] + 30 / mode[1] + 0.01


def watts(mode: Sequence[float]) -> float:
    """A power likewise."""
    return 2 + 5 * mode[2] / 1000 + mode[1] / 1000 + 1.5 * mode[3] / 1000


def planted(
    modes: Sequence[Sequence[float]] = GRID,
    time_s: Callable[[Sequence[float]], float] = seconds,
    power_w: Callable[[Sequence[float]], float] | None = watts,
    noise: float = 0.0,
    repeats: int = 1,
    workload: str = "planted",
    sweep: str = "planted",
    **columns: object,
) -> ModeTable:
    """Return a table of modes (cores, CPU, GPU, memory), whose values are off by a factor."""
    rng = np.random.default_rng(3)
    rows = []
    for mode in modes:
        for repeat in range(repeats):
            factors = np.exp(noise * rng.standard_normal(2))
            of_mode = dict(zip(("cores", "cpu_mhz", "gpu_mhz", "emc_mhz"), mode, strict=False))
            power = {} if power_w is None else {"power_w": power_w(mode) * factors[1]}
            scope = {"power_scope": "module"} if power else {}
            row = {
                **{"sweep": sweep, "provenance": "public", "device": "board"},
                **{"workload": workload, "task": "train", "repeat": repeat},
                **{"time_s": time_s(mode) * factors[0], **power, **scope, **of_mode, **columns},
            }
            rows.append(SweepRow(**row))
    (table,) = tables_of(rows)
    return table


def limited(
    limits: Sequence[float] = (100, 125, 150, 175, 200, 225, 250), **about: object
) -> ModeTable:
    """Return a table of a graphics card under power limits: a power law in the limit."""
    rows = [
        SweepRow(
            **{
                **{"sweep": "limits", "provenance": "public", "device": "card"},
                **{"workload": "net", "task": "train", "power_limit_w": float(limit)},
                **{"time_s": 300 * limit**-0.4, "power_w": 0.9 * limit, "power_scope": "gpu"},
                **about,
            }
        )
        for limit in limits
    ]
    (table,) = tables_of(rows)
    return table
