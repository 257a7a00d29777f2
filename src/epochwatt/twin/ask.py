"""`python -I -S ask.py RUN ...`: have one run simulated by the process of `epochwatt.twin.serve`.

Words as of `python -m epochwatt.twin`, which this becomes where nothing serves, such as on another
machine. Rule simulate_run starts it by the hundred, and an interpreter that imports
neither `site` nor numpy takes a tenth of the time.
"""

import json
import os
import socket
import sys

SERVER = "EPOCHWATT_TWIN_SERVER"  # environment: the socket at which a process serves
DONE = b"done"  # the answer when a run was simulated; none: it was not


def main(arguments: list[str]) -> int:
    """Return 0 when the run was simulated; stdout and stderr are those of the simulation."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(os.environ[SERVER])
        except (KeyError, OSError):
            os.execv(sys.executable, [sys.executable, "-m", "epochwatt.twin", *arguments])
        socket.send_fds(connection, [json.dumps(arguments).encode()], [1, 2])
        connection.shutdown(socket.SHUT_WR)
        return 0 if connection.recv(len(DONE)) == DONE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
