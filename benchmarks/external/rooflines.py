"""How good are energies of rooflines on kernels that others measured?

Energy costs are fitted to the kernels of two networks on a TX2, ninth by ninth left out; beside it
what constant power alone, times the kernel's time, would have said. (Whether anything is above a
roof is a test: tests/unit/roofline/test_public.py.)
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.external import Finding, Inputs, show
from epochwatt.roofline.fit import fit_energy, fit_relative
from epochwatt.roofline.model import Numbers
from epochwatt.roofline.points import Point
from epochwatt.roofline.public import KERNELS, tx2_points
from epochwatt.roofline.public import TX2_SWEEP as TX2

FOLDER = "config/rooflines"
FOLDS = 9
BETTER = 0.9  # of the error of constant power: less of it, and the fit says something
CONVOLUTION = "conv2d"


Predict = Callable[[Sequence[Point], Sequence[Point]], Numbers]  # learned from, asked for


def findings(inputs: Inputs) -> Iterator[Finding]:
    """Yield how far energies of kernels that the fit has not seen are off, in their own modes."""
    points = [
        p for p in tx2_points(inputs.tables(TX2), inputs.root / FOLDER / KERNELS) if p.power_w
    ]
    for name, some in (
        ("all kernels", points),
        ("convolutions", [p for p in points if CONVOLUTION in p.workload]),
    ):
        fitted = held_out_errors_pct(some, _by_costs)
        constant = held_out_errors_pct(some, _by_constant_power)
        median, plain = float(np.median(fitted)), float(np.median(constant))
        yield Finding(
            f"TX2, {name}: error of held-out energies, operations, bytes and constant power",
            "%",
            f"well below that of constant power alone, {show(plain)}",
            f"{show(median)} (90th percentile {show(float(np.quantile(fitted, 0.9)))})",
            median < BETTER * plain,
            f"{len(fitted)} energies of the GPU's rail; operations and bytes are counted by us",
        )


def held_out_errors_pct(points: Sequence[Point], predict: Predict) -> Numbers:
    """Return the errors of energies, %, of kernels that were left out with all their modes."""
    names = np.random.default_rng(0).permutation(sorted({p.workload for p in points}))
    errors: list[float] = []
    for held in np.array_split(names, FOLDS):
        for mode in dict.fromkeys(p.instance for p in points):
            here = [p for p in points if p.instance == mode]
            tested = [p for p in here if p.workload in held]
            trained = [p for p in here if p.workload not in held]
            errors += np.abs(100 * (predict(trained, tested) / _energies(tested) - 1)).tolist()
    return np.array(errors)


def _energies(points: Sequence[Point]) -> Numbers:
    return np.array([p.time_s * (p.power_w or np.nan) for p in points])


def _columns(points: Sequence[Point]) -> tuple[Numbers, Numbers, Numbers]:
    table = np.array([(p.flops, p.bytes, p.time_s) for p in points], float)
    return table[:, 0], table[:, 1], table[:, 2]


def _by_costs(trained: Sequence[Point], tested: Sequence[Point]) -> Numbers:
    return fit_energy(*_columns(trained), _energies(trained)).energy_j(*_columns(tested))


def _by_constant_power(trained: Sequence[Point], tested: Sequence[Point]) -> Numbers:
    (power_w,) = fit_relative(_columns(trained)[2][:, None], _energies(trained))
    return np.asarray(power_w * _columns(tested)[2])
