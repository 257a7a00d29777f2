"""`python -m epochwatt.training`: measure a part of a run (board side: Python 3.6 grammar)."""

import argparse
import json
import re
import sys
from typing import List, Optional

from epochwatt import fields
from epochwatt.device.machine import open_machine
from epochwatt.errors import EpochwattError, RebootNeeded
from epochwatt.records.run_folder import RunFolder
from epochwatt.training.job import run_part
from epochwatt.training.preparation import REBOOT_NEEDED
from epochwatt.training.progress import log_to_stderr

_REFUSED = (
    "error: {}: the machine does not give what a measurement needs: {}. Look at memory, disk and "
    "limits (free, df, `ulimit -a`), then start again: finished epochs are kept"
)
_NO_MEMORY = re.compile(
    "can't start new thread|could not create a primitive|out of memory|can't allocate memory"
)


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
    log_to_stderr()
    folder = RunFolder(arguments.measured, arguments.run)
    factors = fields.with_defaults(json.loads(arguments.factors))
    try:
        run_part(
            folder,
            factors,
            arguments.first,
            arguments.last,
            arguments.data_root,
            arguments.receipt,
            open_machine(json.loads(arguments.machine)),
        )
    except RebootNeeded as error:
        print("reboot needed: {}: {}".format(arguments.run, error), file=sys.stderr)
        return REBOOT_NEEDED
    except EpochwattError as error:
        print("error: {}: {}".format(arguments.run, error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ended by Ctrl-C: {}".format(arguments.run), file=sys.stderr)
        return 130
    except (OSError, MemoryError, RuntimeError) as error:
        if not _is_refusal(error):
            raise
        message = "{}: {}".format(type(error).__name__, " ".join(str(error).split()))
        print(_REFUSED.format(arguments.run, message), file=sys.stderr)
        return 1
    return 0


def _is_refusal(error: Exception) -> bool:
    """Return whether the machine refused something: memory, a thread, a file."""
    return not isinstance(error, RuntimeError) or _NO_MEMORY.search(str(error)) is not None


if __name__ == "__main__":
    sys.exit(main())
