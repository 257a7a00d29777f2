"""Study `powertrain` as a checkout has it: what config/powertrain.yaml asks for, and its jobs."""

from pathlib import Path

from epochwatt.errors import ConfigError
from epochwatt.prediction.registry import references
from epochwatt.prediction.transfer.config import Job, PowertrainStudy
from epochwatt.prediction.transfer.names import (
    BASELINES,
    NO_REFERENCE,
    POWERTRAIN_ALL,
    WITHOUT_DRAWS,
)
from epochwatt.study.devices import read_rows
from epochwatt.study.runs import TWIN
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.table import SWEEPS, sweep_names

CONFIG = Path("config/powertrain.yaml")


def load_study(root: Path = Path()) -> PowertrainStudy | None:
    """Read the study of the checkout `root`; None where it has no config/powertrain.yaml.

    Raises ConfigError: a key or value that cannot be, an unknown method, or one that learns from
    profiled modes in a group without `n_profiled`.
    """
    path = root / CONFIG
    if not path.is_file():
        return None
    study = validated(PowertrainStudy, read_yaml(path), str(CONFIG))
    allowed = [*references(root), *BASELINES]
    for name, group in study.groups.items():
        where = f"{CONFIG}: groups.{name}"
        if unknown := [method for method in group.methods if method not in allowed]:
            raise ConfigError(f"unknown method {unknown[0]!r}", where=where, allowed=allowed)
        of_draws = [method for method in group.methods if method not in WITHOUT_DRAWS]
        if of_draws and not group.n_profiled:
            problem = f"{of_draws[0]} learns from profiled modes, and n_profiled is empty"
            raise ConfigError(problem, where=where)
    return study


def check_sweeps(study: PowertrainStudy | None, root: Path = Path()) -> None:
    """Raise ConfigError for a name that no sweep has, and for an example that is no workload."""
    if study is None:
        return
    tables = [*(root / "config/sweeps").glob("*.csv*"), *(root / "results/sweeps").glob("*.csv*")]
    allowed = {path.name.partition(".csv")[0] for path in tables} | set(sweep_names(root))
    for name, group in study.groups.items():
        if unknown := [n for n in (*group.workloads, *group.references) if n not in allowed]:
            raise ConfigError(
                f"no sweep {unknown[0]!r}",
                where=f"{CONFIG}: groups.{name}",
                allowed=sorted(allowed),
                do="add it to config/sweeps.yaml, or its table to config/sweeps/, "
                "or remove this file",
            )
    workloads = dict.fromkeys(w for group in study.groups.values() for w in group.workloads)
    if study.example.workload not in workloads:
        problem = f"example.workload is {study.example.workload!r}"
        raise ConfigError(problem, where=str(CONFIG), allowed=list(workloads))


def jobs_of(study: PowertrainStudy | None) -> list[Job]:
    """Return a job for each workload and reference of each group; none of a workload on itself."""
    return [
        Job(name, reference, workload)
        for name, group in (study.groups if study else {}).items()
        for reference in group.references or [NO_REFERENCE]
        for workload in group.workloads
        if workload != reference
    ]


def networks_of(study: PowertrainStudy, job: Job) -> list[Job]:
    """Return the first job that leaves the networks of a job's reference in the cache, or none.

    That is one that trains `powertrain_all` on the reference, without a reference of its own.
    """
    for other in jobs_of(study):
        trains_all = POWERTRAIN_ALL in study.groups[other.group].methods
        is_reference = other.workload == job.reference != NO_REFERENCE
        if is_reference and trains_all and other.reference == NO_REFERENCE:
            return [other]
    return []


def simulated_sweeps(study: PowertrainStudy | None, root: Path = Path()) -> list[str]:
    """Return the names of the study's sweeps that are simulated, in the order of its jobs."""
    if study is None:
        return []
    path = root / SWEEPS
    entries = read_rows(SweepEntry, path) if path.is_file() else {}
    wanted = dict.fromkeys(name for job in jobs_of(study) for name in (job.workload, job.reference))
    return [name for name in wanted if name in entries and entries[name].backend == TWIN]


def table_of(name: str) -> str:
    """Return the path of a sweep's table: one that others measured, or one of results/sweeps/."""
    public = Path(f"config/sweeps/{name}.csv.gz")
    return str(public) if public.is_file() else f"results/sweeps/{name}.csv"
