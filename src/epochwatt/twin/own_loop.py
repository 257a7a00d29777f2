"""Describe somebody's own loop for a simulated board: its counted network, its loader as measured.

What its samples are is not known. Their loading is taken to cost a core of the board, at its
highest clock, what it cost a core of the machine that measured (ASSUME), from memory: no file is
read. Without workers that is the wait; with workers that the loop waits for, all of their time;
where it hardly waits, all of their time is the most that it can be.
"""

from dataclasses import dataclass, replace

from epochwatt.board.records import files
from epochwatt.errors import EpochwattError
from epochwatt.roofline.explain import Observed, observed
from epochwatt.roofline.find_run import find_counts, find_run
from epochwatt.twin.boards import Board, SampleFacts, Values, number
from epochwatt.twin.compute import work_s
from epochwatt.twin.network import Network

WAITS = 0.05  # of an epoch; a loop that waits for less has workers that keep up


@dataclass(frozen=True)
class OwnLoop:
    """A run of `EpochMonitor`, as a simulated board is asked about it."""

    run: str
    machine: str  # that measured it
    seen: Observed
    has_copy: bool  # whether copies were told apart
    energy_wh: float | None
    network: Network
    without_loading: Network  # the same with samples that cost the loader next to nothing
    unknown: tuple[str, ...]  # what the answer does not know, in words


def own_loop(run: str, board: Board, p: Values) -> OwnLoop:
    """Return a run's loop; EpochwattError: there is none, its network was not counted, or no epoch.

    `run`: as of `roofline.find_run.find_run`
    """
    found, rows = find_run(run)
    if not rows[0]["imported"]:
        raise EpochwattError(
            f"{found.run} is a run of the workflow",
            do=f"--model {found.workload} in place of --run",
        )
    work, seen = find_counts(found, is_own=True), observed(rows)
    if seen is None or not seen.n_minibatches or not seen.batch_size:
        raise EpochwattError(f"{found.run} has no valid epoch with a known number of samples")
    loading_s, how = _loading(seen, is_workers_known=rows[0]["num_workers"] is not None)
    n_samples = round(seen.n_minibatches * seen.batch_size)
    source = f"kernels of {found.run} counted by EpochMonitor.count"
    cycle_s = number(work_s(1.0, board, board.cpu_mhz[1], board.emc_mhz[1], p))  # of a thousand
    kcycles = loading_s / seen.batch_size / cycle_s
    samples = SampleFacts(n_samples, 0.0, 0.0, 0.0, "the run", kcycles)
    precision = files.read_json(found.counts)["precision"]
    unknown = [
        f"what loading a sample costs on the board: it was {how}, and a core of the board at its "
        "highest clock is taken to need as long;",
        "  the column `without loading` is the same epoch if loading cost nothing",
        "its files: samples are taken to be in memory, so no storage medium is read",
        "what the loop's body does besides the counted mini-batch",
    ]
    if precision != "fp32":
        unknown.append(
            f"arithmetic in {precision}: its bytes are counted, its speed is that of fp32"
        )
    valid = [row["energy_wh"] for row in rows if row["valid"] and row["energy_wh"] is not None]
    return OwnLoop(
        run=found.run,
        machine=f"{found.device}/{rows[0]['instance']}",
        seen=seen,
        has_copy=rows[0]["copy_s"] is not None,
        energy_wh=sum(valid) / len(valid) if valid else None,
        network=Network(work, samples, source),
        without_loading=Network(work, replace(samples, kcycles=0.0), source),
        unknown=tuple(unknown),
    )


def _loading(seen: Observed, is_workers_known: bool) -> tuple[float, str]:
    """Return what a mini-batch costs the loader on the machine that measured, s, and in words."""
    n, workers = seen.n_minibatches, seen.num_workers
    if not workers:
        loading_s = seen.wait_s / n
        in_process, unknown = "in the training process", "with an unknown number of workers"
        where = in_process if is_workers_known else unknown
        return loading_s, f"{1e3 * loading_s / seen.batch_size:.3g} ms, measured {where}"
    loading_s = workers * (seen.wait_s + seen.copy_s + seen.compute_s) / n
    words = f"{1e3 * loading_s / seen.batch_size:.3g} ms"
    if seen.wait_s > WAITS * seen.e2e_s:
        return loading_s, f"{words} of {workers} busy workers, as the loop waits for them"
    return loading_s, f"at most {words}, as {workers} workers kept up"
