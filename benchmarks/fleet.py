"""What a job costs on the Slurm at hand beyond its work: jobs that only leave the time.

Four ways to start them: `srun`; `sbatch`; Snakemake with its Slurm plugin and a submission for each
job; the same with one for each chain of ten, as for the epochs of a run. It needs idle nodes, and
head and nodes with one clock (`epochwatt fleet-check`). The first two start 1,000 jobs, Snakemake
EPOCHWATT_FLEET_JOBS.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.results import REPOSITORY, Result, Row, at_most, children_cpu_s, run_command
from epochwatt.doctor.fleet import IDLE, Node, nodes_and_partitions, on_node
from epochwatt.errors import EpochwattError
from epochwatt.study.plan import duration

N_JOBS = int(os.environ.get("EPOCHWATT_FLEET_JOBS", "60"))  # 1,000 take an hour on two cores
N_CHAINED = int(os.environ.get("EPOCHWATT_FLEET_CHAINED", N_JOBS))
N_PLAIN = 1000  # by srun and by sbatch
CHAIN = 10  # jobs of a chain
EACH, CHAINS = "a submission each", "chains"  # ways of Snakemake
N_STARTS = 20  # on an idle node, one after the other
SNAKEFILE = REPOSITORY / "benchmarks/fleet.smk"
PROFILE = REPOSITORY / "profiles/slurm"
BUDGET = at_most(1.2)  # of a start by Snakemake, in starts by srun
PATIENCE_S = 600.0  # for all jobs of one way
# stands for sbatch, and notes when it was called and when its job began
_SHIM = """#!/bin/bash
called=$(date +%s.%N) begin="date +%s.%N >{folder}/begun-\\$SLURM_JOB_ID"
for word; do
  [[ $word == --wrap=* ]] && word="--wrap=$begin; ${{word#--wrap=}}"
  words+=("$word")
done
id=$({program} "${{words[@]}}") || exit
echo $called >"{folder}/called-${{id%%;*}}"
echo "$id"
"""


class Cluster:
    """The idle nodes of the Slurm at hand, and an empty folder that they see."""

    def __init__(self, folder: Path) -> None:
        nodes, _ = nodes_and_partitions()
        self.folder = folder
        self.nodes = [node for node in nodes if node.state == IDLE and node.features]
        if not self.nodes:
            raise EpochwattError("no node with a feature is idle", do="look at `sinfo -N -l`")
        shim = folder / "bin/sbatch"
        shim.parent.mkdir()
        shim.write_text(_SHIM.format(program=shutil.which("sbatch"), folder=folder))
        shim.chmod(0o755)
        self.path = f"{folder}/bin{os.pathsep}{os.environ['PATH']}"

    def run(self, words: list[str]) -> str:
        """Run a command to its end and return what it prints; EpochwattError if it fails."""
        return run_command(words, self.folder, PATH=self.path).output

    def srun(self, number: int, *words: str) -> str:
        return self.run([*on_node(self.nodes[number]), *words])

    def sbatch(self, number: int, name: str) -> None:
        """Submit a job that leaves the time in a file `done/{name}`."""
        node = self.nodes[number % len(self.nodes)]
        words = ["sbatch", "--parsable", "--exclusive", "--output=/dev/null"]
        words += [f"--partition={node.partition}", f"--constraint={constraint(node)}"]
        self.run([*words, f"--wrap=date +%s.%N >done/{name}"])

    def snakemake(self, n_jobs: int, length: int, *words: str) -> None:
        """Run chains of jobs through the plugin, with the settings of our profile."""
        config = [f"chains={n_jobs // length}", f"length={length}"]
        boards = " ".join(map(constraint, self.nodes))
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
        command += ["--profile", str(PROFILE), "--directory", str(self.folder), *words]
        self.run([*command, "--config", *config, f"boards={boards}"])

    def times(self, pattern: str) -> dict[str, float]:
        """Return the times left in files, by the end of their names, Unix s."""
        texts = {p.name: p.read_text("ascii").strip() for p in sorted(self.folder.glob(pattern))}
        prefix = pattern.rpartition("/")[2].removesuffix("*")
        return {name.removeprefix(prefix): float(text) for name, text in texts.items() if text}

    def starts_ms(self) -> list[float]:
        """Return the times from the call of sbatch to the first command of its job."""
        begun = self.times("begun-*")
        return [1e3 * (begun[job] - called) for job, called in self.times("called-*").items()]

    def gaps_s(self) -> list[float]:
        """Return how long a board waits between two jobs of a chain."""
        times = pd.Series(self.times("done/*"))  # by chain and place: `3-0`
        times.index = pd.MultiIndex.from_tuples(tuple(map(int, n.split("-"))) for n in times.index)
        return times.sort_index().groupby(level=0).diff().dropna().tolist()

    def wait(self, n_jobs: int) -> None:
        """Wait until so many jobs have left the time. Raises EpochwattError."""
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.times("done/*")) < n_jobs:
            if time.monotonic() > deadline_s:
                raise EpochwattError(f"not all of {n_jobs} jobs ended within {PATIENCE_S:g} s")
            time.sleep(0.05)

    def each(self, n_jobs: int, start_all: Callable[[], object]) -> tuple[float, float]:
        """Forget all jobs, run so many; return wall time and the head's CPU time of one, s."""
        shutil.rmtree(self.folder / "done", ignore_errors=True)
        (self.folder / "done").mkdir()
        for path in [*self.folder.glob("called-*"), *self.folder.glob("begun-*")]:
            path.unlink()
        shutil.rmtree(self.folder / ".snakemake", ignore_errors=True)
        cpu_s, start_s = children_cpu_s(), time.perf_counter()
        start_all()
        return (time.perf_counter() - start_s) / n_jobs, (children_cpu_s() - cpu_s) / n_jobs


