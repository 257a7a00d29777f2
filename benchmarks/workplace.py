"""A temporary working folder in which the real workflow runs, beside everything of the checkout."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.results import REPOSITORY, children_cpu_s
from epochwatt.errors import EpochwattError
from epochwatt.study.settings import Settings, load_settings
from epochwatt.study.yaml_files import read_yaml

STUDY = "benchmark"
_SELECTED = {"studies": [STUDY]}  # in config.yaml, and in each figure of plotting.yaml


@dataclass(frozen=True)
class Finished:
    """A Snakemake process that has ended well."""

    wall_s: float
    cpu_s: float  # of the process and all its children
    output: str


class WorkingFolder:
    """A working folder with a copy of config/.

    Parameters
    ----------
    path : an empty folder
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(REPOSITORY / "config", path / "config")
        (path / "tmp").mkdir()

    def snakemake(self, *words: str) -> Finished:
        """Run the checkout's workflow here to its end; EpochwattError with its output if it fails.

        `TMPDIR` is the folder's own, so neither the machine's lock nor its history of measurements
        is touched.
        """
        command = [sys.executable, "-m", "snakemake"]
        command += ["--snakefile", str(REPOSITORY / "Snakefile")]
        command += ["--profile", str(REPOSITORY / "profiles/host")]
        command += ["--directory", str(self.path), *words]
        environment = {**os.environ, "TMPDIR": str(self.path / "tmp")}
        cpu_before_s, start_s = children_cpu_s(), time.perf_counter()
        done = subprocess.run(
            command,
            cwd=REPOSITORY,  # profiles/default is found from here
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        wall_s = time.perf_counter() - start_s
        if done.returncode:
            raise EpochwattError(f"{' '.join(command)} failed:\n{done.stdout}")
        return Finished(wall_s, children_cpu_s() - cpu_before_s, done.stdout)


class Workplace(WorkingFolder):
    """A working folder whose one study is the benchmark's.

    Parameters
    ----------
    path : an empty folder
    sweep : factors of the study, lists are swept
    epochs : of each run
    """

    def __init__(self, path: Path, sweep: dict[str, Any], epochs: int) -> None:
        super().__init__(path)
        study = {
            "title": "what the workflow itself costs",
            "backend": "host",
            "device": "host",
            "epochs": epochs,
            "sweep": [{"model": "lenet", **sweep}],
        }
        self._write("studies.yaml", {STUDY: study})
        self._write("exclusions.yaml", [])
        self._write("config.yaml", read_yaml(REPOSITORY / "config/config.yaml") | _SELECTED)
        device = read_yaml(REPOSITORY / "config/devices/host.yaml")
        for medium in device["storage"].values():
            medium["root"] = "data"  # of this folder, wherever the user's data sets lie
        self._write("devices/host.yaml", device)
        plotting = read_yaml(REPOSITORY / "config/plotting.yaml")
        for figure in plotting["figures"].values():
            figure.update(_SELECTED)
        self._write("plotting.yaml", plotting)

    def _write(self, name: str, content: Any) -> None:
        (self.path / "config" / name).write_text(yaml.safe_dump(content), encoding="utf-8")

    def settings(self) -> Settings:
        """Return the validated configuration."""
        return load_settings(root=self.path)
