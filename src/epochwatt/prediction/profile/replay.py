"""Benches that run nothing: a table of modes plays the board, or the simulation does."""

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path

import numpy as np

from epochwatt.board.training.procedure import DEFAULTS as PROCEDURE
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import name_of, observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.profile.bench import AROUND_S, Bench, Measured
from epochwatt.study.plan import JOB_S
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.sweeps.modes import mode_rows
from epochwatt.sweeps.table import Sweep
from epochwatt.twin.network import WORKLOADS, network_of
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.sweep import simulate_sweep


class Played(Bench):
    """A board that answers at once; the minutes are those that a real one would take.

    Parameters
    ----------
    modes : (n, 6)
    time_s, power_w : (n,), in each mode
    """

    def __init__(
        self, modes: Numbers, time_s: Numbers, power_w: Numbers, per_mode: int = 1
    ) -> None:
        self.modes = modes
        self._time_s, self._power_w, self._per_mode = time_s, power_w, per_mode
        self._place = {Mode(*row): n for n, row in enumerate(modes.tolist())}
        self.title = "a table"
        self._spent_s = 0.0

    def anew(self) -> "Played":
        """Return the same board, on which nothing was spent yet."""
        again = copy(self)
        again._spent_s = 0.0
        return again

    @property
    def table(self) -> Observations:
        """All modes, as the board would be measured in them."""
        modes = list(self._place)
        return observations_from_rows(self.title, modes, self._time_s, self._power_w)  # type: ignore[arg-type]

    def place(self, mode: Mode) -> int:
        """Return the place of a mode among all."""
        return self._place[mode]

    def earlier(self) -> list[Measured]:
        """Return nothing: each question starts from a board that nobody has run."""
        return []

    def measure(self, modes: Sequence[Mode]) -> Iterator[Measured]:
        """Look modes up."""
        self._spent_s += JOB_S
        for mode in modes:
            place = self._place[mode]
            counted_s = float(self._time_s[place]) * self._per_mode
            if self._spent_s + AROUND_S + counted_s > self.until_s:
                self._spent_s = self.until_s
                return
            self._spent_s += AROUND_S + counted_s
            yield Measured(
                mode,
                float(self._time_s[place]),
                float(self._power_w[place]),
                AROUND_S + counted_s,
                counted_s,
            )

    def spent_s(self) -> float:
        """Return what a board would have taken so far, s."""
        return self._spent_s

    def expected_s(self, time_s: float | None, n_modes: int = 1) -> float:
        """Return what a board would take for another go, s: of the median mode if not known."""
        work_s = float(np.median(self._time_s)) if time_s is None else time_s
        return JOB_S + n_modes * (AROUND_S + self._per_mode * work_s)


class Replayed(Played):
    """A table of modes that somebody measured, or simulated, plays the board.

    Raises PredictionError: the table has no valid row, or knows a part of the mode of some rows
    only.
    """

    def __init__(self, table: ModeTable) -> None:
        rows = observations_of(table)
        per_mode = PROCEDURE.minibatches if table.key.work == "mini-batch" else 1
        super().__init__(rows.modes, rows.time_s, rows.power_w, per_mode)
        self.provenance, self.kind = table.key.provenance, table.key.device
        self.title, self.work, self.parts = name_of(table), table.key.work, table.parts
        self.processes = rows.processes


class Simulated(Played):
    """A simulated board in all of its modes.

    Raises EpochwattError: a board, network or arithmetic that is not simulated.
    """

    def __init__(self, sweep: Sweep, root: Path) -> None:
        factors = sweep.run.factors
        counts = sorted((root / WORKLOADS).glob("*.json"))
        twin = load_twin_with_modes(map(str, counts), root)
        network = network_of(factors["model"], {}, twin, root, factors["task"])
        twin = twin.knowing(network.work)
        rows = mode_rows(sweep.modes)
        swept = simulate_sweep(rows, factors, twin, twin.parameters)
        super().__init__(as_rows(rows), swept.time_s, swept.power_w, PROCEDURE.minibatches)
        self.provenance, self.kind = "simulated", sweep.board
        self.processes = factors["num_workers"] + 1


def table_to_replay(
    tables: Sequence[ModeTable], device: str | None, model: str | None, batch_size: int | None
) -> ModeTable:
    """Return the one table of a sweep that is of a device and a workload.

    Raises ConfigError: none is, or several are.

    Parameters
    ----------
    device, model, batch_size : None: left open
    """
    left = [
        table
        for table in tables
        if device in (None, table.key.device)
        and model in (None, table.key.workload)
        and batch_size in (None, table.key.batch_size)
    ]
    if len(left) == 1:
        return left[0]
    names = [
        f"--device {t.key.device} --model {t.key.workload!r}"
        + ("" if t.key.batch_size is None else f" --batch-size {t.key.batch_size}")
        for t in left or tables
    ]
    raise ConfigError(
        f"{len(left) or 'no'} workloads of the sweep are of this device and model",
        where="--replay",
        allowed=list(dict.fromkeys(names))[:10],
    )
