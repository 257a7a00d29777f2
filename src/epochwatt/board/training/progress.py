"""Report the progress of a long epoch from a thread (board side: Python 3.6 grammar).

The loop does nothing for it: the thread looks at the timer's count every few seconds.
"""

import sys
import threading
import time
from typing import Any

from epochwatt.board.training.loop import STAMPS

FIRST_S, EVERY_S = 2.0, 15.0


class Progress:
    """Prints "epoch 1: mini-batch 812 of 1573, 410/s, 2 s left" while the block runs.

    `timer`: its `n_stamps` grows by `STAMPS` with each mini-batch; `epoch`: what is under way; a
    negative one is the warm-up
    """

    def __init__(self, timer: Any, epoch: int, n_minibatches: int, out: Any = sys.stderr) -> None:
        self._timer = timer
        self._title = "warm-up" if epoch < 0 else f"epoch {epoch}"
        self._n_minibatches, self._out = n_minibatches, out
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._print_progress, daemon=True)

    def _print_progress(self) -> None:
        """Print a line after `FIRST_S` and every `EVERY_S` until the block ends."""
        start_s = time.perf_counter()
        pause_s = FIRST_S
        while not self._ended.wait(pause_s):
            done = self._timer.n_stamps // STAMPS
            text = f"{self._title}: mini-batch {done} of {self._n_minibatches}"
            if done:
                rate_per_s = done / (time.perf_counter() - start_s)
                left_s = (self._n_minibatches - done) / rate_per_s
                text += f", {rate_per_s:.3g}/s, {left_s:.0f} s left"
            self._out.write(text + "\n")
            self._out.flush()
            pause_s = EVERY_S

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
