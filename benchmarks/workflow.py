"""What the workflow itself costs: the real Snakefile and profile in temporary folders.

* `dry_run`: how long Snakemake thinks about a study of 5,000 epoch jobs before the first starts.
* `orchestration`: what a job costs beyond the epoch it measures, in real one-epoch jobs. All are of
  one run, so each starts when the one before has ended: from the end of one to the end of the next
  there is everything that a job costs, also what Snakemake does between the two.
* `papers`: both papers on simulated boards, the grids, all that is made of them, nothing to do.
"""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from benchmarks.results import REPOSITORY, Finished, Result, Row, at_most, run_command
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.errors import EpochwattError
from epochwatt.study.settings import Settings, load_settings
from epochwatt.study.yaml_files import read_yaml

STUDY = "benchmark"
SELECTED = {"studies": [STUDY]}  # in config.yaml, and in each figure of plotting.yaml
SHAPES = ((833, 6), (5000, 1))  # of dry runs: runs, epochs of each; a job per epoch
N_ROUNDS = 3
N_JOBS = 9  # of one epoch; the first follows no other and is left out
SWEEP = {"dataset_scale": 1, "num_workers": 0, "batch_size": 16}
SIMULATED = ("--config", "studies=simulated")


class Workplace:
    """A working folder with a copy of config/, in which the checkout's workflow runs.

    Parameters
    ----------
    path : an empty folder
    sweep : factors of a study that takes the place of all others, lists are swept; None: all stay
    epochs : of each of its runs
    """

    def __init__(self, path: Path, sweep: dict[str, Any] | None = None, epochs: int = 1) -> None:
        self.path = path
        shutil.copytree(REPOSITORY / "config", path / "config")
        (path / "tmp").mkdir()
        if sweep is not None:
            self._select(sweep, epochs)

    def _select(self, sweep: dict[str, Any], epochs: int) -> None:
        study = {
            "title": "what the workflow itself costs",
            "backend": "host",
            "device": "host",
            "epochs": epochs,
            "sweep": [{"model": "lenet", **sweep}],
        }
        config = REPOSITORY / "config"
        device, plotting = (
            read_yaml(config / "devices/host.yaml"),
            read_yaml(config / "plotting.yaml"),
        )
        for medium in device["storage"].values():
            medium["root"] = "data"  # of this folder, wherever the user's data sets lie
        for figure in plotting["figures"].values():
            figure.update(SELECTED)
        for name, content in {
            "studies": {STUDY: study},
            "exclusions": [],
            "config": read_yaml(config / "config.yaml") | SELECTED,
            "devices/host": device,
            "plotting": plotting,
        }.items():
            path = self.path / f"config/{name}.yaml"
            path.write_text(yaml.safe_dump(content), encoding="utf-8")

    def settings(self) -> Settings:
        """Return the validated configuration."""
        return load_settings(root=self.path)

    def snakemake(self, *words: str) -> Finished:
        """Run the workflow here to its end; EpochwattError with its output if it fails.

        `TMPDIR` is the folder's own, so neither the machine's lock nor its history of measurements
        is touched.
        """
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "Snakefile")]
        command += ["--profile", str(REPOSITORY / "profiles/host"), "--directory", str(self.path)]
        # from the checkout, where profiles/default is found
        return run_command([*command, *words], REPOSITORY, TMPDIR=str(self.path / "tmp"))


def dry_run(quick: bool = False) -> Result:
    """Measure dry runs of both shapes in turn; `quick` only shows that it works."""
    shapes = ((2, 3),) if quick else SHAPES
    words = ("-n", "--quiet", "rules")
    with tempfile.TemporaryDirectory() as folder:
        workplaces = {}
        for n_runs, epochs in shapes:
            path = Path(folder) / f"{n_runs}x{epochs}"
            path.mkdir()
            workplaces[n_runs, epochs] = Workplace(path, {"seed": list(range(n_runs))}, epochs)
            output = workplaces[n_runs, epochs].snakemake(*words).output  # untimed; fills caches
            counted = re.search(r"^train_epoch\s+(\d+)$", output, re.M)
            if not counted or int(counted[1]) != n_runs * epochs:
                found = counted[1] if counted else "no"
                raise EpochwattError(f"the dry run has {found} epoch jobs, not {n_runs * epochs}")
        rounds = range(1 if quick else N_ROUNDS)
        done = [(s, w.snakemake(*words)) for _ in rounds for s, w in workplaces.items()]
    found = {shape: [each for of, each in done if of == shape] for shape in shapes}
    rows = [
        Row(
            f"dry run of {n} runs of {epochs} epoch jobs",
            [each.wall_s for each in found[n, epochs]],
            "s",
            1,
            at_most(15.0),
        )
        for n, epochs in shapes
    ]
    return Result(rows, {f"cpu_s_{n}x{e}": [d.cpu_s for d in found[n, e]] for n, e in shapes})


