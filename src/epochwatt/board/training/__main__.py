"""Measure a part of a run: `python -m epochwatt.board.training` (board side: Python 3.6)."""

from typing import List, Optional

from epochwatt import columns
from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training.exit_status import exit_status, leave, options
from epochwatt.board.training.job import run_part


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    names = "run factors first last measured data-root receipt machine"
    given = options("epochwatt.board.training", __doc__, names, argv)

    def measure() -> None:
        run_part(
            RunFolder(given.measured, given.run),
            columns.with_defaults(given.factors),
            given.first,
            given.last,
            given.data_root,
            given.receipt,
            open_machine(given.machine),
        )

    return exit_status(given.run, measure)


if __name__ == "__main__":
    leave(main())
