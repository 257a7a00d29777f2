"""`python -m epochwatt.twin RUN ...`: simulate one run, as rule simulate_run starts it.

It runs by the hundred, so it imports no more than it needs: `epochwatt` itself takes longer.
"""

import argparse
import functools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from epochwatt import columns
from epochwatt.counting.kernel_counts import load_kernel_counts
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.twin.records import write_run
from epochwatt.twin.run import simulate
from epochwatt.twin.twin import Twin, load_twin


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments that rule simulate_run passes."""
    parser = argparse.ArgumentParser(prog="python -m epochwatt.twin", description=__doc__)
    parser.add_argument("run", metavar="RUN", help="id of the run")
    parser.add_argument("--factors", required=True, help="its factors, as JSON")
    parser.add_argument("--epochs", required=True, type=int, help="number of epochs")
    parser.add_argument("--workload", required=True, metavar="PATH", help="counts of its network")
    parser.add_argument("--flag-effects", required=True, help="flag -> effect, as JSON")
    parser.add_argument("--config", required=True, type=Path, metavar="FOLDER", help="config/twin")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="for the records")
    parser.add_argument(
        "--tables", required=True, metavar="FOLDER", help="for epochs.csv, energy.csv"
    )
    return parser


@functools.cache
def _boards(config: Path) -> Twin:
    """Read the simulated boards without a network, once per process."""
    return load_twin(config, [])


def prepare(arguments: Sequence[str]) -> None:
    """Fill the cache of boards, for the runs of processes that are forked afterwards."""
    _boards(_parser().parse_args(arguments).config)


def _simulate(job: argparse.Namespace) -> None:
    """Simulate a run and write its records and tables; ConfigError: factors are not JSON."""
    try:
        factors = columns.with_defaults(json.loads(job.factors))
    except ValueError as error:
        allowed = "a run's factors, as JSON"
        raise ConfigError(str(error), where="--factors", allowed=allowed) from None
    twin = _boards(job.config).knowing(load_kernel_counts(job.workload))
    epochs = simulate(factors, job.epochs, twin)
    write_run(job.run, job.output, factors, epochs, json.loads(job.flag_effects), job.tables)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate a run; return the exit status, 1 after an error that was explained."""
    job = _parser().parse_args(arguments)
    try:
        _simulate(job)
    except (EpochwattError, OSError, MemoryError) as error:
        print(f"error: {str(error) or 'out of memory'}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
