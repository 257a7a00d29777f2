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
from epochwatt.prediction.data.mode_tables import name_of, observations_of, repeats_of
from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.recommend.recommend import REPEAT_SD
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
    """One mode as it was run; once, unless it stands for several runs of it."""

    mode: Mode
    time_s: float  # mean of one mini-batch, or of the work of a replayed table
    power_w: float  # mean during it; NaN: not measured
    took_s: float  # all of it: setting the mode, settling, warm-up, and `counted_s`
    counted_s: float  # mini-batches that count
    time_sd_s: float = 0.0  # standard error of that mean; 0: not known
    valid: bool = True  # whether its flags let it count
    flags: str = ""  # why it does not count; empty: it does
    notes: str = ""  # all that is known of it, which says why there is no power
    n: int = 1  # runs that it is the mean of

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

    It has `modes` (n, 6) and of each mode its `repeats`, rows of time in s and power in W, of which
    it counts `per_mode` mini-batches. It shows repeats one after the other and keeps the last
    `n_kept` back, to judge answers by (`unseen`). What a mode has no further repeat of is drawn
    about those that were shown, with the scatter of the other modes' repeats; `REPEAT_SD` where
    there are none.
    """

    def __init__(
        self,
        modes: Numbers,
        repeats: Sequence[Numbers],
        per_mode: int = 1,
        seed: int = 0,
        n_kept: int = 1,
    ) -> None:
        self.modes = modes
        self._per_mode, self._seed, self._n_kept = per_mode, seed, n_kept
        self._place = {Mode(*row): n for n, row in enumerate(modes.tolist())}
        random = np.random.default_rng(seed)
        self._repeats = [random.permutation(rows) if len(rows) > 1 else rows for rows in repeats]
        self.time_s = np.array([rows[:, 0].mean() for rows in repeats])
        self.power_w = np.array([rows.prod(1).sum() / rows[:, 0].sum() for rows in repeats])
        logs = [np.log(rows) for rows in repeats if len(rows) > 1]
        off = [np.sqrt(len(rows) / (len(rows) - 1)) * (rows - rows.mean(0)) for rows in logs]
        self._scatter = np.concatenate(off) if off else np.empty((0, 2))
        self.title = "a table"
        self._spent_s, self._shown = 0.0, dict[int, int]()

    def anew(self) -> "Played":
        """Return the same board, on which nothing was spent yet."""
        again = copy(self)
        again._spent_s, again._shown = 0.0, {}
        return again

    @property
    def table(self) -> Observations:
        """All modes, by the means of all their repeats."""
        modes = list(self._place)
        return observations_from_rows(self.title, modes, self.time_s, self.power_w)  # type: ignore[arg-type]

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
            number = self._shown.get(place, 0)
            time_s, power_w = self._repeat(place, number)
            took_s = AROUND_S + time_s * self._per_mode
            if self._spent_s + took_s > self.until_s:
                self._spent_s = self.until_s
                return
            self._spent_s += took_s
            self._shown[place] = number + 1
            yield Measured(mode, time_s, power_w, took_s, time_s * self._per_mode)

    def unseen(self, mode: Mode) -> tuple[Numbers, bool]:
        """Return repeats of a mode that were not shown, (k, 2), and whether they are in the table.

        Without any, one is drawn.
        """
        place = self._place[mode]
        shown = self._shown.get(place, 0)
        rest = self._repeats[place][min(shown, self.n_shown(place)) :]
        if len(rest):
            return rest, True
        return np.array([self._repeat(place, shown)]), False

    def n_shown(self, place: int) -> int:
        """Return how many repeats of the table are shown at most."""
        return max(len(self._repeats[place]) - self._n_kept, 1)

    def shown(self, place: int) -> Numbers:
        """Return the repeats that are shown, (k, 2)."""
        return self._repeats[place][: self.n_shown(place)]

    def _repeat(self, place: int, number: int) -> tuple[float, float]:
        n_shown, shown = self.n_shown(place), self.shown(place)
        if number < n_shown:
            time_s, power_w = shown[number].tolist()
            return time_s, power_w

        def off(which: int) -> Numbers:
            """Return how far a repeat is off, as a logarithm: the same at each call."""
            random = np.random.default_rng((self._seed, place, which))
            if not len(self._scatter):
                return REPEAT_SD * random.standard_normal(2)
            return np.asarray(self._scatter[random.integers(len(self._scatter))])

        centre = np.log(shown).mean(0) - off(0) / np.sqrt(n_shown)  # what was shown is off itself
        time_s, power_w = np.exp(centre + off(number)).tolist()
        return time_s, power_w

    def spent_s(self) -> float:
        """Return what a board would have taken so far, s."""
        return self._spent_s

    def expected_s(self, time_s: float | None, n_modes: int = 1) -> float:
        """Estimate the board time of measuring `n_modes` more, s.

        `time_s`: of one unit of work in them; None: not known, that of the median mode
        """
        work_s = float(np.median(self.time_s)) if time_s is None else time_s
        return JOB_S + n_modes * (AROUND_S + self._per_mode * work_s)


def replayed(table: ModeTable, seed: int = 0) -> Played:
    """Return a board that a table plays, whoever measured or simulated it.

    `seed`: of the order of its repeats. Raises PredictionError: it has no valid row, or knows a
    part of the mode of some rows only.
    """
    repeats = repeats_of(table)
    per_mode = PROCEDURE.minibatches if table.key.work == "mini-batch" else 1
    bench = Played(as_rows(list(repeats)), list(repeats.values()), per_mode, seed)
    bench.provenance, bench.kind = table.key.provenance, table.key.device
    bench.title, bench.work, bench.parts = name_of(table), table.key.work, table.varied()
    bench.processes = observations_of(table).processes
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
    repeats = np.stack([swept.time_s, swept.power_w], axis=1)[:, None]
    bench = Played(as_rows(rows), list(repeats), PROCEDURE.minibatches)
    bench.provenance, bench.kind = "simulated", sweep.board
    bench.processes = factors["num_workers"] + 1
    return bench
