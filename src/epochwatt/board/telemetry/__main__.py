"""Run the sampler process, `python -m epochwatt.board.telemetry` (board side: Python 3.6 grammar).

The trainer starts it and writes one command a line to its stdin; each is answered by one line of
JSON on stdout: `begin FOLDER`, `power` (what was read since it was last asked), `end FOLDER`,
`drop FOLDER`, `quit`. Windows of several folders may be open at once. It never outlives the trainer
by more than two s.
"""

import argparse
import gc
import json
import logging
import os
import select
import signal
import sys
import threading
import time
from typing import Callable, Dict, List, Optional, Sequence

from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry import process, which_gpu
from epochwatt.board.telemetry.discover import POWER, sources
from epochwatt.board.telemetry.sampler import Clock, Recorder, Superseded
from epochwatt.board.telemetry.source import READ_ERRORS, Source

HANG_S, WATCH_S = 2.0, 5.0  # a reading that takes longer; how often is looked for one
CHECK_S = 1.0  # a parent that died is noticed within twice that time, whatever else fails


def main(
    argv: Optional[List[str]] = None, more: Sequence[Source] = (), wall: Clock = time.time
) -> int:
    """Serve until `quit`, the end of stdin or the death of the parent.

    `more` are sources that are read besides those of this machine; `wall` is the wall clock, s.
    """
    parser = argparse.ArgumentParser(prog="epochwatt.board.telemetry", description=__doc__)
    parser.add_argument("--parent", type=int, required=True, help="process to end with")
    parser.add_argument(
        "--pid", type=int, required=True, help="the trainer, whose share is counted separately"
    )
    parser.add_argument("--data", required=True, help="path on the data set's file system")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sampling instants")
    parser.add_argument("--root", default="/", help="/, or the folder of a fake board")
    parser.add_argument("--power", choices=POWER, default="none", help="power source of a board")
    parser.add_argument("--gpu", default=which_gpu.ANY, help="UUID of the GPU that trains, or none")
    given = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's affair
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    # what a library prints must not be taken for an answer
    answers = os.dup(1)
    os.dup2(2, 1)
    refused: Dict[str, str] = {}
    usable = sources(given.pid, given.data, given.root, given.power, given.gpu, refused)
    usable += more
    recorder = Recorder(usable, given.seed, wall=wall)
    process.die_with_parent()
    process.wake_exactly()
    gc.disable()  # the loop makes no cycles, and a collection would delay a reading

    def answer(message: Document) -> None:
        os.write(answers, json.dumps(message, allow_nan=False).encode("ascii") + b"\n")

    try:
        scopes = {source.name: source.scope for source in usable}
        answer({"ok": True, "sources": scopes, "refused": refused})
        in_turns(recorder, lambda: serve(recorder, 0, answer, given.parent))
    except BrokenPipeError:
        pass  # nobody is left to hear it
    finally:
        recorder.close()
    return 0


def in_turns(recorder: Recorder, work: Callable[[], None]) -> None:
    """Serve in this thread; when a reading hangs in it, in a second one, and the other way round.

    Else one sensor that does not answer would stop all of them. Where the first thread still hangs
    at the end, the second ends the process.
    """
    over = threading.Event()

    def watch() -> bool:
        """Wait for a reading that hangs in the other thread; False: all is over."""
        while not over.wait(WATCH_S):
            if recorder.take_over(HANG_S):
                return True
        return False

    def turn() -> bool:
        """Serve whenever it is this thread's turn; say whether it was so at the end."""
        while True:
            try:
                work()
                over.set()
                return True
            except Superseded:
                if not watch():
                    return False

    def second() -> None:
        try:
            if not watch() or not turn():
                return
        except BrokenPipeError:
            pass
        recorder.close()
        os._exit(0)

    threading.Thread(target=second, name="second", daemon=True).start()
    turn()


def serve(
    recorder: Recorder, commands: int, answer: Callable[[Document], None], parent: int
) -> None:
    """Sample and obey; return at `quit`, at the end of the commands or with another parent.

    The end of the pipe alone would not do: loader workers are forks of the trainer, hold its end
    of it and outlive it by seconds.
    """
    pending, watched, services = b"", [commands], recorder.services
    unchecked_s = CHECK_S  # not at each wake-up: it would be a twentieth of the sampler's CPU time
    while unchecked_s < CHECK_S or os.getppid() == parent:
        unchecked_s %= CHECK_S
        wait_s = min(recorder.step(), CHECK_S)
        unchecked_s += wait_s
        files = watched + recorder.files() if services else watched
        ready = select.select(files, [], [], wait_s)[0]
        if services and ready and ready != watched:
            recorder.listen()
        if commands not in ready:
            continue
        block = os.read(commands, 65536)
        if not block:
            return
        lines = (pending + block).split(b"\n")
        pending = lines.pop()
        for line in lines:
            if line == b"quit":
                return
            answer(_obey(recorder, line))


def _obey(recorder: Recorder, line: bytes) -> Document:
    """Carry out a command of the measuring process; return the answer."""
    command, _, argument = line.partition(b" ")
    try:
        if command == b"begin":
            result = recorder.begin(os.fsdecode(argument))
        elif command == b"end":
            result = {"statistics": recorder.end(os.fsdecode(argument))}
        elif command == b"drop":
            recorder.drop(os.fsdecode(argument))
            result = {}
        elif command == b"power":
            result = {"power": recorder.power()}
        else:
            raise ValueError(f"no such command: {line!r}")
    except READ_ERRORS as error:
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}
    return dict(result, ok=True)


if __name__ == "__main__":
    sys.exit(main())
