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
    """Run the sampler process: answer commands until `quit`, end of stdin or the parent's death.

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
    options = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's affair
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    # what a library prints must not be taken for an answer
    answers = os.dup(1)
    os.dup2(2, 1)
    refused: Dict[str, str] = {}
    usable = sources(options.pid, options.data, options.root, options.power, options.gpu, refused)
    usable += more
    recorder = Recorder(usable, options.seed, wall=wall)
    process.die_with_parent()
    process.wake_exactly()
    gc.disable()  # the loop makes no cycles, and a collection would delay a reading

    def answer(message: Document) -> None:
        os.write(answers, json.dumps(message, allow_nan=False).encode("ascii") + b"\n")

    try:
        scopes = {source.name: source.scope for source in usable}
        answer({"ok": True, "sources": scopes, "refused": refused})
        in_turns(recorder, lambda: serve(recorder, 0, answer, options.parent))
    except BrokenPipeError:
        pass  # nobody is left to hear it
    finally:
        recorder.close()
    return 0


def in_turns(recorder: Recorder, work: Callable[[], None]) -> None:
    """Run `work` in this thread; when a reading hangs in it, in a standby thread, and vice versa.

    Else one sensor that does not answer would stop all of them. Where this thread still hangs when
    `work` has ended, the standby thread ends the process.
    """
    finished = threading.Event()

    def take_over_when_hung() -> bool:
        """Wait for a reading that hangs in the other thread, and take over; False: finished."""
        while not finished.wait(WATCH_S):
            if recorder.take_over(HANG_S):
                return True
        return False

    def serve_until_finished() -> bool:
        """Work, and stand by when superseded; return whether this thread was the one to finish."""
        while True:
            try:
                work()
                finished.set()
                return True
            except Superseded:
                if not take_over_when_hung():
                    return False

    def stand_by() -> None:
        try:
            if not take_over_when_hung() or not serve_until_finished():
                return
        except BrokenPipeError:
            pass
        recorder.close()
        os._exit(0)

    threading.Thread(target=stand_by, name="standby", daemon=True).start()
    serve_until_finished()


def serve(
    recorder: Recorder, commands: int, answer: Callable[[Document], None], parent: int
) -> None:
    """Sample and obey commands; return at `quit`, at the end of the pipe or when orphaned.

    `commands` is the descriptor that commands are read from, `parent` the process id to end with.
    The end of the pipe alone would not do: loader workers are forks of the trainer, hold its end
    of it and outlive it by seconds.
    """
    pending = b""  # a command whose end has not come
    unchecked_s = CHECK_S  # since the parent was looked for: at each wake-up it would cost 5 % CPU
    while unchecked_s < CHECK_S or os.getppid() == parent:
        unchecked_s %= CHECK_S
        wait_s = min(recorder.step(), CHECK_S)
        unchecked_s += wait_s
        ready = select.select([commands] + recorder.files(), [], [], wait_s)[0]
        if any(file != commands for file in ready):
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
