"""Turn logs of the SIGMETRICS 2023 scripts into runs in measured/, to show them beside your own.

The options add what the logs do not contain; they hold for all runs of FOLDER.
See docs/how-to/import-2023.md.
"""

import argparse
import sys
from pathlib import Path

from contrib.import_2023.records import RunOptions, import_folder
from epochwatt.errors import EpochwattError


def main(words: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser("python -m contrib.import_2023", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--device", required=True, help="board, a file of config/devices/")
    parser.add_argument("--instance", required=True, help="unit of the board, such as d1")
    parser.add_argument("--model", required=True, help="network, a row of config/workloads.yaml")
    parser.add_argument("--storage", required=True, help="storage medium, such as ssd")
    parser.add_argument("--power-mode", required=True, help="of the device file, such as g")
    parser.add_argument("--batch-size", required=True, type=int, help="samples per mini-batch")
    parser.add_argument("--dvfs", required=True, choices=["on", "off"], help="on: governors chose")
    parser.add_argument("--setup", default="sigmetrics2023", help="whose procedure (%(default)s)")
    options = vars(parser.parse_args(words))
    try:
        print(*import_folder(options.pop("folder"), RunOptions(**options)), sep="\n")
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
