"""Measure the epochs of a Hugging Face `Trainer` (Python 3.8).

`Trainer(..., callbacks=[EpochwattCallback(EpochMonitor("my-run"))])`
"""

from typing import Any

from transformers import TrainerCallback

from epochwatt.board.training.loop import ASK, BODY
from epochwatt.integrations.callback import MeasuredEpochs
from epochwatt.monitor import EpochMonitor


class EpochwattCallback(MeasuredEpochs, TrainerCallback):
    """Measures each training epoch; a mini-batch of the record is a step of the optimiser.

    Logging, evaluation and saving within an epoch are overhead.
    """

    def __init__(self, monitor: EpochMonitor) -> None:
        super().__init__(monitor)
        self._n_steps = self._n_steps_of_epoch = 0  # of the epoch

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Begin an epoch."""
        loader: Any = more.get("train_dataloader")
        self._begin(() if loader is None else loader)
        self._n_steps, self._n_steps_of_epoch = 0, 0
        if hasattr(loader, "__len__"):
            self._n_steps_of_epoch = -(-len(loader) // args.gradient_accumulation_steps)
        self._stamp(ASK)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that the data of a step have come."""
        self._resume()  # where logging, evaluation or saving was announced but not done
        self._stamp(BODY)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that a step is done, and whether something else comes before the next."""
        self._stamp(ASK)
        self._n_steps += 1
        if control.should_log or control.should_evaluate or control.should_save:
            self._pause()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that a loss is logged, unless evaluation or saving follows."""
        if not (control.should_evaluate or control.should_save):
            self._resume()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note the end of an evaluation, unless saving may follow."""
        if not control.should_save and getattr(args.save_strategy, "value", "") != "best":
            self._resume()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note that a checkpoint is written; loading of data goes on."""
        self._resume()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End an epoch."""
        self._end(is_whole=self._n_steps >= self._n_steps_of_epoch)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End an epoch that was left early."""
        self._end(is_whole=False)
