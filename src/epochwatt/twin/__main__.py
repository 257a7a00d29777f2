"""`python -m epochwatt.twin`: the jobs of the simulation, as the workflow starts them.

They run by the hundred, so they import no more than they need: `epochwatt` itself takes longer.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from epochwatt.errors import EpochwattError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m epochwatt.twin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    count = commands.add_parser("count-workload", help="count the kernels of a mini-batch (torch)")
    count.add_argument("model", metavar="MODEL", help="a row of config/workloads.yaml")
    count.add_argument("--output", required=True, metavar="PATH", help="JSON file to write")
    run = commands.add_parser("simulate-run", help="simulate a run and write its records")
    run.add_argument("run", metavar="RUN", help="id of the run")
    run.add_argument("--factors", required=True, help="its factors, as JSON")
    run.add_argument("--epochs", required=True, type=int, help="number of epochs")
    run.add_argument("--workload", required=True, metavar="PATH", help="counts of its network")
    run.add_argument("--flag-effects", required=True, help="flag -> effect, as JSON")
    run.add_argument("--tables", required=True, metavar="FOLDER", help="for epochs.csv, energy.csv")
    idle = commands.add_parser("simulate-idle", help="simulate idle powers and write their records")
    idle.add_argument("--idles", required=True, help="list of idle measurements, as JSON")
    for command in (run, idle):
        command.add_argument("--output", required=True, metavar="FOLDER", help="for the records")
        command.add_argument("--config", type=Path, default=Path("config/twin"), metavar="FOLDER")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job; return the exit status, 1 after an error that was explained."""
    words = _parser().parse_args(arguments)
    try:
        if words.command == "count-workload":
            _count_workload(words.model, words.output)
        else:
            _simulate(words)
    except (EpochwattError, OSError, MemoryError) as error:
        print(f"error: {str(error) or 'out of memory'}", file=sys.stderr)
        return 1
    return 0


def _count_workload(model: str, output: str) -> None:
    from epochwatt.study.settings import load_settings
    from epochwatt.twin.counting.count_workload import (  # imports torch
        network_factors,
        write_workload,
    )

    write_workload(network_factors(model, load_settings().workloads), output)


def _simulate(words: argparse.Namespace) -> None:
    from epochwatt.twin.simulation.simulate_run import simulate_idle, simulate_run

    if words.command == "simulate-idle":
        simulate_idle(words.idles, words.config, words.output)
        return
    simulate_run(
        words.run,
        words.factors,
        words.epochs,
        words.config,
        words.workload,
        words.flag_effects,
        words.output,
        words.tables,
    )


if __name__ == "__main__":
    sys.exit(main())
