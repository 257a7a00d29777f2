"""What other tools make of the same power signal, each in an environment of its own (README.md)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.results import Result


def run(quick: bool = False) -> "Result":
    """Measure the sampler and all peers that install; `quick` only those that are installed."""
    from benchmarks.peers import compare  # the peers' own environments import this package, too

    return compare.run(quick)
