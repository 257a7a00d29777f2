"""Train and serve under a plan, and keep the record (board side: Python 3.6; imports torch)."""

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

from epochwatt.board.device import last_measurement
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.interleaved_folder import InterleavedFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.client import Sampler
from epochwatt.board.training.circumstances import circumstances, raised
from epochwatt.board.training.gpu import gpu_of
from epochwatt.board.training.interleave.arrivals import arrivals
from epochwatt.board.training.interleave.jobs import make_job, time_before
from epochwatt.board.training.interleave.scheduler import Interleaver, Log, Plan
from epochwatt.board.training.stops import has_stopped, noticed_stops

log = logging.getLogger(__name__)

BUSY_S = 1.0  # of looking at what else the machine does
BEFORE_SHARE, BEFORE_S = 0.1, 5.0  # of the plan's time, and at most, to time single mini-batches


def interleave(plan: Document, measured: str, machine: Machine) -> Tuple[str, bool]:
    """Measure a plan on this machine as it is; return the record's folder, and if it ended early.

    Parameters
    ----------
    plan : checked (`plan.checked`)

    Raises EpochwattError: a network or trace that cannot be, or a record that cannot be written.
    """
    times = arrivals(plan["arrivals"], plan["rate_per_s"], plan["seconds"], plan["seed"])
    if plan["torch_threads"]:
        torch.set_num_threads(plan["torch_threads"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    busy_pct = machine.busy_pct(BUSY_S)
    serve = make_job(_factors(plan, "infer"), plan["batch_size"], device)
    train = make_job(_factors(plan, "train"), plan["train_batch_size"], device)
    before_s = min(BEFORE_SHARE * plan["seconds"], BEFORE_S)
    infer_s, train_s = time_before(serve, train, before_s)
    _say_if_nothing_fits(plan, median(infer_s), median(train_s))
    meta = _circumstances(plan, machine, device)
    meta.update(before={"infer_s": infer_s, "train_s": train_s}, busy_pct=busy_pct)
    name = time.strftime("%Y%m%dT%H%M%S") + "-{train}-{infer}".format(**plan)
    folder, key = InterleavedFolder(measured), name + "-" + meta["measurement_id"][:4]
    attempt = folder.open_attempt(key)
    last_measurement.remember(meta["measurement_id"], name, 0)
    limits = Plan(plan["rate_per_s"], plan["batch_size"], plan["n_train"], plan["queue"])
    try:
        with stop_at_interrupt() as stopped:
            runner = Interleaver(limits, serve, train, train_s, stopped=stopped)
            happened, observed = _observed(runner, times, plan["seconds"], attempt, machine, device)
            meta.update(observed, counts=counts(happened), ended_early=stopped())
            meta["flags"] = raised(
                {
                    "requests_refused": meta["counts"]["n_refused"] > 0,
                    "sampler_lost": meta["telemetry_lost"],
                    "stopped": has_stopped(meta["stops"]),
                }
            )
            return folder.finish(key, meta, happened), stopped()
    except BaseException:
        shutil.rmtree(attempt, ignore_errors=True)
        raise


def _say_if_nothing_fits(plan: Document, infer_s: float, train_s: float) -> None:
    """Say so before the measurement, where requests leave no room for training."""
    gap_s = plan["batch_size"] / plan["rate_per_s"] - infer_s
    if plan["n_train"] != 0 and train_s > gap_s:
        log.warning(
            "hardly anything will be trained: a mini-batch of training takes %.4g ms, and requests "
            "leave %.4g ms between two of theirs; a larger --batch leaves more",
            1e3 * train_s,
            1e3 * max(gap_s, 0.0),
        )


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

    Yields
    ------
    callable : whether there was one
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


def _observed(
    runner: Interleaver,
    times: List[float],
    seconds: float,
    folder: str,
    machine: Machine,
    device: torch.device,
) -> Tuple[Log, Dict[str, Any]]:
    """Run the plan beside the sampler; return what happened, and what is recorded beside it."""
    power_source = machine.settings["power_source"]
    gpu = gpu_of(device, torch)
    with Sampler.start(
        os.getpid(), folder, 0, root=machine.root, power=power_source, gpu=gpu
    ) as sampler:
        sampler.begin(folder)
        before, unix_s = machine.events(), time.time()
        with noticed_stops() as stops:
            happened = runner.run(times, seconds)
        power = sampler.power()
        statistics = sampler.end()
        return happened, {
            "t_start_mono_s": happened.t_start_s,
            "t_end_mono_s": happened.t_end_s,
            "t_start_unix_s": unix_s,
            "power": {
                "scope": power.scope,
                "mean_w": sum(power.power_w) / len(power.power_w) if power.power_w else None,
            },
            "events": {"before": before, "after": machine.events()},
            "stops": stops,
            "telemetry_lost": statistics["lost"],
        }


def _factors(plan: Document, task: str) -> Dict[str, Any]:
    """Return the factors of one of the two workloads."""
    factors = {"model": plan[task], "task": task, "seed": plan["seed"]}
    network = plan["networks"].get(plan[task])
    return dict(factors, network=network) if network else factors


def _circumstances(plan: Document, machine: Machine, device: torch.device) -> Dict[str, Any]:
    """Return what the record says besides what is measured."""
    return dict(
        circumstances(machine, device, gpu_of(device, torch)),
        plan=plan,
        processor="gpu" if device.type == "cuda" else "cpu",
        measurement_id=uuid.uuid4().hex,
        samples="made up, in memory",
        load_average=os.getloadavg()[0],
    )
