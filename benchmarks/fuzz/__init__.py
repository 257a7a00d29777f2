"""Damaged inputs for everything that reads: `python -m benchmarks.fuzz`.

Here: a reader, the inputs that hypothesis feeds it with, and what it may do with them.
"""

import contextlib
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from benchmarks.fuzz.mutations import damaged
from epochwatt.errors import EpochwattError

LIMIT_S = 20.0  # of one input: the machine may have other work
LIMIT_BYTES = 2 * 2**30  # of memory, beside what this process has

Read = Callable[[bytes], Any]


class Target(NamedTuple):
    """A reader and what it is fed with."""

    name: str
    kind: str  # of damage: benchmarks.fuzz.mutations
    goods: list[bytes]  # inputs to begin with
    read: Read
    place: str = ""  # what an error has to name; empty: its caller adds it
    allowed: tuple[type[Exception], ...] = ()  # beside EpochwattError, as its docstring says
    share: float = 10  # of all inputs, relative to the others


class ReaderError(Exception):
    """A reader did what it may not."""


def written_to(path: Path, then: Callable[[], Any]) -> Read:
    """Return a reader that puts the bytes into a file, and the good ones back when it has read."""
    good = path.read_bytes()

    def read(content: bytes) -> Any:
        path.unlink(missing_ok=True)  # it may be a hard link
        path.write_bytes(content)
        try:
            return then()
        finally:
            path.write_bytes(good)

    return read


def on_file(
    path: Path,
    kind: str,
    then: Callable[[], Any],
    name: str = "",
    place: str | None = None,
    share: float = 10,
) -> Target:
    """Return the target of a file that `then` reads; its errors name the file, or `place`."""
    where = path.name if place is None else place
    goods = [path.read_bytes()]
    return Target(name or path.name, kind, goods, written_to(path, then), where, (), share)


def feed(target: Target, seed: int, count: int) -> str | None:
    """Read so many damaged inputs; return the failure on the smallest one, None: there is none."""
    target.read(target.goods[0])  # what is whole has to be read; and imports are made once

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(st.sampled_from(target.goods), st.randoms(use_true_random=False))
    def read(good: bytes, rng: Any) -> None:
        examine(target, damaged(good, target.kind, rng))

    try:
        with _limited():
            read()
    except ReaderError as failure:
        return str(failure)
    except hypothesis.errors.HypothesisException as error:  # it does not fail each time
        return f"{type(error).__name__}: {error}"
    return None


def examine(target: Target, content: bytes) -> None:
    """Read one input; raise `ReaderError` where the reader did what it may not."""
    try:
        with _in_time():
            target.read(content)
    except EpochwattError as error:
        if target.place not in str(error):
            raise ReaderError(f"names no place: {error!s:.300} at {_place(error)}") from None
    except target.allowed:
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  that is what is looked for
        what = f"{type(error).__name__}: {error}"[:300].encode("utf-8", "replace").decode()
        raise ReaderError(f"{what} at {_place(error)}, given {content[:200]!r}") from None


def _place(error: BaseException) -> str:
    """Return the last line of ours that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/src/epochwatt/" in frame.filename]
    if not ours:
        return "outside the package"
    return f"{ours[-1].filename.rpartition('/src/epochwatt/')[2]}:{ours[-1].lineno}"


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """Raise TimeoutError in the block when it takes too long."""

    def end(*_: Any) -> None:
        raise TimeoutError(f"more than {LIMIT_S:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Let the block take `LIMIT_BYTES` more memory, and no more."""
    with open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