def constraint(node: Node) -> str:
    """Return the features of a node as a job asks for all of them."""
    return "&".join(sorted(node.features))


def run(quick: bool = False) -> Result:
    """Start jobs in each way; `quick` only shows that it works."""
    n_plain, n_jobs, n_chained, n_starts = N_PLAIN, N_JOBS, N_CHAINED // CHAIN * CHAIN, N_STARTS
    if quick:
        n_plain, n_jobs, n_chained, n_starts = 2 * CHAIN, 2 * CHAIN, 2 * CHAIN, 2
    (REPOSITORY / "results").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fleet-", dir=REPOSITORY / "results") as folder:
        cluster = Cluster(Path(folder))
        n_nodes, srun_ms = len(cluster.nodes), []
        for _ in range(n_starts):
            called_s = time.time()
            begun_s = float(cluster.srun(0, "date", "+%s.%N").split()[0])
            srun_ms.append(1e3 * (begun_s - called_s))

        def one_after_the_other() -> None:
            for n in range(n_starts):
                cluster.sbatch(0, str(n))
                cluster.wait(n + 1)
                time.sleep(1.0)  # until the node is idle again

        def by_srun(number: int) -> None:
            for _ in range(number, n_plain, n_nodes):
                cluster.srun(number, "true")

        def by_sbatch() -> None:
            for n in range(n_plain):
                cluster.sbatch(n, str(n))
            cluster.wait(n_plain)

        cluster.each(n_starts, one_after_the_other)
        sbatch_ms = cluster.starts_ms()
        with ThreadPoolExecutor(n_nodes) as pool:
            srun = cluster.each(n_plain, lambda: list(pool.map(by_srun, range(n_nodes))))
        sbatch = cluster.each(n_plain, by_sbatch)
        single = cluster.each(n_jobs, lambda: cluster.snakemake(n_jobs, 1))
        cluster.each(3 * n_nodes, lambda: cluster.snakemake(3 * n_nodes, 3))
        waits_s, ours_ms = cluster.gaps_s(), cluster.starts_ms()
        groups = ("--groups", "step=chain")
        grouped = cluster.each(n_chained, lambda: cluster.snakemake(n_chained, CHAIN, *groups))
        grouped_waits_s = cluster.gaps_s()
    median_ms = sorted(srun_ms)[len(srun_ms) // 2]
    rows = [
        Row("submission to start on an idle node: srun", srun_ms, "ms", 0),
        Row("  sbatch", sbatch_ms, "ms", 0),
        Row("  Snakemake", ours_ms, "ms", 0),
        Row("  Snakemake / srun", [ms / median_ms for ms in ours_ms], "", 2, BUDGET),
        Row("a board between two jobs of a chain: Snakemake", waits_s, "s", 2),
        Row(f"  Snakemake, chains of {CHAIN}", grouped_waits_s, "s", 2),
    ]
    for way, n, (wall_s, cpu_s) in (
        ("srun", n_plain, srun),
        ("sbatch", n_plain, sbatch),
        ("Snakemake", n_jobs, single),
        (f"Snakemake, chains of {CHAIN}", n_chained, grouped),
    ):
        rows.append(Row(f"{n:,} jobs, wall time of one: {way}", [wall_s], "s", 3))
        rows.append(Row("  CPU time of the head", [cpu_s], "s", 3))
    costs = {EACH: (waits_s, single[1]), CHAINS: (grouped_waits_s, grouped[1])}
    details = {
        "n_jobs": {EACH: n_jobs, CHAINS: n_chained},
        "n_nodes": n_nodes,
        "wait_s": {way: statistics.median(some_s) for way, (some_s, _) in costs.items()},
        "head_cpu_s": {way: cpu_s for way, (_, cpu_s) in costs.items()},
    }
    return Result(rows, details)


SIZES = ((20, 1000), (100, 10_000))  # boards, epochs
GROWTH = ["boards", "epochs", "way", "submissions", "a board waits", "CPU time of the head", "how"]


def growth(details: dict[str, Any]) -> pd.DataFrame:
    """Return what was measured, and what it comes to with more boards, as a table.

    Each epoch costs its board the wait before it and the head its CPU time; boards wait at the same
    time, and a run has as many epochs as a board. How Slurm and Snakemake themselves slow down with
    the number of jobs is not in it. `details` are those of results/benchmarks.json.
    """
    rows = []
    for size in (None, *SIZES):
        for way, length, measured in (
            (EACH, 1, "measured in chains of 3"),
            (CHAINS, CHAIN, "measured"),
        ):
            boards, epochs = size or (details["n_nodes"], details["n_jobs"][way])
            wait_s, cpu_s = details["wait_s"][way], details["head_cpu_s"][way]
            costs = [duration(wait_s * epochs / boards), duration(cpu_s * epochs)]
            how = "computed" if size else measured
            rows.append([f"{boards:,}", f"{epochs:,}", way, f"{epochs // length:,}", *costs, how])
    return pd.DataFrame(rows, columns=GROWTH)
