"""Run the study of schedules: solvers judged on all its problems, and plans that are played."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from epochwatt.prediction.evaluation.workers import workers
from epochwatt.schedule.config import required_schedule
from epochwatt.schedule.evaluation import (
    Score,
    Set,
    evaluate,
    learn,
    named_solvers,
    sets_of,
    tables_by_job,
    tables_of,
    write_learned,
)
from epochwatt.schedule.played import (
    ArrivalRow,
    LatencyRow,
    PowerRow,
    arrival_rows,
    latency_rows,
    measured_rows,
    power_rows,
)
from epochwatt.schedule.problem import PowerRule
from epochwatt.schedule.profiles import workload_of
from epochwatt.schedule.sampler import MEAN_POWER, ONE_STREAM, TWO_STREAMS, Size, problems_of
from epochwatt.sweeps.mode_table import read_mode_tables
from epochwatt.tables import write_entries

SIZES: dict[PowerRule, Size] = {"highest": ONE_STREAM, "mean": MEAN_POWER}
AS_THEY_ARE = ""  # format of numbers: all digits


def write_learned_job(
    tables: Path, job: str, path: Path, root: Path = Path(), cache: Path | None = None
) -> None:
    """Let the solvers with networks profile one job of the study, and write what they know then.

    Parameters
    ----------
    job : one of `ScheduleStudy.jobs`
    path : .npz file
    cache : folder where the networks that PowerTrain transfers from are kept; None: nowhere

    Raises ConfigError: the tables lack a network of the study.
    """
    study, by_job = required_schedule(root), tables_by_job(read_mode_tables(tables))
    others = [f"train-{name}" for name in study.train if job != f"train-{name}"]
    teacher = workload_of(tables_of(others[0], by_job)) if others else None
    workload = workload_of(tables_of(job, by_job))
    is_training = job.startswith("train-")
    write_learned(learn(workload, teacher, study.neural_draws, is_training, cache), path)


class Judging(NamedTuple):
    """Task of one process: the arguments of `write_scores`, for one set of jobs."""

    jobs: Set
    learned: Mapping[str, str]
    root: Path
    size: Size
    power_rule: PowerRule


def write_scores(
    tables: Path,
    paths: Mapping[PowerRule, Path],
    learned: Mapping[str, str],
    processes: int = 1,
    root: Path = Path(),
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Judge all solvers on all sets of jobs, and write their scores (`evaluation.Score`).

    Under the mean power those of jobs that share a board are judged: of one job it is the highest.

    Parameters
    ----------
    paths : rule of the problems -> table to write
    learned : job of the study -> file of `write_learned_job`; none: without these solvers
    processes : how many sets are judged at once

    Raises ConfigError: the tables lack a network of the study.
    """
    sets = sets_of(required_schedule(root), tables, root)
    judgings = [
        Judging(jobs, learned, root, TWO_STREAMS if len(jobs.infer) == 2 else SIZES[rule], rule)
        for rule in paths
        for jobs in sets
        if rule == "highest" or len(jobs.part.names) == 2
    ]
    scores: dict[PowerRule, list[Score]] = {rule: [] for rule in paths}
    with workers(min(processes, len(judgings))) as pool:
        judged = zip(judgings, pool.map(_judged, judgings), strict=True)
        for number, (judging, rows) in enumerate(judged, 1):
            scores[judging.power_rule] += rows
            say(f"{rows[0].n_problems} problems ({number} of {len(judgings)} sets of jobs)")
    for rule, path in paths.items():
        content = f"scores of schedules, {rule} power"
        write_entries(path, content, Score, scores[rule], AS_THEY_ARE)


def _judged(judging: Judging) -> list[Score]:
    jobs, space = judging.jobs, judging.jobs.space
    named, left_out = named_solvers(jobs, judging.root, judging.learned)
    problems = problems_of(space, judging.size, judging.power_rule, jobs.study.power_w)
    rows = [*evaluate(space, problems, named, jobs.study.draws), *left_out]
    return [replace(row, power_rule=judging.power_rule, **jobs.shared) for row in rows]


def write_played(
    tables: Path,
    paths: Sequence[str],
    records: Sequence[str] = (),
    processes: int = 1,
    root: Path = Path(),
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Write arrivals.csv, power.csv and latencies.csv.

    Raises ConfigError: the tables lack a network of the study; RecordError: a record cannot be
    read.

    Parameters
    ----------
    paths : of the three tables, in this order
    records : folders of measurements of `epochwatt serve-and-train`
    """
    jobs = [(jobs, root) for jobs in sets_of(required_schedule(root), tables, root) if jobs.infer]
    arrivals, powers, latencies = list[ArrivalRow](), list[PowerRow](), list[LatencyRow]()
    with workers(min(processes, len(jobs)) or 1) as pool:
        for number, made in enumerate(pool.map(_played, jobs), 1):
            arrivals += made[0]
            powers += made[1]
            latencies += made[2]
            say(f"{number} of {len(jobs)} sets of jobs played")
    for folder in records:
        latencies += measured_rows(folder)
    content = "schedules that were played"
    write_entries(Path(paths[0]), content, ArrivalRow, arrivals, AS_THEY_ARE)
    write_entries(Path(paths[1]), content, PowerRow, powers, AS_THEY_ARE)
    write_entries(Path(paths[2]), content, LatencyRow, latencies, AS_THEY_ARE)


def _played(job: tuple[Set, Path]) -> tuple[list[ArrivalRow], list[PowerRow], list[LatencyRow]]:
    jobs, root = job
    shared = jobs.shared
    arrivals = [replace(row, **shared) for row in arrival_rows(jobs)]
    if jobs.part.jobs != "train_and_infer":
        return arrivals, [], []
    powers = power_rows(jobs, named_solvers(jobs, root)[0])
    latencies = latency_rows(jobs)
    return (
        arrivals,
        [replace(row, **shared) for row in powers],
        [replace(row, **shared) for row in latencies],
    )
