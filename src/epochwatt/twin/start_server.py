"""Start the process that simulates runs for the jobs of a workflow."""

import os
import subprocess
import sys
import tempfile

from epochwatt.twin.ask import SERVER


def start_server() -> "subprocess.Popen[bytes]":
    """Start `epochwatt.twin.serve` and name it in the environment, from where `ask` finds it.

    It ends when this process does, or closes the returned one's stdin. Without it, or before it is
    ready, each run starts Python anew.
    """
    path = os.path.join(tempfile.mkdtemp(prefix="epochwatt-"), "runs")
    os.environ[SERVER] = path
    command = [sys.executable, "-m", "epochwatt.twin.serve", path]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
