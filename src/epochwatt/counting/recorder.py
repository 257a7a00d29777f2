"""Record the kernels of one pass of any network, without a GPU and without its numbers.

The network runs on tensors that have shapes but no content, and each operator that torch dispatches
is turned into the kernels that torch 1.8, the torch of the papers, launches for it (see
`epochwatt.counting.operators`). Its zero_grad writes zeros, to which gradients are added, and
its SGD goes through the parameters one by one. The copy of the mini-batch to the GPU is left out.

fp16 and bf16 are autocast: products and convolutions in half precision, casts included, weights and
their gradients in fp32. What else stays in half is decided by autocast of the CPU, which other than
that of CUDA also leaves softmax and layer norm there. Gradients of fp16 are scaled, in a pass over
them. tf32 moves the bytes of fp32.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from epochwatt.board.training.arithmetic import AUTOCAST
from epochwatt.board.training.optimisers import ADAM, ADAMW, LEARNING_RATE, MOMENTUM, SGD
from epochwatt.counting.operators import Call, Kernel, kernels_of
from epochwatt.errors import ConfigError, TrainingError

META = torch.device("meta")
TASKS = ("train", "infer")
PRECISIONS = ("fp32", "tf32", *AUTOCAST)
Loss = Callable[[nn.Module, Any], torch.Tensor]


class _Recorder(TorchDispatchMode):
    """Collects the kernels of every operator that is dispatched within.

    `phase`: of what comes next
    `launches`: (phase, kernel), in order
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase = ""
        self.launches: list[tuple[str, Kernel]] = []
        self._starts: dict[nn.Module, int] = {}  # recurrent layer -> its first launch

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operator on shapes and note its kernels."""
        result = func(*args, **(kwargs or {}))
        call = Call(str(func.overloadpacket), func, args, kwargs or {}, result)
        self.launches += [(self.phase, kernel) for kernel in kernels_of(call)]
        return result

    def fuse_recurrent(self, network: nn.Module) -> None:
        """Count each LSTM, GRU or RNN within as cuDNN launches it: once, forward and backward.

        Its products are one kernel and its cells another; their threads are those of one step.
        """
        for layer in network.modules():
            if isinstance(layer, nn.RNNBase):
                layer.register_forward_pre_hook(self._begin_forward)
                layer.register_forward_hook(self._end_forward)

    def _begin_forward(self, layer: nn.Module, inputs: Any) -> None:
        self._starts[layer] = len(self.launches)
        for tensor in tree_leaves(inputs):
            if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                tensor.register_hook(lambda _: self.fuse(layer))

    def _end_forward(self, layer: nn.Module, _: Any, outputs: Any) -> None:
        self.fuse(layer)
        for tensor in tree_leaves(outputs):
            if tensor.requires_grad:
                tensor.register_hook(lambda _: self._begin_backward(layer))

    def _begin_backward(self, layer: nn.Module) -> None:
        self._starts.setdefault(layer, len(self.launches))

    def fuse(self, *layers: nn.Module) -> None:
        """Fuse what was launched since these layers began; none told: all that have begun."""
        for layer in layers or tuple(self._starts):
            start = self._starts.pop(layer, len(self.launches))
            steps = self.launches[start:]
            del self.launches[start:]
            products = [kernel for _, kernel in steps if kernel.kind.startswith("gemm")]
            others = [kernel for _, kernel in steps if not kernel.kind.startswith("gemm")]
            for own in (products, others):
                if own:
                    kind = own[0].kind if own is products else "elementwise"
                    flops, moved = (sum(getattr(k, n) for k in own) for n in ("flops", "bytes"))
                    most = max(kernel.elements for kernel in own)
                    kernel = Kernel(f"recurrent.{kind}", kind, flops, moved, most)
                    self.launches.append((steps[0][0], kernel))


def record(
    network: nn.Module,
    inputs: Any,
    *,
    task: str = "train",
    precision: str = "fp32",
    loss: Loss | None = None,
    optimiser: str = SGD,
) -> list[tuple[str, Kernel]]:
    """Return (phase, kernel) of one mini-batch through any network, in launch order.

    Training has the order of the papers' scripts: zero_grad, forward, loss, backward, optimiser.
    Inference is the forward pass alone, without gradients, in evaluation mode.

    Raises ConfigError: a task, precision or optimiser that is not there; TrainingError: a network
    that does not run on shapes alone, with what torch says.

    `network`: left as it is; a copy without content is counted
    `inputs`: a mini-batch: a tensor, or what holds some; only shapes and types matter
    `task`, `precision`: of `TASKS` and `PRECISIONS`
    `loss`: (network, inputs) -> number to train on; None: the mean of all that comes out
    `optimiser`: of `training.optimisers`
    """
    choices: dict[str, tuple[str, tuple[str, ...]]] = {
        "task": (task, TASKS),
        "precision": (precision, PRECISIONS),
        "optimiser": (optimiser, tuple(_STEPS)),
    }
    for argument, (value, allowed) in choices.items():
        if value not in allowed:
            raise ConfigError(f"no {argument} {value!r} is counted", allowed=allowed)
    loss = loss or (lambda network, inputs: mean_of(network(inputs)))
    reason: Exception
    # autocast needs a device, which fake tensors have; transformers look at masks unless fake
    fake_or_meta = (True,) if precision in AUTOCAST else (False, True)
    for is_fake in fake_or_meta:
        with _content_free_tensors(is_fake) as empty:
            shapes_only = _without_content(network, empty).train(task == "train")
            minibatch = tree_map(lambda x: empty(x) if isinstance(x, torch.Tensor) else x, inputs)
            try:
                if task == "infer":
                    return _infer(shapes_only, minibatch, precision)
                return _train(shapes_only, minibatch, precision, loss, optimiser)
            except (RuntimeError, NotImplementedError) as error:
                reason = error
    raise TrainingError(
        f"{type(network).__name__} cannot be counted: it does not run on shapes alone",
        found=str(reason).strip().split("\n")[0],
        do="let its work not depend on what the tensors hold",
    ) from reason


@contextmanager
def _content_free_tensors(is_fake: bool) -> Iterator[Callable[[torch.Tensor], torch.Tensor]]:
    """Yield a maker of tensors without content: on the meta device, or fake ones on the CPU.

    Switches off the fused kernels of attention and LSTM within: products are recorded instead.
    """
    halves = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    fast = torch.backends.mha.get_fastpath_enabled()
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.callback(torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp, halves)
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
        stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
        torch.backends.mha.set_fastpath_enabled(False)
        device = META
        if is_fake:
            stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
            # what torch.backends.mkldnn.flags does, without its warning
            stack.callback(torch._C._set_mkldnn_enabled, torch._C._get_mkldnn_enabled())
            torch._C._set_mkldnn_enabled(False)
            device = torch.device("cpu")
        yield lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype, device=device)


def _without_content(
    network: nn.Module, empty: Callable[[torch.Tensor], torch.Tensor]
) -> nn.Module:
    """Copy a network with `empty` in place of each tensor; shared weights stay shared."""
    memo: dict[int, Any] = {}
    for weight in network.parameters():
        memo[id(weight)] = nn.Parameter(empty(weight.detach()), requires_grad=weight.requires_grad)
    for buffer in network.buffers():
        memo[id(buffer)] = empty(buffer)
    return copy.deepcopy(network, memo)


def _autocast(precision: str) -> Any:
    return torch.autocast("cpu", AUTOCAST.get(precision), enabled=precision in AUTOCAST)


def _infer(network: nn.Module, inputs: Any, precision: str) -> list[tuple[str, Kernel]]:
    """Record the kernels of a forward pass without gradients, each with its phase."""
    with torch.no_grad(), _Recorder() as recorder, _autocast(precision):
        recorder.fuse_recurrent(network)
        recorder.phase = "forward"
        network(inputs)
    return recorder.launches


def _train(
    network: nn.Module, inputs: Any, precision: str, loss: Loss, optimiser: str
) -> list[tuple[str, Kernel]]:
    """Record the kernels of one training step of `network`, which gets gradients, with phases."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    moments = [[torch.empty_like(weight) for weight in weights] for _ in range(2)]
    for weight in weights:
        weight.grad = torch.empty_like(weight)
    with _Recorder() as recorder:
        recorder.fuse_recurrent(network)
        recorder.phase = "zero_grad"
        _zero_grad(weights)
        recorder.phase = "forward"
        network.register_forward_hook(lambda *_: setattr(recorder, "phase", "loss"))
        with _autocast(precision):
            training_loss = loss(network, inputs)
        if precision == "fp16":  # the scale of the gradients
            training_loss = training_loss * torch.empty_like(training_loss)
        recorder.phase = "backward"
        training_loss.backward()
        recorder.fuse()
        recorder.phase = "optimiser"
        if precision == "fp16":
            _unscale(weights)
        _STEPS[optimiser](weights, *moments)
    return [
        (phase, kernel._replace(kind="optimiser") if phase == "optimiser" else kernel)
        for phase, kernel in recorder.launches
    ]


