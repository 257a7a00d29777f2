"""Print `epochwatt count`: what one mini-batch asks for, by class of operator and phase."""

from pathlib import Path

import pandas as pd

from epochwatt.board.training.references import is_reference
from epochwatt.board.training.workloads import workload_of
from epochwatt.counting.count_workload import launches, network_factors
from epochwatt.counting.kernel_counts import KINDS, PHASES
from epochwatt.errors import ConfigError
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.text import aligned, counted

ALL = "all"
HEADER = ("launches", "GFLOP", "share", "MB", "share", "FLOP/byte")


def count_lines(
    model: str,
    like: str | None = None,
    batch_size: int = 16,
    task: str = "train",
    precision: str = "fp32",
    root: Path = Path(),
) -> list[str]:
    """Return lines for the terminal: kernels, operations and bytes of one mini-batch, in tables.

    `model`: row of config/workloads.yaml, or a function that builds a network: `module.function`
    `like`: of a function: the network of the package whose input it takes
    `task`, `precision`: see `counting.recorder.record`

    Raises EpochwattError: an unknown name, or a network that does not run on shapes alone.
    """
    rows = read_rows(WorkloadRow, root / "config/workloads.yaml")
    workload = workload_of(_factors(model, like, rows))
    launched = pd.DataFrame(
        [
            (phase, kernel.kind, 1, kernel.flops, kernel.bytes)
            for phase, kernel in launches(workload, batch_size, task, precision)
        ],
        columns=("phase", "operators", "launches", "flops", "bytes"),
    )
    verb = {"train": "training", "infer": "inference"}[task]
    lines = [
        f"{model}: {verb} on one mini-batch of {counted(batch_size, 'samples')}, {precision}; "
        "counted, not measured",
        "",
        *_table("operators", launched, KINDS),
    ]
    if task == "train":
        lines += ["", *_table("phase", launched, PHASES)]
    return lines


def _factors(model: str, like: str | None, rows: dict[str, WorkloadRow]) -> dict[str, object]:
    """Return the factors that `workload_of` builds a network from; ConfigError: a wrong `like`."""
    if not is_reference(model):
        if like:
            raise ConfigError(f"--like goes with a function, and --model is {model!r}")
        return network_factors(model, rows)
    if not like:
        raise ConfigError(
            f"--model {model} is a function that builds a network, of unknown input",
            do="add --like and a network of the package with the same input, such as resnet50",
        )
    return {"model": model, "network": {"build": model, "like": like}}


def _table(column: str, launched: pd.DataFrame, groups: tuple[str, ...]) -> list[str]:
    """Return the lines of a table: a row per group of kernels by `column`, then their total."""
    counts = ["launches", "flops", "bytes"]
    sums = launched.groupby(column)[counts].sum().reindex(groups).dropna().astype("int64")
    total = launched[counts].sum()
    rows = [(column, *HEADER)]
    for group, (n_launches, flops, moved_bytes) in [*sums.iterrows(), (ALL, total)]:
        rows.append(
            (
                str(group),
                str(n_launches),
                f"{flops / 1e9:.4g}",
                f"{100 * flops / max(total['flops'], 1):.1f} %",
                f"{moved_bytes / 1e6:.4g}",
                f"{100 * moved_bytes / max(total['bytes'], 1):.1f} %",
                f"{flops / moved_bytes if moved_bytes else 0.0:.3g}",
            )
        )
    return aligned(rows)
