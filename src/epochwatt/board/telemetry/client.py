"""Talk to the sampler without ever harming the training (board side: Python 3.6)."""

import json
import logging
import os
import select
import subprocess
import sys
import time
from typing import Dict, List, NamedTuple, Optional, Sequence

import epochwatt
from epochwatt.board.records import files, shapes
from epochwatt.board.records.shapes import ANY, Document, Kind
from epochwatt.board.telemetry import which_gpu
from epochwatt.board.telemetry.sampler import SCHEMA_VERSION, STATISTICS

log = logging.getLogger(__name__)

START_S = 30.0  # to be ready; normally 0.2
AGAIN_S = 90.0  # the same at the second try: a Python that starts slowly must not cost all energies
TIMEOUT_S = 60.0  # for each answer: to bring the rows to a busy memory card takes its time
REWRITE_S = 1.0  # until statistics that could not be written are tried once more
QUIT_S = 2.0  # to end by itself, and again when it is killed
PROGRAM = ("-m", "epochwatt.board.telemetry")
ODD_CHARS = 120  # of an answer that nobody understands, in the log

# Answers of the process.
_DONE = {
    "ok": Kind("true", lambda value: value is True),
    "sources?": shapes.OBJECT,
    "refused?": shapes.OBJECT,
}
_REFUSED = {"ok": Kind("false", lambda value: value is False), "error": shapes.TEXT}
_SOURCE = {"scope": ANY, "step_mean_s": ANY}
_READING = Kind(
    "a stamp and a power",
    lambda value: isinstance(value, list) and len(value) == 2 and all(map(shapes.is_number, value)),
)
_OF_POWER = {"scope": (None, shapes.TEXT), "period_s": (None, shapes.NUMBER)}
_POWER = {"power": dict(_OF_POWER, readings=[_READING])}
_ENDED = {"statistics": {"lost": ANY, "sources": {shapes.ANY_KEY: _SOURCE}}}


class Power(NamedTuple):
    """Readings of the power sensor with the widest scope."""

    scope: Optional[str]  # None: no sensor whose power is that of all it feeds
    period_s: float  # of its readings; 0: none
    t_s: List[float]  # stamps, s, on the monotonic clock
    power_w: List[float]


NO_POWER = Power(None, 0.0, [], [])


