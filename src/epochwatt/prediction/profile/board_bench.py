"""The machine at hand as a bench: the workflow measures modes of a sweep that grows.

Each go adds modes to a file of sweeps (`config: sweeps`) and starts the workflow for them, so data
sets, locks, interpreters of boards, records and what puts a board back are those of any sweep.
Another repeat of a mode is the same sweep with the next seed. The
workflow runs in a session of its own: Ctrl-C is passed on to it once, and it dies with us.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import yaml

from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records import files
from epochwatt.board.records.mode_folder import SweepFolder, mode_name
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.telemetry.process import die_with_parent
from epochwatt.columns import CLOCKS, FACTOR_DEFAULTS, INVALIDATES, Factors
from epochwatt.errors import DamagedError, EpochwattError
from epochwatt.prediction.data.mode_tables import UNKNOWN
from epochwatt.prediction.data.modes import Mode, as_rows
from epochwatt.prediction.profile.bench import AROUND_S, BUSY, Bench, Measured
from epochwatt.study.place import MEASURED
from epochwatt.study.plan import JOB_S
from epochwatt.study.settings import load_settings
from epochwatt.study.validation import validated
from epochwatt.sweeps.collect_sweep import mode_row, recorded_modes
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables
from epochwatt.sweeps.modes import SweepFacts, SweepMode
from epochwatt.sweeps.plan import ModeTime, guessed_mode_time
from epochwatt.sweeps.table import PROVENANCE, Sweep, load_sweep
from epochwatt.text import counted

FOLDER = Path("results/profile")
POLL_S = 0.2
END_S = 60.0  # that the workflow has to end its job after Ctrl-C
LOG_LINES = 12  # of a failed go that are shown


@dataclass
class Round:
    """One go: modes that one start of the workflow ran."""

    modes: list[Factors]  # `SweepMode.settings` of each
    repeat: int = 0  # which one of each of them
    wall_s: float | None = None  # None: it was killed
    rest_s: float | None = None  # of that not in a mode; None: it ended before its last mode
    is_open: bool = False


class Board(Bench):
    """The machine at hand.

    `entry`: of which it is: `SweepEntry` as plain values
    """

    def __init__(
        self,
        sweep: Sweep,
        entry: Factors,
        config: Factors,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._say = say
        settings = load_settings(config)
        factors = sweep.run.factors
        self._sweep, self._entry, self._effects = sweep, entry, settings.flag_effects
        self.modes = as_rows([_as_mode(mode) for mode in sweep.modes])
        self.parts = [name for name in CLOCKS if any(getattr(mode, name) for mode in sweep.modes)]
        self._settings = {_as_mode(mode): mode.settings() for mode in sweep.modes}
        self.provenance, self.kind = PROVENANCE[factors["backend"]], sweep.board or "host"
        self.processes = factors["num_workers"] + 1
        self._folder = FOLDER / sweep.name
        self._file, self._workflow_log = self._folder / "sweep.yaml", self._folder / "workflow.log"
        self._repeats = [sweep]  # the sweep of each repeat, as far as they were asked for
        self._guess: ModeTime = guessed_mode_time(sweep, settings)
        self._rounds = self._read_rounds()
        self._began_s: float | None = None
        self._around_s: list[float] = []  # of the modes, by this process

    # -- what was run --------------------------------------------------------------------------

    def earlier(self) -> list[Measured]:
        """Return all modes of this workload in `measured/`, whichever question ran them.

        A job that outlived its workflow, after `kill -9`, is waited for: its modes count, too.
        Modes that ran beside other programs are moved to `.trash`, so that they can run again.
        """

        def on_wait(holder: str) -> None:
            self._say(f"another measurement runs on this machine ({holder}); waiting for it to end")

        with machine_lock().acquire({"waits for": self._sweep.name}, on_wait=on_wait):
            pass
        measured, number = [], 0
        while there := recorded_modes(self._records(number)):
            modes = [_as_mode(SweepMode(**mode)) for mode in there]  # type: ignore[arg-type]
            whole = [
                mode for mode in modes if mode in self._settings and self._is_whole(mode, number)
            ]
            runs = {mode: self._read(mode, number) for mode in whole}
            disturbed = [mode for mode, run in runs.items() if BUSY in run.flags.split()]
            for mode in disturbed:
                self._records(number).discard(self._settings[mode])
            if disturbed:
                self._say(
                    f"{counted(len(disturbed), 'modes')} that ran beside other programs may run "
                    f"again (their records: {MEASURED}/.trash)"
                )
            measured += [run for mode, run in runs.items() if mode not in disturbed]
            number += 1
        return measured

    def spent_s(self) -> float:
        """Return the wall time of all goes, s; of one that was killed that of its modes."""
        spent_s = 0.0 if self._began_s is None else time.monotonic() - self._began_s
        for go in self._rounds:
            if go.wall_s is not None:
                spent_s += go.wall_s
            elif not go.is_open:
                modes = [_as_mode(SweepMode(**settings)) for settings in go.modes]
                whole = [mode for mode in modes if self._is_whole(mode, go.repeat)]
                spent_s += JOB_S + sum(self._read(mode, go.repeat).took_s for mode in whole)
        return spent_s

    def expected_s(self, time_s: float | None, n_modes: int = 1) -> float:
        """Return the wall time of another go, s: as the goes so far, or a guess before them."""
        n_minibatches = self._sweep.run.factors["minibatches"]
        training_s = self._guess.training_s if time_s is None else n_minibatches * time_s
        around_s = fmean(self._around_s or [self._guess.around_s])
        rests_s = [go.rest_s for go in self._rounds if go.wall_s is not None and go.rest_s]
        return fmean(rests_s or [2 * JOB_S]) + n_modes * (around_s + training_s)

    # -- running -------------------------------------------------------------------------------

    def measure(self, modes: Sequence[Mode]) -> Iterator[Measured]:
        """Start the workflow for these modes; each comes when its record is there.

        Raises EpochwattError: the workflow failed; what was finished stays.
        """
        chosen = {mode_name(self._settings[mode]): self._settings[mode] for mode in modes}
        repeat = 0
        while any(self._records(repeat).has(settings) for settings in chosen.values()):
            repeat += 1
        records = self._records(repeat)
        go = Round([dict(settings) for settings in chosen.values()], repeat, is_open=True)
        self._rounds.append(go)
        self._write_files()
        self._began_s = time.monotonic()
        took_s, left = 0.0, list(modes)
        try:
            with self._workflow() as process:
                while left:
                    has_ended = process.poll() is not None
                    for mode in [mode for mode in left if records.has(self._settings[mode])]:
                        left.remove(mode)
                        run = self._read(mode, repeat)
                        took_s += run.took_s
                        self._around_s.append(run.took_s - run.counted_s)
                        yield run
                    if left and has_ended:
                        raise self._failure()
                    if self.spent_s() >= self.until_s:
                        return
                    time.sleep(POLL_S)
                process.wait()
        finally:
            go.wall_s, go.is_open = time.monotonic() - self._began_s, False
            if not left:
                go.rest_s = go.wall_s - took_s
            self._began_s = None
            self._write_files()

    @contextmanager
    def _workflow(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the workflow for the modes of the last go; end it with the block."""
        sweep = self._sweep_of(self._rounds[-1])
        profile = "profiles/jetson" if sweep.board else "profiles/host"
        command = [sys.executable, "-m", "snakemake", "--profile", profile]
        command += ["--config", f"sweeps={self._file}", "--", *sweep.receipts]
        with open(self._workflow_log, "wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        try:
            yield process
        finally:
            if process.poll() is None:  # as Ctrl-C does, which puts the board back
                os.killpg(process.pid, signal.SIGINT)
                try:
                    process.wait(END_S)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def _sweep_of(self, go: Round) -> Sweep:
        """Return the sweep of the modes of a go, one job for all of them."""
        chosen = tuple(SweepMode(**mode) for mode in go.modes)
        return replace(self._repeat(go.repeat), modes=chosen, chunk=max(len(self.modes), 1))

    def _repeat(self, number: int) -> Sweep:
        """Return the sweep of a repeat of all modes."""
        while len(self._repeats) <= number:
            entry = validated(SweepEntry, self._entry_of(len(self._repeats)), "epochwatt profile")
            name = f"{self._sweep.name}-{len(self._repeats) + 1}"
            self._repeats.append(load_sweep(name, entry)[0])
        return self._repeats[number]

    def _entry_of(self, repeat: int) -> Factors:
        workload = self._entry["workload"]
        seed = workload.get("seed", FACTOR_DEFAULTS["seed"]) + repeat
        return {**self._entry, "workload": {**workload, "seed": seed}} if repeat else self._entry

    def _records(self, repeat: int) -> SweepFolder:
        return SweepFolder(MEASURED, self._repeat(repeat).id)

    def _failure(self) -> EpochwattError:
        """Return what went wrong, in the words of the job or of the workflow."""
        lines = self._workflow_log.read_text("utf-8", "replace").splitlines()
        words = [line for line in lines if line.startswith(("error: ", "reboot needed: "))]
        return EpochwattError(
            "the workflow could not measure these modes; what was finished is kept",
            where=str(self._workflow_log),
            found="\n    ".join(words[-1:] or lines[-LOG_LINES:]) or "nothing was said",
            do="see to it, then give the same command again: it goes on from there",
        )

    # -- files ---------------------------------------------------------------------------------

    def _read_rounds(self) -> list[Round]:
        path = self._folder / "rounds.json"
        rounds = json.loads(path.read_text("utf-8")) if path.is_file() else []
        return [replace(Round(**go), is_open=False) for go in rounds]

    def _write_files(self) -> None:
        go = self._rounds[-1]
        sweep = self._sweep_of(go)
        grid = {"chunk": sweep.chunk, "grid": {"modes": sweep.settings}}
        with files.writing("what is profiled", str(self._folder)):
            self._folder.mkdir(parents=True, exist_ok=True)
            files.write_json(str(self._folder / "rounds.json"), [asdict(go) for go in self._rounds])
            entry = {**self._entry_of(go.repeat), **grid}
            text = yaml.safe_dump({sweep.name: entry}, sort_keys=False)
            files.write_bytes(str(self._file), text.encode(), durable=False)

    def write_table(self) -> str:
        """Write the table of the modes that were run for this question; return its path."""
        runs = {
            (go.repeat, _as_mode(SweepMode(**settings))): None
            for go in self._rounds
            for settings in go.modes
        }
        rows = [
            self._row(mode, repeat)[1]
            for repeat, mode in runs
            if self._records(repeat).has(self._settings[mode])
        ]
        write_mode_tables(Path(self._sweep.table), tables_of(rows))
        return self._sweep.table

    # -- records -------------------------------------------------------------------------------

    def _is_whole(self, mode: Mode, repeat: int) -> bool:
        """Return whether a mode is measured; the workflow measures a damaged one again."""
        try:
            self._records(repeat).verify(self._settings[mode])
        except DamagedError:
            return False
        return True

    def _row(self, mode: Mode, repeat: int) -> tuple[EpochRecord, SweepRow]:
        record = self._records(repeat).read(self._settings[mode])
        row = mode_row(record, SweepFacts(**self._sweep.facts), self._effects)
        return record, replace(row, repeat=repeat)

    def _read(self, mode: Mode, repeat: int) -> Measured:
        """Return what the record of a mode says, as the search takes it."""
        record, row = self._row(mode, repeat)
        counted_s = float(record.meta["e2e_s"])
        n = row.n_minibatches or 1
        return Measured(
            mode,
            row.time_s,
            math.nan if row.power_w is None else row.power_w,
            float(record.meta.get("took_s", counted_s + AROUND_S)),
            counted_s,
            0.0 if row.time_sd_s is None else row.time_sd_s / math.sqrt(n),
            row.valid,
            " ".join(f for f in row.flags.split() if self._effects.get(f) == INVALIDATES),
            row.flags,
        )


def _as_mode(mode: SweepMode) -> Mode:
    """Return a mode as methods take it: what is left as it is is a constant."""
    parts = (u if part is None else part for part, u in zip(mode, UNKNOWN, strict=False))
    return Mode(*(float(part) for part in parts))  # type: ignore[arg-type]
