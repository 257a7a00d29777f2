"""Is any roof above what was measured? `python -m benchmarks.roofs [THREADS]`, some two minutes.

The ceilings of this CPU are measured and fitted as the workflow does; then 22 pairs of network and
mini-batch size are trained or infer from made-up samples. The roof of a mini-batch is the sum of
its kernels'. It writes benchmarks/tables/instrument/roofs.csv with the ratio of measured time to
roof: below 1, the roof would promise what nothing does, and the status is 1.
"""

import csv
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.results import REPOSITORY
from epochwatt import columns
from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.board.training.ceilings.session import CeilingSession
from epochwatt.board.training.loaders import TimedMinibatches
from epochwatt.board.training.session import MadeUpSamples
from epochwatt.board.training.workloads import WORKLOADS, make_trainer
from epochwatt.counting.count_workload import launches
from epochwatt.roofline.ceilings import CeilingRow
from epochwatt.roofline.collect import Place, ceiling_rows
from epochwatt.roofline.fit import Kernels, fit_ceilings
from epochwatt.roofline.model import Ceilings

TABLE = REPOSITORY / "benchmarks/tables/instrument/roofs.csv"
SIZES = {"lenet": (1, 4, 16, 64, 256), "mobilenet": (1, 4), "resnet": (1, 4), "lstm": (1, 8)}
TASKS = ("train", "infer")
LEAST_S, LEAST_TIMES = 1.0, 3  # how long, how often a mini-batch is repeated; the fastest counts
MACHINE = {
    **{"backend": "host", "root": "/", "kind": "", "unit": "", "power_source": "none"},
    **{"storage": {"root": "/", "mount": "", "block_device": ""}, "settle": None},
}


def ceilings_here(threads: int) -> Ceilings:
    """Measure and fit the ceilings of this CPU."""
    mode, machine = {"cores": threads}, open_machine(MACHINE)
    with tempfile.TemporaryDirectory() as root:
        folder = CeilingFolder(root, "ceilings")
        with CeilingSession(folder, ["fp32"], machine) as session:
            session.measure_mode(mode, 0, machine.change(mode, "on"), {})
        place = Place("ceilings", "measured", "host", "local", [dict(mode)])
        effects = dict.fromkeys(columns.FLAGS, "informs")
        rows: list[CeilingRow] = ceiling_rows(folder.read(mode), place, effects)
    return fit_ceilings(Kernels.of_mode(rows))


def measured_s(model: str, size: int, task: str) -> float:
    """Return the least time of a mini-batch, s, samples in memory."""
    workload = WORKLOADS[model]
    samples = TimedMinibatches(MadeUpSamples(workload.made_up(), size), workload.transform, 0)[
        list(range(size))
    ]
    trainer = make_trainer({"model": model, "seed": 0, "task": task}, torch.device("cpu"))
    times_s: list[float] = []
    began_s = time.perf_counter()
    while len(times_s) <= LEAST_TIMES or time.perf_counter() - began_s < LEAST_S:
        start_s = time.perf_counter()
        trainer.step(trainer.copy(samples))
        times_s.append(time.perf_counter() - start_s)
    return min(times_s[1:])  # the first one allocates


def rows(ceilings: Ceilings) -> Iterator[dict[str, Any]]:
    """Yield network, task, size, roof and time of each pair."""
    for model, sizes in SIZES.items():
        for task in TASKS:
            for size in sizes:
                kernels = [kernel for _, kernel in launches(WORKLOADS[model], size, task)]
                roof_s = float(
                    ceilings.roof_s([k.flops for k in kernels], [k.bytes for k in kernels]).sum()
                )
                spent_s = measured_s(model, size, task)
                yield {
                    **{"network": model, "task": task, "batch_size": size},
                    **{"roof_ms": f"{1e3 * roof_s:.3g}", "measured_ms": f"{1e3 * spent_s:.3g}"},
                    "measured_over_roof": f"{spent_s / roof_s:.2f}",
                }


def main() -> int:
    """Measure, print and write; return 1 where a roof lies above what was measured."""
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    ceilings = ceilings_here(threads)
    print(ceilings)
    made = []
    for row in rows(ceilings):
        made.append(row)
        print(*row.values(), sep="\t", flush=True)
    write(TABLE, made)
    return int(any(float(row["measured_over_roof"]) < 1.0 for row in made))


def write(path: Path, table: list[dict[str, Any]]) -> None:
    """Write rows of equal keys as CSV."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    sys.exit(main())
