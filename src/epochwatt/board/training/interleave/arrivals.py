"""Make or read the times at which requests arrive, s (board side: Python 3.6 grammar).

Arrivals are open: a request comes when it comes, however long others before it have waited.
"""

import math
import os
import random
from typing import List, Optional

from epochwatt.errors import ConfigError

CONSTANT, POISSON = "constant", "poisson"
LINE_BYTES = 32  # of a trace, at most on average
MOST = 10000000  # requests of one measurement; their times take 0.4 GB


def arrivals(process: str, rate_per_s: float, seconds: float, seed: int) -> List[float]:
    """Return the times at which requests arrive within `seconds`, ascending, s from 0.

    `process`: `constant` (the first after 1 / rate), `poisson`, or a file of times, which needs no
    `rate_per_s`

    Raises ConfigError: the file is no list of times, or there are too many requests, or none.
    """
    if process not in (CONSTANT, POISSON):
        times = [t for t in read_times(process) if t <= seconds]
    elif rate_per_s * seconds > MOST:
        raise ConfigError(
            "too many requests for one measurement",
            found=f"{rate_per_s * seconds:.0f}",
            allowed=f"at most {MOST}",
        )
    elif process == CONSTANT:
        count = int(rate_per_s * seconds * (1 + 1e-12))  # a product rounded down counts, too
        times = [(number + 1) / rate_per_s for number in range(count)]
    else:
        generator, times = random.Random(seed), []
        t = generator.expovariate(rate_per_s)
        while t <= seconds:
            times.append(t)
            t += generator.expovariate(rate_per_s)
    if not times:
        raise ConfigError(f"no request arrives within {seconds:g} s", do="measure for longer")
    return times


def read_times(path: str) -> List[float]:
    """Read a trace of arrivals: a time a line, s, ascending from 0; lines with # are comments.

    Raises ConfigError: the file cannot be read or is too large, or a line is no such time.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            if os.fstat(handle.fileno()).st_size > LINE_BYTES * MOST:
                raise ConfigError("the trace is too long", where=path, allowed=f"{MOST} lines")
            lines = handle.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the arrivals cannot be read: {error}",
            where=path,
            allowed=f"{CONSTANT}, {POISSON}, or a file with one time a line",
        ) from error
    times, previous = [], 0.0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            time_s = float(line)
        except ValueError:
            time_s = math.nan
        if not (math.isfinite(time_s) and time_s >= previous):
            raise ConfigError(
                "this is no time of an arrival",
                where=f"{path}, line {number}",
                found=line.strip()[:40],
                allowed=f"a number, s, of at least {previous:g}: ascending from 0",
            )
        previous = time_s
        times.append(time_s)
    return times


def mean_rate(times: List[float]) -> Optional[float]:
    """Return requests a second of a trace; None where its times do not say it."""
    return len(times) / times[-1] if times and times[-1] > 0 else None
