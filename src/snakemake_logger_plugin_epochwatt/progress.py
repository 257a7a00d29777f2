"""Which jobs there are, which have finished, and what to say of them; nothing is printed here."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from epochwatt.study.place import MEASURED
from snakemake_logger_plugin_epochwatt import estimate, stages
from snakemake_logger_plugin_epochwatt.job_log import EpochUnderWay, ModesLog, TrainingLog
from snakemake_logger_plugin_epochwatt.stages import COLLECTING, MEASURING, MODES, SILENT, TRAINING

if TYPE_CHECKING:
    from snakemake_logger_plugin_epochwatt.outlook import Outlook, RunOutlook, SweepOutlook

_OVERDUE = (
    0.2  # ASSUME: of the seconds so far, what a job still needs that takes longer than expected
)
_EPOCH_END_S = 1.0  # ASSUME: record and checkpoint of an epoch, and the end of its job


@dataclass
class Job:
    """A job that was started."""

    id: int
    rule: str
    wildcards: Mapping[str, str]
    logs: list[Path]
    started_s: float
    prior_s: float
    training_log: TrainingLog | None = None
    modes_log: ModesLog | None = None
    epoch: EpochUnderWay | None = None  # as it was last looked at

    @property
    def label(self) -> str:
        """Rule and wildcards."""
        return self.rule + stages.wildcards_text(self.wildcards)


@dataclass
class _Stage:
    """Jobs that make the same."""

    total: int = 0
    done: int = 0
    failed: int = 0
    under_way: int = 0
    busy_s: float = 0.0
    since_s: float = 0.0

    def line(self, name: str) -> str:
        """Return "47 figures in 31 s"."""
        text = stages.counted_stage(self.done, name)
        if self.done < self.total:
            text = f"{self.done} of {stages.counted_stage(self.total, name)}"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{text} in {stages.duration(self.busy_s)}{failed}"


@dataclass
class Progress:
    """All jobs of a start.

    Parameters
    ----------
    cores : that jobs share
    """

    cores: int = 1
    start_s: float = field(default_factory=time.monotonic)
    left: Counter[str] = field(default_factory=Counter)  # rule -> jobs not started yet
    after: dict[str, frozenset[str]] = field(default_factory=dict)
    under_way: dict[int, Job] = field(default_factory=dict)
    failed: list[Job] = field(default_factory=list)
    runs: "Mapping[str, RunOutlook]" = field(default_factory=dict)
    sweeps: "Mapping[str, SweepOutlook]" = field(default_factory=dict)
    n_jobs: int = 0
    n_done: int = 0
    estimate_s: float | None = None  # at the start

    def __post_init__(self) -> None:
        self.times = estimate.JobTimes()
        self._stages: dict[str, _Stage] = {}
        self._parts: dict[tuple[str, int, int], float] = {}

    # -- what is going to run --

    def plan(self, jobs: Mapping[str, int]) -> None:
        """Take over how many jobs each rule has."""
        self.left = Counter({rule: n for rule, n in jobs.items() if rule != "total"})
        self.n_jobs = sum(self.left.values())
        for rule, n in self.left.items():
            if rule not in SILENT:
                self._stages.setdefault(stages.stage_of(rule), _Stage()).total += n

    def order(self, links: Iterable[Mapping[str, str]]) -> None:
        """Take over which rule comes after which, from Snakemake's graph of rules."""
        after: dict[str, set[str]] = {}
        for link in links:
            after.setdefault(link["targetrule"], set()).add(link["sourcerule"])
        self.after = {rule: frozenset(before) for rule, before in after.items()}

    def expect(self, outlook: "Outlook") -> None:
        """Take over the runs, and how fast the machine is."""
        self.times.slowness = outlook["slowness"]
        self.runs, self.sweeps = outlook["runs"], outlook["sweeps"]
        for entries in (self.runs, self.sweeps):
            for run, entry in entries.items():
                for (first, last), seconds in entry["parts"].items():
                    self._parts[run, first, last] = seconds

    @property
    def epochs(self) -> int:
        """All epochs of all runs that are measured here."""
        return sum(run["epochs"] for run in self.runs.values())

    def modes_kept(self) -> tuple[int, int]:
        """Return how many modes of sweeps are measured and kept by now, and how many there are."""
        modes = {path for sweep in self.sweeps.values() for path in sweep["modes"]}
        return sum(Path(path).is_dir() for path in modes), len(modes)

    def kept(self) -> int:
        """Return how many epochs are measured and kept by now."""
        return sum(
            Path(MEASURED, run, f"epoch-{k}").is_dir()
            for run, entry in self.runs.items()
            for k in range(entry["epochs"])
        )

    # -- what happens --

    def started(
        self, job_id: int, rule: str, wildcards: Mapping[str, str], logs: list[str]
    ) -> None:
        """Take over that a job was started."""
        now_s = time.monotonic()
        paths = [Path(log) for log in logs]
        job = Job(job_id, rule, dict(wildcards), paths, now_s, self._prior_s(rule, wildcards))
        if rule == TRAINING and paths:
            job.training_log = TrainingLog(paths[0], wildcards.get("run", ""))
        if rule == MODES and paths:
            job.modes_log = ModesLog(paths[0])
        if job_id not in self.under_way and self.left[rule] > 0:
            self.left[rule] -= 1
        self.under_way[job_id] = job
        self._parts.pop(_part(wildcards), None)
        if stage := self._stage_of(rule):
            stage.since_s = stage.since_s if stage.under_way else now_s
            stage.under_way += 1

    def finished(self, job_id: int) -> tuple[Job | None, list[str]]:
        """Take over that a job finished; return it and the lines that are due."""
        job = self.under_way.pop(job_id, None)
        if job is None:
            return None, []
        self.n_done += 1
        self.times.finished(self._kinds(job), job.prior_s, time.monotonic() - job.started_s)
        return job, self._ended(job, failed=False)

    def failure(self, job_id: int, stopped: bool = False) -> tuple[Job | None, list[str]]:
        """Take over that a job failed, or was stopped; return it and the lines that are due."""
        job = self.under_way.pop(job_id, None)
        if job is None or stopped:
            return job, []
        self.failed.append(job)
        return job, self._ended(job, failed=True)

    def _ended(self, job: Job, failed: bool) -> list[str]:
        if job.rule == COLLECTING and not failed:
            return self._run_lines(job.wildcards.get("run", ""))
        if (stage := self._stage_of(job.rule)) is None:
            return []
        stage.under_way -= 1
        if not stage.under_way:
            stage.busy_s += time.monotonic() - stage.since_s
        stage.failed += failed
        stage.done += not failed
        complete = stage.done + stage.failed == stage.total
        return [stage.line(stages.stage_of(job.rule))] if complete else []

    def _run_lines(self, run: str) -> list[str]:
        title = self.runs[run]["title"] if run in self.runs else run
        try:
            return [stages.run_line(title, Path("results/runs", run, "epochs.csv"))]
        except (OSError, KeyError, ValueError, ZeroDivisionError):
            return [f"{title}: collected"]

    def unfinished_stages(self) -> list[str]:
        """Return a line for each stage that has begun and is not complete."""
        return [
            stage.line(name)
            for name, stage in self._stages.items()
            if 0 < stage.done < stage.total - stage.failed
        ]

    def _stage_of(self, rule: str) -> _Stage | None:
        return None if rule in SILENT else self._stages.get(stages.stage_of(rule))

    # -- how long it takes --

    def _prior_s(self, rule: str, wildcards: Mapping[str, str]) -> float:
        prior_s = self._parts.get(_part(wildcards)) if rule in (TRAINING, MODES) else None
        return self.times.prior_s(rule) if prior_s is None else prior_s

    def _kinds(self, job: Job) -> tuple[str, ...]:
        run = job.wildcards.get("run", "")
        if job.rule == TRAINING and run in self.runs:
            return (TRAINING, self.runs[run]["model"], run)
        if job.rule == MODES:
            return (MODES, _part(job.wildcards)[0])
        return (job.rule,)

    def look(self) -> Job | None:
        """Look at the logs of jobs that measure; return one that is under way."""
        training = None
        for job in self.under_way.values():
            if job.modes_log is not None:
                training = job
            if job.training_log is not None:
                job.epoch = job.training_log.look()
                training = job
        return training

    def measuring(self) -> bool:
        """Say whether a job that measures is under way."""
        return any(job.rule in MEASURING for job in self.under_way.values())

    def left_s(self) -> float:
        """Return the seconds that all jobs still take."""
        training_s = [
            self.times.expected_s((TRAINING, self.runs[run]["model"], run), seconds)
            for (run, _, _), seconds in self._parts.items()
            if run in self.runs
        ]
        modes_s = [
            self.times.expected_s((MODES, run), seconds)
            for (run, _, _), seconds in self._parts.items()
            if run in self.sweeps
        ]
        rules = []
        for rule in {*self.left, *(job.rule for job in self.under_way.values())}:
            n = self.left[rule]
            measured_s = {TRAINING: training_s, MODES: modes_s}.get(rule)
            if measured_s:
                seconds = [sum(measured_s) / len(measured_s)] * n
            else:
                seconds = [self.times.expected_s((rule,), self.times.prior_s(rule))] * n
            running = [self._needs_s(job) for job in self.under_way.values() if job.rule == rule]
            rules.append(estimate.Left(rule, seconds, running, self.after.get(rule, frozenset())))
        return estimate.time_left_s(rules, self.cores)

    def _needs_s(self, job: Job) -> float:
        """Return the seconds that a job under way still takes."""
        expected_s = self.times.expected_s(self._kinds(job), job.prior_s)
        elapsed_s = time.monotonic() - job.started_s
        if job.modes_log is not None and (mode := job.modes_log.look()):
            _, first, end = _part(job.wildcards)
            done = max(1, mode.place - first)
            share_s = elapsed_s / done  # those of the job that were measured before count as fast
            return max(0.0, end + 1 - first - done) * share_s
        epoch, last = job.epoch, job.wildcards.get("last", "")
        if epoch is None or epoch.epoch is None or not last.isdigit():
            return max(expected_s - elapsed_s, _OVERDUE * max(expected_s, elapsed_s))
        later = max(0, int(last) - epoch.epoch) * (epoch.n / epoch.rate + _EPOCH_END_S)
        return epoch.left_s + _EPOCH_END_S + later

    def headline(self) -> str:
        """Return what is about to run and how long it may take; the estimate stays as it is."""
        self.estimate_s = self.left_s()
        words = [f"{self.n_jobs} jobs"]
        if n := self.left[TRAINING]:
            words.append(f"{n} of training")
        shown = [name for name in ("simulated runs", "figures") if name in self._stages]
        words += [stages.counted_stage(self._stages[name].total, name) for name in shown]
        cores = f"{self.cores} core{'s' if self.cores != 1 else ''}"
        return f"{', '.join(words)}: about {stages.duration(self.estimate_s)} on {cores}"

    def epoch_line(self, job: Job) -> str:
        """Return "LeNet-5, 2 workers: epoch 0 (1 of 3), mini-batch 408 of 899, 204/s, 31.2 W".

        Of a job of a sweep it is "orin-50: mode 23 of 50, mode-c4-...: 12.3 ms, 8.1 W".
        """
        if job.modes_log is not None:
            return self._mode_line(job, job.modes_log)
        run = job.wildcards.get("run", "")
        entry = self.runs.get(run)
        title = entry["title"] if entry else run
        epoch = job.epoch
        if epoch is None:
            first, last = job.wildcards.get("first", "?"), job.wildcards.get("last", "?")
            number = first if first == last else f"{first} to {last}"
            return f"{title}: epoch {number}"
        what = "warm-up"
        if epoch.epoch is not None:
            total = f" ({epoch.epoch + 1} of {entry['epochs']})" if entry else ""
            what = f"epoch {epoch.epoch}{total}"
        watts = "" if epoch.power_w is None else f", {epoch.power_w:.3g} W"
        return f"{title}: {what}, mini-batch {epoch.done} of {epoch.n}, {epoch.rate:.3g}/s{watts}"

    def _mode_line(self, job: Job, log: ModesLog) -> str:
        run, first, last = _part(job.wildcards)
        sweep = self.sweeps.get(run)
        title = sweep["title"] if sweep else run
        mode = log.look()
        if mode is None:
            return f"{title}: modes {first + 1} to {last + 1}"
        return f"{title}: mode {mode.place} of {mode.n}, {mode.words}"


def _part(wildcards: Mapping[str, str]) -> tuple[str, int, int]:
    """Return run, or sweep and list of modes, with first and last epoch or mode."""
    try:
        run = wildcards.get("run") or f"{wildcards['sweep']}/{wildcards['grid']}"
        return run, int(wildcards["first"]), int(wildcards["last"])
    except (KeyError, ValueError):
        return "", -1, -1
