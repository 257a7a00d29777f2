"""Measure modes of one sweep in one process (board side: Python 3.6 grammar; imports torch)."""

import hashlib
import math
import time
from typing import Any, List, Mapping, Optional, Tuple

import torch

from epochwatt.board.device import page_cache
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.mode_folder import SweepFolder, mode_name
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.training import timing
from epochwatt.board.training.data import dataset_paths
from epochwatt.board.training.loaders import TimedMinibatches, make_endless_loader
from epochwatt.board.training.loop import Bounds, run_epoch
from epochwatt.board.training.mode_loop import ModeWatch
from epochwatt.board.training.observation import observed_mode, raised
from epochwatt.board.training.procedure import procedure_of
from epochwatt.board.training.session import Session, epoch_seed, explained
from epochwatt.board.training.workloads import Trainer
from epochwatt.columns import Factors

Mode = Mapping[str, float]


class SweepSession(Session):
    """Trains in one mode after the other, with one network and one data set.

    `folder`: where the sweep's modes are kept
    `factors`: all of the sweep's factors, with `recipe`
    `data_root`: folder of the storage medium that holds the data set
    `machine`: the machine at hand; another job may have set it
    """

    def __init__(
        self, folder: SweepFolder, factors: Factors, data_root: str, machine: Machine
    ) -> None:
        super().__init__(RunFolder(folder.root, folder.name), factors, data_root, machine, {})
        self.modes = folder
        self.n_measured = 0  # modes, by this process
        self.procedure = procedure_of(factors)
        if not getattr(self.source, "in_memory", False):
            page_cache.fill(dataset_paths(data_root, factors, self.manifest))
        self.trainer: Trainer = self._new_trainer()
        self._warm_up()
        self.free_s = time.perf_counter()  # since when nothing is measured

    def __enter__(self) -> "SweepSession":
        return self

    def measure_mode(self, mode: Mode, number: int, applied: Document, conditions: Document) -> str:
        """Train in a mode that is set already, and write its record; return a summary for the log.

        Raises TrainingError: a loader worker died; RecordWriteError: a file cannot be written. The
        mode then does not count. Parameters as of `observed_mode`.
        """
        threads, procedure = self._set_threads(mode), self.procedure
        watch = ModeWatch(self.monitor.power, procedure)
        with observed_mode(self.monitor, self.modes, mode, number, applied, conditions) as observed:
            time.sleep(procedure.idle_s)
            timer, loss = self._train_mode(mode, watch)
        first, transition = watch.first(), watch.transition
        trained = self._clean_minibatches(timer, first, loss)
        meta = self._meta(trained)
        meta.update(
            observed,
            sweep=self.modes.name,
            mode=mode,
            repeat=0,
            epoch_seed=mode_seed(self.factors["seed"], mode),
            task=self.factors.get("task", "train"),
            cold_process=not self.n_measured,
            torch_threads_used=threads,
            power_readings=watch.n_power,
            procedure=procedure._asdict(),
            n_dropped=first,
            transition=transition and transition._asdict(),
        )
        meta["arithmetic"]["compile_s"] = self.trainer.compile_s
        is_late = transition is not None and transition.lag_s > procedure.lagged_s
        is_few = watch.has_sensor and watch.n_power < procedure.power_readings
        flags = {"transition_not_found": transition is None, "sensor_lagged": is_late}
        meta["flags"] = raised(dict(observed["flags"], few_power_samples=is_few, **flags))
        meta["took_s"] = time.perf_counter() - self.free_s  # with setting the mode, and settling
        self.n_measured += 1
        self.modes.finish(mode, meta, trained.minibatch_s)
        self.free_s = time.perf_counter()
        return _summary(trained, watch.mean_power_w(), meta["flags"])

    def _set_threads(self, mode: Mode) -> int:
        """Set and return torch's threads: on a board its factor `torch_threads`, else the cores.

        Torch counted the cores when it was loaded, in another mode. On a host the mode's cores come
        before the factor; where neither says a number, torch's own stays.
        """
        threads = self.factors["torch_threads"]
        if self.machine.backend == "host" or not threads:
            threads = mode.get("cores") or threads
        if threads:
            torch.set_num_threads(int(threads))
        return int(torch.get_num_threads())

    def _train_mode(self, mode: Mode, watch: ModeWatch) -> Tuple[Any, Optional[float]]:
        """Train until the watch has enough; return the timer and the last loss (None: inference).

        A loss that is not finite also replaces the trainer by a new one.
        """
        generator = self.seeded(mode_seed(self.factors["seed"], mode))
        minibatches = TimedMinibatches(self.source, self.transform, self.factors["num_workers"])
        loader = make_endless_loader(minibatches, len(self.source), self.factors, generator)
        timer = timing.make_timer("synchronised", self.cuda)
        last_loss: Any = None

        def keep_loss(minibatch_loss: Any) -> bool:
            nonlocal last_loss
            last_loss = minibatch_loss
            return not watch()

        with explained(mode_name(mode)):
            watch.begin()
            run_epoch(loader, self.trainer.copy, self.trainer.step, keep_loss, timer)
        loss = None if last_loss is None else float(last_loss)
        if loss is not None and not math.isfinite(loss):  # arithmetic of NaN may take other times
            self.trainer = self._new_trainer()
        return timer, loss

    def _clean_minibatches(self, timer: Any, first: int, loss: Optional[float]) -> timing.Timed:
        """Return bounds, times and facts of the mini-batches from number `first` on."""
        minibatch_s, starts_s = timer.minibatch_s()[first:], timer.asked_s()[first:].tolist()
        start_s, end_s = starts_s[0], starts_s[-1]
        unix_offset_s = time.time() - time.perf_counter()
        bounds = Bounds(start_s, end_s, start_s + unix_offset_s, end_s + unix_offset_s)
        facts = {
            "n_samples": len(minibatch_s) * self.factors["batch_size"],
            "loss": loss,
            "timing_method": timer.method,
            "host_wait_s": None,
            "placement": timing.placed("host", starts_s, 0.0),
            "tail_s": 0.0,
        }
        return timing.Timed(bounds, minibatch_s, facts)


def mode_seed(seed: int, mode: Mode) -> int:
    """Return the seed of a mode, which is the same wherever it stands in a grid."""
    digest = hashlib.sha256(mode_name(mode).encode("ascii")).digest()
    return epoch_seed(seed, int.from_bytes(digest[:4], "big"))


def _summary(trained: timing.Timed, power_w: Optional[float], flags: List[str]) -> str:
    """Return "12.3 ms a mini-batch (40), 8.12 W; few_power_samples"."""
    time_ms = 1e3 * float(trained.minibatch_s.sum(axis=1).mean())
    text = f"{time_ms:.3g} ms a mini-batch ({len(trained.minibatch_s)})"
    if power_w is not None:
        text += f", {power_w:.3g} W"
    return "; ".join([text, *flags])
