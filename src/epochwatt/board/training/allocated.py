"""Forecast the memory of a training step without running it (board side: Python 3.6; torch 2).

The step runs on fake tensors, which have shapes and no content. A storage counts from the operator
that makes it until nothing refers to it any more. So what autograd saves, checkpointing recomputes
and autocast casts counts as it is, of any network. What an operator allocates for itself alone no
fake tensor shows: `temporary_bytes` has the rules.
"""

import copy
import functools
import sys
import warnings
import weakref
from collections import Counter
from contextlib import ExitStack
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Sequence

import torch
from torch import nn

from epochwatt.board.training.arithmetic import AUTOCAST
from epochwatt.board.training.gpu_operators import PRODUCTS, GpuOperators
from epochwatt.board.training.optimisers import ADAM, ADAMW, SGD
from epochwatt.board.training.resident import Constants, Event
from epochwatt.board.training.transforms import Sample
from epochwatt.board.training.workloads import Workload
from epochwatt.errors import ConfigError, TrainingError

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # torch < 1.13, which forecasts nothing
    TorchDispatchMode = object

STATES = {SGD: 1, ADAM: 2, ADAMW: 2}  # tensors that an optimiser keeps for each weight
STEPS = 2  # malloc serves the first otherwise than those after it
META = "meta"
MARK: Event = (0, 0)  # among the events: a phase of the step ends
Loss = Callable[[nn.Module, Any], torch.Tensor]  # (network, mini-batch) -> number to train on


class Subject(NamedTuple):
    """A network and what it trains on."""

    build: Callable[[], nn.Module]
    sample: Callable[[], Any]  # a mini-batch of one: tensors, also in lists and mappings
    loss: Loss


class Manner(NamedTuple):
    """Settings of a training that decide what it allocates."""

    precision: str = "fp32"
    optimiser: str = SGD
    task: str = "train"
    checkpointing: bool = False
    accumulate: int = 1  # mini-batches before a step of the optimiser
    on_gpu: bool = False


class Allocated(NamedTuple):
    """Memory of a step's tensors, bytes."""

    peak: int
    weights: int  # and buffers
    gradients: int
    optimiser: int
    minibatch: int
    first: Sequence[Event]  # what a first step allocates and frees, and each step after it
    step: Sequence[Event]
    blas_threads: int = 0  # that multiply matrices on a GPU: cuBLAS has a workspace for each

    @property
    def activations(self) -> int:
        """Return what is left at the peak: activations kept for backward, and temporaries."""
        known = self.weights + self.gradients + self.optimiser + self.minibatch
        return max(0, self.peak - known)


class _LiveStorages(TorchDispatchMode):
    """Counts the bytes of all storages that operators make, while something refers to them."""

    def __init__(self, on_gpu: bool) -> None:
        super().__init__()
        self.on_gpu = on_gpu
        self.bytes = self.peak = 0
        self.events: List[Event] = []
        self.multiplies = False
        self._seen: Dict[int, Any] = {}
        self._n = 0

    def see(self, tensor: torch.Tensor, share: float = 1.0) -> None:
        """Count a tensor's storage unless it is known; `share`: of its bytes."""
        storage = tensor.untyped_storage()
        place = storage._cdata
        if place in self._seen:
            return
        n_bytes = int(share * storage.nbytes())
        self._n += 1
        key = self._n

        def free(_: Any) -> None:
            del self._seen[place]
            self.bytes -= n_bytes
            self.events.append((key, -n_bytes))

        self._seen[place] = weakref.ref(storage, free)
        self._add(key, n_bytes)

    def mark(self) -> None:
        """Note that a phase ends."""
        self.events.append(MARK)

    def _add(self, key: int, n_bytes: int) -> None:
        self.bytes += n_bytes
        self.events.append((key, n_bytes))
        self.peak = max(self.peak, self.bytes)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Run an operator on shapes; count what it returns, and what it takes meanwhile."""
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            self.see(tensor)
        name = str(func.overloadpacket)
        self.multiplies = self.multiplies or name in PRODUCTS
        extra = temporary_bytes(name, args, result, self.on_gpu)
        if extra:
            self._n += 1
            self._add(self._n, extra)
            self._add(self._n, -extra)
        return result


BLOCK = 16  # channels that oneDNN computes at once, with AVX-512


def temporary_bytes(name: str, args: Any, result: Any, on_gpu: bool = False) -> int:
    """Return what an operator allocates beside its result and frees at its end, bytes.

    Convolutions of oneDNN take copies of what they read and write with their channels in blocks.
    Those of cuDNN take copies with their channels last in backward, unless each channel is by
    itself (as an H100 was seen to do; other algorithms of it take other amounts).
    """
    if on_gpu:
        if name != "aten.convolution_backward" or (args[9] > 1 and args[2].shape[1] == 1):
            return 0
        return sum(_bytes(tensor) for tensor in args[:3])
    if name == "aten.convolution":
        inputs, weight = _blocked(args[0]), _bytes(args[1])
        if args[1].dtype != torch.float32 and args[1].shape[2:].numel() == 1:
            return _bytes(result) + inputs + weight
        beyond = _blocked(result) - _bytes(result)
        return max(inputs + weight + beyond, _blocked(result))
    if name == "aten.convolution_backward":
        gradient, inputs, weight = args[:3]
        blocked = _blocked(gradient) + _blocked(inputs)
        if weight.dtype == torch.float32:
            return blocked
        groups = args[9]  # a gradient of the inputs that is ordered anew; sums in fp32
        return max(blocked, 2 * _blocked(inputs) if groups > 1 else 0) + 4 * weight.numel()
    return 0


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _blocked(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor with its channels in whole blocks; pictures stay as they are."""
    channels = tensor.shape[1]
    if channels <= 3:
        return 0
    return _bytes(tensor) // channels * (-(-channels // BLOCK) * BLOCK)


