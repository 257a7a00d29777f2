"""Find the bottleneck of an epoch: make each resource a little faster in turn, in closed form.

Every time of the model belongs to one resource. So if all of them become faster by a factor, the
epoch becomes shorter by that factor, and their shares add up to one:

    sum over resources of  -d ln e2e / d ln speed  =  1

A resource that the pipeline or the launch queue hides has no share. The regime of a configuration
follows from these shares; none is hard-coded.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from epochwatt.epochs import bottleneck as parts
from epochwatt.twin.boards import Values, number
from epochwatt.twin.epoch import Setting, epoch
from epochwatt.twin.parameters import Parameters

STEP = 1.1  # 10 % faster
NEARLY_PCT = 50.0  # of the largest share: resources above it are named, too
IN_PLAY_PCT = 0.25  # least change of time or energy for 10 % more of an assumed parameter


class Resource(NamedTuple):
    """Something that takes time."""

    part: str  # of the epoch, as in `epochwatt.epochs.bottleneck`
    costs: tuple[str, ...] = ()  # parameters that are its times, or work to be done
    rates: tuple[str, ...] = ()  # parameters that are its speeds


RESOURCES = {  # {} is the medium
    "storage medium": Resource(parts.LOADER, ("{}_access_ms",), ("{}_mb_per_s",)),
    "decoding and transforming": Resource(parts.LOADER, ("sample_kcycles", "pixel_cycles")),
    "hand-over and copy": Resource(
        parts.COPY, ("handover_kcycles", "copy_kcycles", "copy_cycles_per_byte")
    ),
    "launches": Resource(
        parts.LAUNCHES, ("launch_kcycles", "convolution_kcycles", "front_kcycles")
    ),
    "GPU arithmetic": Resource(
        parts.ARITHMETIC,
        rates=("dense_efficiency", "depthwise_efficiency", "elementwise_efficiency"),
    ),
    "GPU memory": Resource(parts.MEMORY, rates=("memory_efficiency",)),
    "begin and end of kernels": Resource(parts.BELOW_ROOF, ("kernel_gap_kcycles",)),
    "synchronising, loop, worker start": Resource(
        parts.OVERHEAD, ("sync_ms", "sync_kcycles", "loop_kcycles", "worker_start_ms")
    ),
}


def shorter_pct(setting: Setting, p: Values, step: float = STEP) -> dict[str, float]:
    """Return resource -> how much shorter an epoch is, %, if that becomes `step` times as fast.

    Governors do not react to the change.
    """
    before = epoch(setting, p)
    pinned = replace(setting, clocks=before.clocks, dvfs=False)
    shorter = {}
    for name, resource in RESOURCES.items():
        factors = {key.format(setting.medium): 1.0 / step for key in resource.costs}
        factors |= {key.format(setting.medium): step for key in resource.rates}
        better = {**p, **{key: p[key] * factor for key, factor in factors.items()}}
        faster, kcycles = pinned, pinned.samples.kcycles
        if "sample_kcycles" in resource.costs and kcycles is not None:  # no parameter, but measured
            faster = replace(pinned, samples=replace(pinned.samples, kcycles=kcycles / step))
        shorter[name] = 100.0 * (1.0 - number(epoch(faster, better).e2e_s / before.e2e_s))
    return shorter


def bottleneck_words(shorter: Mapping[str, float]) -> str:
    """Return what holds an epoch back, and which resources would help most, or nearly as much."""
    costs: dict[str, float] = defaultdict(float)
    for name, resource in RESOURCES.items():
        costs[resource.part] += shorter[name]
    bound = parts.find_bottleneck(costs)
    candidates: tuple[str, ...] = (bound.bound_by,)
    if bound.bound_by == parts.COMPUTE:
        candidates = (*parts.COMPUTE_PARTS, parts.BELOW_ROOF)
    most = max((n for n in RESOURCES if RESOURCES[n].part in candidates), key=lambda n: shorter[n])
    is_said = RESOURCES[most].part in (bound.limit, parts.COPY, parts.OVERHEAD)
    cause = "" if is_said else f" ({most})"
    near = [n for n in shorter if n != most and shorter[n] >= NEARLY_PCT / 100.0 * shorter[most]]
    also = f"; nearly as much by: {', '.join(sorted(near, key=lambda n: -shorter[n]))}"
    return f"bound by {str(bound).removeprefix('Bound by ')}{cause}{also if near else ''}"


def assumed_in_play(setting: Setting, p: Parameters) -> dict[str, tuple[float, float]]:
    """Return assumed parameter -> changes of time and energy, %, for 10 % more of it.

    Parameters that change neither by `IN_PLAY_PCT` are left out; the largest change comes first.
    """
    before, changes = epoch(setting, p), {}
    for name, parameter in p.described.items():
        if parameter.source == "assumed":
            after = epoch(setting, {**p, name: p[name] * STEP})
            ratios = (after.e2e_s / before.e2e_s, after.energy_wh / before.energy_wh)
            time_pct, energy_pct = (100.0 * (number(ratio) - 1.0) for ratio in ratios)
            changes[name] = (time_pct, energy_pct)
    size = {name: max(map(abs, pair)) for name, pair in changes.items()}
    return {n: changes[n] for n in sorted(size, key=lambda n: -size[n]) if size[n] >= IN_PLAY_PCT}
