"""The progress line: true, and no cost to the loop."""

import io
import threading
from types import SimpleNamespace

import pytest

from epochwatt.training import progress
from epochwatt.training.progress import Progress


def line(epoch, done, elapsed_s, n_minibatches=1573):
    return Progress(None, 4, epoch, n_minibatches).line(done, elapsed_s)


def test_line_tells_epoch_minibatch_rate_and_time_left():
    assert line(1, 800, 2.0) == "epoch 1: mini-batch 800 of 1573, 400/s, 2 s left"


def test_slow_training_has_a_rate_too():
    assert line(0, 1, 20.0, n_minibatches=31) == "epoch 0: mini-batch 1 of 31, 0.05/s, 600 s left"


def test_no_rate_before_the_first_minibatch():
    assert line(0, 0, 2.0) == "epoch 0: mini-batch 0 of 1573"


def test_warm_up_is_called_so():
    assert line(-1, 20, 2.0, n_minibatches=20).startswith("warm-up: mini-batch 20 of 20")


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
    with Progress(SimpleNamespace(n_stamps=4 * 7 + 2), 4, 2, 10, out=out):
        assert out.told.wait(10)
    assert out.getvalue().startswith("epoch 2: mini-batch 7 of 10, ")


@pytest.mark.parametrize("failure", [None, ZeroDivisionError])
def test_short_epoch_is_told_nothing_and_its_thread_ends(failure):
    out = Listener()
    before = threading.active_count()
    try:
        with Progress(SimpleNamespace(n_stamps=0), 4, 0, 10, out=out):
            assert threading.active_count() == before + 1
            if failure:
                raise failure
    except ZeroDivisionError:
        pass
    assert threading.active_count() == before
    assert out.getvalue() == ""
