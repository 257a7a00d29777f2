"""Start the processes that run jobs of a workflow."""

import os
import subprocess
import sys
import tempfile

from epochwatt.served.ask import MODULES, SOCKETS, socket_of

LONGEST = 103  # bytes of a socket's path that all systems take


def start_servers() -> "list[subprocess.Popen[bytes]]":
    """Start `epochwatt.served.serve` for each module; `ask` finds them by the environment.

    They end when this process does, or in `stop_servers`. Without them, or before they are ready,
    each job starts Python anew. There are none where the path of the folder for temporary files is
    too long for a socket.
    """
    folder = tempfile.mkdtemp(prefix="epochwatt-")
    os.environ[SOCKETS] = folder
    if max(len(os.fsencode(socket_of(name))) for name in MODULES) > LONGEST:
        os.rmdir(folder)
        return []
    for name in MODULES:
        os.mkdir(os.path.dirname(socket_of(name)))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "epochwatt.served.serve"]
    return [
        subprocess.Popen(
            [*command, socket_of(name), module], stdin=subprocess.PIPE, env=environment
        )
        for name, module in MODULES.items()
    ]


def stop_servers(servers: "list[subprocess.Popen[bytes]]") -> None:
    """Let them finish what they were asked for, and end."""
    for server in servers:
        server.communicate()  # closes its stdin
