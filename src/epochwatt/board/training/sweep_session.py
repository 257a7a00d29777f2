"""Measure modes of one sweep in one process (board side: Python 3.6 grammar; imports torch)."""

import hashlib
import logging
import math
import time
import uuid
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch

from epochwatt.board.device import last_measurement, page_cache
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.mode_folder import SweepFolder, mode_name
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.training import timing
from epochwatt.board.training.circumstances import mode_flags, raised
from epochwatt.board.training.data import dataset_paths
from epochwatt.board.training.loaders import TimedMinibatches, make_endless_loader
from epochwatt.board.training.loop import Bounds
from epochwatt.board.training.mode_loop import ModeWatch, Timed, train_mode
from epochwatt.board.training.procedure import Procedure, procedure_of
from epochwatt.board.training.session import Session, epoch_seed, explained
from epochwatt.board.training.stops import noticed_stops
from epochwatt.board.training.workloads import Trainer
from epochwatt.columns import Factors

log = logging.getLogger(__name__)

NOT_FIRST = 1  # number of an epoch before which no page cache is dropped


class SweepSession(Session):
    """Trains in one mode after the other, with one network and one data set.

    Parameters
    ----------
    folder : where the sweep's modes are kept
    factors : all of the sweep's factors, with `recipe`
    data_root : folder of the storage medium that holds the data set
    machine : the machine at hand; another job may have set it
    busy_pct : load of other programs before the first mode, %; None: not known
    """

    def __init__(
        self,
        folder: SweepFolder,
        factors: Factors,
        data_root: str,
        machine: Machine,
        busy_pct: Any = None,
    ) -> None:
        super().__init__(RunFolder(folder.root, folder.sweep), factors, data_root, machine, {})
        self.modes = folder
        self.busy_pct = busy_pct
        self.n_measured = 0  # modes, by this process
        self.procedure: Procedure = procedure_of(factors)
        if not getattr(self.source, "in_memory", False):
            page_cache.fill(dataset_paths(data_root, factors, self.manifest))
        self.trainer = self._new_trainer()
        self._warm_up()
        self.free_s = time.perf_counter()  # since when nothing is measured

    def measure_mode(
        self, mode: Dict[str, Any], place: int, applied: Document, settled: Any = None
    ) -> str:
        """Measure one mode, which is set, and keep its record; return in words what came of it.

        Raises TrainingError: a loader worker died; RecordWriteError: the mode does not count as
        measured.

        Parameters
        ----------
        applied : what `Machine.change` returned
        settled : what came of settling before it; None: it was not waited for
        """
        threads = self._set_threads(mode)
        measurement_id = uuid.uuid4().hex
        attempt = self.modes.begin(mode)
        last_measurement.remember(measurement_id, self.modes.sweep, place)
        self.monitor.begin(NOT_FIRST, attempt)
        watch = ModeWatch(self.monitor.power, self.procedure)
        with noticed_stops() as stops:
            time.sleep(self.procedure.idle_s)
            timed, loss = self._train_mode(mode, watch)
        unmet = {**applied["unmet"], **self.machine.unmet(applied)}
        observed = self.monitor.end()
        if self.machine.backend != "host":
            self.conditions = {
                "power_mode": dict(applied, unmet=unmet),
                "busy_pct": self.busy_pct,
                "settled": settled,
            }
        first = watch.first()
        meta = self._mode_meta(mode, timed, first, loss)
        meta.update(observed, measurement_id=measurement_id, stops=stops)
        meta.update(torch_threads_used=threads, power_readings=watch.n_power)
        meta.update(procedure=self.procedure._asdict(), n_dropped=first)
        if self.machine.backend == "host" and applied["resolved"]:
            meta["clocks_set"] = dict(applied, unmet=unmet)
        meta["transition"] = watch.transition and watch.transition._asdict()
        lag_s = watch.transition.lag_s if watch.transition is not None else 0.0
        enough = self.procedure.power_readings
        flags = mode_flags(meta, applied["resolved"], unmet)
        flags["transition_not_found"] = watch.transition is None
        flags["sensor_lagged"] = lag_s > self.procedure.lagged_s
        flags["few_power_samples"] = watch.has_sensor and watch.n_power < enough
        meta["flags"] = raised(flags)
        meta["took_s"] = time.perf_counter() - self.free_s  # with setting the mode, and settling
        self.n_measured += 1
        self.modes.finish(mode, meta, timed.minibatch_s[first:])
        self.free_s = time.perf_counter()
        return _summary(timed.minibatch_s[first:], watch.mean_power_w(), meta["flags"])

    def __enter__(self) -> "SweepSession":
        return self

    def _set_threads(self, mode: Dict[str, Any]) -> int:
        """Give torch a thread for each core of the mode, unless a board's factors say otherwise.

        Torch counted the cores when it was loaded, in whatever mode that was.
        """
        threads = self.factors["torch_threads"] if self.machine.backend != "host" else 0
        threads = threads or mode.get("cores") or self.factors["torch_threads"]
        if threads:
            torch.set_num_threads(int(threads))
        return int(torch.get_num_threads())

    def _train_mode(self, mode: Dict[str, Any], watch: ModeWatch) -> Tuple[Timed, Any]:
        """Train until the watch has enough; return the times and the last loss."""
        seed = mode_seed(self.factors["seed"], mode)
        torch.manual_seed(seed)
        generator = torch.Generator()
        generator.manual_seed(seed)
        minibatches = TimedMinibatches(self.source, self.transform, self.factors["num_workers"])
        loader = make_endless_loader(minibatches, len(self.source), self.factors, generator)
        cuda = torch.cuda if self.device.type == "cuda" else None
        losses: List[Any] = [None]

        def more(loss: Any) -> bool:
            losses[0] = loss
            return watch()

        trainer: Trainer = self.trainer or self._new_trainer()
        with explained(mode_name(mode)):
            watch.begin()
            timed = train_mode(
                iter(loader),
                trainer.copy,
                trainer.step,
                more,
                lambda n: timing.make_timer(n, "synchronised", cuda),
            )
        loss = None if losses[0] is None else float(losses[0])
        if loss is not None and not math.isfinite(loss):  # arithmetic of NaN may take other times
            self.trainer = self._new_trainer()
        return timed, loss

    def _mode_meta(
        self, mode: Dict[str, Any], timed: Timed, first: int, loss: Any
    ) -> Dict[str, Any]:
        """Return the record of a mode without its circumstances: of its clean mini-batches."""
        minibatch_s, starts_s = timed.minibatch_s[first:], timed.starts_s[first:]
        ahead_s = time.time() - time.perf_counter()
        bounds = Bounds(starts_s[0], starts_s[-1], starts_s[0] + ahead_s, starts_s[-1] + ahead_s)
        step = max(1, -(-len(minibatch_s) // timing.MARKS))
        marks = [[i, starts_s[i]] for i in range(0, len(minibatch_s), step)]
        marks.append([len(minibatch_s), starts_s[-1]])
        sums = {
            "loss": loss,
            "timing_method": timed.method,
            "host_wait_s": None,
            "placement": timing.placed("host", marks, 0.0),
            "tail_s": 0.0,
        }
        meta = self._meta(0, bounds, minibatch_s, sums)
        del meta["run"], meta["epoch"]
        meta["cold_process"] = not self.n_measured
        seed = mode_seed(self.factors["seed"], mode)
        meta.update(sweep=self.modes.sweep, mode=mode, repeat=0, epoch_seed=seed)
        meta["task"] = self.factors.get("task", "train")
        meta["arithmetic"]["compile_s"] = self.trainer.compile_s if self.trainer else 0.0
        meta["n_samples"] = len(minibatch_s) * self.factors["batch_size"]
        return meta


def mode_seed(seed: int, mode: Dict[str, Any]) -> int:
    """Return the seed of a mode, which is the same wherever it stands in a grid."""
    digest = hashlib.sha256(mode_name(mode).encode("ascii")).digest()
    return epoch_seed(seed, int.from_bytes(digest[:4], "big"))


def _summary(minibatch_s: np.ndarray, power_w: Optional[float], flags: List[str]) -> str:
    """Return "12.3 ms a mini-batch (40), 8.12 W; few_power_samples"."""
    time_ms = 1e3 * float(minibatch_s.sum(axis=1).mean())
    text = f"{time_ms:.3g} ms a mini-batch ({len(minibatch_s)})"
    if power_w is not None:
        text += f", {power_w:.3g} W"
    return "; ".join([text, *flags])
