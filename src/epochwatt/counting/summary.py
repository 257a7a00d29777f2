"""Print `epochwatt count`: what one mini-batch asks for, by class of operator and phase."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from epochwatt.board.training.references import is_reference
from epochwatt.board.training.workloads import workload_of
from epochwatt.counting.count_workload import launches, network_factors
from epochwatt.counting.kernel_counts import KINDS, PHASES
from epochwatt.counting.operators import Kernel
from epochwatt.errors import ConfigError
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.text import aligned, counted

ALL = "all"
HEADER = ("launches", "GFLOP", "share", "MB", "share", "FLOP/byte")


class Totals(NamedTuple):
    """Sums over kernels of one mini-batch."""

    launches: int
    flops: int
    bytes: int

    @property
    def intensity_flop_per_byte(self) -> float:
        """Operations for each byte; 0 where nothing is moved."""
        return self.flops / self.bytes if self.bytes else 0.0


def totals(kernels: Iterable[Kernel]) -> Totals:
    """Return the sums over kernels."""
    listed = list(kernels)
    return Totals(len(listed), sum(k.flops for k in listed), sum(k.bytes for k in listed))


def count_lines(
    model: str,
    like: str | None = None,
    batch_size: int = 16,
    task: str = "train",
    precision: str = "fp32",
    root: Path = Path(),
) -> list[str]:
    """Return what one mini-batch asks for, as lines for the terminal.

    Parameters
    ----------
    model : row of config/workloads.yaml, or a function that builds a network: `module.function`
    like : of a function: the network of the package whose input it takes
    task, precision : see `counting.recorder.record`

    Raises EpochwattError: a name that is not there, or a network that does not run on shapes alone.
    """
    rows = read_rows(WorkloadRow, root / "config/workloads.yaml")
    workload = workload_of(_factors(model, like, rows))
    recorded = launches(workload, batch_size, task, precision)
    verb = {"train": "training", "infer": "inference"}[task]
    lines = [
        f"{model}: {verb} on one mini-batch of {counted(batch_size, 'samples')}, {precision}; "
        "counted, not measured",
        "",
        *_table("operators", recorded, lambda phase, kernel: kernel.kind, KINDS),
    ]
    if task == "train":
        lines += ["", *_table("phase", recorded, lambda phase, kernel: phase, PHASES)]
    return lines


def _factors(model: str, like: str | None, rows: dict[str, WorkloadRow]) -> dict[str, object]:
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


def _table(
    title: str,
    recorded: list[tuple[str, Kernel]],
    key: Callable[[str, Kernel], str],
    order: tuple[str, ...],
) -> list[str]:
    """Return a table with a line for each group of kernels and one for all."""
    groups = {name: totals(k for p, k in recorded if key(p, k) == name) for name in order}
    whole = totals(kernel for _, kernel in recorded)
    rows: list[tuple[str, ...]] = [(title, *HEADER)]
    for name, sums in [*groups.items(), (ALL, whole)]:
        if sums.launches:
            rows.append((name, *_cells(sums, whole)))
    return aligned(rows)


def _cells(sums: Totals, whole: Totals) -> tuple[str, ...]:
    return (
        str(sums.launches),
        f"{sums.flops / 1e9:.4g}",
        f"{100 * sums.flops / max(whole.flops, 1):.1f} %",
        f"{sums.bytes / 1e6:.4g}",
        f"{100 * sums.bytes / max(whole.bytes, 1):.1f} %",
        f"{sums.intensity_flop_per_byte:.3g}",
    )
