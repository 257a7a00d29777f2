"""The progress line: true, and no cost to the loop."""

import io
import threading
from types import SimpleNamespace

from epochwatt.board.training import progress
from epochwatt.board.training.progress import Progress


class Listener(io.StringIO):
    """Takes lines and says when one is complete."""

    def __init__(self):
        super().__init__()
        self.told = threading.Event()

    def flush(self):
        self.told.set()


def test_thread_counts_finished_minibatches_by_the_timers_stamps(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_S", 0.0)
    out = Listener()
    with Progress(SimpleNamespace(n_stamps=4 * 7 + 2), 2, 10, out=out):
        assert out.told.wait(10)
    assert out.getvalue().startswith("epoch 2: mini-batch 7 of 10, ")
