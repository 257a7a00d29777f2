"""Check the plan of a measurement before torch is loaded (board side: Python 3.6 grammar)."""

import math

from epochwatt.board.records.shapes import Document
from epochwatt.board.training.interleave.arrivals import CONSTANT, POISSON, mean_rate, read_times
from epochwatt.errors import ConfigError

QUEUE = 10  # mini-batches of requests that may wait
DEFAULTS: Document = {
    "rate_per_s": None,  # of a trace: its own
    "batch_size": 1,
    "train_batch_size": 16,
    "n_train": None,
    "queue": None,  # QUEUE mini-batches
    "arrivals": CONSTANT,
    "seed": 0,
    "torch_threads": 0,  # torch's own choice
    "networks": {},
}
ALL = ("train", "infer", "seconds") + tuple(DEFAULTS)
COUNTS = {"batch_size": 1, "train_batch_size": 1, "n_train": 0, "torch_threads": 0, "seed": 0}


def checked(settings: Document) -> Document:
    """Fill a plan up with `DEFAULTS` and check it; a trace's rate is read from its file.

    `settings`: `train` and `infer` (networks), `seconds`, and what differs from `DEFAULTS`:
    `rate_per_s` and `batch_size` of requests; `train_batch_size`; `n_train`, most mini-batches of
    training between two of requests (None: as many as fit); `queue`, most requests that wait;
    `arrivals` (constant, poisson or a file of times, s); `networks`, own ones by name

    Raises ConfigError: a key is missing, unknown or out of range, or the trace cannot be read.
    """
    plan = dict(DEFAULTS, **settings)
    for key in [*plan, *ALL]:
        if key not in ALL or key not in plan:
            raise ConfigError(f"the plan: {key} is missing or unknown", allowed=ALL)
    if plan["arrivals"] not in (CONSTANT, POISSON) and plan["rate_per_s"] is None:
        plan["rate_per_s"] = mean_rate(read_times(plan["arrivals"]))
    if plan["rate_per_s"] is None:
        raise ConfigError("the plan: no rate of requests", do="add --rate")
    for key in ("rate_per_s", "seconds"):
        value = plan[key]
        if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
            raise ConfigError(f"the plan: {key} is {value!r}", allowed="a number above zero")
    if plan["queue"] is None:
        plan["queue"] = QUEUE * plan["batch_size"]
    for key, least in dict(COUNTS, queue=plan["batch_size"]).items():
        value = plan[key]
        is_unlimited = key == "n_train" and value is None
        if not is_unlimited and (not isinstance(value, int) or value < least):
            raise ConfigError(
                f"the plan: {key} is {value!r}", allowed=f"a whole number of at least {least}"
            )
    return plan
