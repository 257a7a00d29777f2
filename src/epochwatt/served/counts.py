"""Count the kernels of a network, in a process that has imported torch where there is one."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
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
    """Write a network's counts, without torch those that are kept; words: path of log, and job."""
    from epochwatt.adapters import job_log

    log, job = words
    with job_log(log):
        settings = {"task": "train", "precision": "fp32", **json.loads(job)}
        if find_spec("torch"):
            from epochwatt.counting.count_workload import write_workload

            write_workload(**settings)
        else:
            from epochwatt.counting.kernel_counts import write_kept_counts

            write_kept_counts(**settings)
    return 0
