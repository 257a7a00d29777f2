"""What an epoch hangs on: each resource in turn is made a little better, the closed form answers.

Every time of the model belongs to one resource, so an epoch becomes shorter by the same factor when
all of them become faster, and their shares add up to one:

    sum over resources of  -d ln e2e / d ln speed  =  1

A resource that the pipeline or the launch queue hides has no share. Which regime a configuration is
in is read off these shares; none is written down anywhere.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from epochwatt.twin.inputs.numbers import number
from epochwatt.twin.inputs.parameters import Parameters
from epochwatt.twin.model.epoch import Setting, epoch

STEP = 1.1  # 10 % faster
NEARLY_PCT = 50.0  # of the first resource's share: another is named beside it
IN_PLAY_PCT = 0.25  # change of time or energy by a change of 10 % of an assumed parameter

Values = Mapping[str, float]


class Resource(NamedTuple):
    """Something that takes time.

    Attributes
    ----------
    bound : what an epoch is that hangs on it, in words
    costs : parameters that are its times, or work to be done
    rates : parameters that are its speeds
    """

    bound: str
    costs: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()


RESOURCES = {  # {} is the medium
    "storage medium": Resource(
        "loader-bound, by the storage medium", ("{}_access_ms",), ("{}_mb_per_s",)
    ),
    "decoding and transforming": Resource(
        "loader-bound, by the CPU that decodes and transforms", ("sample_kcycles", "pixel_cycles")
    ),
    "hand-over and copy": Resource(
        "bound by the main process, which takes over and copies each mini-batch",
        ("handover_kcycles", "copy_kcycles", "copy_cycles_per_byte"),
    ),
    "launches": Resource(
        "launch-bound", ("launch_kcycles", "convolution_kcycles", "front_kcycles")
    ),
    "GPU arithmetic": Resource(
        "GPU-bound, by arithmetic",
        rates=("dense_efficiency", "depthwise_efficiency", "elementwise_efficiency"),
    ),
    "GPU memory": Resource("GPU-bound, by memory", rates=("memory_efficiency",)),
    "begin and end of kernels": Resource(
        "GPU-bound, by many small kernels", ("kernel_gap_kcycles",)
    ),
    "synchronising, loop, worker start": Resource(
        "bound by the loop around the training",
        ("sync_ms", "sync_kcycles", "loop_kcycles", "worker_start_ms"),
    ),
}


def shorter_pct(setting: Setting, p: Values, step: float = STEP) -> dict[str, float]:
    """Return by how many per cent an epoch gets shorter when one resource gets faster.

    Parameters
    ----------
    setting : one configuration; governors do not answer to the change
    p : parameters
    step : how many times as fast
    """
    before = epoch(setting, p)
    pinned = replace(setting, clocks=before.clocks, dvfs=False)
    found = {}
    for name, resource in RESOURCES.items():
        costs = {key.format(setting.medium): 1.0 / step for key in resource.costs}
        rates = {key.format(setting.medium): step for key in resource.rates}
        better = {**p, **{key: p[key] * factor for key, factor in {**costs, **rates}.items()}}
        found[name] = 100.0 * (1.0 - number(epoch(pinned, better).e2e_s / before.e2e_s))
    return found


def words(shorter: Mapping[str, float]) -> str:
    """Return the bottleneck in words: what helps most, and what helps nearly as much."""
    order = sorted(shorter, key=lambda name: -shorter[name])
    near = [n for n in order[1:] if shorter[n] >= NEARLY_PCT / 100.0 * shorter[order[0]]]
    also = f"; nearly as much by: {', '.join(near)}" if near else ""
    return RESOURCES[order[0]].bound + also


def assumed_in_play(setting: Setting, p: Parameters) -> dict[str, tuple[float, float]]:
    """Return change of time and of energy, per cent, by 10 % more of each assumed parameter.

    Those that change neither by `IN_PLAY_PCT` are left out; the greatest change comes first.
    """
    before, found = epoch(setting, p), {}
    for name, each in p.described.items():
        if each.source == "assumed":
            after = epoch(setting, {**p, name: p[name] * STEP})
            ratios = (after.e2e_s / before.e2e_s, after.energy_wh / before.energy_wh)
            found[name] = (100.0 * (number(ratios[0]) - 1.0), 100.0 * (number(ratios[1]) - 1.0))
    size = {name: max(map(abs, changes)) for name, changes in found.items()}
    return {n: found[n] for n in sorted(found, key=lambda n: -size[n]) if size[n] >= IN_PLAY_PCT}
