"""Say why a job was ended: `-m epochwatt.board.training.ended STATUS` (board side: Python 3.6).

A process that a signal ends says nothing itself, so the rules that measure call this behind it,
with its exit status, which is kept.
"""

import sys

from epochwatt.board.device import remedies


def main(status: int) -> int:
    """Print what is known of the end of a job; return its exit status."""
    remedy = remedies.of_status(status)
    if remedy is not None:
        print(f"error: the job was ended by {remedy.line}: {remedy.cause}\n  do: {remedy.do}")
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
