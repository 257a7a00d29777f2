"""`make virtual-board`: build a virtual board, boot it, check the board side on a real kernel."""

import os
import signal
import sys

from epochwatt.errors import EpochwattError
from tests.fakeboard.kinds import find_kind

from .build import KERNELS, build
from .job import STAGES, check_job
from .run import check_board

BOARD = "agx_orin-jp6"


def main() -> int:
    """Build and check what the environment asks for; return the exit status.

    Of BOARD each is checked; with JOB the whole job runs on it in place of that: 1, or a stage.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the board ends with us
    job = os.environ.get("JOB", "")
    try:
        if job not in ("", "1", *STAGES):
            raise EpochwattError(f"no part of the job is called {job}", allowed=["1", *STAGES])
        boards = [find_kind(name) for name in os.environ.get("BOARD", BOARD).split()]
        passed = []
        for fake in boards:
            version = os.environ.get("KERNEL") or ("6.1" if fake.jetpack > 5 else "5.10")
            if version not in KERNELS:
                raise EpochwattError(f"no kernel {version}", allowed=list(KERNELS))
            kernel = KERNELS[version]
            build(kernel)
            if job:
                passed.append(check_job(kernel, fake, list(STAGES) if job == "1" else [job]))
            else:
                passed.append(check_board(kernel, fake))
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(not all(passed))


sys.exit(main())
