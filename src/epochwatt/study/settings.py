"""All of config/ at once, as the Snakefile and the command line use it."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochwatt import fields
from epochwatt.device.locks import HolderLock
from epochwatt.errors import ConfigError, LockedError
from epochwatt.records import files
from epochwatt.study.config import Flag, Plotting, WorkloadRow, read_yaml, validated
from epochwatt.study.expand import STARTER, STUDIES, WORKLOADS, Devices, load_table, read_rows
from epochwatt.study.imported import IMPORTED
from epochwatt.study.runs import Run, RunTable

CONFIG = "config/config.yaml"
FLAGS = "config/flags.yaml"
PLOTTING = "config/plotting.yaml"
PANELS = {"fig02": ("fig02a", "fig02b")}  # figure -> the panels that its rule draws


@dataclass(frozen=True)
class Settings:
    """The validated configuration and the run table that comes of it."""

    table: RunTable
    plotting: Plotting
    flag_effects: dict[str, str]  # flag -> invalidates, voids_energy or informs
    workloads: dict[str, WorkloadRow]
    devices: Devices

    @property
    def model_titles(self) -> dict[str, str]:
        """Model -> its name for people."""
        return {name: row.title for name, row in self.workloads.items()}

    def figure_runs(self, figure: str, backend: str) -> list[Run]:
        """Return the runs that a figure draws, in order."""
        return [run for run in self.table.of_backend(backend) if self._draws(figure, run)]

    def _draws(self, figure: str, run: Run) -> bool:
        return bool(set(run.studies) & set(self.plotting.figures[figure].studies))

    def excluded(self, figure: str = "", backend: str = "") -> list[dict[str, Any]]:
        """Return factors, `run` and `reason` of the excluded rows (of a figure, of a backend)."""
        return [
            {**run.factors, "run": run.id, "reason": reason}
            for run, reason in self.table.excluded
            if (not figure or self._draws(figure, run)) and backend in ("", run.factors["backend"])
        ]

    def panels(self, figure: str) -> dict[str, dict[str, Any]]:
        """Return the settings of a figure's panels."""
        return {k: v.model_dump() for k, v in self.plotting.figures[figure].panels.items()}


def load_settings(config: dict[str, Any] | None = None, root: Path = Path()) -> Settings:
    """Read and check all of config/.

    Parameters
    ----------
    config : what config/config.yaml holds, when somebody has read it already
    root : the checkout

    Raises
    ------
    ConfigError : two lines that name file, key, value and what is allowed
    """
    if config is None:
        config = read_yaml(root / CONFIG)
    settings = Settings(
        table=load_table(config, root),
        plotting=validated(Plotting, read_yaml(root / PLOTTING), PLOTTING),
        flag_effects=_flag_effects(root),
        workloads=read_rows(WorkloadRow, root / WORKLOADS),
        devices=Devices(root),
    )
    _check_figures(settings.plotting, root)
    return settings


def _flag_effects(root: Path) -> dict[str, str]:
    rows = read_rows(Flag, root / FLAGS)
    for flag in rows.keys() ^ fields.FLAGS.keys():
        problem = "is missing" if flag in fields.FLAGS else "is not a flag"
        raise ConfigError(f"{FLAGS}: {flag!r} {problem}\n  allowed: {', '.join(fields.FLAGS)}")
    return {flag: rows[flag].effect for flag in fields.FLAGS}


def _check_figures(plotting: Plotting, root: Path) -> None:
    _check_keys("figures", plotting.figures, PANELS)
    for name, figure in plotting.figures.items():
        _check_keys(f"figures.{name}.panels", figure.panels, PANELS[name])
    known = read_yaml(root / STUDIES)
    for name, figure in plotting.figures.items():
        for study in figure.studies:
            if study not in (*known, STARTER, IMPORTED):
                raise ConfigError(
                    f"{PLOTTING}: figures.{name}.studies names {study!r}\n"
                    f"  {STUDIES} has: {', '.join(known)}"
                )


def _check_keys(where: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a key that is not wanted and ask for one that is not there."""
    found, wanted = list(found), list(wanted)
    for key in [*(k for k in found if k not in wanted), *(k for k in wanted if k not in found)]:
        problem = "is missing" if key in wanted else "is not one of them"
        raise ConfigError(f"{PLOTTING}: {where}.{key} {problem}\n  allowed: {', '.join(wanted)}")


ALLOW_ROOT = "EPOCHWATT_ALLOW_ROOT"  # environment variable; for containers and CI


def refuse_root(table: RunTable) -> None:
    """Refuse to run as root where a board's runs are asked for; ConfigError says why and how."""
    backends = {run.factors["backend"] for run in table.runs.values() if run.here}
    boards = backends & {"jetson", "fake"}
    if os.geteuid() == 0 and boards and not os.environ.get(ALLOW_ROOT):
        raise ConfigError(
            "the workflow does not run as root on a board: a job could change anything on it, and "
            "its files would be root's\n  run it as an ordinary user; `make setup-jetson` lets it "
            f"set power modes through one small helper. In a container or CI: {ALLOW_ROOT}=1"
        )


def working_folder_lock() -> HolderLock:
    """Take the lock of this working folder; LockedError names who holds it.

    The lock lies beside the measurements, where `make clean` does not reach. It is held until the
    process ends, however it ends.
    """
    with files.writing("measurements", "measured"):
        os.makedirs("measured", exist_ok=True)
    lock = HolderLock("measured/.workflow.lock")
    try:
        return lock.acquire({"workflow in": os.getcwd()})
    except LockedError as error:
        raise LockedError(
            f"another workflow runs in this folder: {error}. Wait for it, or end it"
        ) from None
