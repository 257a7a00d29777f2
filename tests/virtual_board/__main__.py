"""`make virtual-board`: build a virtual board, boot it, check the board side on a real kernel."""

import os
import signal
import sys

from epochwatt.errors import EpochwattError
from tests.fakeboard.kinds import find_kind

from .build import KERNELS, build
from .run import check_board

BOARD = "agx_orin-jp6"


def main() -> int:
    """Build and check what the environment asks for; return the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the board ends with us
    try:
        boards = [find_kind(name) for name in os.environ.get("BOARD", BOARD).split()]
        passed = []
        for fake in boards:
            version = os.environ.get("KERNEL") or ("6.1" if fake.jetpack > 5 else "5.10")
            if version not in KERNELS:
                raise EpochwattError(f"no kernel {version}", allowed=list(KERNELS))
            kernel = KERNELS[version]
            build(kernel)
            passed.append(check_board(kernel, fake))
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(not all(passed))


sys.exit(main())
