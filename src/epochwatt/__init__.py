"""epochwatt: where the time and the energy of a DNN training epoch go. (Board side: Python 3.6.)

`EpochMonitor` measures a training loop of your own; `Epoch` and `Window` are what it gives.
"""

import importlib
from typing import Any

__version__ = "0.8.0"
__all__ = ["Epoch", "EpochMonitor", "Window", "__version__"]


def __getattr__(name: str) -> Any:
    """Import what is used: board side and figures, which import this module, need none of it."""
    if name in __all__:
        return getattr(importlib.import_module("epochwatt.monitor"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
