"""List the kernels that each operator launches, as torch 1.8 does on CUDA, and their work.

Of a kernel are counted:

- floating-point operations, a multiply-add being two: convolutions and matrix products by the
  formulas of `torch.utils.flop_counter`, everything else one per element, a fill none;
- bytes: each input read and each output written once, unless a rule says otherwise;
- elements, what its threads are spread over: outputs, or inputs where those are summed up.

Source: the operators' own code in torch 1.8, aten/src/ATen/native: Convolution.cpp (the bias of a
convolution is added separately, except for depthwise ones), cuda/LinearAlgebra.cu (the bias of a
product is copied first), cuda/group_norm_kernel.cu, cuda/*Pool*.cu (gradients are zeroed first),
cuda/Dropout.cu, cuda/layer_norm_kernel.cu, cuda/Embedding.cu. Batch norm is one kernel of cuDNN
each way. Attention is counted as products and a softmax: torch 1.8 had no kernel for all of it; an
LSTM as two kernels each way (`recorder`), since cuDNN launches all of its steps at once; a sort as
one kernel with a thread per element.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry


class Kernel(NamedTuple):
    """One launch at one mini-batch size."""

    name: str
    kind: str
    flops: int
    bytes: int
    elements: int


class Call(NamedTuple):
    """One operator as torch dispatched it."""

    name: str  # "aten.convolution"
    overload: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any

    @property
    def inputs(self) -> list[torch.Tensor]:
        """Tensors among the arguments."""
        return _tensors((self.args, self.kwargs))

    @property
    def outputs(self) -> list[torch.Tensor]:
        """Tensors among the results."""
        return _tensors(self.result)


Rule = Callable[[Call], Iterable[Kernel]]


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _bytes(*tensors: torch.Tensor) -> int:
    """Return what tensors hold in memory; a dimension that was expanded holds one element."""
    held = 0
    for tensor in tensors:
        sizes = [n for n, step in zip(tensor.shape, tensor.stride(), strict=True) if step]
        held += tensor.element_size() * torch.Size(sizes).numel()
    return held


def _thread_per_output(kind: str) -> Rule:
    """Return the rule of an operator that is one kernel with a thread per output."""

    def rule(call: Call) -> Iterator[Kernel]:
        n = max(tensor.numel() for tensor in call.outputs)
        yield Kernel(call.name, kind, n, _bytes(*call.inputs, *call.outputs), n)

    return rule


def _shared_sums(kind: str, *read_twice: int) -> Rule:
    """Return the rule of one kernel whose threads share sums over the largest input.

    `read_twice`: positions of the arguments that are read again once the sums are known.
    """

    def rule(call: Call) -> Iterator[Kernel]:
        n = max(tensor.numel() for tensor in call.inputs)
        read_again = [call.args[i] for i in read_twice]
        yield Kernel(call.name, kind, n, _bytes(*call.inputs, *call.outputs, *read_again), n)

    return rule


def _norm_kernels(call: Call, parts: Mapping[str, tuple[int, int]]) -> Iterator[Kernel]:
    """Yield a kernel per part of a norm, 1 FLOP per element; `parts`: name -> elements, bytes."""
    for part, (n_elements, n_bytes) in parts.items():
        yield Kernel(f"{call.name}.{part}", "normalise", n_elements, n_bytes, n_elements)


def _fill(call: Call) -> Iterator[Kernel]:
    """Yield the kernel that writes one value everywhere and reads nothing."""
    out = call.outputs[0]
    yield Kernel(call.name, "elementwise", 0, _bytes(out), out.numel())


def _zeroed_first(kind: str) -> Rule:
    """Return the rule of a gradient that is zeroed, then written; argument 1 is not read."""

    def rule(call: Call) -> Iterator[Kernel]:
        out, n = call.outputs[0], call.outputs[0].numel()
        read = [tensor for tensor in call.inputs if tensor is not call.args[1]]
        yield Kernel(f"{call.name}.zero", "elementwise", 0, _bytes(out), n)
        yield Kernel(call.name, kind, n, _bytes(*read, out), n)

    return rule


def _matrix_product(call: Call) -> Iterator[Kernel]:
    """Yield the kernel of a product, its operations by `torch.utils.flop_counter`.

    `addmm` has one before, which copies the bias to the output; the product is added to that.
    """
    out = call.outputs[0]
    count_flops = flop_registry[call.overload.overloadpacket]
    flops = int(count_flops(*call.args, **call.kwargs, out_val=call.result))
    n, read = out.numel(), call.inputs
    if call.name in ("aten.addmm", "aten.baddbmm"):
        read = read[-2:]
    if call.name == "aten.addmm":
        yield Kernel(f"{call.name}.bias", "elementwise", 0, _bytes(call.inputs[0], out), n)
        read = [*read, out]
    kind = "gemm16" if out.element_size() == 2 else "gemm"
    yield Kernel(call.name, kind, flops, _bytes(*read, *call.outputs), n)


def _convolution_flops(x: Any, weight: Any, out: Any, rest: tuple[Any, ...]) -> int:
    """Return the floating-point operations of a convolution; each of its gradients has as many."""
    count_flops = flop_registry[torch.ops.aten.convolution]
    return int(count_flops(x, weight, None, *rest, out_val=out))


def _convolution_kind(weight: torch.Tensor, groups: int) -> str:
    return "depthwise" if groups > 1 and weight.shape[1] == 1 else "convolution"


def _convolution(call: Call) -> Iterator[Kernel]:
    """Yield the convolution and, except for depthwise ones, the addition of its bias."""
    x, weight, bias = call.args[:3]
    out, kind = call.result, _convolution_kind(weight, call.args[8])
    flops = _convolution_flops(x, weight, out, call.args[3:])
    yield Kernel(call.name, kind, flops, _bytes(x, weight, out), out.numel())
    if bias is not None and kind == "convolution":
        n = out.numel()
        yield Kernel(f"{call.name}.bias", "elementwise", n, _bytes(out, out, bias), n)


def _convolution_backward(call: Call) -> Iterator[Kernel]:
    """Yield the gradients that are asked for: of the input, of the weight, of the bias.

    The weight's is a sum over mini-batch and positions, which the threads share.
    """
    grad, x, weight = call.args[:3]
    needs_input, needs_weight, needs_bias = call.args[10]
    kind = _convolution_kind(weight, call.args[9])
    flops = _convolution_flops(x, weight, grad, call.args[4:10])
    n_bytes, n = _bytes(grad, x, weight), grad.numel()
    if needs_input:
        yield Kernel(f"{call.name}.input", kind, flops, n_bytes, x.numel())
    if needs_weight:
        yield Kernel(f"{call.name}.weight", kind, flops, n_bytes, n)
    if needs_bias:
        n_bytes = _bytes(grad, call.outputs[-1])
        yield Kernel(f"{call.name}.bias", "reduce", n, n_bytes, n)


def _batch_norm(call: Call) -> Iterable[Kernel]:
    """Return one kernel: training reads the input twice (moments, then normalising), else once."""
    is_training = call.args[5]
    if is_training:
        return _shared_sums("normalise", 0)(call)
    out = call.outputs[0]
    n = out.numel()
    return (Kernel(call.name, "normalise", n, _bytes(*call.inputs, out), n),)


def _group_norm(call: Call) -> Iterator[Kernel]:
    """Yield three kernels: moments of each group, factors of each channel, the product."""
    x, gamma, beta = call.args[:3]
    out, mean, rstd = call.outputs
    channels = x.shape[0] * x.shape[1]
    factors = 2 * 4 * channels  # scale and shift of each sample and channel
    parts = {
        "moments": (x.numel(), _bytes(x, mean, rstd)),
        "factors": (channels, _bytes(mean, rstd, gamma, beta) + factors),
        "apply": (x.numel(), _bytes(x, out) + factors),
    }
    return _norm_kernels(call, parts)


def _group_norm_backward(call: Call) -> Iterator[Kernel]:
    """Yield five kernels: sums of each channel, three factors, the input's, the parameters'."""
    grad, x, mean, rstd, gamma = call.args[:5]
    channels, groups = x.shape[0] * x.shape[1], mean.numel()
    sums = 2 * 4 * channels  # of gradient and of gradient times input
    of_groups = 2 * 4 * groups
    parts = {
        "sums": (x.numel(), _bytes(grad, x) + sums),
        "scale": (channels, _bytes(rstd, gamma) + 4 * channels),
        "shift": (channels, _bytes(mean, rstd, gamma) + sums + of_groups),
        "input": (x.numel(), _bytes(grad, x, call.outputs[0]) + 4 * channels + of_groups),
        "weight": (channels, sums + _bytes(mean, rstd, *call.outputs[1:])),
    }
    return _norm_kernels(call, parts)


def _layer_norm(call: Call) -> Iterator[Kernel]:
    """Yield two kernels: moments of each row, the product."""
    x, _, gamma, beta = call.args[:4]
    out, mean, rstd = call.outputs
    parts = {
        "moments": (x.numel(), _bytes(x, mean, rstd)),
        "apply": (x.numel(), _bytes(x, mean, rstd, gamma, beta, out)),
    }
    return _norm_kernels(call, parts)


def _layer_norm_backward(call: Call) -> Iterator[Kernel]:
    """Yield four kernels: sums of each row, two factors of it, the input's, the parameters'."""
    grad, x, _, mean, rstd, gamma = call.args[:6]
    n, rows = x.numel(), mean.numel()
    sums = 2 * 4 * rows  # of gradient and of gradient times input
    input_gradient, *weight_gradients = call.outputs
    parts = {
        "sums": (n, _bytes(grad, x, gamma) + sums),
        "factors": (rows, _bytes(mean, rstd) + 2 * sums),
        "input": (n, _bytes(grad, x, gamma, input_gradient) + sums),
        "weight": (n, _bytes(grad, x, mean, rstd, *weight_gradients)),
    }
    return _norm_kernels(call, parts)


def _embedding(call: Call) -> Iterator[Kernel]:
    """Yield the kernel that copies the rows asked for; the rest of the table is not read."""
    out = call.result
    yield Kernel(call.name, "elementwise", 0, _bytes(call.args[1], out, out), out.numel())


def _embedding_backward(call: Call) -> Iterator[Kernel]:
    """Yield the zeroed table's gradient, and the rows that are added to it."""
    grad, indices = call.args[:2]
    table, n = call.result, grad.numel()
    yield Kernel(f"{call.name}.zero", "elementwise", 0, _bytes(table), table.numel())
    yield Kernel(call.name, "elementwise", n, _bytes(grad, grad, grad, indices), n)


