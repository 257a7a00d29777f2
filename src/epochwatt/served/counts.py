"""Count the kernels of a network, in a process that has imported torch where there is one."""

import json
from collections.abc import Sequence
from typing import Any

from epochwatt.served.ask import run


def count(log: str, **job: Any) -> None:
    """Count a network for the rules count_workload and count_work; exit where that fails."""
    run("counts", [log, json.dumps(job)], main)


def prepare(_: Sequence[str]) -> None:
    """Import torch, and run two operators on shapes alone: their first call imports more."""
    import torch

    import epochwatt.counting.count_workload  # noqa: F401

    torch.nn.Linear(1, 1, device="meta")(torch.empty(1, 1, device="meta")).relu()


def main(words: Sequence[str]) -> int:
    """Count the kernels of a network and write them; the words: path of the log, job as JSON."""
    from epochwatt.adapters import job_log
    from epochwatt.counting.count_workload import write_workload  # the asking process has no torch

    log, job = words
    with job_log(log):
        write_workload(**json.loads(job))
    return 0
