"""What the callbacks of frameworks share: an epoch that they begin, pause and end (Python 3.8)."""

from typing import Any

from epochwatt.board.training.loop import AGAIN, PAUSE
from epochwatt.monitor import EpochMonitor


class MeasuredEpochs:
    """Stamps the epochs of a monitor; without an open epoch a stamp does nothing.

    `monitor`: its `last` is the latest epoch; its `log_to` says who is told of each
    """

    def __init__(self, monitor: EpochMonitor) -> None:
        self.monitor = monitor
        self._loop: Any = None
        self._is_paused = False

    def _begin(self, loader: Any) -> None:
        """Begin an epoch; one that an error has left open ends."""
        self._end(is_whole=False)
        self._loop = self.monitor._begin(loader)

    def _stamp(self, what: int) -> None:
        if self._loop is not None:
            self._loop.stamp(what)

    def _pause(self) -> None:
        self._stamp(PAUSE)
        self._is_paused = True

    def _resume(self) -> None:
        if self._is_paused:
            self._stamp(AGAIN)
            self._is_paused = False

    def _end(self, is_whole: bool) -> None:
        loop, self._loop, self._is_paused = self._loop, None, False
        if loop is not None:
            self.monitor._end(loop, is_whole)
