"""FLOPs and bytes of four networks by the rules of a published notebook, beside ours.

Pagoda (arXiv 2509.20189) counts each node of an ONNX graph in fp32, with batch norms folded into
the convolutions before them: `RULES`, applied to what torch dispatches. Its totals at a mini-batch
of one (`PUBLISHED`) come out of these rules, so each difference to our counts is one of a rule.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torchvision import models

from epochwatt.counting.recorder import META, record
from epochwatt.counting.summary import totals
from epochwatt.training.modern_networks import LanguageModel

N_BYTES = 4
TOKENS = 128


class Count(NamedTuple):
    """Floating-point operations and bytes."""

    flops: int
    bytes: int


# the notebook's totals, batch 1; YOLOv8n (8,839,855,200 and 539,346,304) needs a package of its own
PUBLISHED = {
    "ResNet-50": Count(8_206_316_544, 336_671_392),
    "MobileNetV3-Large": Count(449_137_560, 102_976_672),
    "BERT-large, 128 pieces": Count(79_136_298_142, 2_601_011_072),
    "LSTM language model": Count(129_003_520, 35_322_336),
}
WHY = {  # of the notebook's nodes
    "convolution": "a bias is added to each output, also where there is none",
    "addmm": "the bias of a product is not counted",
    "mm": "",
    "bmm": "",
    "native_batch_norm": "folded into the convolution before it",
    "relu": "",
    "hardswish": "5 operations an element",
    "hardsigmoid": "4 operations an element",
    "tanh": "5 operations an element",
    "gelu": "five nodes: Erf with 8 operations, and four with one",
    "_safe_softmax": "7 operations an element",
    "native_layer_norm": "no rule is published; the bytes are what remains, thrice the elements",
    "add": "what is spread out over the other input counts in full",
    "mul": "what is spread out over the other input counts in full",
    "max_pool2d_with_indices": "the window less one, an element; no indices",
    "mean": "",
    "view": "Flatten reads and writes",
    "LSTM": "its products once, not per sample, with one operation a multiply-add",
}
NOT_COUNTED = "not counted"
NOT_DISPATCHED = "mask and shapes"
LEFT = {  # what the rules leave of a total, and what it is likely to be
    "BERT-large, 128 pieces": (
        NOT_DISPATCHED,
        Count(158, 1_920),
        "arithmetic on the mask and on single numbers, which torch does not dispatch",
    ),
}


def _elements(weight: int, factor: int) -> Callable[..., Count]:
    """Return the rule of `weight` operations and `factor` floats for each output."""
    return lambda out, *_: Count(weight * out.numel(), N_BYTES * factor * out.numel())


def _convolution(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *_: Any) -> Count:
    flops = 2 * out.numel() * weight[0].numel() + out.numel()
    return Count(flops, N_BYTES * (x.numel() + weight.numel() + out.numel()))


def _product(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> Count:
    flops = 2 * out.numel() * x.shape[-1]
    return Count(flops, N_BYTES * (x.numel() + weight.numel() + out.numel()))


def _max_pool(out: Any, x: torch.Tensor, window: list[int], *_: Any) -> Count:
    n = out[0].numel()
    return Count((window[0] ** 2 - 1) * n, N_BYTES * (x.numel() + n))


def _mean(out: torch.Tensor, x: torch.Tensor, *_: Any) -> Count:
    return Count(x.numel(), N_BYTES * (x.numel() + out.numel()))


def _flatten(out: torch.Tensor, x: torch.Tensor, *_: Any) -> Count:
    flattens = x.dim() == 4 and out.dim() == 2
    return Count(0, N_BYTES * 2 * out.numel() if flattens else 0)


RULES: dict[str, Callable[..., Count]] = {
    "convolution": _convolution,
    "addmm": lambda out, bias, x, weight: _product(out, x, weight),
    "mm": _product,
    "bmm": _product,
    "relu": _elements(1, 2),
    "hardsigmoid": _elements(4, 2),
    "hardswish": _elements(5, 2),
    "tanh": _elements(5, 2),
    "gelu": _elements(8 + 4, 2 + 4 * 3),
    "_safe_softmax": _elements(7, 2),
    "native_layer_norm": lambda out, *_: Count(0, N_BYTES * 3 * out[0].numel()),
    "add": _elements(1, 3),
    "mul": _elements(1, 3),
    "max_pool2d_with_indices": _max_pool,
    "mean": _mean,
    "view": _flatten,
}


class _Published(TorchDispatchMode):
    """Sums up what the rules give, by operator."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: dict[str, Count] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        name = name if name.startswith("_") else name.rstrip("_")
        if name in RULES:
            self.add(name, RULES[name](result, *args))
        return result

    def add(self, name: str, count: Count) -> None:
        """Add to an operator's sums."""
        flops, moved = self.sums.get(name, Count(0, 0))
        self.sums[name] = Count(flops + count.flops, moved + count.bytes)


