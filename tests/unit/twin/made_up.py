"""Simulated epochs made by hand: what a simulation gives, with numbers that are easy to check.

Every epoch has `n` mini-batches of wait 0.05, copy 0.01, compute 0.1 and 0.04 s of overhead: 0.2 s.
The module takes 10 W, and 20 W in every other reading.
"""

import numpy as np

from epochwatt.columns import with_defaults
from epochwatt.twin.run import Samples, SimulatedEpoch

RUN = "twin-agx-d1-lenet-ssd-w4-bs16-g-p1-0123abcd"
MODE = {"cores": 8, "cpu_mhz": 2265.0, "gpu_mhz": 1377.0, "emc_mhz": 2133.0}
FACTORS = with_defaults(
    {
        **{"backend": "twin", "device": "agx", "instance": "d1", "model": "lenet"},
        **{"dataset": "mnist", "dataset_source": "official", "storage": "ssd", "power_mode": "g"},
        "recipe": {"dataset": "mnist"},
        "power_mode_settings": MODE,
        "board_settings": {"power_source": "jtop"},
    }
)
TIMES_S = (0.05, 0.01, 0.1)
STEP_S = 0.2


def epoch(number, n=100, start_s=None, gpu_mhz=MODE["gpu_mhz"], power_w=None):
    """Return one epoch; without `start_s` it follows those before it after 2 s each."""
    e2e_s = n * STEP_S
    start_s = number * (e2e_s + 2.0) if start_s is None else start_s
    t_s = instants_s(start_s, start_s + e2e_s)
    total_w = 10.0 + 10.0 * (np.arange(t_s.size) % 2) if power_w is None else power_w(t_s)
    host = np.column_stack([np.full(t_s.size, 40.0), np.full(t_s.size, 2048.0)])
    board = np.column_stack([np.full(t_s.size, gpu_mhz), np.full(t_s.size, 75.0)])
    return SimulatedEpoch(
        epoch=number,
        t_start_s=start_s,
        e2e_s=e2e_s,
        times_s=np.tile(TIMES_S, (n, 1)),
        fetch_s=1.5,
        preprocess_s=2.5,
        n_samples=16 * n,
        cached_before_pct=0.0 if number == 0 else 100.0,
        cached_after_pct=100.0,
        sources=(
            rails(t_s, total_w),
            Samples("host", "", 1.0, ("cpu_util_pct", "ram_used_mib"), None, t_s, host),
            Samples("board", "", 1.0, ("gpu_mhz", "gpu_util_pct"), None, t_s, board),
        ),
    )


def rails(t_s, total_w):
    """Return the power source, with half of the total on a rail."""
    values = np.column_stack([total_w / 2, total_w])
    columns = ("rail_gpu_w", "power_module_w")
    return Samples("twin", "module", 1.0, columns, "power_module_w", t_s, values)


def instants_s(start_s, end_s):
    """Return one random instant a second, and both bounds."""
    random = np.random.default_rng(7)
    n = int(end_s - start_s)
    return np.concatenate([[start_s], start_s + np.arange(n) + random.random(n), [end_s]])


def assumed(parameters, names):
    """Return parameters of which some are fixed at their priors, whatever the evidence."""
    fixed = {"source": "assumed", "prior": 0.0, "factor": 0.0}
    lacking = parameters.lacking(names)
    return lacking.changed(dict.fromkeys(names, fixed))
