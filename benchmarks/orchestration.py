"""What a job costs beyond the epoch it measures: real one-epoch jobs, one after the other.

All jobs are of one run, so each starts when the one before has ended: from the end of one to the
end of the next there is everything that a job costs, also what Snakemake does between the two.
"""

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.results import Result, Row, at_most
from benchmarks.workplace import Workplace
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.errors import EpochwattError

BUDGET = at_most(4.0)
N_JOBS = 9  # the first follows no other and is left out
SWEEP = {"dataset_scale": 1, "num_workers": 0, "batch_size": 16}


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


def costs(jobs: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return what each job but the first cost beyond its epoch and its warm-up, in seconds.

    Parameters
    ----------
    jobs : in the order in which they ran; `start_s` and `end_s` (Unix), `e2e_s`, `warmup_s`

    Returns
    -------
    list : `cost_s` = `between_s` (from the end of the job before to the start of this one) +
        `inside_s` (interpreter, imports, records)
    """
    found = []
    for before, job in itertools.pairwise(jobs):
        between_s = job["start_s"] - before["end_s"]
        inside_s = job["end_s"] - job["start_s"] - job["e2e_s"] - job["warmup_s"]
        found.append({"cost_s": between_s + inside_s, "between_s": between_s, "inside_s": inside_s})
    return found


def measure_jobs(folder: Path, n_jobs: int) -> list[dict[str, float]]:
    """Train a run of one-epoch jobs in an empty folder; return them as `costs` takes them."""
    workplace = Workplace(folder, SWEEP, n_jobs)
    (run,) = workplace.settings().table.runs.values()
    workplace.snakemake("--quiet", "all", "--", run.receipts[-1])
    times = snakemake_times(folder)
    if len(times) != n_jobs:
        raise EpochwattError(f"Snakemake noted {len(times)} train_epoch jobs, not {n_jobs}")
    records = RunFolder(str(folder / "measured"), run.id)
    jobs = []
    for epoch, log in enumerate(sorted(times, key=lambda log: times[log])):
        meta: dict[str, Any] = records.read(epoch).meta
        start_s, end_s = times[log]
        job = {"start_s": start_s, "end_s": end_s}
        jobs.append({**job, "e2e_s": meta["e2e_s"], "warmup_s": meta["warmup_s"]})
    return jobs


def run(quick: bool = False) -> Result:
    """Measure the cost of a one-epoch job; `quick` only shows that it works."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = measure_jobs(Path(folder), 2 if quick else N_JOBS)
    found = costs(jobs)
    rows = [
        Row("one LeNet epoch job beyond epoch and warm-up", _all(found, "cost_s"), "s", 2, BUDGET),
        Row("  of it between two jobs", _all(found, "between_s"), "s", 2),
        Row("  of it inside the job", _all(found, "inside_s"), "s", 2),
    ]
    return Result(rows, {"jobs": jobs})


def _all(found: list[dict[str, float]], key: str) -> list[float]:
    return [cost[key] for cost in found]
