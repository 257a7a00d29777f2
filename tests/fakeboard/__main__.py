"""`python -m tests.fakeboard KIND FOLDER`: run a fake board, made first if it is not there."""

import argparse
import sys
from pathlib import Path

from epochwatt.errors import EpochwattError
from tests.fakeboard.board import make_board
from tests.fakeboard.kinds import KINDS
from tests.fakeboard.live import live
from tests.fakeboard.tools.board_files import FACTS


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fakeboard", description=__doc__)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--load-of", type=int, help="process tree whose load counts (all)")
    parser.add_argument("--parent", type=int, help="process whose end ends this one")
    words = parser.parse_args()
    try:
        if not (words.folder / FACTS).exists():
            make_board(words.folder, words.kind)
        live(words.folder.resolve(), words.load_of, words.parent)
    except (EpochwattError, OSError) as error:
        print(f"fakeboard: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
