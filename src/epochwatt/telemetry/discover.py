"""Which sources this machine has (board side: Python 3.6 grammar)."""

import logging
from typing import Callable, List, Optional

from epochwatt.telemetry.host import HostSource
from epochwatt.telemetry.nvml import open_gpu
from epochwatt.telemetry.rapl import RaplSource
from epochwatt.telemetry.source import READ_ERRORS, Source

log = logging.getLogger(__name__)


def sources(pid: int, data_path: str, root: str = "/") -> List[Source]:
    """Return the usable sources: host counters, the GPU, the processor's energy counters.

    Parameters
    ----------
    pid : the trainer
    data_path : any path on the file system that holds the data set
    root : `/`, or the folder of a made-up system
    """
    makers: List[Callable[[], Optional[Source]]] = [
        lambda: HostSource(root, pid, data_path),
        open_gpu,
        lambda: _usable(RaplSource(root)),
    ]
    found = []
    for make in makers:
        try:
            source = make()
        except READ_ERRORS as error:
            log.warning("a telemetry source cannot be used: %s", error)
            continue
        if source is not None:
            found.append(source)
    return found


def _usable(rapl: RaplSource) -> Optional[RaplSource]:
    if rapl.usable():
        return rapl
    rapl.close()
    return None
