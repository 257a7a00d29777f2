"""Tell time and energy of a training that is asked about, where its board is simulated.

Of two boards that are not, the data sheet is known: there time follows from the same rooflines and
launches, and energy is at most that of the power mode's limit.
"""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epochwatt.board.device.kinds import KINDS
from epochwatt.counting.kernel_counts import KernelCounts, kernel_counts_of
from epochwatt.memory.networks import Asked, Tuning
from epochwatt.study.config import Device
from epochwatt.study.devices import Devices
from epochwatt.twin import nearest
from epochwatt.twin.boards import Clocks, SampleFacts, number
from epochwatt.twin.compute import MAIN_OTHERS, compute
from epochwatt.twin.network import Network
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.predicted import Question
from epochwatt.twin.twin import Twin
from epochwatt.twin.what_if import simulate, usual_settings

if TYPE_CHECKING:
    from epochwatt.memory.fit import Request

LIKE = "orin"  # simulated board that shares with a data sheet what the sheet does not say
DATA_SHEETS = {  # kind of board -> fields of `twin.boards.Board`
    # SOURCE: 1024 cores, 32 tensor cores, 128 bit LPDDR5
    "orin_nano": {"cuda_cores": 1024, "emc_bytes_per_clock": 32.0, "half_gain": 8.0, "ipc": 1.2},
    # SOURCE: 2560 cores: 8.06 TFLOP/s in fp32, 258 dense in fp16 (2070 in sparse FP4, by 8); 256
    # bit LPDDR5X. ASSUME: a Neoverse-V3AE does twice as much in a clock as a Carmel core
    "agx_thor": {"cuda_cores": 2560, "emc_bytes_per_clock": 64.0, "half_gain": 32.0, "ipc": 2.0},
}
CHECKED = {"agx_thor": "two published times of fine-tuning (docs/reference/benchmarks/fine-tuning)"}


class Epoch(NamedTuple):
    """An epoch as it is expected."""

    e2e_s: float
    energy_wh: float | None  # None: nothing bounds it


class Simulator(NamedTuple):
    """Tells what epochs take, and how far it can be trusted."""

    epoch: Callable[["Request"], Epoch | None]  # None: it cannot be told
    source: str  # of its numbers, or why there are none
    held_out: str  # errors on numbers that it has not seen
    is_limit: bool = False  # its energies are upper limits


def simulator(
    device: str, samples: SampleFacts, asked: Callable[[Tuning], Asked], root: Path
) -> Simulator:
    """Return what tells epochs of a network on a device; of one that is not known none.

    `asked`: the network by its tuning
    """
    twin = load_twin_with_modes((), root)
    file = Devices(root).get(device, "--device")

    @cache
    def counted(tuning: Tuning, task: str, precision: str) -> KernelCounts:
        of = asked(tuning)
        return kernel_counts_of(of.count_kernels(task, precision), of.name)

    def work(request: "Request") -> KernelCounts:
        counts = counted(request.tuning, request.task, request.precision)
        return _as_trained(counts, request.checkpointing, request.accumulate)

    if device not in twin.boards and file.board in DATA_SHEETS:
        return _of_data_sheet(file, twin, work)
    if device not in twin.boards:
        boards = ", ".join(twin.boards)
        return Simulator(lambda request: None, f"{device} is not simulated (only {boards})", "")
    usual = usual_settings(device, file)

    def epoch(request: "Request") -> Epoch:
        counts = work(request)
        question = Question(
            device,
            counts.model,
            usual["storage"],
            request.num_workers,
            request.batch_size,
            usual["power_mode"],
        )
        question = question._replace(
            scale=(request.samples or samples.n_samples) / samples.n_samples
        )
        made = simulate(question, twin, Network(counts, samples, "")).epoch
        return Epoch(number(made.e2e_s), number(made.energy_wh))

    medians = nearest.median_errors_pct(nearest.validation(root), device)
    words = [
        f"{name.split('_')[0]} {value:.0f} % (n = {n})" for name, (value, n) in medians.items()
    ]
    held_out = f"median held-out error on {device}: {', '.join(words)}"
    if not words:
        held_out = f"no held-out errors: {nearest.VALIDATION} is missing (make validate)"
    mode = f"{usual['power_mode']}, {usual['storage']}"
    return Simulator(epoch, f"simulated, not measured: power mode {mode}", held_out)


def _of_data_sheet(
    file: Device, twin: Twin, work: Callable[["Request"], KernelCounts]
) -> Simulator:
    """Return what tells epochs of a board by its data sheet, in its default power mode."""
    board = replace(twin.boards[LIKE], **DATA_SHEETS[file.board])  # type: ignore[arg-type]
    name, mode = next(iter(file.power_modes.items()))
    clocks = _clocks(file.board, mode.nvpmodel or name)
    if clocks is None:
        return Simulator(lambda request: None, f"power mode {name} has clocks of its own", "")
    stated = re.search(r"(\d+) ?W", name)
    limit_w = None if stated is None else int(stated[1])

    def epoch(request: "Request") -> Epoch:
        parts = (clocks.cpu_mhz, clocks.gpu_mhz, clocks.emc_mhz)
        size = request.batch_size
        made = compute(
            work(request), size, board, parts, clocks.cores, MAIN_OTHERS, twin.parameters
        )
        e2e_s = (request.samples or 1) / size * number(made.compute_s)
        return Epoch(e2e_s, None if limit_w is None else limit_w * e2e_s / 3600.0)

    limit = "which states no limit" if limit_w is None else f"whose limit is {limit_w} W"
    source = f"by its data sheet, not measured: power mode {name}, {limit}"
    return Simulator(epoch, source, CHECKED.get(file.board, ""), is_limit=True)


def _clocks(board: str, mode: str) -> Clocks | None:
    """Return the clocks of a stock mode of a kind of board, MHz; None: there is no such mode."""
    kind = KINDS[board]
    release = kind.releases[-1]
    stock = next((stock for stock in release.modes if stock.name == mode), None)
    if stock is None:
        return None
    cpu_khz, gpu_hz, emc_hz = (
        limit if limit > 0 else steps[-1]
        for limit, steps in (
            (stock.cpu_khz[1], release.cpu_khz or kind.cpu_khz),
            (stock.gpu_hz[1], release.gpu_hz or kind.gpu_hz),
            (stock.emc_hz, release.emc_hz or kind.emc_hz),
        )
    )
    return Clocks(stock.cores, cpu_khz / 1e3, gpu_hz / 1e6, emc_hz / 1e6)


def _as_trained(counts: KernelCounts, checkpointing: bool, accumulate: int) -> KernelCounts:
    """Return the counts of a mini-batch that is trained on in another way.

    With checkpointing the forward pass is computed again during backward; of a step of the
    optimiser, each of the mini-batches whose gradients it takes has its share.
    """
    names = [f.name for f in fields(counts) if isinstance(getattr(counts, f.name), np.ndarray)]
    columns = {name: getattr(counts, name) for name in names}
    if checkpointing:
        again = np.flatnonzero(counts.phase == "forward")
        order = np.concatenate([np.arange(len(counts.kind)), again])
        columns = {name: column[order] for name, column in columns.items()}
    if accumulate > 1:
        share = np.where(np.isin(columns["phase"], ("zero_grad", "optimiser")), accumulate, 1)
        for name in ("flops_fixed", "bytes_fixed"):
            columns[name] = columns[name] / share
    return replace(counts, **columns)
