"""What the workflow itself costs: the real Snakefile and profile in temporary folders.

* `dry_run`: how long Snakemake thinks about a study of 5,000 epoch jobs before the first starts.
* `orchestration`: what a job costs beyond the epoch it measures, in real one-epoch jobs. All are of
  one run, so each starts when the one before has ended: from the end of one to the end of the next
  there is everything that a job costs, also what Snakemake does between the two.
* `papers`: both papers on simulated boards, the grids, all that is made of them, nothing to do.
* `command_line`: how long commands take to start, beside a bare Python.
"""

import json
import os
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
N_ROUNDS, N_STARTS = 3, 15
N_JOBS = 9  # of one epoch; the first follows no other and is left out
SWEEP = {"dataset_scale": 1, "num_workers": 0, "batch_size": 16}
SIMULATED = ("--config", "studies=simulated")
COMMANDS = ("epochwatt --help", "epochwatt plan --help", "epochwatt.twin --help")
COMMANDS += ("epochwatt.board.training --help",)


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
        if sweep is None:
            return
        study = {"title": "what the workflow itself costs", "backend": "host", "device": "host"}
        study |= {"epochs": epochs, "sweep": [{"model": "lenet", **sweep}]}
        names = ("config", "devices/host", "plotting")
        content = {name: read_yaml(path / f"config/{name}.yaml") for name in names}
        content["config"] |= SELECTED
        for medium in content["devices/host"]["storage"].values():
            medium["root"] = "data"  # of this folder, wherever the user's data sets lie
        for figure in content["plotting"]["figures"].values():
            figure.update(SELECTED)
        for name, rows in {**content, "studies": {STUDY: study}, "exclusions": []}.items():
            (path / f"config/{name}.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")

    def settings(self) -> Settings:
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
    found: dict[tuple[int, int], list[Finished]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2 if quick else N_ROUNDS + 1):
            for n, epochs in ((2, 3),) if quick else SHAPES:
                path = Path(folder) / f"{n}x{epochs}-{number}"
                path.mkdir()
                workplace = Workplace(path, {"seed": list(range(n))}, epochs)
                done = workplace.snakemake("-n", "--quiet", "rules")
                counted = re.search(r"^train_epoch\s+(\d+)$", done.output, re.M)
                if not counted or int(counted[1]) != n * epochs:
                    raise EpochwattError(f"not {n * epochs} epoch jobs: {done.output}")
                if number:  # the first fills caches
                    found.setdefault((n, epochs), []).append(done)
    rows = [
        Row(f"dry run of {n} runs of {epochs} epoch jobs", [d.wall_s for d in done], "s", 1,
            at_most(15.0))
        for (n, epochs), done in found.items()
    ]  # fmt: skip
    return Result(
        rows, {f"cpu_s_{n}x{e}": [d.cpu_s for d in done] for (n, e), done in found.items()}
    )


def orchestration(quick: bool = False) -> Result:
    """Train a run of one-epoch jobs; `quick` only shows that it works."""
    n_jobs = 2 if quick else N_JOBS
    jobs = []
    with tempfile.TemporaryDirectory() as name:
        workplace = Workplace(Path(name), SWEEP, n_jobs)
        (run,) = workplace.settings().table.runs.values()
        workplace.snakemake("--quiet", "all", "--", run.receipts[-1])
        # Snakemake marks the outputs just before it starts a job, and touches them at its end
        for path in (workplace.path / ".snakemake/metadata").rglob("*"):
            job = json.loads(path.read_text("utf-8")) if path.is_file() else {}
            if job.get("rule") == "train_epoch":
                jobs.append((job["starttime"], job["endtime"]))
        if len(jobs) != n_jobs:
            raise EpochwattError(f"Snakemake noted {len(jobs)} train_epoch jobs, not {n_jobs}")
        records = RunFolder(str(workplace.path / "measured"), run.id)
        metas = [records.read(epoch).meta for epoch in range(n_jobs)]
    found = pd.DataFrame(sorted(jobs), columns=["start_s", "end_s"])
    found[["e2e_s", "warmup_s"]] = [[meta["e2e_s"], meta["warmup_s"]] for meta in metas]
    # from the end of the job before to the start of this one; interpreter, imports, records
    between_s = (found.start_s - found.end_s.shift()).iloc[1:]
    inside_s = (found.end_s - found.start_s - found.e2e_s - found.warmup_s).iloc[1:]
    whole_s = (between_s + inside_s).tolist()
    rows = [
        Row("one LeNet epoch job beyond epoch and warm-up", whole_s, "s", 2, at_most(4.0)),
        Row("  of it between two jobs", between_s.tolist(), "s", 2),
        Row("  of it inside the job", inside_s.tolist(), "s", 2),
    ]
    return Result(rows, {"jobs": found.to_dict("records")})


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


def command_line(quick: bool = False) -> Result:
    """Start each command in turn, after a bare Python; `quick` only shows that it works."""
    commands = {name: ("-m", *name.split()) for name in COMMANDS}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        variables = {
            "PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{folder}",
            "PYTHONPYCACHEPREFIX": f"{folder}/bytes",
            "PYTHONDONTWRITEBYTECODE": "",  # empty: byte code is written
        }

        def start_ms(*words: str) -> float:
            return 1e3 * run_command([sys.executable, *words], ".", **variables).wall_s

        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(2 if quick else N_STARTS + 1):
            for name, words in commands.items():
                pair = start_ms("-c", "pass"), start_ms(*words)
                if number:  # the first writes byte code
                    times[name].append(pair)
    for name, pairs in times.items():
        budget = at_most(100.0) if not rows else None
        rows.append(Row(name, [ms for _, ms in pairs], "ms", 1, budget))
        rows.append(Row("  / bare Python", [ms / bare_ms for bare_ms, ms in pairs], "", 2))
    return Result(rows)
