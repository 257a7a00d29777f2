"""A made-up device whose constants are known, and what micro-kernels on it take."""

from dataclasses import dataclass

import numpy as np

from epochwatt.roofline.ceilings import CeilingRow
from epochwatt.roofline.model import Ceilings, EnergyCosts

COPIES = tuple(2**n for n in range(16, 26))  # elements
PRODUCTS = (256, 512, 1024, 2048)
BLOCKS = 7
CHAINS = tuple(2.0**n for n in range(-3, 9))  # operations per byte


@dataclass(frozen=True)
class Planted:
    """A mode with its truth; `noise`: relative standard deviation of each block of calls."""

    ceilings: Ceilings
    costs: EnergyCosts
    noise: float = 0.01
    gpu_mhz: float = 1000.0
    cpu_mhz: float = 2000.0
    emc_mhz: float = 3000.0

    def rows(self, seed: int = 0) -> list[CeilingRow]:
        """Return what its micro-kernels would be measured as."""
        random = np.random.default_rng(seed)
        works = [("copy", n, 0.0, 8.0 * n) for n in COPIES]
        works += [("triad", n, 2.0 * n, 12.0 * n) for n in COPIES]
        works += [("matmul", n, 2.0 * n**3, 12.0 * n**2) for n in PRODUCTS]
        works += [("fma", 2**24, 2**26 * k, float(2**26)) for k in CHAINS]
        works += [("launch", 1, 0.0, 0.0)] * 3
        return [self._row(*work, random) for work in works]

    def _row(self, kernel, size, flops, moved, random) -> CeilingRow:
        true_s = float(self.ceilings.roof_s(flops, moved)) + self.ceilings.launch_s
        # what disturbs a kernel makes it slower
        blocks_s = true_s * (1 + self.noise * np.abs(random.standard_normal(BLOCKS)))
        powers = 1 + self.noise * random.standard_normal(BLOCKS)
        median_s = float(np.median(blocks_s))
        energy = float(self.costs.energy_j(flops, moved, median_s)) * powers.mean()
        return CeilingRow(
            **{"provenance": "fake", "device": "planted", "processor": "gpu", "precision": "fp32"},
            **{"cores": 8, "cpu_mhz": self.cpu_mhz, "gpu_mhz": self.gpu_mhz, "kernel": kernel},
            **{"emc_mhz": self.emc_mhz, "size": size, "flops": flops, "bytes": moved},
            **{"repeats": BLOCKS, "time_s": median_s, "time_sd_s": float(blocks_s.std())},
            **{"best_s": float(blocks_s.min()), "power_w": energy / median_s},
            power_scope="gpu",
        )
