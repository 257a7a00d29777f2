"""`python -I -S ask.py NAME WORD ...`: have a module's `main` run by its server process.

It becomes `python -m MODULE WORD ...` where nothing serves, such as on another machine. Rule
simulate_run starts it by the hundred, and an interpreter that imports neither `site` nor numpy
takes a tenth of the time.
"""

import json
import os
import socket
import sys
from collections.abc import Callable, Sequence

MODULES = {  # name -> module, whose `main` takes words and returns an exit status
    "runs": "epochwatt.twin.__main__",
    "counts": "epochwatt.served.counts",
    "figures": "epochwatt.served.figures",
}
SOCKETS = "EPOCHWATT_SERVED"  # environment: the folder with a folder for each name
DONE = b"done"  # the answer of a call with exit status 0; others have none


def socket_of(name: str) -> str:
    """Return the path of the socket that serves a module; KeyError: no server was started."""
    return os.path.join(os.environ[SOCKETS], name, "socket")


def ask(name: str, words: Sequence[str]) -> int | None:
    """Have the server of a module call its `main`; return the exit status, None: no server.

    The call has this process's environment, working folder, stdout and stderr.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(socket_of(name))
        except (KeyError, OSError):
            return None
        call = {"words": list(words), "environment": dict(os.environ), "folder": os.getcwd()}
        socket.send_fds(connection, [b" "], [1, 2])
        connection.sendall(json.dumps(call).encode())
        connection.shutdown(socket.SHUT_WR)
        return 0 if connection.recv(len(DONE)) == DONE else 1


def run(name: str, words: Sequence[str], main: Callable[[Sequence[str]], int]) -> None:
    """Run a module's `main` in its server, or else here; exit with its status where it fails."""
    status = ask(name, words)
    if status is None:
        status = main(words)
    if status:
        sys.exit(status)


def main(name: str, *words: str) -> int:
    """Return the server's exit status; without a server replace this process by the module."""
    status = ask(name, words)
    if status is None:
        os.execv(sys.executable, [sys.executable, "-m", MODULES[name], *words])
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
