"""Train and serve by a plan: `-m epochwatt.board.training.interleave` (board side: Python 3.6).

torch is imported only once the plan is checked and the machine is free.
"""

import json
from typing import List, Optional

from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records import files
from epochwatt.board.training.exit_status import exit_status, importing, leave, options
from epochwatt.board.training.interleave.plan import checked
from epochwatt.board.training.job import log_waiting
from epochwatt.errors import ConfigError


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 130 when ended by Ctrl-C."""
    names = "plan measured machine receipt"
    given = options("epochwatt.board.training.interleave", __doc__, names, argv)

    def measure() -> None:
        try:
            plan = checked(json.loads(given.plan))
        except ValueError as error:
            raise ConfigError(f"the plan is no JSON: {error}") from error
        with machine_lock().acquire({"interleaving": plan["train"]}, on_wait=log_waiting):
            with importing():
                from epochwatt.board.device.machine import open_machine
                from epochwatt.board.training.interleave.session import interleave
            folder, ended_early = interleave(plan, given.measured, open_machine(given.machine))
        with files.writing("the receipt", given.receipt):
            files.write_json(given.receipt, {"record": folder})
        if ended_early:
            raise KeyboardInterrupt

    return exit_status("serve and train", measure)


if __name__ == "__main__":
    leave(main())
