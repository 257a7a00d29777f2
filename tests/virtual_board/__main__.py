"""`make virtual-board`: build a virtual board, boot it, check the board side on a real kernel."""

import sys

from .run import main

sys.exit(main())