def _tensors(values: Any) -> List[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [tensor for value in values for tensor in _tensors(value)]
    return []


def forecast(subject: Subject, batch_size: int, manner: Manner) -> Allocated:
    """Return the memory that tensors of a training step will take at most, on any machine.

    Raises TrainingError: torch is too old, or the network's work depends on what tensors hold.
    """
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode
    except ImportError:
        raise TrainingError(
            "memory is forecast by torch 2.2 or newer", found=torch.__version__
        ) from None
    sample = subject.sample()
    network = without_memory(subject.build)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), ExitStack() as stack:
            if manner.on_gpu:
                stack.enter_context(GpuOperators(AUTOCAST.get(manner.precision)))
            return _forecast(network, sample, subject.loss, batch_size, manner)
    except (RuntimeError, NotImplementedError) as error:
        raise TrainingError(
            "the memory of this network cannot be forecast: it does not run on shapes alone",
            found=str(error).strip().split("\n")[0],
            do="let its work not depend on what the tensors hold",
        ) from error


def libraries_mib(
    manner: Manner, constants: Constants, modules: Optional[Collection[str]] = None
) -> float:
    """Return what training imports of torch's optimisers, torchvision or transformers, MiB.

    Call it after `forecast`, which imports what the network does. `modules`: None: all of now
    """
    modules = sys.modules if modules is None else modules
    if "transformers" in modules:
        return constants.transformers
    is_own = manner.optimiser == SGD or manner.task == "infer"
    return 0.0 if is_own and "torchvision.models" not in modules else constants.libraries


def without_memory(build: Callable[[], nn.Module]) -> nn.Module:
    """Build a network without memory for its weights, where that is possible."""
    try:
        with torch.device(META):
            return build().to(META)
    except (RuntimeError, NotImplementedError):  # it looks at numbers while it is built
        return build()


def _forecast(
    network: nn.Module, sample: Any, loss: Loss, batch_size: int, manner: Manner
) -> Allocated:
    """Forecast within a mode of fake tensors."""
    network = without_content(network)
    network.train(manner.task == "train")
    if manner.checkpointing:
        checkpoint_blocks(network)
    live = _LiveStorages(manner.on_gpu)
    for tensor in [*network.parameters(), *network.buffers()]:
        live.see(tensor)
    weights = live.bytes
    live.mark()
    with live:
        minibatch = resized(sample, batch_size)
        for tensor in _tensors(minibatch):
            live.see(tensor)
        minibatch_bytes = live.bytes - weights
        live.mark()
        step = _Steps(network, loss, manner, live.mark)
        live.mark()
        for _ in range(1 if manner.on_gpu else STEPS):
            end_of_first = len(live.events)
            step(minibatch)
    first, last = live.events[:end_of_first], live.events[end_of_first:]
    trained = [w.numel() * w.element_size() for w in network.parameters() if w.requires_grad]
    gradients = sum(trained) if manner.task == "train" else 0
    states = STATES[manner.optimiser] * gradients
    known = live.peak, weights, gradients, states, minibatch_bytes, first, last
    # backward has a thread of its own
    n_threads = (2 if manner.task == "train" else 1) if manner.on_gpu and live.multiplies else 0
    return Allocated(*known, n_threads)


def without_content(network: nn.Module) -> nn.Module:
    """Copy a network with empty tensors for its own; shared weights stay shared."""
    memo: Dict[int, Any] = {}
    for weight in network.parameters():
        empty = torch.empty(weight.shape, dtype=weight.dtype)
        memo[id(weight)] = nn.Parameter(empty, requires_grad=weight.requires_grad)
    for buffer in network.buffers():
        memo[id(buffer)] = torch.empty(buffer.shape, dtype=buffer.dtype)
    return copy.deepcopy(network, memo)


