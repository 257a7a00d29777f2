"""A bench runs modes while a board is profiled: a real one, a simulated one, or a table."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from epochwatt.board.training.procedure import DEFAULTS as PROCEDURE
from epochwatt.columns import MODE_PARTS
from epochwatt.prediction.data.modes import Mode, Numbers
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.sweeps.plan import FOLLOW_S, SET_S

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
        """Return the board time of another go, s.

        Parameters
        ----------
        time_s : expected of the work in such a mode; None: nothing is known yet
        """

    def observations(self, measured: Sequence[Measured]) -> Observations:
        """Return what methods learn from: a row for each valid mode."""
        valid = [one for one in measured if one.valid]
        return observations_from_rows(
            self.title,
            [one.mode for one in valid],
            [one.time_s for one in valid],
            [one.power_w for one in valid],
            processes=self.processes,
        )
