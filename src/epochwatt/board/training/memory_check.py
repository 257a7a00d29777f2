"""Refuse a run that does not fit into memory before it is measured (board side: Python 3.6).

The forecast is made in a process of its own, so that the one that is measured stays as it is.
"""

import logging
import multiprocessing
from typing import Any, Callable, Optional

from epochwatt.board.device import host
from epochwatt.board.device.machine import Machine
from epochwatt.board.training import resident
from epochwatt.board.training.allocated import Manner, forecast, libraries_mib, subject_of
from epochwatt.board.training.resident import MIB, Need
from epochwatt.board.training.workloads import Workload
from epochwatt.columns import Factors
from epochwatt.errors import TrainingError

log = logging.getLogger(__name__)

LONGEST_S = 120.0  # a forecast takes seconds


def check_memory(factors: Factors, workload: Workload, machine: Machine, on_gpu: bool) -> None:
    """Raise TrainingError where a run of these factors needs more memory than is free now.

    Call it once the data set is open and before anything ran on a GPU. A run that fits without the
    forecast's margin alone is warned of; one that cannot be forecast is let through, as are all
    where `check_memory` of the device says so.
    """
    is_board = machine.backend == "jetson"
    if not machine.settings.get("check_memory", True) or factors.get("compile") == "on":
        return
    if on_gpu and not is_board:
        return  # memory of its own
    constants = resident.constants_of(machine.settings["kind"] if is_board and on_gpu else "")
    room = host.free_memory()
    batch_size = factors["batch_size"]
    manner = Manner(
        factors.get("precision", "fp32"),
        workload.optimiser,
        factors.get("task", "train"),
        on_gpu=on_gpu,
    )

    def need(batch_size: int) -> Need:
        allocated = forecast(subject_of(workload), batch_size, manner)
        prefetch = factors["prefetch_factor"] or 0  # None without workers
        needed = resident.need_of(allocated, constants, factors["num_workers"], prefetch)
        # this process is there already, with its data set
        return needed._replace(process=int(libraries_mib(manner, constants) * MIB))

    def judge() -> Any:
        needed = need(batch_size)
        if needed.total <= room:
            return needed.total, batch_size
        margin = 1.0 + constants.margin
        most = resident.largest(
            lambda n: int(need(n).total * margin), room, batch_size, most=batch_size
        )
        return needed.total, most

    found = _in_child(judge)
    if found is None:
        return
    needed_bytes, largest = found
    found_words = "{:,.0f} MiB, and {:,.0f} MiB are free".format(needed_bytes / MIB, room / MIB)
    if needed_bytes > room:
        raise TrainingError(
            "this run does not fit into memory: the kernel would kill it",
            found=f"with batch_size {batch_size} it takes {found_words}",
            allowed=f"batch_size {largest}" if largest else "not even batch_size 1",
            do="choose that, fewer num_workers, or end other programs; `check_memory: false` in "
            "config/devices/ runs it anyway",
        )
    if needed_bytes * (1.0 + constants.margin) > room:
        log.warning("memory is tight: batch_size %d takes %s", batch_size, found_words)


def _in_child(judge: Callable[[], Any]) -> Optional[Any]:
    """Return what `judge` returns in a forked process; None: it failed, which is logged."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def answer() -> None:
        try:
            sender.send((judge(), ""))
        except Exception as error:  # noqa: BLE001 # a forecast that fails must not cost a measurement
            sender.send((None, str(error).split("\n")[0]))

    child = context.Process(target=answer, daemon=True)
    child.start()
    sender.close()
    try:
        found, why = receiver.recv() if receiver.poll(LONGEST_S) else (None, "it took too long")
    except EOFError:
        found, why = None, "its process was killed"
    if child.is_alive():
        child.terminate()
    child.join()
    if found is None:
        log.info("the memory of this run was not forecast: %s", why)
    return found
