"""The study of schedules: solvers judged on all its problems, and plans that are played."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.prediction.evaluation.workers import workers
from epochwatt.schedule import curves, played
from epochwatt.schedule.config import required_schedule
from epochwatt.schedule.evaluation import COLUMNS, evaluate
from epochwatt.schedule.learned import learn, write_learned
from epochwatt.schedule.problem import PowerRule
from epochwatt.schedule.profiles import workload_of
from epochwatt.schedule.sampler import MEAN_POWER, ONE_STREAM, TWO_STREAMS, Size, problems_of
from epochwatt.schedule.sets import Set, named_solvers, sets_of, tables_by_job, tables_of
from epochwatt.sweeps.mode_table import read_mode_tables
from epochwatt.tables import write_table


def write_learned_job(
    tables: Path, job: str, path: Path, root: Path = Path(), cache: Path | None = None
) -> None:
    """Let the solvers with networks profile one job of the study, and write what they know then.

    Parameters
    ----------
    job : one of `ScheduleStudy.jobs`
    cache : folder where the networks that PowerTrain transfers from are kept; None: nowhere

    Raises ConfigError: the tables lack a network of the study.
    """
    study, by_job = required_schedule(root), tables_by_job(read_mode_tables(tables))
    others = [f"train-{name}" for name in study.train if job != f"train-{name}"]
    teacher = workload_of(tables_of(others[0], by_job)) if others else None
    workload = workload_of(tables_of(job, by_job))
    is_training = job.startswith("train-")
    write_learned(learn(workload, teacher, study.neural_draws, is_training, cache), path)


SIZES: dict[PowerRule, Size] = {"highest": ONE_STREAM, "mean": MEAN_POWER}


class Judging(NamedTuple):
    """What one process is asked to do.

    Attributes
    ----------
    one : jobs, whose solvers are judged
    learned, root : as of `write_scores`
    size : of the grid of problems
    power_rule : of the problems
    """

    one: Set
    learned: Mapping[str, str]
    root: Path
    size: Size
    power_rule: PowerRule = "highest"


def write_scores(
    tables: Path,
    paths: Mapping[PowerRule, Path],
    learned: Mapping[str, str],
    processes: int = 1,
    root: Path = Path(),
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Judge all solvers on all sets of jobs, and write their scores (`evaluation.COLUMNS`).

    Under the mean power those of jobs that share a board are judged: of one job it is the highest.

    Parameters
    ----------
    paths : rule of the problems -> table to write
    learned : job of the study -> file of `write_learned_job`; none: without these solvers
    processes : how many sets are judged at once

    Raises ConfigError: the tables lack a network of the study.
    """
    sets = sets_of(required_schedule(root), tables, root)
    jobs = [
        Judging(one, learned, root, TWO_STREAMS if len(one.infer) == 2 else SIZES[rule], rule)
        for rule in paths
        for one in sets
        if rule == "highest" or len(one.part.names) == 2
    ]
    rows: dict[PowerRule, list[dict[str, Any]]] = {rule: [] for rule in paths}
    with workers(min(processes, len(jobs))) as pool:
        for number, (job, some) in enumerate(zip(jobs, pool.map(_judged, jobs), strict=True), 1):
            rows[job.power_rule] += some
            say(f"{some[0]['n_problems']} problems ({number} of {len(jobs)} sets of jobs)")
    for rule, path in paths.items():
        cells = ([row.get(name, "") for name in COLUMNS] for row in rows[rule])
        write_table(path, f"scores of schedules, {rule} power", COLUMNS, cells)


def _judged(job: Judging) -> list[dict[str, Any]]:
    one, space = job.one, job.one.space
    named, left_out = named_solvers(one, job.root, job.learned)
    problems = problems_of(space, job.size, job.power_rule, one.study.power_w)
    shared = one.shared | {"power_rule": job.power_rule}
    return [shared | row for row in (*evaluate(space, problems, named, one.study.draws), *left_out)]


def write_played(
    tables: Path,
    paths: Iterable[str],
    records: Iterable[str] = (),
    processes: int = 1,
    root: Path = Path(),
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Write arrivals.csv, power.csv and latencies.csv.

    Parameters
    ----------
    paths : of the three tables, in this order
    records : folders of measurements of `epochwatt serve-and-train`

    Raises
    ------
    ConfigError : the tables lack a network of the study
    RecordError : a record cannot be read
    """
    jobs = [(one, root) for one in sets_of(required_schedule(root), tables, root) if one.infer]
    every: list[list[dict[str, Any]]] = [[], [], []]
    with workers(min(processes, len(jobs)) or 1) as pool:
        for number, made in enumerate(pool.map(_played, jobs), 1):
            for rows, some in zip(every, made, strict=True):
                rows += some
            say(f"{number} of {len(jobs)} sets of jobs played")
    every[2] += [row for folder in records for row in curves.measured_rows(folder)]
    names = (played.COLUMNS, curves.POWER_COLUMNS, curves.LATENCY_COLUMNS)
    for path, columns, rows in zip(paths, names, every, strict=True):
        cells = ([row.get(name, "") for name in columns] for row in rows)
        write_table(Path(path), "schedules that were played", columns, cells)


def _played(job: tuple[Set, Path]) -> list[list[dict[str, Any]]]:
    one, root = job
    has_both = one.part.jobs == "train_and_infer"
    made = [
        played.arrival_rows(one),
        curves.power_rows(one, named_solvers(one, root)[0]) if has_both else (),
        curves.latency_rows(one) if has_both else (),
    ]
    return [[one.shared | row for row in rows] for rows in made]
