"""Measure a part of a run: `python -m epochwatt.board.training` (board side: Python 3.6)."""

import json
import sys
from typing import List, Optional

from epochwatt import columns
from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training.exit_status import exit_status, measuring_parser
from epochwatt.board.training.job import run_part


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    parser = measuring_parser("epochwatt.board.training", __doc__, "run", "epoch of the part")
    arguments = parser.parse_args(argv)
    folder = RunFolder(arguments.measured, arguments.run)

    def measure() -> None:
        run_part(
            folder,
            columns.with_defaults(json.loads(arguments.factors)),
            arguments.first,
            arguments.last,
            arguments.data_root,
            arguments.receipt,
            open_machine(json.loads(arguments.machine)),
        )

    return exit_status(arguments.run, measure)


if __name__ == "__main__":
    sys.exit(main())
