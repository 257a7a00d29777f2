"""Try what the measuring interpreter can do (board side: Python 3.6 grammar).

`epochwatt doctor` and `epochwatt fleet-check` start it.

`python -m epochwatt.training.trial libraries` tells which libraries it has;
`... sampler FOLDER DATA ROOT POWER SECONDS` lets the sampler fill a folder, as a training does;
`... node FOLDER NAME MACHINE WORKFLOW` tells what the machine is and sees, for `fleet-check`.
The last line that it prints is JSON.
"""

import importlib
import json
import os
import platform
import sys
import time
from typing import Any, Dict, List

from epochwatt.device.node import look
from epochwatt.telemetry.client import Sampler
from epochwatt.telemetry.source import in_words

LIBRARIES = ("torch", "torchvision", "numpy", "PIL", "pynvml", "jtop")


def libraries() -> Dict[str, Any]:
    """Return versions by library (None: it cannot be imported, `errors` says why) and the GPU.

    `cuda` is the version that torch was built for, `gpu` the name of the GPU that it computed on;
    None: there is none, or `errors` says under `gpu` why it cannot be used.
    """
    versions: Dict[str, Any] = {
        "executable": sys.executable,
        "python": platform.python_version(),
        "cuda": None,
        "gpu": None,
    }
    errors: Dict[str, str] = {}
    for name in LIBRARIES:
        versions[name] = None
        try:
            module = importlib.import_module(name)
            versions[name] = str(getattr(module, "__version__", "unknown"))
        except Exception as error:  # noqa: BLE001  a broken library raises what it likes
            errors[name] = in_words(error)
    if versions["torch"] is not None:
        try:
            versions.update(_gpu())
        except Exception as error:  # noqa: BLE001  RuntimeError, and those of the driver
            errors["gpu"] = in_words(error)
    versions["errors"] = errors
    return versions


def _gpu() -> Dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {"cuda": torch.version.cuda}
    torch.ones(2, device="cuda").sum().item()  # a build for other GPUs fails here and not before
    return {"cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name(0)}


def sample(folder: str, data_path: str, root: str, power: str, seconds: float) -> Dict[str, Any]:
    """Let the sampler fill a folder for some seconds; return its statistics."""
    with Sampler.start(os.getpid(), data_path, seed=0, root=root, power=power) as sampler:
        sampler.begin(folder)
        time.sleep(seconds)
        return sampler.end()


def main(words: List[str]) -> None:
    """Do what the first word says and print the answer."""
    if words[0] == "libraries":
        answer = libraries()
    elif words[0] == "node":
        answer = dict(libraries(), **look(words[1], words[2], json.loads(words[3]), words[4]))
    else:
        answer = sample(words[1], words[2], words[3], words[4], float(words[5]))
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
