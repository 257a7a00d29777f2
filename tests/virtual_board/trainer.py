"""Run our own job, `-m epochwatt.board.training`, without torch: the trainer sleeps.

Session, sampler, records, checkpoints, locks and the power mode are the ones that a real run uses.
Only torch is made up: what our modules import of it is anything, and a mini-batch takes STEP_S.
"""

import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
import time
import types
from pathlib import Path

import numpy as np

N_MINIBATCHES, WAIT_S, STEP_S = 10, 0.05, 0.15
BATCH_SIZE = 4
CHECKPOINT_BYTES = 1 << 20
RECIPE = {"made": "by the virtual board"}
EAT_MEMORY_IN = "EPOCHWATT_EAT_MEMORY_IN"  # variable: number of an epoch
FACTORS = {
    **{"backend": "fake", "device": "virtual", "instance": "v1", "model": "lenet"},
    **{"dataset": "trainer.Samples", "dataset_source": "virtual", "storage": "disk"},
    **{"power_mode": "any", "num_workers": 0, "batch_size": BATCH_SIZE, "dvfs": "on"},
    **{"epochs_per_job": 100, "recipe": RECIPE},
}


class Anything:
    """Stands for each class, function and decorator of torch that nothing here computes with."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *words, **__):
        return words[0] if words and callable(words[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __mro_entries__(self, bases):
        return ()


class Device:
    """Where a trainer is: the CPU."""

    type = "cpu"

    def __init__(self, _):
        pass


class Tensor(np.ndarray):
    """An array as a checkpoint takes it apart and puts it together."""

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)

    def to(self, _):
        return self


class MadeUpTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch and its modules, in which every name is `Anything` but for a few."""

    def find_spec(self, name, _path, _target=None):
        if name.partition(".")[0] == "torch":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        module.__getattr__ = Anything().__getattr__
        if module.__name__ == "torch":
            module.__version__ = "0 (made up)"
            module.__config__ = types.SimpleNamespace(show=lambda: "")
            module.version = types.SimpleNamespace(cuda=None)
            module.cuda = types.SimpleNamespace(is_available=lambda: False)
            module.device, module.Tensor = Device, Tensor
            module.from_numpy = lambda array: array.view(Tensor)
            module.load = lambda path, weights_only=True: None
            module.get_num_threads = lambda: 1


class Samples:
    """Reader of the data set: a file that nobody decodes."""

    def __init__(self, folder, manifest):
        self.n_samples = manifest["n_samples"]

    def __len__(self):
        return self.n_samples

    def read(self, index):
        return index, 0


class Sleeper:
    """A network that learns how many mini-batches it has seen."""

    compile_s = 0.0

    def __init__(self, _factors, device):
        self.device = device
        self.seen = np.zeros(CHECKPOINT_BYTES // 8).view(Tensor)
        self.eaten = []

    def copy(self, minibatch):
        return minibatch

    def step(self, _):
        time.sleep(STEP_S)
        self.seen += 1
        if self.seen[0] % N_MINIBATCHES == N_MINIBATCHES // 2:
            print("HALF", int(self.seen[0]) // N_MINIBATCHES, flush=True)
        epoch = os.environ.get(EAT_MEMORY_IN)
        while epoch and self.seen[0] == (int(epoch) + 0.5) * N_MINIBATCHES:
            self.eaten.append(np.ones(4 << 20))

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class Minibatches:
    """A loader that waits for each mini-batch."""

    def __init__(self, *_):
        pass

    def __len__(self):
        return N_MINIBATCHES

    def __iter__(self):
        for n in range(N_MINIBATCHES):
            time.sleep(WAIT_S)
            yield n


def make_data(root):
    """Make the data set of a run below the folder of its medium."""
    folder = Path(root, "trainer.Samples-virtual-x1")
    folder.mkdir(parents=True, exist_ok=True)
    content = bytes(1 << 16)
    (folder / "samples").write_bytes(content)
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    n_samples = BATCH_SIZE * N_MINIBATCHES
    manifest = {"recipe": RECIPE, "files": {"samples": entry}, "n_samples": n_samples}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def main():
    """Measure as the job of a run does, and tell of each epoch that begins and ends."""
    sys.meta_path.insert(0, MadeUpTorch())
    from epochwatt.board.training import __main__ as job
    from epochwatt.board.training import session

    class Session(session.Session):
        def measure(self, epoch):
            print("BEGIN", epoch, flush=True)
            super().measure(epoch)
            print("EPOCH", epoch, flush=True)

    session.Session = Session
    session.make_trainer, session.make_loader = Sleeper, Minibatches
    session.mean_loss = lambda *_: 0.5
    return job.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
