"""Measure what a device reaches: `-m epochwatt.board.training.ceilings` (board side: Python 3.6).

One job is all modes in which the ceilings of one device are wanted;
each is kept as soon as it is finished. torch is imported only when there is something to measure.
"""

from typing import Any, List, Optional

from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.board.training.exit_status import exit_status, leave, options
from epochwatt.board.training.sweep import measure_chunk, read_modes


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    names = "ceilings modes dvfs precisions measured receipt machine"
    given = options("epochwatt.board.training.ceilings", __doc__, names, argv)
    folder = CeilingFolder(given.measured, given.ceilings)

    def measure() -> None:
        machine, modes = open_machine(given.machine), read_modes(given.modes)

        def open_session() -> Any:
            from epochwatt.board.training.ceilings.session import CeilingSession

            return CeilingSession(folder, given.precisions, machine)

        last = len(modes) - 1
        measure_chunk(folder, modes, 0, last, given.receipt, machine, given.dvfs, open_session)

    return exit_status(given.ceilings, measure)


if __name__ == "__main__":
    leave(main())
