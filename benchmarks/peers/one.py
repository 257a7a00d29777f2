"""`python -m benchmarks.peers.one NAME SECONDS`: run one adapter; print what it found as JSON.

Runs in the peer's environment. Zeus spawns children that import this module again, which is where
they get the meter from.
"""

import json
import os
import sys
from dataclasses import asdict

from benchmarks.peers.adapters import ADAPTERS, patch_zeus
from benchmarks.peers.meter import Meter

if os.environ.get("PEER") == "zeus_power_monitor":
    patch_zeus()


def main() -> None:
    """Run the adapter; its last line of output is the result."""
    name, seconds = sys.argv[1:]
    found = ADAPTERS[name](Meter(), float(seconds))
    print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    main()
