"""Measure the epochs of a Lightning `Trainer` (Python 3.8).

`Trainer(callbacks=[EpochwattCallback(EpochMonitor("my-run"))])`
"""

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from epochwatt.board.training.loop import ASK, BODY
from epochwatt.integrations.callback import MeasuredEpochs
from epochwatt.monitor import EpochMonitor
from epochwatt.sinks import metrics


class EpochwattCallback(MeasuredEpochs, Callback):
    """Measures each training epoch, and logs `epochwatt/energy_wh` and the like.

    A mini-batch's body is what lies between `on_train_batch_start` and `on_train_batch_end`.
    Validation and checkpoints within an epoch are overhead, validation after its last mini-batch is
    no part of it.
    """

    def __init__(self, monitor: EpochMonitor) -> None:
        super().__init__(monitor)
        self._logged: Any = None
        self._sees_fetch = False

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin an epoch."""
        self._begin(trainer.train_dataloader)
        self._stamp(ASK)

    def on_train_batch_start(self, *_: Any) -> None:
        """Note that a mini-batch has come."""
        self._is_paused = False
        self._stamp(BODY)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Note that a mini-batch is done; other callbacks, such as checkpoints, come after this."""
        self._stamp(ASK)
        self._sees_fetch = self._hook_profiler(getattr(trainer.fit_loop, "_data_fetcher", None))
        if self._sees_fetch:
            self._pause()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Leave validation out of the wait; behind the last mini-batch the epoch ends."""
        if trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            self._end(is_whole=True)
        self._pause()

    def on_validation_end(self, *_: Any) -> None:
        """Go on waiting for data."""
        if not self._sees_fetch:
            self._resume()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """End an epoch and log it."""
        self._end(is_whole=trainer.fit_loop.epoch_loop.batch_progress.is_last_batch)
        last = self.monitor.last
        if last is not None and last is not self._logged and trainer.logger is not None:
            trainer.logger.log_metrics(metrics(last), step=trainer.global_step)
            self._logged = last

    def on_exception(self, *_: Any) -> None:
        """End an epoch that was left early."""
        self._end(is_whole=False)

    def _hook_profiler(self, fetcher: Any) -> bool:
        """Replace the fetcher's `_start_profiler`, so that `_resume` runs when it fetches.

        Returns whether this Lightning's fetcher has one.
        """
        start_profiler = getattr(fetcher, "_start_profiler", None)
        if start_profiler is None:
            return False
        if start_profiler != self._resume_and_profile:
            self._start_profiler = start_profiler
            fetcher._start_profiler = self._resume_and_profile
        return True

    def _resume_and_profile(self) -> None:
        self._resume()
        self._start_profiler()
