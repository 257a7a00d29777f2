#!/usr/bin/env python3
"""Stand-in for a board's systemctl (any Python from 3.6).

epochwatt stand-in

It knows one service, nvfancontrol, which JetPack 5 and 6 have.
"""

import os
import sys
from typing import List

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../usr/lib/epochwatt-stand-in")
)
from board_files import NVFANCONTROL, BoardFiles, root_above  # type: ignore

_USAGE = "systemctl is-active|start|stop nvfancontrol"


def main(words: List[str]) -> int:
    """Do what the command line says; return the exit status."""
    if len(words) != 2 or words[0] not in ("is-active", "start", "stop"):
        print(_USAGE, file=sys.stderr)
        return 1
    board = BoardFiles(root_above(__file__, 1))
    is_known = words[1] in ("nvfancontrol", "nvfancontrol.service") and board.exists(NVFANCONTROL)
    if words[0] == "is-active":
        is_active = is_known and board.text(NVFANCONTROL) == "1"
        print("active" if is_active else "inactive")
        return 0 if is_active else 3
    if not is_known:
        print("Unit {} not loaded.".format(words[1]), file=sys.stderr)
        return 5
    board.write(NVFANCONTROL, int(words[0] == "start"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