class Sampler:
    """The sampler process, started, commanded and ended by the trainer.

    No method raises. When the process dies, is silent or refuses, that is logged once, and the
    statistics of each epoch from then on say `lost` and why.

    Start it from the main thread: the process dies with the thread that started it.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S, lost: Optional[str] = None) -> None:
        self.sources: Dict[str, Optional[str]] = {}  # name -> power scope
        self.refused: Dict[str, str] = {}  # name -> why it is not read though it is there
        self._timeout_s = timeout_s
        self._process: Optional[subprocess.Popen] = None
        self._lost = lost  # why it is lost for good
        self._missed: Dict[str, str] = {}  # folder of a window -> why nothing is sampled into it
        self._folder = ""  # of the window that was begun last
        self._answers = b""

    @classmethod
    def start(
        cls,
        pid: int,
        data_path: str,
        seed: int,
        timeout_s: float = TIMEOUT_S,
        root: str = "/",
        power: str = "none",
        gpu: str = which_gpu.ANY,
        program: Sequence[str] = PROGRAM,
    ) -> "Sampler":
        """Start the process and wait until it is ready.

        `pid`: the trainer; its process tree is counted separately
        `data_path`, `root`, `power`, `gpu`: as of `discover.sources`
        `timeout_s`: for each answer to a command, s
        `program`: what the interpreter runs, for tests and benchmarks
        """
        words = [sys.executable, *program, "--parent", str(os.getpid())]
        words += ["--pid", str(pid), "--data", str(data_path), "--seed", str(seed)]
        words += ["--root", root, "--power", power, "--gpu", gpu]
        for within_s in (START_S, AGAIN_S):
            sampler = cls(timeout_s)
            try:
                sampler._process = _start_process(words)
            except OSError as error:
                sampler._lose(f"it cannot be started: {error}")
                return sampler
            if within_s == AGAIN_S or sampler._has_output(within_s):
                break
            log.warning("the sampler is not ready after %g s: it is started once more", within_s)
            sampler._process.kill()
            sampler.stop()
        answer = sampler._answer(within_s) or {}
        sampler.sources = answer.get("sources", {})
        sampler.refused = answer.get("refused", {})
        return sampler

    @property
    def pid(self) -> Optional[int]:
        """Process id of the sampler; None when it is lost."""
        return self._process.pid if self._process is not None else None

    def begin(self, folder: str) -> None:
        """Sample into a folder from now on: returns once every source has been read.

        Windows of other folders go on.
        """
        self._folder = str(folder)
        self._missed.pop(self._folder, None)
        answer = self._ask(b"begin " + os.fsencode(self._folder))
        if answer is not None and not answer["ok"]:
            self._miss(self._folder, answer["error"])

    def power(self) -> Power:
        """Return the power read since the previous call or `begin`; `NO_POWER` when it is lost."""
        answer = None if self._folder in self._missed else self._ask(b"power")
        if answer is None or not answer["ok"]:
            return NO_POWER
        if shapes.problem(answer, _POWER) is not None:
            self._lose(f"it answers nonsense: {answer!r}"[:ODD_CHARS])
            return NO_POWER
        power = answer["power"]
        t_s = [stamp_s for stamp_s, _ in power["readings"]]
        power_w = [watts for _, watts in power["readings"]]
        return Power(power["scope"], power["period_s"] or 0.0, t_s, power_w)

    def end(self, folder: Optional[str] = None) -> Document:
        """End a window: read every source once more, close its files; return its statistics.

        They have `lost` and `reason` where the sampler failed. `folder`: of the window; None: of
        the one that was begun last
        """
        folder = self._folder if folder is None else str(folder)
        answer = None if folder in self._missed else self._ask(b"end " + os.fsencode(folder))
        if answer is not None and not answer["ok"]:
            self._miss(folder, answer["error"])
        elif answer is not None:
            if shapes.problem(answer, _ENDED) is None:
                return self._rewrite_unwritten(folder, answer["statistics"])
            self._lose(f"it answers nonsense: {answer!r}"[:ODD_CHARS])
        return self._lost_statistics(folder)

    def drop(self, folder: str) -> None:
        """Forget a window that was begun."""
        if self._missed.pop(str(folder), None) is None:
            self._ask(b"drop " + os.fsencode(str(folder)))

    def _rewrite_unwritten(self, folder: str, statistics: Document) -> Document:
        """Log which samples are lost, and write the statistics where the sampler could not.

        Returns `statistics` without `write_error`. Nobody could read the samples without them, so
        those of a lost window are returned where writing fails once more.
        """
        for name, source in statistics["sources"].items():
            if source.get("write_error"):
                log.warning(
                    "samples of %s cannot be written, so some or all are lost: %s",
                    name,
                    source["write_error"],
                )
        why = statistics.pop("write_error", None)
        if why is None:
            return statistics
        log.warning("%s cannot be written: %s; it is tried once more", STATISTICS, why)
        time.sleep(REWRITE_S)
        try:
            files.write_json(os.path.join(folder, STATISTICS), statistics)
        except (OSError, ValueError) as error:
            self._miss(folder, f"{STATISTICS} cannot be written: {error}")
            return self._lost_statistics(folder)
        return statistics

    def stop(self) -> None:
        """End the process; kill it when it does not end by itself."""
        process, self._process = self._process, None
        if self._lost is None:
            self._lost = "it was stopped"
        if process is None:
            return
        try:
            process.stdin.write(b"quit\n")  # type: ignore[union-attr]
        except OSError:
            pass
        _end(process)

    def _ask(self, command: bytes) -> Optional[Document]:
        """Send a command; return its answer, or None when the sampler is lost."""
        if self._process is None:
            return None
        try:
            self._process.stdin.write(command + b"\n")  # type: ignore[union-attr]
        except OSError as error:
            self._lose(f"it takes no command: {error}")
            return None
        return self._answer(self._timeout_s)

    def _has_output(self, within_s: float) -> bool:
        """Wait up to `within_s` for the process to print or end; return whether it did."""
        poll = select.poll()  # select() cannot watch a number above 1023
        poll.register(self._process.stdout.fileno(), select.POLLIN)  # type: ignore[union-attr]
        return bool(poll.poll(1000 * within_s))

    def _answer(self, timeout_s: float) -> Optional[Document]:
        """Read one answer, a line of JSON, within `timeout_s`; None: the sampler is lost."""
        deadline_s = time.monotonic() + timeout_s
        fd = self._process.stdout.fileno()  # type: ignore[union-attr]
        while b"\n" not in self._answers:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not self._has_output(left_s):
                self._lose(f"no answer within {timeout_s:g} s")
                return None
            try:
                block = os.read(fd, 65536)
            except OSError:
                block = b""
            if not block:
                self._lose("the process ended")
                return None
            self._answers += block
        line, _, self._answers = self._answers.partition(b"\n")
        try:
            answer = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            answer = None
        if shapes.problem(answer, (_DONE, _REFUSED)) is not None:
            self._lose(f"it answers nonsense: {line!r}"[:ODD_CHARS])
            return None
        return dict(answer)

    def _lose(self, why: str) -> None:
        """Give the sampler up for good."""
        self._lost = why
        log.warning("telemetry is lost, the training goes on without: %s", why)
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            _end(process)

    def _miss(self, folder: str, why: str) -> None:
        self._missed[folder] = why
        log.warning("no telemetry of this epoch: %s", why)

    def _lost_statistics(self, folder: str) -> Document:
        """Return, and leave in the folder, the statistics of a window that was lost."""
        statistics = {
            "schema_version": SCHEMA_VERSION,
            "epochwatt": epochwatt.__version__,
            "lost": True,
            "reason": self._missed.pop(folder, None) or self._lost or "nothing was begun",
            "sources": {},
        }
        if folder:
            try:
                files.write_json(os.path.join(folder, STATISTICS), statistics)
            except OSError:
                pass  # the record says it as well
        return statistics

    def __enter__(self) -> "Sampler":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _start_process(words: Sequence[str]) -> "subprocess.Popen":
    """Start the process, with this package on its path and a pipe either way."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(epochwatt.__file__)))
    paths = [package, os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, paths))),
        close_fds=True,
        bufsize=0,
        start_new_session=True,  # Ctrl-C in the terminal is not for it
    )


def _end(process: "subprocess.Popen") -> None:
    """Close the pipes and wait for the process; kill it when that takes too long."""
    for pipe in (process.stdin, process.stdout):
        try:
            pipe.close()  # type: ignore[union-attr]
        except OSError:
            pass
    for _ in range(2):
        try:
            process.wait(QUIT_S)
            return
        except subprocess.TimeoutExpired:
            process.kill()
    log.warning("the sampler cannot be killed: a reading hangs in the kernel (pid %d)", process.pid)