def mean_of(outputs: Any) -> torch.Tensor:
    """Return the sum of the mean of each output that has a gradient; TrainingError: none has."""
    leaves = tree_leaves(outputs)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not tensors:
        raise TrainingError("the network's output depends on no weight", do="give a loss")
    return torch.stack([tensor.float().mean() for tensor in tensors]).sum()


@torch.no_grad()
def _zero_grad(weights: list[nn.Parameter]) -> None:
    for weight in weights:
        assert weight.grad is not None
        weight.grad.zero_()


@torch.no_grad()
def _unscale(weights: list[nn.Parameter]) -> None:
    """Unscale all gradients in place, as the gradient scaler of fp16 does: one pass for all."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    scalar = torch.empty((), device=weights[0].device)  # found_inf and the inverse scale
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, scalar, scalar)


@torch.no_grad()
def _sgd(weights: list[nn.Parameter], momenta: list[torch.Tensor], _: list[torch.Tensor]) -> None:
    """Do a step of SGD with momentum in place, as torch 1.8: three kernels for each parameter."""
    for weight, momentum in zip(weights, momenta, strict=True):
        assert weight.grad is not None
        momentum.mul_(MOMENTUM).add_(weight.grad)
        weight.add_(momentum, alpha=-LEARNING_RATE)


@torch.no_grad()
def _adam(
    weights: list[nn.Parameter], means: list[torch.Tensor], squares: list[torch.Tensor]
) -> None:
    """Do a step of Adam in place, as torch 1.8: eight kernels for each parameter.

    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w -= rate m / (sqrt(v) / correction + epsilon)

    Only the kernels count: the numbers stand for any rate and correction.
    """
    for weight, mean, square in zip(weights, means, squares, strict=True):
        assert weight.grad is not None
        mean.mul_(0.9).add_(weight.grad, alpha=0.1)
        square.mul_(0.999).addcmul_(weight.grad, weight.grad, value=0.001)
        denominator = (square.sqrt() / 0.5).add_(1e-8)
        weight.addcdiv_(mean, denominator, value=-1e-5)


@torch.no_grad()
def _adamw(
    weights: list[nn.Parameter], means: list[torch.Tensor], squares: list[torch.Tensor]
) -> None:
    """Do a step of AdamW in place, as torch 1.8: the decay of the weights, then Adam."""
    for weight in weights:
        weight.mul_(0.99)
    _adam(weights, means, squares)


_STEPS = {SGD: _sgd, ADAM: _adam, ADAMW: _adamw}
