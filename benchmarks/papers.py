"""Both papers on simulated boards: the grids, then all that is made of them, then nothing to do."""

import tempfile
from pathlib import Path

from benchmarks.results import Result, Row, at_most
from benchmarks.workplace import WorkingFolder

SIMULATED = ("--config", "studies=simulated")
GRIDS = ("--until", "simulate_run", "simulate_idle")
GRIDS_BUDGET, ALL_BUDGET, AGAIN_BUDGET = at_most(40.0), at_most(60.0), at_most(8.0)


def run(quick: bool = False) -> Result:
    """Make everything once in an empty working folder; `quick` only plans it."""
    with tempfile.TemporaryDirectory() as name:
        folder = WorkingFolder(Path(name))
        plan = ("--dry-run", "--quiet", "all") if quick else ("--quiet", "all")
        grids = folder.snakemake(*SIMULATED, *GRIDS, *plan)
        rest = folder.snakemake(*SIMULATED, *plan)
        again = folder.snakemake(*SIMULATED, *plan)
    whole_s = grids.wall_s + rest.wall_s
    return Result(
        [
            Row("both papers' grids simulated, from nothing", [grids.wall_s], "s", 1, GRIDS_BUDGET),
            Row("and all figures, tables and claims", [whole_s], "s", 1, ALL_BUDGET),
            Row("again with nothing changed", [again.wall_s], "s", 1, AGAIN_BUDGET),
        ],
        {"grids_cpu_s": grids.cpu_s, "rest_cpu_s": rest.cpu_s},
    )
