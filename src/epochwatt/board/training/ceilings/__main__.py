"""Measure what a device reaches: `-m epochwatt.board.training.ceilings` (board side: Python 3.6).

One job is all modes in which the ceilings of one device are wanted;
each is kept as soon as it is finished. torch is imported only when there is something to measure.
"""

import argparse
import json
import sys
from typing import Any, List, Optional

from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.board.training.exit_status import exit_status
from epochwatt.board.training.sweep import measure_chunk, read_modes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="epochwatt.board.training.ceilings", description=__doc__)
    parser.add_argument("--ceilings", required=True, help="id of the measurement")
    parser.add_argument("--modes", required=True, help="JSON file that lists the modes")
    parser.add_argument("--dvfs", required=True, help="on: governors choose the clocks; off")
    parser.add_argument("--precisions", nargs="+", required=True, help="of matrix products")
    parser.add_argument("--measured", required=True, help="folder of all measurements")
    parser.add_argument("--receipt", required=True, help="file to write when all are measured")
    parser.add_argument("--machine", required=True, help="what to know of the machine, as JSON")
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    arguments = _parser().parse_args(argv)
    folder = CeilingFolder(arguments.measured, arguments.ceilings)

    def measure() -> None:
        machine, modes = open_machine(json.loads(arguments.machine)), read_modes(arguments.modes)

        def opened(busy_pct: Optional[float]) -> Any:
            from epochwatt.board.training.ceilings.session import CeilingSession

            return CeilingSession(folder, arguments.precisions, machine, busy_pct)

        last = len(modes) - 1
        measure_chunk(folder, modes, 0, last, arguments.receipt, machine, arguments.dvfs, opened)

    return exit_status(arguments.ceilings, measure)


if __name__ == "__main__":
    sys.exit(main())
