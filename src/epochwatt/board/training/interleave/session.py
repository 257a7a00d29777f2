"""Train and serve under a plan, and keep the record (board side: Python 3.6; imports torch).

Two networks live in one process. Samples are made up (random pixels or words) and lie in the host's
memory, transformed: what is measured is neither storage nor pre-processing. Of each mini-batch the
copy to the device counts.
"""

import logging
import os
import shutil
import signal
import time
import uuid
from contextlib import contextmanager
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

from epochwatt.board.device import notes
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.interleaved_folder import InterleavedFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.which_gpu import gpu_of
from epochwatt.board.training.interleave.arrivals import arrivals
from epochwatt.board.training.interleave.scheduler import HostClock, Interleaver, Log, Plan
from epochwatt.board.training.loaders import TimedMinibatches
from epochwatt.board.training.observation import (
    Observer,
    circumstances,
    has_stopped,
    noticed_stops,
    raised,
)
from epochwatt.board.training.session import MadeUpSamples
from epochwatt.board.training.workloads import make_trainer, transform_of, workload_of
from epochwatt.columns import Factors

log = logging.getLogger(__name__)

BUSY_S = 1.0  # of looking at what else the machine does
BEFORE_SHARE, BEFORE_S = 0.1, 5.0  # of the plan's time, and at most, to time single mini-batches
WARM_UP, TIMED = 2, 10  # turns before the measurement: not timed, then at least so many timed
IN_A_ROW = 5  # mini-batches of training in a turn: the first finds the caches cold

Job = Callable[[], None]


def interleave(plan: Document, measured: str, machine: Machine) -> Tuple[str, bool]:
    """Measure a plan on this machine as it is; return the record's folder, and if it ended early.

    `plan` was checked (`plan.checked`).

    Raises EpochwattError: a network or trace that cannot be, or a record that cannot be written.
    """
    times = arrivals(plan["arrivals"], plan["rate_per_s"], plan["seconds"], plan["seed"])
    if plan["torch_threads"]:
        torch.set_num_threads(plan["torch_threads"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = gpu_of(device, torch)
    busy_pct = machine.busy_pct(BUSY_S)
    serve = make_job(_factors(plan, "infer"), plan["batch_size"], device)
    train = make_job(_factors(plan, "train"), plan["train_batch_size"], device)
    before_s = min(BEFORE_SHARE * plan["seconds"], BEFORE_S)
    infer_s, train_s = time_before(serve, train, before_s)
    gap_s = plan["batch_size"] / plan["rate_per_s"] - median(infer_s)
    if plan["n_train"] != 0 and median(train_s) > gap_s:
        log.warning(
            "hardly anything will be trained: a mini-batch of training takes %.4g ms, and requests "
            "leave %.4g ms between two of theirs; a larger --batch leaves more",
            1e3 * median(train_s),
            1e3 * max(gap_s, 0.0),
        )
    meta = dict(
        circumstances(machine, device, gpu),
        plan=plan,
        processor="gpu" if device.type == "cuda" else "cpu",
        measurement_id=uuid.uuid4().hex,
        samples="made up, in memory",
        load_average=os.getloadavg()[0],
        before={"infer_s": infer_s, "train_s": train_s},
        busy_pct=busy_pct,
    )
    name = time.strftime("%Y%m%dT%H%M%S") + "-{train}-{infer}".format(**plan)
    folder, key = InterleavedFolder(measured), name + "-" + meta["measurement_id"][:4]
    attempt = folder.open_attempt(key)
    notes.remember(meta["measurement_id"], name, 0)
    limits = Plan(plan["rate_per_s"], plan["batch_size"], plan["n_train"], plan["queue"])
    try:
        with stop_at_interrupt() as stopped:
            runner = Interleaver(limits, serve, train, train_s, stopped=stopped)
            with Observer(machine, attempt, gpu=gpu) as observer:
                observer.begin(attempt)
                unix_s = time.time()
                with noticed_stops() as stops:
                    happened = runner.run(times, plan["seconds"])
                power = observer.power()
                meta.update(observer.end(), stops=stops)
            meta.update(
                t_start_mono_s=happened.t_start_s,
                t_end_mono_s=happened.t_end_s,
                t_start_unix_s=unix_s,
                power={
                    "scope": power.scope,
                    "mean_w": sum(power.power_w) / len(power.power_w) if power.power_w else None,
                },
                counts=counts(happened),
                ended_early=stopped(),
            )
            meta["flags"] = raised(
                {
                    "requests_refused": meta["counts"]["n_refused"] > 0,
                    "sampler_lost": meta["telemetry_lost"],
                    "stopped": has_stopped(stops),
                }
            )
            return folder.finish(key, meta, happened), stopped()
    except BaseException:
        shutil.rmtree(attempt, ignore_errors=True)
        raise


def _factors(plan: Document, task: str) -> Factors:
    """Return the factors of one of the two workloads."""
    factors = {"model": plan[task], "task": task, "seed": plan["seed"]}
    network = plan["networks"].get(plan[task])
    return dict(factors, network=network) if network else factors


def make_job(factors: Factors, batch_size: int, device: torch.device) -> Job:
    """Return what runs one mini-batch of a workload on a device and waits until it is done.

    `factors` has `model`, `task` (`train` or `infer`), `seed` and, of an own network, `network`.

    Raises ConfigError: a network that is not there.
    """
    workload = workload_of(factors)
    made_up = MadeUpSamples(workload.made_up(), batch_size)
    minibatches = TimedMinibatches(made_up, transform_of(workload, factors), 0)
    minibatch = minibatches[list(range(batch_size))]
    trainer = make_trainer(factors, device)

    def run() -> None:
        trainer.step(trainer.copy(minibatch))
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()

    return run


def time_before(
    serve: Job, train: Job, seconds: float, clock: Any = HostClock
) -> Tuple[List[float], List[float]]:
    """Run both in turn, as they will be; return the times of single mini-batches, s.

    It takes `seconds` at least; what disturbs the machine seldom shows in the longest of them.
    """

    def turn() -> List[float]:
        times_s = []
        for job in [serve] + [train] * IN_A_ROW:
            start_s = clock.now()
            job()
            times_s.append(clock.now() - start_s)
        return times_s

    for _ in range(WARM_UP):
        turn()
    turns: List[List[float]] = []
    end_s = clock.now() + seconds
    while len(turns) < TIMED or clock.now() < end_s:
        turns.append(turn())
    return [times_s[0] for times_s in turns], [t_s for times_s in turns for t_s in times_s[1:]]


def counts(happened: Log) -> Dict[str, int]:
    """Return what became of requests, and mini-batches of training; nothing is lost silently."""
    n_served = sum(end_s == end_s for end_s in happened.end_s)  # NaN differs from itself
    n_refused = sum(happened.refused)
    return {
        "n_requests": len(happened.arrival_s),
        "n_served": n_served,
        "n_refused": n_refused,
        "n_left": len(happened.arrival_s) - n_served - n_refused,
        "n_train": len(happened.train_end_s),
    }


@contextmanager
def stop_at_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or TERM) inside the block into an answer; a second one ends it.

    Yields what says whether there was one.
    """
    came: List[int] = []

    def note(number: int, frame: Any) -> None:
        came.append(number)
        signal.signal(number, before[number])
        log.warning("ending after this mini-batch; what was measured is kept")

    before: Dict[int, Any] = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
