"""Measure the ceilings of modes in one process (board side: Python 3.6 grammar; imports torch)."""

import logging
import time
from typing import List, Mapping

import torch

from epochwatt.board.device.machine import Machine
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.which_gpu import gpu_of
from epochwatt.board.training.ceilings.blocks import LIMITS, time_blocks
from epochwatt.board.training.ceilings.kernels import kernels, left_out
from epochwatt.board.training.observation import Observer, circumstances, observed_mode, raised

log = logging.getLogger(__name__)

KEPT = ("kernel", "precision", "size", "flops", "bytes", "way")  # of a kernel: all but what to call


class CeilingSession:
    """Times the micro-kernels in one mode after the other.

    `folder`: where the modes are kept
    `precisions`: of matrix products
    `machine`: the machine at hand
    """

    def __init__(self, folder: CeilingFolder, precisions: List[str], machine: Machine) -> None:
        self.folder = folder
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.left_out = left_out(precisions, self.device)
        for precision, reason in self.left_out.items():
            log.warning("no ceilings of %s here: %s", precision, reason)
        self.precisions = [precision for precision in precisions if precision not in self.left_out]
        self.gpu = gpu_of(self.device, torch)
        self.observer = Observer(machine, folder.root, gpu=self.gpu)
        self.free_s = time.perf_counter()  # since when nothing is measured

    def __enter__(self) -> "CeilingSession":
        return self

    def __exit__(self, *exception: object) -> None:
        self.observer.__exit__()

    def measure_mode(
        self, mode: Mapping[str, float], number: int, applied: Document, conditions: Document
    ) -> str:
        """Time all kernels in a mode that is set, and write its record; return the best rates.

        Those are words for the log. Raises RecordWriteError: a file cannot be written, the mode
        does not count. Parameters as of `observed_mode`.
        """
        if mode.get("cores"):
            torch.set_num_threads(int(mode["cores"]))
        meta = circumstances(self.observer.machine, self.device, self.gpu)
        observing = observed_mode(self.observer, self.folder, mode, number, applied, conditions)
        with observing as observed, torch.no_grad():
            unix_s, start_s = time.time(), time.perf_counter()
            entries = self._time_kernels()
            end_s = time.perf_counter()
        meta.update(
            observed,
            ceilings=self.folder.name,
            mode=mode,
            processor="gpu" if self.device.type == "cuda" else "cpu",
            limits=LIMITS._asdict(),
            left_out=self.left_out,
            kernels=entries,
            t_start_unix_s=unix_s,
            t_start_mono_s=start_s,
            t_end_mono_s=end_s,
            flags=raised(observed["flags"]),
            took_s=time.perf_counter() - self.free_s,  # with setting the mode, and settling
        )
        self.folder.finish(mode, meta)
        self.free_s = time.perf_counter()
        best_gflops = max(entry["flops"] / _best_s(entry) / 1e9 for entry in entries)
        best_gbytes = max(entry["bytes"] / _best_s(entry) / 1e9 for entry in entries)
        summary = f"at best {best_gflops:.3g} GFLOP/s, {best_gbytes:.3g} GB/s"
        return "; ".join([summary, *meta["flags"]])

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _time_kernels(self) -> List[Document]:
        """Time all micro-kernels; return each one's fields of `KEPT` and `Blocks`."""
        entries = []
        for kernel in kernels(self.precisions, self.device):
            blocks = time_blocks(kernel.call, self._wait, kernel.most_calls, self.observer.power)
            entry: Document = {name: getattr(kernel, name) for name in KEPT}
            entry.update(blocks._asdict())
            entries.append(entry)
            best_s = _best_s(entry)
            log.info(
                f"{kernel.kernel} {kernel.precision} {kernel.size}: {1e3 * best_s:.3g} ms, "
                f"{kernel.flops / best_s / 1e9:.3g} GFLOP/s, {kernel.bytes / best_s / 1e9:.3g} GB/s"
            )
        return entries


def _best_s(entry: Document) -> float:
    return float(min(entry["blocks_s"]) / entry["n_calls"])
