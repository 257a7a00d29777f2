"""A bench runs modes while a board is profiled: a real one, a simulated one, or a table."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epochwatt.board.training.procedure import DEFAULTS as PROCEDURE
from epochwatt.columns import MODE_PARTS
from epochwatt.prediction.data.mode_tables import name_of, observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.study.plan import JOB_S
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.sweeps.modes import mode_rows
from epochwatt.sweeps.plan import FOLLOW_S, SET_S
from epochwatt.sweeps.table import Sweep
from epochwatt.twin.network import COUNTS, network_of
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.sweep import simulate_sweep

# ASSUME: what a mode takes besides the mini-batches that count, until a board has shown it
AROUND_S = SET_S + PROCEDURE.idle_s + FOLLOW_S
BUSY = "machine_busy"  # the flag of modes that ran beside other programs


class Measured(NamedTuple):
    """One mode as it was run."""

    mode: Mode
    time_s: float  # mean of one mini-batch, or of the work of a replayed table
    power_w: float  # mean during it; NaN: not measured
    took_s: float  # all of it: setting the mode, settling, warm-up, and `counted_s`
    counted_s: float  # mini-batches that count
    time_sd_s: float = 0.0  # standard error of that mean; 0: not known
    valid: bool = True  # whether its flags let it count
    flags: str = ""  # why it does not count; empty: it does
    notes: str = ""  # all that is known of it, which says why there is no power

    @property
    def energy_j(self) -> float:
        """Energy of one mini-batch, J; NaN: not measured."""
        return self.time_s * self.power_w


class Bench(ABC):
    """Runs modes."""

    provenance: str  # of what comes out, as tables have it
    title: str  # network and board, for people
    work: str = "mini-batch"  # what `time_s` is the time of
    kind: str  # of board
    modes: Numbers  # all that may be run, shape (n, 6)
    # of the modes that are known; others are placeholders (`mode_tables.UNKNOWN`)
    parts: Collection[str] = MODE_PARTS
    processes: int  # how many want a CPU core
    # board time of the question at which a go is ended; the mode that runs then is lost
    until_s: float = math.inf

    @abstractmethod
    def earlier(self) -> list[Measured]:
        """Return the modes that were run before, for whatever question."""

    @abstractmethod
    def measure(self, modes: Sequence[Mode]) -> Iterator[Measured]:
        """Run modes in one go, until `until_s`; each comes when it is finished."""

    @abstractmethod
    def spent_s(self) -> float:
        """Return the board time that the question took so far, s, all around the modes included."""

    @abstractmethod
    def expected_s(self, time_s: float | None, n_modes: int = 1) -> float:
        """Return the board time of another go, s; `time_s`: expected of the work; None: unknown."""

    def observations(self, measured: Sequence[Measured]) -> Observations:
        """Return what methods learn from: a row for each valid mode."""
        valid = [run for run in measured if run.valid]
        columns = zip(*((run.mode, run.time_s, run.power_w) for run in valid), strict=True)
        modes, time_s, power_w = columns if valid else ((), (), ())
        return observations_from_rows(self.title, modes, time_s, power_w, processes=self.processes)


class Played(Bench):
    """A board that answers at once; the minutes are those that a real one would take.

    It has `modes` (n, 6), `time_s` and `power_w` (n,), and counts `per_mode` mini-batches of each.
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
            time_s, power_w = (
                float(values[self._place[mode]]) for values in (self._time_s, self._power_w)
            )
            took_s = AROUND_S + time_s * self._per_mode
            if self._spent_s + took_s > self.until_s:
                self._spent_s = self.until_s
                return
            self._spent_s += took_s
            yield Measured(mode, time_s, power_w, took_s, time_s * self._per_mode)

    def spent_s(self) -> float:
        """Return what a board would have taken so far, s."""
        return self._spent_s

    def expected_s(self, time_s: float | None, n_modes: int = 1) -> float:
        """Estimate the board time of measuring `n_modes` more, s.

        `time_s`: of one unit of work in them; None: not known, that of the median mode
        """
        work_s = float(np.median(self._time_s)) if time_s is None else time_s
        return JOB_S + n_modes * (AROUND_S + self._per_mode * work_s)


def replayed(table: ModeTable) -> Played:
    """Return a board that a table plays, whoever measured or simulated it.

    Raises PredictionError: it has no valid row, or knows a part of the mode of some rows only.
    """
    rows = observations_of(table)
    per_mode = PROCEDURE.minibatches if table.key.work == "mini-batch" else 1
    bench = Played(rows.modes, rows.time_s, rows.power_w, per_mode)
    bench.provenance, bench.kind = table.key.provenance, table.key.device
    bench.title, bench.work, bench.parts = name_of(table), table.key.work, table.parts
    bench.processes = rows.processes
    return bench


def simulated(sweep: Sweep, root: Path) -> Played:
    """Return a simulated board in all modes of a sweep.

    Raises EpochwattError: a board, network or arithmetic that is not simulated.
    """
    factors = sweep.run.factors
    counts = sorted((root / COUNTS).glob("*.json"))
    twin = load_twin_with_modes(map(str, counts), root)
    network = network_of(factors["model"], {}, twin, root, factors["task"])
    twin, rows = twin.knowing(network.work), mode_rows(sweep.modes)
    swept = simulate_sweep(rows, factors, twin, twin.parameters)
    bench = Played(as_rows(rows), swept.time_s, swept.power_w, PROCEDURE.minibatches)
    bench.provenance, bench.kind = "simulated", sweep.board
    bench.processes = factors["num_workers"] + 1
    return bench