def snakemake_times(working_folder: Path) -> dict[str, tuple[float, float]]:
    """Return start and end (s, Unix) of each train_epoch job by its log, as Snakemake noted them.

    It marks the outputs just before it starts the job, and touches them once the job has ended.
    """
    times = {}
    for path in (working_folder / ".snakemake/metadata").rglob("*"):
        job = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        if job.get("rule") == "train_epoch":
            times[job["log"][0]] = (job["starttime"], job["endtime"])
    return times


def job_costs(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return what each job but the first cost beyond its epoch and its warm-up, in seconds.

    Parameters
    ----------
    jobs : in the order in which they ran; `start_s` and `end_s` (Unix), `e2e_s`, `warmup_s`

    Returns
    -------
    frame : `cost_s` = `between_s` (from the end of the job before to the start of this one) +
        `inside_s` (interpreter, imports, records)
    """
    between_s = jobs.start_s - jobs.end_s.shift()
    inside_s = jobs.end_s - jobs.start_s - jobs.e2e_s - jobs.warmup_s
    costs = {"cost_s": between_s + inside_s, "between_s": between_s, "inside_s": inside_s}
    return pd.DataFrame(costs).iloc[1:]


def orchestration(quick: bool = False) -> Result:
    """Train a run of one-epoch jobs; `quick` only shows that it works."""
    n_jobs = 2 if quick else N_JOBS
    with tempfile.TemporaryDirectory() as name:
        workplace = Workplace(Path(name), SWEEP, n_jobs)
        (run,) = workplace.settings().table.runs.values()
        workplace.snakemake("--quiet", "all", "--", run.receipts[-1])
        times = sorted(snakemake_times(workplace.path).values())
        if len(times) != n_jobs:
            raise EpochwattError(f"Snakemake noted {len(times)} train_epoch jobs, not {n_jobs}")
        records = RunFolder(str(workplace.path / "measured"), run.id)
        metas = [records.read(epoch).meta for epoch in range(n_jobs)]
    jobs = pd.DataFrame(times, columns=["start_s", "end_s"])
    jobs[["e2e_s", "warmup_s"]] = [[meta["e2e_s"], meta["warmup_s"]] for meta in metas]
    costs = job_costs(jobs)
    words = {
        "cost_s": "one LeNet epoch job beyond epoch and warm-up",
        "between_s": "  of it between two jobs",
        "inside_s": "  of it inside the job",
    }
    budgets = {"cost_s": at_most(4.0)}
    rows = [Row(what, costs[n].tolist(), "s", 2, budgets.get(n)) for n, what in words.items()]
    return Result(rows, {"jobs": jobs.to_dict("records")})


def papers(quick: bool = False) -> Result:
    """Make both papers once in an empty working folder; `quick` only plans it."""
    plan = ("--dry-run", "--quiet", "all") if quick else ("--quiet", "all")
    with tempfile.TemporaryDirectory() as name:
        folder = Workplace(Path(name))
        grids = folder.snakemake(*SIMULATED, "--until", "simulate_run", "simulate_idle", *plan)
        rest = folder.snakemake(*SIMULATED, *plan)
        again = folder.snakemake(*SIMULATED, *plan)
    whole_s = grids.wall_s + rest.wall_s
    rows = [
        Row("both papers' grids simulated, from nothing", [grids.wall_s], "s", 1, at_most(40.0)),
        Row("and all figures, tables and claims", [whole_s], "s", 1, at_most(60.0)),
        Row("again with nothing changed", [again.wall_s], "s", 1, at_most(8.0)),
    ]
    return Result(rows, {"grids_cpu_s": grids.cpu_s, "rest_cpu_s": rest.cpu_s})
