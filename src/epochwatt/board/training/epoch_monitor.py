"""Watch page cache and telemetry around a timed epoch (board side: Python 3.6)."""

import logging
import os
from typing import Any, Dict, List, Optional

from epochwatt.board.device import page_cache
from epochwatt.board.device.machine import Machine
from epochwatt.board.telemetry import which_gpu
from epochwatt.board.telemetry.client import Power, Sampler
from epochwatt.columns import Factors

log = logging.getLogger(__name__)


class EpochMonitor:
    """Prepares the page cache before an epoch and samples the machine during it.

    Parameters
    ----------
    paths : the files of the data set
    in_memory : they were read when the data set was opened, and no epoch reads them again
    factors : the run's `cache_policy` and `seed`
    machine : the machine at hand
    gpu : which GPU trains (`training.gpu`)
    power : where a board's power is read (`discover.POWER`); None: as the machine's settings say
    """

    def __init__(
        self,
        paths: List[str],
        in_memory: bool,
        factors: Factors,
        machine: Machine,
        gpu: str = which_gpu.NONE,
        power: Optional[str] = None,
    ) -> None:
        self._paths = paths
        self._in_memory = in_memory
        self._policy = factors["cache_policy"]
        self._machine = machine
        self._sampler = Sampler.start(
            os.getpid(),
            os.path.dirname(paths[0]),
            factors["seed"],
            root=machine.root,
            power=power or machine.settings["power_source"],
            gpu=gpu,
        )
        self._cache: Dict[str, Any] = {}
        self._events: Dict[str, int] = {}

    def begin(self, epoch: int, folder: str) -> None:
        """Drop the page cache where the policy says so, then sample into the epoch's folder."""
        action = None
        if epoch == 0 or self._policy == "dropped":
            action = self._machine.drop_page_cache(self._paths)
            if action == page_cache.ADVISED:
                log.info("the page cache cannot be dropped by this user: only the data set's pages")
        self._cache = {
            "action": action,
            "in_memory": self._in_memory,
            "before_pct": page_cache.resident_pct(self._paths),
        }
        self._events = self._machine.events()
        self._sampler.begin(folder)

    def power(self) -> Power:
        """Return what the power sensor has read since the last time, while an epoch goes on."""
        return self._sampler.power()

    def end(self) -> Dict[str, Any]:
        """Stop sampling; return `cache`, `events` and what the sampler says of itself.

        Its statistics are in the epoch's folder. `events` has the machine's counters of throttling,
        over-current and swap before and after the epoch.
        """
        statistics = self._sampler.end()
        scopes = {name: source["scope"] for name, source in statistics["sources"].items()}
        events = {"before": self._events, "after": self._machine.events()}
        self._cache["after_pct"] = page_cache.resident_pct(self._paths)
        return {
            "cache": self._cache,
            "events": events,
            "telemetry_lost": statistics["lost"],
            "power_refused": self._sampler.refused,
            "power_scopes": sorted(filter(None, scopes.values())),
            "power_source": next((name for name in scopes if scopes[name] == "module"), None),
            "sampler_periods_s": {
                name: source["step_mean_s"] for name, source in statistics["sources"].items()
            },
        }

    def close(self) -> None:
        """End the sampler."""
        self._sampler.stop()
