"""Simulate a run: every mini-batch of every epoch, and what the sensors would tell.

The stages' mean times come from the same equations as the closed form (`steady`); each mini-batch
draws its own, and the loader's events are played one by one (`loader.waits_s`). All epochs of a run
are played side by side: they do not depend on each other. The spread between mini-batches and
epochs is put in by hand (parameters `noise_*`), that between the units of a board as the paper
prints it (`boards.yaml`): nothing that rests on either is evidence.
"""

import hashlib
import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.numbers import Clocks, Factors, Values, number
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.epoch import Epoch, Setting, cached_share, epoch, first_s, stage_times
from epochwatt.twin.model.loader import Stages, waits_s
from epochwatt.twin.model.spread import Spread, spread_of
from epochwatt.twin.simulation import sensors
from epochwatt.twin.simulation.simulated_epoch import SimulatedEpoch

IDLE_BETWEEN_S = 2.0  # of the board, from one epoch to the next
# Factors that came after the first simulations: seeds leave them out where they are at the default.
YOUNGER = ("imported", "task", "precision", "compile", "container")


class Mean(NamedTuple):
    """An epoch without any spread."""

    setting: Setting  # what it is of
    epoch: Epoch  # as the closed form tells it
    last: Stages  # stages of its last mini-batch, which may be smaller


class Played(NamedTuple):
    """The times of all epochs of a run, s."""

    # wait, copy, compute and the rest of the loop, shape (mini-batches, 4, epochs)
    times_s: NDArray[np.floating]
    fetch_s: NDArray[np.floating]  # summed over mini-batches, shape (epochs,)
    preprocess_s: NDArray[np.floating]


def setting_of(factors: Factors, twin: Twin, cold: bool = False) -> Setting:
    """Return the configuration of a run's factors; EpochwattError when the twin lacks a part."""
    mode = factors.get("power_mode_settings", {})
    if missing := [name for name in Clocks._fields if name not in mode]:
        problem = f"power mode {factors['power_mode']} of {factors['device']} has no {missing[0]}"
        raise EpochwattError(problem, do=f"give it all of {', '.join(Clocks._fields)}")
    clocks = Clocks(*(float(mode[name]) for name in Clocks._fields))
    return setting_at(clocks, factors, twin, cold)


def setting_at(clocks: Clocks, factors: Factors, twin: Twin, cold: bool = False) -> Setting:
    """Return the configuration of a run's factors at other clocks than those of its power mode.

    `clocks`: each a number, or of shape (configurations,).
    """
    names = (factors["device"], factors["model"], factors["dataset"])
    board, work, samples = twin.find(*names, factors.get("task", "train"))
    return Setting(
        board,
        work,
        samples,
        factors["storage"],
        factors["batch_size"],
        clocks,
        factors["num_workers"],
        cold,
        factors["dvfs"] == "on",
        float(factors["dataset_scale"]),
        factors["setup"],
    )


def simulate(factors: Factors, n_epochs: int, twin: Twin) -> list[SimulatedEpoch]:
    """Return the epochs of a run, in order."""
    random = np.random.default_rng(_seeds(factors))
    p = twin.parameters
    kinds = {cold: _mean(setting_of(factors, twin, cold), p) for cold in (True, False)}
    spread = spread_of(factors, n_epochs, twin.boards[factors["device"]], random, p)
    dropped = factors["cache_policy"] == "dropped"
    means = [kinds[dropped or k == 0] for k in range(n_epochs)]
    played = _played(means, spread, factors["prefetch_factor"] or 0, random, p)
    epochs: list[SimulatedEpoch] = []
    now_s = 0.0
    for k, mean in enumerate(means):
        epochs.append(_epoch(k, now_s, mean, played, float(spread.power[k]), random, p))
        now_s += epochs[-1].e2e_s + IDLE_BETWEEN_S
    return epochs


def _seeds(factors: Factors) -> list[int]:
    """Return seeds of a run: the same run is always the same."""
    defaults = {name: columns.FACTOR_DEFAULTS[name] for name in YOUNGER}
    seeding = {k: v for k, v in factors.items() if k not in YOUNGER or v != defaults[k]}
    return list(hashlib.sha256(json.dumps(seeding, sort_keys=True).encode()).digest()[:16])


def _mean(setting: Setting, p: Values) -> Mean:
    whole = epoch(setting, p)
    smaller = replace(setting, batch_size=setting.n_last)
    return Mean(setting, whole, stage_times(smaller, whole.clocks, p)[0])


def _played(
    means: list[Mean], spread: Spread, prefetch_factor: int, random: np.random.Generator, p: Values
) -> Played:
    """Return the times of every mini-batch: each stage drawn, the loader's events played."""
    setting = means[0].setting
    n, workers = setting.n_minibatches, int(setting.num_workers)

    def drawn(name: str, sigma: float) -> NDArray[np.floating]:
        mean_s = np.empty((n, len(means)))
        mean_s[:-1] = [number(getattr(mean.epoch.stages, name)) for mean in means]
        mean_s[-1] = [number(getattr(mean.last, name)) for mean in means]
        noise = np.exp(sigma * random.standard_normal(mean_s.shape) - 0.5 * sigma**2)
        return mean_s * spread.time * noise

    stages = Stages(
        fetch_s=drawn("fetch_s", p["noise_file"] / np.sqrt(setting.n_first)),
        preprocess_s=drawn("preprocess_s", p["noise_preprocess"]),
        handover_s=drawn("handover_s", p["noise_handover"]),
        copy_s=drawn("copy_s", p["noise_handover"]),
        compute_s=drawn("compute_s", p["noise_compute"]),
        loop_s=drawn("loop_s", p["noise_handover"]),
    )
    wait_s = waits_s(stages, workers, prefetch_factor, first_s(workers, p) * spread.time)
    return Played(
        np.stack([wait_s, stages.copy_s, stages.compute_s, stages.loop_s], axis=1),
        np.sum(stages.fetch_s, axis=0),
        np.sum(stages.preprocess_s, axis=0),
    )


def _epoch(
    place: int,
    start_s: float,
    mean: Mean,
    played: Played,
    power_factor: float,
    random: np.random.Generator,
    p: Values,
) -> SimulatedEpoch:
    """Return one epoch with what its sensors told."""
    setting, times_s = mean.setting, played.times_s[:, :, place]
    reads = setting.samples.file_bytes > 0
    cached_pct = 100.0 * number(cached_share(setting, p)) if reads else 100.0
    return SimulatedEpoch(
        place,
        start_s,
        float(times_s.ravel().cumsum()[-1]),  # where the sensors' time line ends, to the last digit
        times_s[:, :3],
        float(played.fetch_s[place]),
        float(played.preprocess_s[place]),
        setting.n_samples,
        0.0 if setting.cold and reads else cached_pct,
        cached_pct,
        sensors.sources(setting, mean.epoch, times_s, start_s, power_factor, random, p),
    )