def resized(values: Any, size: int) -> Any:
    """Return a mini-batch of `size` samples, without content, shaped like that of one sample."""
    if isinstance(values, torch.Tensor):
        shape = [size, *values.shape[1:]] if values.dim() else []
        return torch.empty(shape, dtype=values.dtype)
    if isinstance(values, dict):
        return {key: resized(value, size) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [resized(value, size) for value in values]
    return values


def subject_of(workload: Workload) -> Subject:
    """Return the network of a workload of the package, or like one, as what is forecast."""

    def sample() -> Any:
        made = workload.transform(workload.made_up())
        if not isinstance(made, Sample):  # inputs alone: the target is a class
            made = Sample(made, torch.tensor(0))
        return [tensor[None] for tensor in made]

    return Subject(
        workload.build, sample, lambda network, minibatch: workload.loss(network, *minibatch)
    )


class _Steps:
    """Trains on fake tensors: the order and the temporaries of `workloads.Trainer.step`."""

    def __init__(
        self, network: nn.Module, loss: Loss, manner: Manner, mark: Callable[[], None]
    ) -> None:
        if manner.optimiser not in STATES:
            raise ConfigError(f"no optimiser {manner.optimiser!r} is forecast", allowed=STATES)
        self.network, self.loss, self.manner, self.mark = network, loss, manner, mark
        self.weights = [weight for weight in network.parameters() if weight.requires_grad]
        n_states = STATES[manner.optimiser] if manner.task == "train" else 0
        self.states = [[torch.empty_like(w) for _ in range(n_states)] for w in self.weights]

    def __call__(self, minibatch: Any) -> None:
        """Do a step."""
        if self.manner.task == "infer":
            with torch.no_grad(), self._autocast():
                self.loss(self.network, minibatch)
            return
        for weight in self.weights:
            weight.grad = None
        for _ in range(self.manner.accumulate):
            with self._autocast():
                loss = self.loss(self.network, minibatch)
                self.mark()
            self.mark()  # autocast has forgotten the weights that it cast
            torch.autograd.backward([loss])  # `loss.backward()` would leave the mode of a GPU
            self.mark()
        self._update()
        self.mark()

    def _autocast(self) -> Any:
        dtype = AUTOCAST.get(self.manner.precision)
        return torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None)

    @torch.no_grad()
    def _update(self) -> None:
        """Do what the optimiser does with memory: on a CPU weight by weight, on a GPU all at once.

        SOURCE: torch/optim/sgd.py and adam.py, `_single_tensor_adam` and `_multi_tensor_adam`.
        """
        if STATES[self.manner.optimiser] < 2:
            return
        if self.manner.on_gpu:
            roots = [squares.sqrt() for _, squares in self.states]
            del roots
            return
        for weight, (means, squares) in zip(self.weights, self.states):
            root = (squares.sqrt() / 2.0).add_(1e-8)
            weight.addcdiv_(means, root)


def checkpoint_blocks(network: nn.Module) -> bool:
    """Have the network recompute its repeated blocks in backward; return whether it has any.

    A network of transformers does so itself. Else the blocks are the outermost modules with modules
    and weights of their own whose class occurs three times or more, such as `Bottleneck`.
    """
    enable = getattr(network, "gradient_checkpointing_enable", None)
    if enable is not None:
        with warnings.catch_warnings():  # transformers 5 has another name for it
            warnings.simplefilter("ignore", FutureWarning)
            enable({"use_reentrant": False})
        return True
    blocks = repeated_blocks(network)
    for block in blocks:
        block.forward = functools.partial(_recomputed, block.forward)
    return bool(blocks)


def _recomputed(forward: Callable[..., Any], *inputs: Any, **keywords: Any) -> Any:
    """Run a block whose activations are computed again in backward.

    It keeps lists as they are now: those of DenseNet's blocks grow before backward.
    """
    from torch.utils.checkpoint import checkpoint

    kept = [list(value) if isinstance(value, list) else value for value in inputs]
    return checkpoint(forward, *kept, use_reentrant=False, **keywords)


def repeated_blocks(network: nn.Module) -> List[nn.Module]:
    """Return the blocks of `checkpoint_blocks`, in order."""
    plain = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    composite = [
        module
        for module in network.modules()
        if module is not network
        and not isinstance(module, plain)
        and any(True for _ in module.children())
        and any(True for _ in module.parameters())
    ]
    often = {kind for kind, n in Counter(map(type, composite)).items() if n >= 3}
    blocks: List[nn.Module] = []
    inner: set = set()
    for module in composite:  # outer ones come first
        if type(module) in often and id(module) not in inner:
            blocks.append(module)
            inner.update(map(id, module.modules()))
    return blocks