class _Recurrence(nn.Module):
    """LSTM layers as the notebook counts them: none of its operators, and a count of the whole."""

    def __init__(self, lstm: nn.LSTM, mode: _Published) -> None:
        super().__init__()
        self.lstm, self.mode = lstm, mode

    def forward(self, x: torch.Tensor) -> Any:
        """Return an output of the right shape."""
        steps, width = x.shape[1], self.lstm.hidden_size
        for _ in range(self.lstm.num_layers):
            flops = steps * (4 * width * 2 * width + 24 * width)  # 24: of gates, as it has them
            weights = 4 * width * (2 * width + 2)
            self.mode.add("LSTM", Count(flops, N_BYTES * (weights + 2 * x.numel())))
        return x, None


def _bert_large() -> nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    )
    config._attn_implementation = "sdpa"
    return _Masked(BertModel(config))


class _Masked(nn.Module):
    """BERT with a mask that is added to its scores, as an ONNX graph has it."""

    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, pieces: torch.Tensor) -> Any:
        """Return its output."""
        mask = torch.empty(1, 1, TOKENS, TOKENS, device=pieces.device)
        return self.bert(input_ids=pieces, attention_mask=mask)


def networks() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Return the published networks and an input of one sample each, without content."""
    with META:
        picture = torch.empty(1, 3, 224, 224)
        return {
            "ResNet-50": (models.resnet50(), picture),
            "MobileNetV3-Large": (models.mobilenet_v3_large(), picture),
            "BERT-large, 128 pieces": (_bert_large(), torch.zeros(1, TOKENS, dtype=torch.int64)),
            "LSTM language model": (LanguageModel(), torch.zeros(1, 8, dtype=torch.int64)),
        }


def by_rules(network: nn.Module, inputs: torch.Tensor) -> dict[str, Count]:
    """Return what the published rules give for one inference, by operator."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), _Published() as mode:
        if isinstance(network, LanguageModel):
            network.lstm = _Recurrence(network.lstm, mode)  # type: ignore[assignment]
        network.eval()(inputs)
    return mode.sums


@functools.cache
def rows() -> list[dict[str, Any]]:
    """Return a row for each network and operator: by the published rules, ours, and why."""
    made: list[dict[str, Any]] = []
    for name, (network, inputs) in networks().items():
        ours = _ours(network, inputs)
        theirs = by_rules(network, inputs)
        if name in LEFT:
            what, count, _ = LEFT[name]
            theirs[what] = count
        for operator in sorted({*ours, *theirs}):
            there = theirs.get(operator, Count(0, 0))
            here = ours.get(operator, Count(0, 0))
            if there != here or not WHY.get(operator, "-"):
                why = LEFT[name][2] if operator == NOT_DISPATCHED else NOT_COUNTED
                made.append(_row(name, operator, there, here, WHY.get(operator, why)))
        sums = [
            Count(*(sum(c) for c in zip(*side.values(), strict=True))) for side in (theirs, ours)
        ]
        matches = "the published total" if sums[0] == PUBLISHED[name] else "NOT the published total"
        made.append(_row(name, "all", *sums, matches))
    return made


def _ours(network: nn.Module, inputs: torch.Tensor) -> dict[str, Count]:
    """Return our counts of one inference, by operator; its bias and parts belong to it."""
    groups: dict[str, list[Any]] = {}
    kernels = [kernel for _, kernel in record(network, inputs, task="infer")]
    for i, kernel in enumerate(kernels):
        name = kernel.name.split(".")[1]
        name = name if name.startswith("_") else name.rstrip("_")
        if isinstance(network, LanguageModel) and 0 < i < len(kernels) - 2:
            name = "LSTM"  # all between the embedding and the scores of the words
        groups.setdefault(name, []).append(kernel)
    sums = {name: totals(listed) for name, listed in groups.items()}
    return {name: Count(total.flops, total.bytes) for name, total in sums.items()}


def _row(name: str, operator: str, there: Count, here: Count, why: str) -> dict[str, Any]:
    return {
        "network": name,
        "operator": operator,
        "published_flop": there.flops,
        "flop": here.flops,
        "published_bytes": there.bytes,
        "bytes": here.bytes,
        "published rule": why,
    }
