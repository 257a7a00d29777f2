"""Measure any command whole: `epochwatt run -- python train.py` (Python 3.8)."""

import subprocess
import sys
from dataclasses import asdict
from typing import Sequence

from epochwatt.board.records import files
from epochwatt.errors import EpochwattError
from epochwatt.monitor import EpochMonitor


def run_command(words: Sequence[str], json_file: str = "") -> int:
    """Run a command, print its time and energy on stderr; return its exit status as a shell does.

    `json_file`: where time, energy, bound and flags are written, too. Raises EpochwattError: it
    cannot be started.
    """
    with EpochMonitor("run") as monitor:
        monitor.begin_window(words[0])
        try:
            with subprocess.Popen(words) as process:
                while True:
                    try:
                        status = process.wait()
                        break
                    except KeyboardInterrupt:  # it has got Ctrl-C as well
                        continue
        except OSError as error:
            raise EpochwattError(
                f"{words[0]} cannot be started: {error.strerror}",
                do="give the command behind two dashes: epochwatt run -- python train.py",
            ) from error
        window = monitor.end_window(words[0])
    print(window, file=sys.stderr)
    if json_file:
        files.write_json(json_file, {**asdict(window), "command": list(words), "status": status})
    return status if status >= 0 else 128 - status
