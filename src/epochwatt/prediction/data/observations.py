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
        as_rows(self.modes)
        shapes = {len(self.modes), *map(np.size, (self.time_s, self.power_w, self.epoch))}
        if len(shapes) != 1:
            raise PredictionError(f"{self.workload}: columns of {sorted(shapes)} rows")
        for name, values in (("time_s", self.time_s), ("power_w", self.power_w)):
            wrong = ~(values > 0) & ~(np.isnan(values) & (name == "power_w"))
            if wrong.any():
                raise PredictionError(
                    f"{self.workload}: {name} of {values[wrong][0]:g} in "
                    f"{Mode(*self.modes[wrong][0])}",
                    allowed="numbers above zero",
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

    def rows(self, keep: NDArray[np.bool_]) -> "Observations":
        """Return some of the rows."""
        return replace(
            self,
            modes=self.modes[keep],
            time_s=self.time_s[keep],
            power_w=self.power_w[keep],
            epoch=self.epoch[keep],
        )

    def only(self, modes: Collection[Mode]) -> "Observations":
        """Return the rows of these modes."""
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
        time_s, energy_wh = (
            np.array([values[rows].mean() for rows in rows_of.values()])
            for values in (self.time_s, self.energy_wh)
        )
        return replace(
            self,
            modes=as_rows(list(rows_of)),
            time_s=time_s,
            power_w=3600 * energy_wh / time_s,
            epoch=np.ones(len(rows_of), np.int64),
        )

    def values(self, target: str) -> Numbers:
        """Return what was observed of a target, one of `names.TARGETS`, shape (n,)."""
        observed: Numbers = getattr(self, target)
        return observed

    def means_of(self, target: str, least: int = 2) -> "Observations":
        """Return one row per mode, for a fit of a target.

        Raises PredictionError: fewer than `least` distinct modes; for another target than time, no
        power in some row.
        """
        self.need_modes(least)
        if target != TIME:
            self.need_energy()
        return self.per_mode()

    def need_modes(self, least: int) -> None:
        """Refuse too few distinct modes. Raises PredictionError."""
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
        """Refuse rows without power. Raises PredictionError."""
        if not (self.no_power or np.isnan(self.power_w).any()):
            return
        missing = self.rows(np.isnan(self.power_w)).distinct()
        n_modes = f"no energy was measured in {len(missing)} of {len(self.distinct())} modes"
        raise PredictionError(
            self.no_power or f"{n_modes} (the first: {missing[0]})",
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
    """Return observations from plain sequences; without `epoch`, all count as later epochs."""
    n = len(modes)
    return Observations(
        workload,
        as_rows(modes),
        np.array(time_s, float),
        np.full(n, np.nan) if power_w is None else np.array(power_w, float),
        np.ones(n, np.int64) if epoch is None else np.array(epoch, np.int64),
        processes,
    )
