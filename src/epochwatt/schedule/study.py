"""The study of schedules: solvers judged on all its problems."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.evaluation.workers import workers
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import preset_places
from epochwatt.published.tables import write_table
from epochwatt.schedule.config import ScheduleStudy, required_schedule
from epochwatt.schedule.evaluation import COLUMNS, evaluate, learned_solvers, solvers
from epochwatt.schedule.learned import learn, read_learned, write_learned
from epochwatt.schedule.profiles import Workload, workload_of
from epochwatt.schedule.sampler import ONE_STREAM, TWO_STREAMS, Size, problems_of
from epochwatt.schedule.space import Places, Space
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables


class Part(NamedTuple):
    """One set of jobs that is judged.

    Attributes
    ----------
    jobs : kind, as of `Problem.jobs`
    train : the network that trains; empty: none
    infer : the networks that serve
    """

    jobs: str
    train: str = ""
    infer: tuple[str, ...] = ()


def parts_of(study: ScheduleStudy) -> list[Part]:
    """Return the sets of jobs of a study: training, serving, both, two streams."""
    return [
        *(Part("train", model) for model in study.train),
        *(Part("infer", "", (model,)) for model in study.infer),
        *(Part("train_and_infer", train, (infer,)) for train, infer in study.together),
        *(Part("two_infer", "", tuple(pair)) for pair in study.streams),
    ]


def write_learned_job(tables: Path, job: str, path: Path, root: Path = Path()) -> None:
    """Let the solvers with networks profile one job of the study, and write what they know then.

    Parameters
    ----------
    tables : file of `simulated_tables.write_simulated_tables`
    job : one of `ScheduleStudy.jobs`
    path : .npz file

    Raises
    ------
    ConfigError : the tables lack a network of the study
    """
    study, by_name = required_schedule(root), _by_name(tables)
    task, _, model = job.partition("-")
    teacher = next((name for name in study.train if job != f"train-{name}"), None)
    write_learned(
        learn(
            workload_of(_table(by_name, model, task)),
            None if teacher is None else workload_of(_table(by_name, teacher, "train")),
            study.neural_draws,
            task == "train",
        ),
        path,
    )


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
    study = required_schedule(root)
    by_name, parts = _by_name(tables), parts_of(study)
    jobs = [(part, *_tables_of(part, by_name), learned, study, sizes, root) for part in parts]
    rows: list[dict[str, Any]] = []
    with workers(min(processes, len(jobs))) as pool:
        for number, some in enumerate(pool.map(_judged, jobs), 1):
            rows += some
            say(f"{some[0]['n_problems']} problems ({number} of {len(parts)} sets of jobs)")
    cells = ([row.get(name, "") for name in COLUMNS] for row in rows)
    write_table(path, "scores of schedules", COLUMNS, cells)


def _by_name(tables: Path) -> dict[tuple[str, str], list[ModeTable]]:
    by_name: dict[tuple[str, str], list[ModeTable]] = defaultdict(list)
    for table in read_mode_tables(tables):
        by_name[table.key.workload, table.key.task].append(table)
    return by_name


def _tables_of(
    part: Part, by_name: Mapping[tuple[str, str], list[ModeTable]]
) -> tuple[list[ModeTable], list[list[ModeTable]]]:
    train = _table(by_name, part.train, "train") if part.train else []
    return train, [_table(by_name, model, "infer") for model in part.infer]


def _table(
    by_name: Mapping[tuple[str, str], list[ModeTable]], model: str, task: str
) -> list[ModeTable]:
    if (model, task) not in by_name:
        raise ConfigError(f"no table of {model} ({task})", allowed=sorted(by_name))
    return by_name[model, task]


def _judged(job: tuple[Any, ...]) -> list[dict[str, Any]]:
    part, train, infer, learned, study, sizes, root = job
    space = Space(workload_of(train) if train else None, tuple(map(workload_of, infer)))
    first = (train or infer[0])[0]
    presets = _presets(first, space.workloads[0])
    methods = {name: load_method(name, root) for name in study.methods}
    named = solvers(methods, presets, study.n_profiled)
    if learned:
        names = [f"train-{part.train}"] * bool(part.train) + [f"infer-{m}" for m in part.infer]
        pairs = zip(names, space.workloads, strict=True)
        named |= learned_solvers([read_learned(Path(learned[name]), one) for name, one in pairs])
    problems = problems_of(space, sizes[len(infer) > 1])
    shared = {
        "provenance": first.key.provenance,
        "device": first.key.device,
        "jobs": part.jobs,
        "train": part.train,
        "infer": " and ".join(part.infer),
        "power_rule": problems.power_rule,
    }
    return [shared | row for row in evaluate(space, problems, named, study.draws)]


def _presets(table: ModeTable, workload: Workload) -> Places:
    """Return the places of the board's preset modes among a workload's modes."""
    rows = observations_of(table)
    places = {tuple(mode): i for i, mode in enumerate(workload.modes.tolist())}
    presets = preset_places(rows, table.key.device).values()
    return np.array([places[tuple(rows.modes[place].tolist())] for place in presets], np.intp)
