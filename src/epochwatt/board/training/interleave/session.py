"""Train and serve under a plan, and keep the record (board side: Python 3.6; imports torch).

Two networks live in one process. Samples are made up (random pixels or words) and lie in the host's
memory, transformed: what is measured is neither storage nor pre-processing. Of each mini-batch the
copy to the device counts.
"""

import logging
import math
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
    """Serve and train by a checked plan, in the machine's present mode, and write the record.

    Returns the record's folder, and whether a signal ended it early. A failed attempt is deleted.
    Raises ConfigError: there is no such network, or the trace is wrong; TrainingError: a network
    cannot be trained here; RecordWriteError: the record cannot be written.
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
    """Return a run's factors for the plan's network of a task, `train` or `infer`."""
    factors = {"model": plan[task], "task": task, "seed": plan["seed"]}
    network = plan["networks"].get(plan[task])
    return dict(factors, network=network) if network else factors


def make_job(factors: Factors, batch_size: int, device: torch.device) -> Job:
    """Return a function that copies a mini-batch to the device, runs it and waits for its end.

    The mini-batch is made up and transformed once, here: each call runs the same one.

    `factors`: `model`, `task` (`train` or `infer`), `seed` and, of an own network, `network`.
    Raises ConfigError: there is no such network.
    """
    workload = workload_of(factors)
    made_up = MadeUpSamples(workload.made_up(), batch_size)
    minibatches = TimedMinibatches(made_up, transform_of(workload, factors), num_workers=0)
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
    """Alternate both jobs for `seconds` or more; return the times of mini-batches, s, of each.

    In so long a time the longest of them shows disturbances of the machine that are rare.
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
    train_s: List[float] = []
    for times_s in turns:
        train_s += times_s[1:]
    return [times_s[0] for times_s in turns], train_s


def counts(happened: Log) -> Dict[str, int]:
    """Count requests, those served, refused and left waiting, and mini-batches of training."""
    n_served = sum(not math.isnan(end_s) for end_s in happened.end_s)
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
    """Catch the first SIGINT or SIGTERM inside the block; a second one acts as without it.

    Yields a function that returns whether one came.
    """
    received: List[int] = []

    def note_signal(number: int, frame: Any) -> None:
        received.append(number)
        signal.signal(number, previous_handlers[number])
        log.warning("ending after this mini-batch; what was measured is kept")

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous_handlers: Dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    for number in previous_handlers:
        signal.signal(number, note_signal)
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
