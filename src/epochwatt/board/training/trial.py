"""Try what the measuring interpreter can do (board side: Python 3.6 grammar).

`epochwatt doctor` and `epochwatt fleet-check` start it.

`python -m epochwatt.board.training.trial libraries` tells which libraries it has;
`... sampler FOLDER DATA ROOT POWER SECONDS` lets the sampler fill a folder, as a training does;
`... node FOLDER NAME MACHINE WORKFLOW` tells what the machine is and sees, for `fleet-check`.
The last line that it prints is JSON. Where a library ends the process, or takes longer than it may,
the last line of `libraries` is what was known before, and `trying` names the library.
"""

import importlib
import json
import os
import platform
import signal
import sys
import time
from typing import Callable, List

# only what needs no library: one that is broken is to be named
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.source import in_words
from epochwatt.board.telemetry.which_gpu import why_none

LIBRARIES = ("numpy", "PIL", "torch", "torchvision", "pynvml", "jtop")
STEP_S = 90  # each library: torch comes from a memory card; and the first computation on a GPU


def libraries(tell: Callable[[Document], None] = lambda known: None) -> Document:
    """Import each library and compute on the GPU; return versions, GPU and errors.

    Keys: each of `LIBRARIES` (None: it cannot be imported), `executable`, `python`, `cuda` (the
    version torch was built for), `gpu` (name of the GPU that computed; None: none), `no_gpu` (why
    torch finds none) and `errors`: by library, under `gpu`, and under `together` for torch with
    this numpy. A step that hangs ends the process after `STEP_S` s.

    `tell`: called before each step with the result so far and the step's name, `trying`
    """
    versions: Document = dict.fromkeys(LIBRARIES)
    versions.update(executable=sys.executable, python=platform.python_version())
    versions.update(cuda=None, gpu=None, no_gpu=None, errors={})

    def step(name: str, attempt: Callable[[], Document]) -> None:
        tell(dict(versions, trying=name))
        signal.alarm(STEP_S)  # ends the process: nothing else stops a library that hangs
        try:
            versions.update(attempt())
        except Exception as error:  # noqa: BLE001  a broken library raises what it likes
            versions["errors"][name] = in_words(error)
        signal.alarm(0)

    for name in LIBRARIES:
        step(name, lambda name=name: {name: _version(name)})  # type: ignore[misc]
    if versions["torch"] is not None:
        step("together", _together)
        step("gpu", _gpu)
    return versions


def _version(name: str) -> str:
    return str(getattr(importlib.import_module(name), "__version__", "unknown"))


def _together() -> Document:
    """Convert an array from numpy to torch and back; raises whatever they do if they misfit."""
    import numpy
    import torch

    torch.from_numpy(numpy.zeros(1)).numpy()
    return {}


def _gpu() -> Document:
    """Compute on a GPU with torch; return `cuda` with `gpu`, its name, or `no_gpu`, the reason."""
    import torch

    if not torch.cuda.is_available():
        return {"cuda": torch.version.cuda, "no_gpu": why_none(torch)}
    torch.ones(2, device="cuda").sum().item()  # a build for other GPUs fails here and not before
    return {"cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name(0)}


def sample(folder: str, data_path: str, root: str, power: str, seconds: float) -> Document:
    """Run the sampler on this process for some seconds, into `folder`; return its statistics."""
    from epochwatt.board.telemetry.client import Sampler

    with Sampler.start(os.getpid(), data_path, seed=0, root=root, power=power) as sampler:
        sampler.begin(folder)
        time.sleep(seconds)
        return sampler.end()


def main(words: List[str]) -> None:
    """Run the command `words` (see the module) and print its answer as a line of JSON."""
    if words[0] == "libraries":
        answer = libraries(_print)
    elif words[0] == "node":
        from epochwatt.board.device.node import look

        _, folder, name, machine, workflow = words
        answer = dict(libraries(), **look(folder, name, json.loads(machine), workflow))
    else:
        _, folder, data_path, root, power, seconds = words
        answer = sample(folder, data_path, root, power, float(seconds))
    _print(answer)


def _print(answer: Document) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
