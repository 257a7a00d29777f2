"""Kernels and rooflines of planted boards."""

import numpy as np

from epochwatt.counting.kernel_counts import KernelCounts
from epochwatt.roofline.fits import FitRow
from epochwatt.roofline.model import Ceilings


def kernels(*each, kind="gemm"):
    """Return kernels of (operations, bytes) each, whatever the mini-batch."""
    flops, moved = (np.array(column, float) for column in zip(*each, strict=True))
    none, names = np.zeros(len(each)), np.full(len(each), "k")
    kinds = np.array([kind] * (len(each) - 1) + ["elementwise"])
    return KernelCounts(
        "planted", 1, (1,), names, kinds, np.full(len(each), "forward"),
        flops, none, moved, none, flops, none,
    )  # fmt: skip


def fit(cpu_mhz=1000.0, gpu_mhz=500.0, emc_mhz=800.0, cores=4):
    """Return the rooflines of a mode of a planted board."""
    ceilings = Ceilings(2e9 * gpu_mhz, min(1.3e8 * emc_mhz, 9e8 * gpu_mhz), 0.01 / cpu_mhz)
    return FitRow(
        provenance="measured", device="planted", processor="gpu", precision="fp32",
        cores=cores, cpu_mhz=cpu_mhz, gpu_mhz=gpu_mhz, emc_mhz=emc_mhz,
        flops_per_s=ceilings.flops_per_s, bytes_per_s=ceilings.bytes_per_s,
        launch_s=ceilings.launch_s, j_per_flop=1e-11, j_per_byte=1e-10, constant_w=5.0,
        ridge_flop_per_byte=ceilings.ridge_flop_per_byte, n=3,
    )  # fmt: skip


ONE_KNOB = [fit(), fit(cpu_mhz=2000.0), fit(gpu_mhz=1000.0), fit(emc_mhz=1600.0)]
