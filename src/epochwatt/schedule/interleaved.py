"""Measure training beside a stream of requests on the machine at hand.

`epochwatt.board.training.interleave` measures, in the interpreter that the device's file names.
Here its plan is put together, and its record held against the formulas of
`schedule.problem`, with the times of single mini-batches that were taken just before it.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import epochwatt
from epochwatt.board.records.interleaved_folder import InterleavedRecord, read
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.interleave.arrivals import CONSTANT
from epochwatt.board.training.interleave.plan import checked
from epochwatt.board.training.interleave.scheduler import Plan
from epochwatt.doctor.subject import Subject, choose
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.schedule.problem import outcome as planned
from epochwatt.schedule.simulation import run_as
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.study.expand import own_network
from epochwatt.study.place import MEASURED, other_board

SHARES = (50.0, 99.0, 100.0)  # percentiles of latencies
MARGIN_FACTOR = 2.0  # a measurement is longer than what was timed before, and meets longer delays


def plan_for(options: Document) -> Document:
    """Check the options of a measurement, and add networks of config/workloads.yaml to its plan.

    `options`: as `training.interleave.plan.checked` takes it

    Raises ConfigError: a network that is not there, or a number that cannot be.
    """
    rows = read_rows(WorkloadRow, Path("config/workloads.yaml"))
    for task in ("train", "infer"):
        if options[task] not in rows:
            raise ConfigError(f"--{task} is {options[task]!r}", allowed=rows)
    models = {options["train"], options["infer"]}
    networks = {model: network for model in models if (network := own_network(model, rows))}
    return checked({**options, "networks": networks})


def measure(plan: Document, device: str | None) -> tuple[InterleavedRecord | None, int]:
    """Run a plan; return its record and the exit status: 130 where Ctrl-C ended it early.

    Without a record the program has said on stderr why there is none.

    Raises EpochwattError: the device is another board, or the program cannot be started.
    """
    subject = choose(Path(), device)
    if reason := other_board(subject.device):
        raise EpochwattError(
            f"--device {subject.name} cannot be measured here: {reason}",
            do="give the command on the board, or leave --device out",
        )
    plan = {**plan, "torch_threads": subject.device.torch_threads or 0}
    with tempfile.TemporaryDirectory() as folder:
        receipt = Path(folder) / "receipt.json"
        words = ["--plan", json.dumps(plan), "--measured", MEASURED, "--receipt", str(receipt)]
        status = _run(subject, [*words, "--machine", json.dumps(subject.machine.settings)])
        if not receipt.exists():
            return None, status or 1
        return read(json.loads(receipt.read_text("utf-8"))["record"]), status


def _run(subject: Subject, words: list[str]) -> int:
    """Run the measuring side; return its exit status. Ctrl-C ends it, and not this process."""
    paths = [str(Path(epochwatt.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [*subject.python, "-m", "epochwatt.board.training.interleave", *words]
    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # the child gets its default
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        raise EpochwattError(f"{command[0]} cannot be started: {error.strerror}") from error
    finally:
        signal.signal(signal.SIGINT, before)


class Expected(NamedTuple):
    """Expectation of a plan on this machine, by times of single mini-batches taken before it."""

    latency_s: float  # longest of constant arrivals, with the median times: by formula
    margin_s: float  # what disturbs the machine may add to it
    # mini-batches of training a second, beside the arrivals that there were
    throughput_per_s: float
    is_stable: bool  # whether requests are served as fast as they arrive


def expected(
    plan: Document,
    before: Mapping[str, Sequence[float]],
    arrivals_s: Sequence[float] = (),
    seconds: float = 0.0,
) -> Expected:
    """Predict latency, margin and training throughput of a plan from single mini-batches.

    A mini-batch of training that takes longer than expected delays the requests behind it by at
    most all of it, and one of requests by what it takes beyond the median. The margin is twice
    (`MARGIN_FACTOR`) the longest of both that were seen before. The factor is ours; how often it
    does: docs/reference/benchmarks/interleaver.md.

    `plan`: `rate_per_s`, `batch_size` and `n_train` (None: no limit)
    `before`: `infer_s` and `train_s`, times of single mini-batches
    `arrivals_s`, `seconds`: of requests that are not constant, s after the beginning, and how long:
    between these the scheduler trains less than between constant ones
    """
    infer_s, train_s = (np.asarray(before[key]) for key in ("infer_s", "train_s"))
    usual_s = float(np.median(infer_s))
    # the power has no part in times
    stream = plan["rate_per_s"], plan["batch_size"], usual_s, 0
    formula = planned([stream], (np.median(train_s), 0))
    n_train = float(formula.n_train)
    if plan["n_train"] is not None:
        n_train = min(n_train, plan["n_train"])
    longest_s = float(infer_s.max()) - usual_s
    if plan["n_train"] != 0:
        longest_s += float(train_s.max())
    throughput_per_s = n_train * plan["rate_per_s"] / plan["batch_size"]
    if len(arrivals_s):
        limits = Plan(*(plan[name] for name in Plan._fields))
        times = before["infer_s"], before["train_s"]
        throughput_per_s = run_as(limits, *times, arrivals_s, seconds).throughput_per_s
    return Expected(
        float(formula.latency_s[0]),
        MARGIN_FACTOR * longest_s,
        throughput_per_s,
        bool(formula.is_stable),
    )


def times_of(record: InterleavedRecord) -> dict[str, list[float]]:
    """Return the times of the mini-batches that a measurement ran, s, as they are taken before."""
    served_s = record.requests["end_s"] - record.requests["start_s"]
    is_served = np.isfinite(served_s)
    _, first = np.unique(record.requests["start_s"][is_served], return_index=True)
    trained_s = record.training["train_end_s"] - record.training["train_start_s"]
    return {"infer_s": served_s[is_served][first].tolist(), "train_s": trained_s.tolist()}


def expected_of(
    record: InterleavedRecord, times: Mapping[str, Sequence[float]] | None = None
) -> Expected:
    """Predict what a measurement's plan should have given, with the arrivals that there were.

    `times`: as of `times_of`; None: those that were taken before it
    """
    meta = record.meta
    seconds = meta["t_end_mono_s"] - meta["t_start_mono_s"]
    arrivals_s: list[float] = []
    if meta["plan"]["arrivals"] != CONSTANT:
        arrivals_s = (record.requests["arrival_s"] - meta["t_start_mono_s"]).tolist()
    return expected(meta["plan"], times or meta["before"], arrivals_s, seconds)


def outcome_lines(record: InterleavedRecord) -> list[str]:
    """Write lines for a terminal: a measurement's latency, training and power beside its plan."""
    meta, promised = record.meta, expected_of(record)
    plan, counts = meta["plan"], meta["counts"]
    seconds = meta["t_end_mono_s"] - meta["t_start_mono_s"]
    waits_ms = 1e3 * (record.requests["end_s"] - record.requests["arrival_s"])
    waits_ms = waits_ms[np.isfinite(waits_ms)]
    shares = np.percentile(waits_ms, SHARES) if len(waits_ms) else np.full(len(SHARES), np.nan)
    p50_ms, p99_ms, worst_ms = shares
    plan_ms, margin_ms = 1e3 * promised.latency_s, 1e3 * promised.margin_s
    constant = "" if plan["arrivals"] == CONSTANT else ", of constant arrivals"
    trained_per_s, ran = len(record.training["train_end_s"]) / seconds, times_of(record)
    by_run = ""
    if all(ran.values()):
        by_run = (
            f", by the times of the run itself {expected_of(record, ran).throughput_per_s:.2f}/s"
        )
    lines = [
        f"latency     p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f} ms, worst {worst_ms:.1f} ms; plan: "
        f"worst {plan_ms:.1f} ms, margin {margin_ms:.1f} ms{constant}",
        f"training    {trained_per_s:.2f} mini-batches/s of {plan['train_batch_size']}; "
        f"plan: {promised.throughput_per_s:.2f}/s{by_run}",
        f"requests    {counts['n_requests']:,} arrived, {counts['n_served']:,} served, "
        f"{counts['n_refused']:,} refused, {counts['n_left']:,} left at the end",
    ]
    power = meta["power"]
    if power["mean_w"] is not None:
        origin = "; NOT MEASURED, of a fake board" if meta["backend"] == "fake" else ""
        lines.append(f"power       mean {power['mean_w']:.2f} W ({power['scope']}{origin})")
    if not promised.is_stable:
        lines.append("Requests arrive faster than they can be served: choose a larger batch.")
    if meta["ended_early"]:
        lines.append(f"Ended by Ctrl-C after {seconds:.1f} s.")
    return [*lines, f"record      {record.folder}"]
