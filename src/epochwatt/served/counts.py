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


def count_or_write_kept(
    factors: dict[str, Any], path: str, task: str = "train", precision: str = "fp32"
) -> None:
    """Count a network (`write_workload`); without torch write its counts that are kept."""
    from epochwatt.counting.kernel_counts import write_kept_counts  # the asking process has neither

    if find_spec("torch"):
        from epochwatt.counting.count_workload import write_workload

        write_workload(factors, path, task, precision)
    else:
        write_kept_counts(factors, path, task, precision)


def main(words: Sequence[str]) -> int:
    """Count the kernels of a network and write them; the words: path of the log, job as JSON."""
    from epochwatt.adapters import job_log

    log, job = words
    with job_log(log):
        count_or_write_kept(**json.loads(job))
    return 0
