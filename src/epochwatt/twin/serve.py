"""`python -m epochwatt.twin.serve SOCKET`: a process that forks for each run to be simulated.

It has imported the twin, so that a run takes a third of a start of its own. It ends with whoever
started it (`start_server`): when its stdin is closed.
"""

import json
import os
import select
import shutil
import signal
import socket
import sys

from epochwatt.twin.__main__ import main as simulate
from epochwatt.twin.ask import DONE

CHUNK = 65536  # bytes


def serve(path: str) -> None:
    """Simulate what `ask` asks for at a socket, each run in a child, until stdin is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the children, and the workflow
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                    sys.exit(_answer(connection))


def _answer(connection: socket.socket) -> int:
    """Simulate one run with stdout and stderr of whoever asks; return the exit status."""
    words, files, _, _ = socket.recv_fds(connection, CHUNK, 2)
    while more := connection.recv(CHUNK):
        words += more
    for stream, file in zip((1, 2), files, strict=True):
        os.dup2(file, stream)
    status = simulate(json.loads(words))
    if status == 0:
        connection.sendall(DONE)
    return status


if __name__ == "__main__":
    serve(sys.argv[1])
    shutil.rmtree(os.path.dirname(sys.argv[1]))  # children do not get here
