"""`python -m epochwatt` is the command `epochwatt`."""

import sys

from epochwatt.cli import main

sys.exit(main())
