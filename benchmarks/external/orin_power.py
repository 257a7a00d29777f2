"""Power of an AGX Orin that others measured, and the constant power that it speaks for.

Constant is what a board takes while kernels execute that neither compute nor move data. Three
sources speak of it, and no fit sees any: rails during training in the four stock modes; energy per
token at a short and a long context, whose difference is attention, of few operations and bytes; and
the U of energy over the GPU's clock (`energy_curves`). How much the training computes and moves is
not known; both are fitted, so that each constant power is judged at its best.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from benchmarks.external import Finding, Inputs, near, show
from benchmarks.external.energy_curves import ORIN_J, Numbers, orin_energies
from epochwatt.twin.boards import Board, Clocks, Values, number
from epochwatt.twin.power import Load, Parts, parts


class Training(NamedTuple):
    """Means of one stock mode while the GPU was loaded, W of its rails."""

    mode: str
    clocks: Clocks  # the CPU's a mean, the others the mode's
    gpu_share: float  # that is on
    epoch_s: float
    busy_cores: float
    gpu_util: float
    gpu_soc_w: float
    sys_5v0_w: float


# SOURCE: BroncoSpace-Lab/scales-hardware@510a7bc4b830 (facts): ResNet-50 on CIFAR-100, tegrastats
TRAININGS = (
    Training("MAXN", Clocks(12, 1452, 1300.5, 3199), 1.0, 132, 1.05, 0.966, 32.99, 10.81),
    Training("50W", Clocks(12, 1114, 816, 3199), 1.0, 164, 1.25, 0.978, 19.13, 9.59),
    Training("30W", Clocks(8, 1134, 612, 3199), 0.5, 305, 0.65, 0.985, 10.85, 7.19),
    Training("15W", Clocks(4, 861, 408, 2133), 0.375, 634, 0.61, 0.986, 6.92, 5.64),
)
# SOURCE: jbecirovski/jetson-llm-maxperf@c19500de3383 (MIT): J and s of a token at a context of
# 15,718 tokens, less those at 52, medians of five runs; mode, what of the GPU is on, W
ATTENTION = (
    ("MAXN, iq4xs", Clocks(12, 2201, 1300.5, 3199), 1.0, 27.1),
    ("MAXN, q4km", Clocks(12, 2201, 1300.5, 3199), 1.0, 26.9),
    ("30W, q4km", Clocks(8, 1728, 612, 3199), 0.5, 15.8),
)
TOLERANCE, OF_U, AGREES_PCT = 0.1, 0.05, 25.0  # of a logarithm; rail by rail, per cent
POWERS = np.arange(0.30, 0.80, 0.01)  # of a CUDA core of Orin, of which the constant power follows


def findings(inputs: Inputs) -> Iterator[Finding]:
    """Yield each rail beside the simulation's, and the constant power that all sources want."""
    board, p = inputs.twin.boards["orin"], inputs.twin.parameters
    _, unknown = _objective(board, p)
    for training in TRAININGS:
        of_parts = _training(training, board, p, *unknown)
        simulated = (of_parts.gpu_w + of_parts.soc_w, of_parts.io_w + of_parts.memory_w)
        for rail, watts in zip(("VDD_GPU_SOC", "VIN_SYS_5V0"), simulated, strict=True):
            expected = training.gpu_soc_w if rail == "VDD_GPU_SOC" else training.sys_5v0_w
            subject = f"training in {training.mode}: {rail}"
            yield near(subject, "W", expected, number(watts), AGREES_PCT, "")
    for mode, clocks, gpu_share, watts in ATTENTION:
        subject = f"attention over a long context, {mode}: module"
        yield near(subject, "W", watts, _waiting_w(clocks, gpu_share, board, p), AGREES_PCT, "")
    boards = [replace(board, gpu_power=float(power)) for power in POWERS]
    costs = np.array([_objective(other, p)[0] for other in boards])
    constants = [_waiting_w(*ATTENTION[0][1:3], other, p) for other in boards]
    fits = [watts for watts, cost in zip(constants, costs, strict=True) if cost < costs.min() + 1]
    own = _waiting_w(*ATTENTION[0][1:3], board, p)
    at = {round(watts): cost for watts, cost in zip(constants, costs, strict=True)}
    yield Finding(
        "constant power in MAXN that all want, by the power of a CUDA core",
        "W",
        f"{show(constants[int(costs.argmin())])} ({show(min(fits))} to {show(max(fits))})",
        show(own),
        min(fits) <= own <= max(fits),
        "objective by W: " + ", ".join(f"{at[w]:.1f} at {w}" for w in (20, 22, 24, 26, 28, 30, 33)),
    )


def _objective(board: Board, p: Values) -> tuple[float, Numbers]:
    """Return the objective of all sources, and the training's computing share and GB/s in MAXN."""

    def residuals(logs: Numbers) -> Numbers:
        of_parts = [_training(training, board, p, *np.exp(logs)) for training in TRAININGS]
        pairs = [
            pair
            for t, w in zip(TRAININGS, of_parts, strict=True)
            for pair in (
                (w.gpu_w + w.soc_w, t.gpu_soc_w),
                (w.io_w + w.memory_w, t.sys_5v0_w),
            )
        ]
        pairs += [(_waiting_w(c, on, board, p), watts) for _, c, on, watts in ATTENTION]
        of_rails = np.log([number(simulated) / watts for simulated, watts in pairs]) / TOLERANCE
        of_u = np.log(orin_energies(board, p) / np.array(list(ORIN_J.values())))
        return np.concatenate([of_rails, (of_u - of_u.mean()) / OF_U])

    end = least_squares(residuals, np.log([0.5, 100.0]))
    return float(end.cost), np.exp(end.x)


def _training(
    training: Training, board: Board, p: Values, computing: float, gb_per_s: float
) -> Parts:
    """Return the power of a board's parts in training; computing and GB/s are those in MAXN."""
    first, mhz = TRAININGS[0], training.clocks.gpu_mhz
    longer = training.epoch_s / first.epoch_s
    slower = first.clocks.gpu_mhz / mhz / training.gpu_share
    load = Load(
        training.busy_cores,
        training.gpu_util,
        computing * slower / longer,
        1e9 * gb_per_s / longer,
    )
    watts = parts(board, training.clocks, load, p)
    return watts._replace(gpu_w=training.gpu_share * watts.gpu_w)


def _waiting_w(clocks: Clocks, gpu_share: float, board: Board, p: Values) -> float:
    """Return the power of a module whose kernels neither compute nor move data, W."""
    watts = parts(board, clocks, Load(1.0 + p["monitor_cores"] / board.ipc, 1.0, 0.0, 0.0), p)
    return number(watts.module_w - (1.0 - gpu_share) * watts.gpu_w)
