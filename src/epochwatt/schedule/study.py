"""The study of schedules: solvers judged on all its problems, and plans that are played."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from epochwatt.prediction.evaluation.workers import workers
from epochwatt.published.tables import write_table
from epochwatt.schedule import curves, played
from epochwatt.schedule.config import required_schedule
from epochwatt.schedule.evaluation import COLUMNS, evaluate
from epochwatt.schedule.learned import learn, write_learned
from epochwatt.schedule.profiles import workload_of
from epochwatt.schedule.sampler import ONE_STREAM, TWO_STREAMS, Size, problems_of
from epochwatt.schedule.sets import Set, named_solvers, sets_of, tables_by_job, tables_of
from epochwatt.sweeps.mode_table import read_mode_tables


def write_learned_job(
    tables: Path, job: str, path: Path, root: Path = Path(), cache: Path | None = None
) -> None:
    """Let the solvers with networks profile one job of the study, and write what they know then.

    Parameters
    ----------
    tables : file of `simulated_tables.write_simulated_tables`
    job : one of `ScheduleStudy.jobs`
    path : .npz file
    cache : folder where the networks that PowerTrain transfers from are kept; None: nowhere

    Raises
    ------
    ConfigError : the tables lack a network of the study
    """
    study, by_job = required_schedule(root), tables_by_job(read_mode_tables(tables))
    others = [f"train-{name}" for name in study.train if job != f"train-{name}"]
    teacher = workload_of(tables_of(others[0], by_job)) if others else None
    workload = workload_of(tables_of(job, by_job))
    is_training = job.startswith("train-")
    write_learned(learn(workload, teacher, study.neural_draws, is_training, cache), path)


def write_scores(
    tables: Path,
    path: Path,
    learned: Mapping[str, str],
    processes: int = 1,
    root: Path = Path(),
    sizes: tuple[Size, Size] = (ONE_STREAM, TWO_STREAMS),
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Judge all solvers on all sets of jobs, and write scores.csv (`evaluation.COLUMNS`).

    Parameters
    ----------
    tables : file of `simulated_tables.write_simulated_tables`
    learned : job of the study -> file of `write_learned_job`; none: without these solvers
    processes : how many sets are judged at once
    sizes : of the grids of problems of one stream and of two
    say : called with a line for each set that is done

    Raises
    ------
    ConfigError : the tables lack a network of the study
    """
    sets = sets_of(required_schedule(root), tables, root)
    jobs = [(one, learned, sizes, root) for one in sets]
    rows: list[dict[str, Any]] = []
    with workers(min(processes, len(jobs))) as pool:
        for number, some in enumerate(pool.map(_judged, jobs), 1):
            rows += some
            say(f"{some[0]['n_problems']} problems ({number} of {len(jobs)} sets of jobs)")
    cells = ([row.get(name, "") for name in COLUMNS] for row in rows)
    write_table(path, "scores of schedules", COLUMNS, cells)


def _judged(job: tuple[Set, Mapping[str, str], tuple[Size, Size], Path]) -> list[dict[str, Any]]:
    one, learned, sizes, root = job
    space = one.space
    named, left_out = named_solvers(one, root, learned)
    problems = problems_of(space, sizes[len(space.infer) > 1], budgets_w=one.study.power_w)
    shared = one.shared | {"power_rule": problems.power_rule}
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
    tables : file of `simulated_tables.write_simulated_tables`
    paths : of the three tables, in this order
    records : folders of measurements of `epochwatt serve-and-train`
    say : called with a line for each set of jobs that is done

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
