"""One reader that is fed with damaged inputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
    """Return the target of one file; its good input is what stands there."""
    where = path.name if place is None else place
    goods, read = [path.read_bytes()], written_to(path, then)
    return Target(name or path.name, kind, goods, read, where, (), share)
