"""How long Snakemake thinks about a study of 5,000 epoch jobs before the first one starts."""

import re
import tempfile
from pathlib import Path

from benchmarks.results import Result, Row, at_most
from benchmarks.workplace import Workplace
from epochwatt.errors import EpochwattError

BUDGET = at_most(15.0)
SHAPES = ((833, 6), (5000, 1))  # runs, epochs of each: a job per epoch
N_ROUNDS = 3


def count_jobs(workplace: Workplace) -> int:
    """Return the number of epoch jobs that a dry run would start."""
    output = workplace.snakemake("-n", "--quiet", "rules").output
    counted = re.search(r"^train_epoch\s+(\d+)$", output, re.M)
    return int(counted[1]) if counted else 0


def run(quick: bool = False) -> Result:
    """Measure dry runs of both shapes in turn; `quick` only shows that it works."""
    shapes = ((2, 3),) if quick else SHAPES
    walls: dict[tuple[int, int], list[float]] = {shape: [] for shape in shapes}
    cpus: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        workplaces = {}
        for n_runs, epochs in shapes:
            path = Path(folder) / f"{n_runs}x{epochs}"
            path.mkdir()
            workplaces[n_runs, epochs] = Workplace(path, {"seed": list(range(n_runs))}, epochs)
            n_jobs = count_jobs(workplaces[n_runs, epochs])  # untimed; fills the caches too
            if n_jobs != n_runs * epochs:
                raise EpochwattError(f"the dry run has {n_jobs} epoch jobs, not {n_runs * epochs}")
        for _ in range(1 if quick else N_ROUNDS):
            for shape, workplace in workplaces.items():
                finished = workplace.snakemake("-n", "--quiet", "rules")
                walls[shape].append(finished.wall_s)
                cpus.setdefault(f"cpu_s_{shape[0]}x{shape[1]}", []).append(finished.cpu_s)
    rows = [
        Row(f"dry run of {n} runs of {epochs} epoch jobs", walls[n, epochs], "s", 1, BUDGET)
        for n, epochs in shapes
    ]
    return Result(rows, {**cpus})
