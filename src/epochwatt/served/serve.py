"""`python -m epochwatt.served.serve SOCKET MODULE`: a process that forks for each job.

At the first job it imports the module and has it prepare what all jobs share, if it has a
`prepare`; each job is then a call of its `main` in a child, which takes a fraction of a start of
its own. It ends with whoever started it (`start_servers`), when its stdin is closed.
"""

import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from epochwatt.served.ask import DONE, MODULES, SOCKETS, socket_of

CHUNK = 65536  # bytes
LONGEST = 103  # bytes of a socket's path that all systems take


def serve(path: str, module: str) -> None:
    """Listen at a socket and run `main` of the module in a child per call, until stdin closes."""
    # Ctrl-C ends the children and the workflow, which closes stdin
    former_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    is_ready = False
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            with connection:
                text, streams, _, _ = socket.recv_fds(connection, CHUNK, 2)
                while more := connection.recv(CHUNK):
                    text += more
                call = json.loads(text)
                if not is_ready:
                    with suppress(Exception, SystemExit):  # it comes up again in the child
                        if prepare := getattr(import_module(module), "prepare", None):
                            prepare(call["words"])
                    gc.collect()
                    gc.freeze()  # else each child would copy all pages to look for garbage in them
                    is_ready = True
                if os.fork() == 0:
                    signal.signal(signal.SIGINT, former_handler)  # ignored where that was: `nohup`
                    _answer(connection, module, streams, **call)
                for stream in streams:
                    os.close(stream)
            _reap(os.WNOHANG)
    _reap(0)


def _answer(
    connection: socket.socket,
    module: str,
    streams: list[int],
    words: list[str],
    environment: dict[str, str],
    folder: str,
) -> NoReturn:
    """Run `main` with streams, environment and folder of the caller; answer; end this process."""
    status = 1
    try:
        for number, stream in zip((1, 2), streams, strict=True):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        status = import_module(module).main(words)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - nothing above would report it
        traceback.print_exc()
    finally:
        with suppress(OSError):  # nobody waits any more
            sys.stdout.flush()
            sys.stderr.flush()
            if status == 0:
                connection.sendall(DONE)
        os._exit(status)


def _reap(options: int) -> None:
    """Reap children, so that their CPU time counts here; `os.WNOHANG`: those that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def start_servers() -> "list[subprocess.Popen[bytes]]":
    """Start a server for each of `MODULES`; sets `SOCKETS` in the environment, where `ask` looks.

    They end with this process, or in `stop_servers`. Empty: the path of the temporary folder is too
    long for a socket, and each job starts Python anew.
    """
    folder = tempfile.mkdtemp(prefix="epochwatt-")
    os.environ[SOCKETS] = folder
    if max(len(os.fsencode(socket_of(name))) for name in MODULES) > LONGEST:
        os.rmdir(folder)
        return []
    for name in MODULES:
        os.mkdir(os.path.dirname(socket_of(name)))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    server = [sys.executable, "-m", "epochwatt.served.serve"]
    commands = [[*server, socket_of(name), module] for name, module in MODULES.items()]
    return [subprocess.Popen(c, stdin=subprocess.PIPE, env=environment) for c in commands]


def stop_servers(servers: "list[subprocess.Popen[bytes]]") -> None:
    """Let them finish what they were asked for, and end."""
    for server in servers:
        server.communicate()  # closes its stdin


if __name__ == "__main__":
    serve(*sys.argv[1:])
    own = os.path.dirname(sys.argv[1])
    shutil.rmtree(own)
    with suppress(OSError):  # others serve there, too: the last one removes it
        os.rmdir(os.path.dirname(own))
