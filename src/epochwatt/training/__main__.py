"""`python -m epochwatt.training`: measure a part of a run (board side: Python 3.6 grammar)."""

import argparse
import json
import sys
from typing import List, Optional

from epochwatt import fields
from epochwatt.device.machine import open_machine
from epochwatt.records.run_folder import RunFolder
from epochwatt.training.exit_status import exit_status
from epochwatt.training.job import run_part


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="epochwatt.training", description=__doc__)
    parser.add_argument("--run", required=True, help="id of the run")
    parser.add_argument("--factors", required=True, help="the run's canonical factors, as JSON")
    parser.add_argument("--first", type=int, required=True, help="first epoch of the part")
    parser.add_argument("--last", type=int, required=True, help="last epoch of the part")
    parser.add_argument("--measured", required=True, help="folder of all measured runs")
    parser.add_argument("--data-root", required=True, help="folder that holds the data sets")
    parser.add_argument("--receipt", required=True, help="file to write when all are measured")
    parser.add_argument(
        "--machine", required=True, help="what to know of the machine (device.machine), as JSON"
    )
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    arguments = _parser().parse_args(argv)
    folder = RunFolder(arguments.measured, arguments.run)

    def measure() -> None:
        run_part(
            folder,
            fields.with_defaults(json.loads(arguments.factors)),
            arguments.first,
            arguments.last,
            arguments.data_root,
            arguments.receipt,
            open_machine(json.loads(arguments.machine)),
        )

    return exit_status(arguments.run, measure)


if __name__ == "__main__":
    sys.exit(main())
