"""Observe a machine while it measures (board side: Python 3.6 grammar).

Everything that a record says besides what is timed: the sampler, counters and page cache before and
after, the circumstances, what stopped the training. Nothing of it runs in a timed loop.
"""

import logging
import mmap
import os
import signal
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional

from epochwatt import columns
from epochwatt.board.device import host, notes, page_cache
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.mode_folder import ModeFolders
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry import which_gpu
from epochwatt.board.telemetry.client import Power, Sampler
from epochwatt.board.telemetry.rails import TOTALS
from epochwatt.columns import Factors

log = logging.getLogger(__name__)

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", 7)  # Python 3.6 has no name for it
SLEPT_S = 0.1  # reading two clocks one after the other takes less


class Observer:
    """Samples the machine during a measurement, and takes its counters before and after.

    `data_path`: any path on the file system that holds the data
    `gpu`: which GPU computes (`telemetry.which_gpu`)
    `power`: where a board's power is read (`discover.POWER`); empty: as the machine's settings say
    `sampler`: that was started already
    """

    def __init__(
        self,
        machine: Machine,
        data_path: str = "",
        seed: int = 0,
        gpu: str = which_gpu.ANY,
        power: str = "",
        sampler: Optional[Sampler] = None,
    ) -> None:
        self.machine = machine
        self.statistics: Document = {}  # of the sampler, after `end`
        self._events: Dict[str, int] = {}
        self._folder = ""
        self.sampler = sampler or Sampler.start(
            os.getpid(),
            data_path,
            seed,
            root=machine.root,
            power=power or machine.settings["power_source"],
            gpu=gpu,
        )

    def begin(self, folder: str) -> None:
        """Sample into a folder from now on."""
        self._events, self._folder = self.machine.events(), folder
        self.sampler.begin(folder)

    def power(self) -> Power:
        """Return what the power sensor has read since the last time, while it goes on."""
        return self.sampler.power()

    def end(self) -> Document:
        """Stop sampling and set `statistics`; return `events` and `telemetry_lost`.

        `events` has the machine's counters `before` and `after`.
        """
        self.statistics = self.sampler.end(self._folder)
        events = {"before": self._events, "after": self.machine.events()}
        return {"events": events, "telemetry_lost": self.statistics["lost"]}

    def sensors(self) -> Document:
        """Return the record's keys on power sensors and sampling periods, s, after `end`."""
        sources = self.statistics["sources"]
        scopes = {name: source["scope"] for name, source in sources.items()}
        return {
            "power_refused": self.sampler.refused,
            "power_scopes": sorted(filter(None, scopes.values())),
            "power_source": next((n for n, scope in scopes.items() if scope in TOTALS), None),
            "sampler_periods_s": {name: source["step_mean_s"] for name, source in sources.items()},
        }

    def __enter__(self) -> "Observer":
        return self

    def __exit__(self, *exception: object) -> None:
        self.sampler.stop()


class EpochObserver(Observer):
    """Prepares the page cache before an epoch, too, and looks at it after it.

    `paths`: the files of the data set
    `in_memory`: they were read when the data set was opened, and no epoch reads them again
    `factors`: the run's `cache_policy` and `seed`
    """

    def __init__(
        self,
        paths: List[str],
        in_memory: bool,
        factors: Factors,
        machine: Machine,
        gpu: str = which_gpu.NONE,
        power: str = "",
    ) -> None:
        super().__init__(machine, os.path.dirname(paths[0]), factors["seed"], gpu, power)
        self._paths = paths
        self._policy = factors["cache_policy"]
        self._cache: Document = {"action": None, "in_memory": in_memory, "before_pct": None}

    def drop_cache(self, epoch: int) -> None:
        """Drop the page cache before epoch 0, or each epoch by the policy; note what was done."""
        self._cache["action"] = None
        if epoch == 0 or self._policy == "dropped":
            self._cache["action"] = self.machine.drop_page_cache(self._paths)
            if self._cache["action"] == page_cache.ADVISED:
                log.info("the page cache cannot be dropped by this user: only the data set's pages")

    def begin(self, folder: str) -> None:
        """Look at the page cache, and sample into a folder from now on."""
        self._cache["before_pct"] = page_cache.resident_pct(self._paths)
        super().begin(folder)

    def end(self) -> Document:
        """Return what `Observer.end` does, `cache`, and what the sampler says of its sources."""
        observed = super().end()
        cache = dict(self._cache, after_pct=page_cache.resident_pct(self._paths))
        return dict(observed, cache=cache, **self.sensors())


