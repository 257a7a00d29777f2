"""Observed epochs of one workload under several power modes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.names import TIME
from epochwatt.text import counted

PROCESSES = 5  # of the papers' default: four loader workers and the training loop


@dataclass(frozen=True, eq=False)
class Observations:
    """Epochs of one workload on one board; nothing differs except the power mode."""

    workload: str  # name, for messages and tables
    modes: Numbers  # (n, 6), cores and MHz as in `Mode`
    time_s: Numbers  # (n,), time of the epoch
    power_w: Numbers  # (n,), mean power over the epoch; NaN: not measured
    epoch: NDArray[np.int64]  # (n,), number of the epoch, the first is 0
    # how many processes want a CPU core: loader workers and the training loop
    processes: int = PROCESSES
    no_power: str = ""  # why power is not known of every epoch after the first; empty: it is

    def __post_init__(self) -> None:
        as_rows(self.modes)  # raises PredictionError: modes that cannot be
        sizes = {len(self.modes), *map(np.size, (self.time_s, self.power_w, self.epoch))}
        if len(sizes) != 1:
            raise PredictionError(f"{self.workload}: columns of {sorted(sizes)} rows")
        is_wrong = {
            "time_s": ~(self.time_s > 0),
            "power_w": ~((self.power_w > 0) | np.isnan(self.power_w)),
        }
        for name, wrong in is_wrong.items():
            if wrong.any():
                value, mode = self.values(name)[wrong][0], Mode(*self.modes[wrong][0])
                raise PredictionError(
                    f"{self.workload}: {name} of {value:g} in {mode}", allowed="numbers above zero"
                )

    @property
    def energy_wh(self) -> Numbers:
        """Energy of each epoch, Wh, shape (n,)."""
        return self.power_w * self.time_s / 3600

    @cached_property
    def mode_of_row(self) -> tuple[Mode, ...]:
        """Mode of each row."""
        return tuple(Mode(*row) for row in self.modes.tolist())

    def distinct(self) -> tuple[Mode, ...]:
        """Return the distinct modes in the order of their first row."""
        return tuple(dict.fromkeys(self.mode_of_row))

    def rows(self, mask: NDArray[np.bool_]) -> "Observations":
        """Return the rows where the mask (n,) is true."""
        return replace(
            self,
            modes=self.modes[mask],
            time_s=self.time_s[mask],
            power_w=self.power_w[mask],
            epoch=self.epoch[mask],
        )

    def only(self, modes: Collection[Mode]) -> "Observations":
        """Return the rows of these modes; a mode without rows is no error."""
        wanted = set(modes)
        is_kept = [mode in wanted for mode in self.mode_of_row]
        return self if all(is_kept) else self.rows(np.array(is_kept, bool))

    def after_first(self, n_epochs: int | None = None) -> "Observations":
        """Return epochs 1 to `n_epochs`, or all after the first."""
        last = self.epoch.max(initial=0) if n_epochs is None else n_epochs
        return self.rows((self.epoch >= 1) & (self.epoch <= last))

    def per_mode(self) -> "Observations":
        """Return one row per mode: mean time, and the power that gives the mean energy."""
        return self._per_mode

    @cached_property
    def _per_mode(self) -> "Observations":  # every method asks for it
        rows_of: dict[Mode, list[int]] = {}
        for row, mode in enumerate(self.mode_of_row):
            rows_of.setdefault(mode, []).append(row)
        time_s = np.array([self.time_s[rows].mean() for rows in rows_of.values()])
        energy_wh = self.energy_wh
        mean_wh = np.array([energy_wh[rows].mean() for rows in rows_of.values()])
        return replace(
            self,
            modes=as_rows(list(rows_of)),
            time_s=time_s,
            power_w=3600 * mean_wh / time_s,
            epoch=np.ones(len(rows_of), np.int64),
        )

    def values(self, target: str) -> Numbers:
        """Return what was observed of a target, one of `names.TARGETS`, shape (n,)."""
        observed: Numbers = getattr(self, target)
        return observed

    def means_of(self, target: str, least: int = 2) -> "Observations":
        """Return one row per mode (`per_mode`) to fit a model of the target to.

        Raises PredictionError: fewer than `least` distinct modes; for another target than time, no
        power in some row.
        """
        self.need_modes(least)
        if target != TIME:
            self.need_energy()
        return self.per_mode()

    def need_modes(self, least: int) -> None:
        """Raise PredictionError where there are fewer than `least` distinct modes."""
        modes = self.distinct()
        if len(modes) < least:
            raise PredictionError(
                f"{counted(len(self.modes), 'epochs')} under "
                f"{counted(len(modes), 'distinct power modes')}",
                where=self.workload,
                found="; ".join(map(str, modes)) or "none",
                allowed=f"{least} modes or more",
                do="measure it under further modes",
            )

    def need_energy(self) -> None:
        """Raise PredictionError where power was not measured in some row."""
        problem, is_missing = self.no_power, np.isnan(self.power_w)
        if not problem and not is_missing.any():
            return
        if not problem:
            missing = self.rows(is_missing).distinct()
            n_modes = f"{len(missing)} of {len(self.distinct())} modes"
            problem = f"no energy was measured in {n_modes} (the first: {missing[0]})"
        raise PredictionError(
            problem,
            where=self.workload,
            allowed="power of every epoch; a model of time needs none",
        )


def observations_from_rows(
    workload: str,
    modes: Sequence[Mode],
    time_s: Sequence[float],
    power_w: Sequence[float] | None = None,
    epoch: Sequence[int] | None = None,
    processes: int = PROCESSES,
) -> Observations:
    """Build observations from plain sequences, in the units of `Observations`.

    Without `power_w` no power was measured; without `epoch` no row is of the first epoch.
    """
    n = len(modes)
    return Observations(
        workload,
        as_rows(modes),
        np.array(time_s, float),
        np.full(n, np.nan) if power_w is None else np.array(power_w, float),
        np.ones(n, np.int64) if epoch is None else np.array(epoch, np.int64),
        processes,
    )
