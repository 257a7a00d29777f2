"""Stand-in for a board's systemctl.

It knows one service, nvfancontrol, which JetPack 5 and 6 have.
"""

import sys

from tests.fakeboard.tools.board_files import NVFANCONTROL, BoardFiles

_USAGE = "systemctl is-active|start|stop nvfancontrol"


def main(root: str, words: list[str]) -> int:
    """Do what the command line says; return the exit status."""
    if len(words) != 2 or words[0] not in ("is-active", "start", "stop"):
        print(_USAGE, file=sys.stderr)
        return 1
    board = BoardFiles(root)
    is_known = words[1] in ("nvfancontrol", "nvfancontrol.service") and board.exists(NVFANCONTROL)
    if words[0] == "is-active":
        is_active = is_known and board.text(NVFANCONTROL) == "1"
        print("active" if is_active else "inactive")
        return 0 if is_active else 3
    if not is_known:
        print(f"Unit {words[1]} not loaded.", file=sys.stderr)
        return 5
    board.write(NVFANCONTROL, int(words[0] == "start"))
    return 0