def _gather(call: Call) -> Iterator[Kernel]:
    """Yield the kernel that reads as much of its source as it writes."""
    n, out = call.result.numel(), call.result
    yield Kernel(call.name, "elementwise", 0, _bytes(call.args[-1], out, out), n)


def _unscale(call: Call) -> Iterator[Kernel]:
    """Yield the kernel that divides all gradients by a factor and looks for what is not finite."""
    gradients = call.args[0]
    n = sum(gradient.numel() for gradient in gradients)
    yield Kernel(call.name, "elementwise", n, 2 * _bytes(*gradients), n)


# An operator that is not here is elementwise when it writes, and nothing when it returns a view.
RULES: dict[str, Rule] = {
    f"aten.{name}": rule
    for names, rule in (
        ("convolution", _convolution),
        ("convolution_backward", _convolution_backward),
        ("addmm mm bmm baddbmm", _matrix_product),
        ("native_batch_norm", _batch_norm),
        ("native_batch_norm_backward", _shared_sums("normalise", 0, 1)),
        ("native_group_norm", _group_norm),
        ("native_group_norm_backward", _group_norm_backward),
        ("native_layer_norm", _layer_norm),
        ("native_layer_norm_backward", _layer_norm_backward),
        ("embedding", _embedding),
        ("embedding_dense_backward", _embedding_backward),
        ("gather", _gather),
        ("_softmax _safe_softmax _log_softmax", _shared_sums("normalise", 0)),
        ("_softmax_backward_data _log_softmax_backward_data", _shared_sums("normalise", 0, 1)),
        ("max_pool2d_with_indices avg_pool2d _adaptive_avg_pool2d", _thread_per_output("pool")),
        ("max_pool2d_with_indices_backward avg_pool2d_backward", _zeroed_first("pool")),
        ("_adaptive_avg_pool2d_backward", _zeroed_first("pool")),
        ("mean sum prod max argmax nll_loss_forward", _shared_sums("reduce")),
        ("nll_loss_backward", _zeroed_first("elementwise")),
        ("zero_ fill_ ones_like zeros_like zeros full full_like new_zeros", _fill),
        ("_amp_foreach_non_finite_check_and_unscale_", _unscale),
        ("_unsafe_view unsafe_split empty empty_like", lambda _: ()),
        # CUDA draws and scales the mask of a dropout in the kernel that multiplies by it
        ("bernoulli_ div_", lambda _: ()),
    )
    for name in names.split()
}


def _is_view(overload: Any) -> bool:
    """Tell whether an operator returns its argument's memory without having written to it."""
    aliases = [result.alias_info for result in overload._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def kernels_of(call: Call) -> list[Kernel]:
    """Return the kernels that an operator launches, in order."""
    if call.name in RULES:
        return list(RULES[call.name](call))
    if getattr(call.overload, "overloadpacket", None) in flop_registry:
        return list(_matrix_product(call))
    if _is_view(call.overload) or not call.outputs:
        return []
    return list(_thread_per_output("elementwise")(call))
