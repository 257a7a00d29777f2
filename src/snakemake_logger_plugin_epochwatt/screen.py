"""Where lines go: a terminal with a bar below them, or plain lines into a file or a pipe."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO

from snakemake_logger_plugin_epochwatt.stages import duration

PLAIN_EVERY_S = 30.0  # at least, between two lines of progress where there is no terminal
PLAIN_SHARE = 0.1  # of the estimate, likewise
_STYLES = {"warning": "yellow", "error": "red", "quiet": "dim"}


class View(NamedTuple):
    """What the bar shows."""

    share: float  # of the time, 0 to 1
    left_s: float
    done: int  # jobs
    jobs: int
    line: str  # what is under way


class Plain:
    """Plain lines, and now and then one of progress.

    Parameters
    ----------
    out : a stream
    """

    period_s: float = 5.0

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._next_s = 0.0

    def line(self, text: str, style: str = "") -> None:
        """Write a line, or several."""
        self._out.write(text + "\n")
        self._out.flush()

    def show(self, view: View) -> None:
        """Write a line of progress, if it is time for one."""
        now_s = time.monotonic()
        if not self._next_s:
            self._next_s = now_s + max(PLAIN_EVERY_S, PLAIN_SHARE * view.left_s)
        elif now_s >= self._next_s:
            spacing_s = PLAIN_SHARE * view.left_s / max(1e-3, 1.0 - view.share)
            self._next_s = now_s + max(PLAIN_EVERY_S, spacing_s)
            self.line(
                f"{100.0 * view.share:.0f} %, {view.done} of {view.jobs} jobs, "
                f"about {duration(view.left_s)} left"
            )

    def stop(self) -> None:
        """Nothing is left on the screen to take away."""


class Bar:
    """Lines above a bar that stays at the foot of a terminal.

    Parameters
    ----------
    out : a terminal
    no_colour : use none, whatever the terminal can
    """

    period_s: float = 0.5

    def __init__(self, out: TextIO, no_colour: bool) -> None:
        from rich.console import Console  # here: a start without a terminal need not import it
        from rich.live import Live

        self._console = Console(file=out, no_color=no_colour or None, highlight=False)
        self._view: View | None = None
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            get_renderable=self._drawing,
            redirect_stdout=True,
            redirect_stderr=True,
        )
        self._live.start()

    def line(self, text: str, style: str = "") -> None:
        """Write a line, or several, above the bar."""
        self._console.print(text, style=_STYLES.get(style), markup=False, soft_wrap=True)

    def show(self, view: View) -> None:
        """Draw the bar anew."""
        self._view = view
        self._live.refresh()

    def stop(self) -> None:
        """Take the bar away."""
        self._live.stop()

    def _drawing(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if self._view is None:
            return Text("")
        view, width = self._view, self._console.width
        words = f"{100.0 * view.share:3.0f} %  {view.done}/{view.jobs} jobs"
        left = f"{duration(view.left_s)} left"
        row = Table.grid(padding=(0, 1))
        cells: list[Any] = [Text(left if width < 40 else f"{words}  {left}", no_wrap=True)]
        if (room := width - len(f"{words}  {left}") - 3) >= 8:
            cells.insert(0, ProgressBar(total=1.0, completed=view.share, width=min(40, room)))
        row.add_row(*cells)
        under_way = Text(view.line, style="dim", no_wrap=True, overflow="ellipsis", end="")
        under_way.truncate(
            max(1, width - 1), overflow="ellipsis" if _unicode(self._console) else "crop"
        )
        return Group(row, under_way)


def _unicode(console: Any) -> bool:
    return str(console.encoding).lower().startswith("utf")


def open_screen(out: TextIO, no_colour: bool, plain: bool = False) -> Plain | Bar:
    """Return a bar where there is a terminal that can move its cursor, else plain lines."""
    if plain or not out.isatty() or os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return Plain(out)
    return Bar(out, no_colour)


class Ticker:
    """Calls `tick` every so often from a thread, until it is stopped.

    Parameters
    ----------
    tick : returns the seconds until the next call
    """

    def __init__(self, tick: Callable[[], float]) -> None:
        self._tick = tick
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="epochwatt-bar")
        self._thread.start()

    def _run(self) -> None:
        pause_s = 0.2
        while not self._ended.wait(pause_s):
            pause_s = self._tick()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
