"""Measure the ceilings of modes in one process (board side: Python 3.6 grammar; imports torch)."""

import logging
import os
import time
import uuid
from typing import Any, Dict, List, Optional

import torch

from epochwatt.board.device import last_measurement
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.client import Sampler
from epochwatt.board.training.ceilings.blocks import LIMITS, Blocks, time_blocks
from epochwatt.board.training.ceilings.kernels import Kernel, kernels, left_out
from epochwatt.board.training.circumstances import circumstances, mode_flags, raised
from epochwatt.board.training.gpu import gpu_of
from epochwatt.board.training.stops import noticed_stops

log = logging.getLogger(__name__)


class CeilingSession:
    """Times the micro-kernels in one mode after the other.

    Parameters
    ----------
    folder : where the modes are kept
    precisions : of matrix products
    machine : the machine at hand
    busy_pct : load of other programs before the first mode, %; None: not known
    """

    def __init__(
        self,
        folder: CeilingFolder,
        precisions: List[str],
        machine: Machine,
        busy_pct: Optional[float] = None,
    ) -> None:
        self.folder, self.machine, self.busy_pct = folder, machine, busy_pct
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.left_out = left_out(precisions, self.device)
        for precision, reason in self.left_out.items():
            log.warning("no ceilings of %s here: %s", precision, reason)
        self.precisions = [precision for precision in precisions if precision not in self.left_out]
        self.gpu = gpu_of(self.device, torch)
        self.sampler = Sampler.start(
            os.getpid(),
            folder.root,
            0,
            root=machine.root,
            power=machine.settings["power_source"],
            gpu=self.gpu,
        )
        self.free_s = time.perf_counter()  # since when nothing is measured

    def measure_mode(
        self, mode: Dict[str, Any], place: int, applied: Document, settled: Any = None
    ) -> str:
        """Measure one mode, which is set, and keep its record; return in words what came of it.

        Parameters
        ----------
        applied : what `Machine.change` returned
        settled : what came of settling before it; None: it was not waited for

        Raises RecordWriteError: the mode does not count as measured.
        """
        if mode.get("cores"):
            torch.set_num_threads(int(mode["cores"]))
        meta = self._circumstances(mode)
        last_measurement.remember(meta["measurement_id"], self.folder.name, place)
        self.sampler.begin(self.folder.begin(mode))
        before, unix_s, start_s = self.machine.events(), time.time(), time.perf_counter()
        with noticed_stops() as stops, torch.no_grad():
            meta["kernels"] = self._timed()
        unmet = {**applied["unmet"], **self.machine.unmet(applied)}
        meta.update(t_start_unix_s=unix_s, t_start_mono_s=start_s)
        meta["t_end_mono_s"] = time.perf_counter()
        meta["telemetry_lost"] = self.sampler.end()["lost"]
        meta["events"] = {"before": before, "after": self.machine.events()}
        meta["stops"] = stops
        self._add_mode(meta, dict(applied, unmet=unmet), settled)
        meta["flags"] = raised(mode_flags(meta, applied["resolved"], unmet))
        meta["took_s"] = time.perf_counter() - self.free_s  # with setting the mode, and settling
        self.folder.finish(mode, meta)
        self.free_s = time.perf_counter()
        return _summary(meta)

    def __enter__(self) -> "CeilingSession":
        return self

    def __exit__(self, *exception: object) -> None:
        self.sampler.stop()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _timed(self) -> List[Dict[str, Any]]:
        """Time all micro-kernels; return of each its work and the bounds of its blocks."""
        entries = []
        for kernel in kernels(self.precisions, self.device):
            blocks = time_blocks(kernel.call, self._wait, kernel.most_calls, self.sampler.power)
            entries.append(_entry(kernel, blocks))
            log.info(_words(entries[-1]))
        return entries

    def _circumstances(self, mode: Dict[str, Any]) -> Dict[str, Any]:
        """Return what the record says besides what is measured."""
        return dict(
            circumstances(self.machine, self.device, self.gpu),
            ceilings=self.folder.name,
            mode=mode,
            processor="gpu" if self.device.type == "cuda" else "cpu",
            measurement_id=uuid.uuid4().hex,
            limits=LIMITS._asdict(),
            left_out=self.left_out,
        )

    def _add_mode(self, meta: Document, applied: Document, settled: Any) -> None:
        """Note how the mode was set: of a board, and of a host where something was set."""
        if self.machine.backend != "host":
            meta["board"] = {"power_mode": applied, "busy_pct": self.busy_pct, "settled": settled}
        elif applied["resolved"]:
            meta["clocks_set"] = applied


def _entry(kernel: Kernel, blocks: Blocks) -> Dict[str, Any]:
    """Return what the record keeps of a kernel: all but what to call."""
    names = ("kernel", "precision", "size", "flops", "bytes", "way")
    entry: Dict[str, Any] = {name: getattr(kernel, name) for name in names}
    entry.update(blocks._asdict())
    return entry


def _best_s(entry: Dict[str, Any]) -> float:
    return float(min(entry["blocks_s"]) / entry["n_calls"])


def _words(entry: Dict[str, Any]) -> str:
    """Return "matmul fp32 512: 2.51 ms, 107 GFLOP/s, 1.25 GB/s"."""
    best_s = _best_s(entry)
    return "{kernel} {precision} {size}: {:.3g} ms, {:.3g} GFLOP/s, {:.3g} GB/s".format(
        1e3 * best_s, entry["flops"] / best_s / 1e9, entry["bytes"] / best_s / 1e9, **entry
    )


def _summary(meta: Document) -> str:
    """Return "at best 107 GFLOP/s, 134 GB/s; clock_below_request"."""
    rates = [max(e[key] / _best_s(e) / 1e9 for e in meta["kernels"]) for key in ("flops", "bytes")]
    return "; ".join(["at best {:.3g} GFLOP/s, {:.3g} GB/s".format(*rates), *meta["flags"]])
