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
    """The idle nodes of the Slurm at hand, and a folder that they see.

    Parameters
    ----------
    folder : an empty folder
    """

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

    def sbatch(self, node: Node, name: str) -> None:
        """Submit a job that leaves the time in a file `done/{name}`."""
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

    def times(self, kind: str) -> dict[str, float]:
        """Return the times left in files, by the rest of their names, Unix s."""
        found = {}
        for path in (self.folder / "done").glob("*") if kind == "done" else self._notes(kind):
            text = path.read_text("ascii").strip()
            if text:
                found[path.name.removeprefix(f"{kind}-")] = float(text)
        return found

    def _notes(self, kind: str) -> list[Path]:
        return sorted(self.folder.glob(f"{kind}-*"))

    def clear(self) -> None:
        """Forget all jobs."""
        shutil.rmtree(self.folder / "done", ignore_errors=True)
        (self.folder / "done").mkdir()
        for path in [*self._notes("called"), *self._notes("begun")]:
            path.unlink()
        shutil.rmtree(self.folder / ".snakemake", ignore_errors=True)

    def wait(self, n_jobs: int) -> None:
        """Wait until so many jobs have left the time. Raises EpochwattError."""
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.times("done")) < n_jobs:
            if time.monotonic() > deadline_s:
                raise EpochwattError(f"not all of {n_jobs} jobs ended within {PATIENCE_S:g} s")
            time.sleep(0.05)


def constraint(node: Node) -> str:
    """Return the features of a node as a job asks for all of them."""
    return "&".join(sorted(node.features))


def srun_starts_ms(cluster: Cluster, n: int) -> list[float]:
    """Return the times from srun's call to the first command of its job, on an idle node."""
    starts_ms = []
    for _ in range(n):
        called_s = time.time()
        command = [*on_node(cluster.nodes[0]), "date", "+%s.%N"]
        begun_s = float(cluster.run(command).split()[0])
        starts_ms.append(1e3 * (begun_s - called_s))
    return starts_ms


def sbatch_starts_ms(cluster: Cluster, n: int) -> list[float]:
    """Return the same of sbatch."""
    cluster.clear()
    for i in range(n):
        cluster.sbatch(cluster.nodes[0], str(i))
        cluster.wait(i + 1)
        time.sleep(1.0)  # until the node is idle again
    return _starts_ms(cluster)


def _starts_ms(cluster: Cluster) -> list[float]:
    begun = cluster.times("begun")
    return [1e3 * (begun[job] - called) for job, called in cluster.times("called").items()]


def gaps_s(done: dict[str, float]) -> list[float]:
    """Return how long a board waits between two jobs of a chain.

    Parameters
    ----------
    done : time of each job, by chain and place: `3-0`
    """
    times = pd.Series(done)
    times.index = pd.MultiIndex.from_tuples([tuple(map(int, name.split("-"))) for name in done])
    return times.sort_index().groupby(level=0).diff().dropna().tolist()


def by_srun(cluster: Cluster, n_jobs: int) -> tuple[float, float]:
    """Run jobs by srun, on each node one after the other; return as `by_sbatch`."""
    n_nodes = len(cluster.nodes)

    def run_all(number: int) -> None:
        for _ in range(number, n_jobs, n_nodes):
            cluster.run([*on_node(cluster.nodes[number]), "true"])

    cpu_s, start_s = children_cpu_s(), time.perf_counter()
    with ThreadPoolExecutor(n_nodes) as pool:
        list(pool.map(run_all, range(n_nodes)))
    return _each(n_jobs, start_s, cpu_s)


def _each(n_jobs: int, start_s: float, cpu_s: float) -> tuple[float, float]:
    """Return wall time and the head's CPU time of one of the jobs since then, s."""
    return (time.perf_counter() - start_s) / n_jobs, (children_cpu_s() - cpu_s) / n_jobs


def by_sbatch(cluster: Cluster, n_jobs: int) -> tuple[float, float]:
    """Submit all jobs by sbatch; return wall time and the head's CPU time per job, s."""
    cluster.clear()
    cpu_s, start_s = children_cpu_s(), time.perf_counter()
    for i in range(n_jobs):
        cluster.sbatch(cluster.nodes[i % len(cluster.nodes)], str(i))
    cluster.wait(n_jobs)
    return _each(n_jobs, start_s, cpu_s)


def workflow(cluster: Cluster, n_jobs: int, length: int, *words: str) -> tuple[float, float]:
    """Run all jobs through Snakemake; return as `by_sbatch`."""
    cluster.clear()
    cpu_s, start_s = children_cpu_s(), time.perf_counter()
    cluster.snakemake(n_jobs, length, *words)
    return _each(n_jobs, start_s, cpu_s)


def run(quick: bool = False) -> Result:
    """Start jobs in each way; `quick` only shows that it works."""
    n_plain, n_jobs, n_chained, n_starts = N_PLAIN, N_JOBS, N_CHAINED // CHAIN * CHAIN, N_STARTS
    if quick:
        n_plain, n_jobs, n_chained, n_starts = 2 * CHAIN, 2 * CHAIN, 2 * CHAIN, 2
    (REPOSITORY / "results").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fleet-", dir=REPOSITORY / "results") as folder:
        cluster = Cluster(Path(folder))
        srun_ms = srun_starts_ms(cluster, n_starts)
        sbatch_ms = sbatch_starts_ms(cluster, n_starts)
        ways = {
            f"{n_plain:,} jobs, wall time of one: srun": by_srun(cluster, n_plain),
            f"{n_plain:,} jobs, wall time of one: sbatch": by_sbatch(cluster, n_plain),
        }
        single = workflow(cluster, n_jobs, 1)
        workflow(cluster, len(cluster.nodes) * 3, 3)
        waits_s, ours_ms = gaps_s(cluster.times("done")), _starts_ms(cluster)
        grouped = workflow(cluster, n_chained, CHAIN, "--groups", "step=chain")
        grouped_waits_s = gaps_s(cluster.times("done"))
    median_ms = sorted(srun_ms)[len(srun_ms) // 2]
    ways[f"{n_jobs:,} jobs, wall time of one: Snakemake"] = single
    ways[f"{n_chained:,} jobs, wall time of one: Snakemake, chains of {CHAIN}"] = grouped
    rows = [
        Row("submission to start on an idle node: srun", srun_ms, "ms", 0),
        Row("  sbatch", sbatch_ms, "ms", 0),
        Row("  Snakemake", ours_ms, "ms", 0),
        Row("  Snakemake / srun", [ms / median_ms for ms in ours_ms], "", 2, BUDGET),
        Row("a board between two jobs of a chain: Snakemake", waits_s, "s", 2),
        Row(f"  Snakemake, chains of {CHAIN}", grouped_waits_s, "s", 2),
    ]
    for way, (wall_s, cpu_s) in ways.items():
        rows.append(Row(way, [wall_s], "s", 3))
        rows.append(Row("  CPU time of the head", [cpu_s], "s", 3))
    costs = {EACH: (waits_s, single[1]), CHAINS: (grouped_waits_s, grouped[1])}
    details = {
        "n_jobs": {EACH: n_jobs, CHAINS: n_chained},
        "n_nodes": len(cluster.nodes),
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
    the number of jobs is not in it.

    Parameters
    ----------
    details : of the benchmark's part of results/benchmarks.json
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
