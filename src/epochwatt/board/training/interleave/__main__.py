"""Train and serve by a plan: `-m epochwatt.board.training.interleave` (board side: Python 3.6).

torch is imported only once the plan is checked and the machine is free.
"""

import argparse
import json
import sys
from typing import List, Optional

from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records import files
from epochwatt.board.training.exit_status import exit_status, importing
from epochwatt.board.training.interleave.plan import checked
from epochwatt.board.training.job import log_waiting
from epochwatt.errors import ConfigError


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 130 when ended by Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="epochwatt.board.training.interleave", description=__doc__
    )
    parser.add_argument("--plan", required=True, help="what to do (plan.checked), as JSON")
    parser.add_argument("--measured", required=True, help="folder of all measurements")
    parser.add_argument("--machine", required=True, help="what to know of the machine, as JSON")
    parser.add_argument("--receipt", required=True, help="file to write: where the record lies")
    arguments = parser.parse_args(argv)

    def measure() -> None:
        try:
            plan = checked(json.loads(arguments.plan))
        except ValueError as error:
            raise ConfigError(f"the plan is no JSON: {error}") from error
        with machine_lock().acquire({"interleaving": plan["train"]}, on_wait=log_waiting):
            with importing():
                from epochwatt.board.device.machine import open_machine
                from epochwatt.board.training.interleave.session import interleave
            machine = open_machine(json.loads(arguments.machine))
            folder, ended_early = interleave(plan, arguments.measured, machine)
        with files.writing("the receipt", arguments.receipt):
            files.write_json(arguments.receipt, {"record": folder})
        if ended_early:
            raise KeyboardInterrupt

    return exit_status("serve and train", measure)


if __name__ == "__main__":
    sys.exit(main())
