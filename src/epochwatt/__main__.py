"""`python -m epochwatt` is the command `epochwatt`."""

import sys

from epochwatt.cli import main

if __name__ == "__main__":  # a tool that imports every module runs nothing
    sys.exit(main())