@contextmanager
def noticed_stops() -> Iterator[Document]:
    """Notice if this process or a forked worker is stopped, or the machine suspended, in the block.

    Yields a dict, filled at the end of the block. `continued`: one of them got SIGCONT, as after
    SIGSTOP or Ctrl-Z; `slept_s`: how long the machine was suspended, by two clocks. Both are None
    where this is not the main thread, which alone may handle signals.
    """
    stops: Document = {"continued": None, "slept_s": None}
    if threading.current_thread() is not threading.main_thread():
        yield stops
        return
    with mmap.mmap(-1, 1) as shared:  # forked workers write it, too

        def note_sigcont(number: int, frame: Any) -> None:
            shared[0] = 1

        slept_before_s = _slept_s()
        previous_handler = signal.signal(signal.SIGCONT, note_sigcont)
        try:
            yield stops
        finally:
            signal.signal(signal.SIGCONT, previous_handler)
            stops["continued"] = bool(shared[0])
            stops["slept_s"] = max(0.0, _slept_s() - slept_before_s)


def _slept_s() -> float:
    """Return how long the machine has been suspended since it was started, s."""
    return time.clock_gettime(_BOOTTIME) - time.monotonic()


def has_stopped(stops: Document) -> bool:
    """Return whether the training was stopped, by what `noticed_stops` gave."""
    return bool(stops["continued"]) or (stops["slept_s"] or 0.0) > SLEPT_S


def circumstances(machine: Machine, device: Any, gpu: str) -> Document:
    """Return the keys of every record on versions, machine and software.

    `device`: torch's, None for a program without torch; `gpu`: UUID of its GPU (`which_gpu.gpu_of`)
    """
    torch = sys.modules.get("torch")
    meta: Document = {
        "schema_version": columns.SCHEMA_VERSION,
        "protocol": columns.PROTOCOL,
        "backend": machine.backend,
        "boot_id": host.boot_id(),
        "torch_threads_used": int(torch.get_num_threads()) if torch else 0,
    }
    meta.update(machine.describe())
    if torch and device and device.type == "cuda":
        meta["gpu_uuid"] = gpu
        meta["machine"]["gpu"] = torch.cuda.get_device_name(device)
        meta["software"]["cuda"] = torch.version.cuda
    return meta


@contextmanager
def observed_mode(
    observer: Observer,
    folder: ModeFolders,
    mode: Mapping[str, float],
    number: int,
    applied: Document,
    conditions: Document,
) -> Iterator[Document]:
    """Open a mode's attempt and sample into it while the block measures; the mode is set already.

    `number`: of the mode in its grid
    `applied`: the mode as it was set, from `Machine.change`
    `conditions`: the board's `busy_pct` and `settled`, for the record

    Yields a dict, filled at the end of the block with keys of the record; `flags`: flag -> whether
    it holds
    """
    machine = observer.machine
    observed: Document = {"measurement_id": uuid.uuid4().hex}
    attempt = folder.open_attempt(mode)
    notes.remember(observed["measurement_id"], folder.name, number)
    observer.begin(attempt)
    with noticed_stops() as stops:
        yield observed
    applied = dict(applied, unmet={**applied["unmet"], **machine.unmet(applied)})
    observed.update(observer.end(), stops=stops)
    if machine.backend != "host":
        observed["board"] = dict(conditions, power_mode=applied)
    elif applied["resolved"]:
        observed["clocks_set"] = applied
    requested, unmet = applied["resolved"], applied["unmet"]
    below = [key for key in unmet if key != "cores" and unmet[key] < requested[key]]
    observed["flags"] = {
        "clock_below_request": bool(below),
        "mode_not_met": bool(set(unmet) - set(below)),
        "sampler_lost": observed["telemetry_lost"],
        "stopped": has_stopped(stops),
    }


def raised(flags: Dict[str, bool]) -> List[str]:
    """Return the names of the flags that hold, sorted."""
    return sorted(flag for flag, holds in flags.items() if holds)
