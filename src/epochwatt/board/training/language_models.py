"""Build a small language model, and freeze it for LoRA and QLoRA (board side: Python 3.6; torch).

The decoder is Llama's (Touvron et al., 2023) in the sizes of SmolLM-135M, with random weights. LoRA
adds the product of two narrow layers to each frozen one (Hu et al., 2021); QLoRA keeps the frozen
ones in four bits (Dettmers et al., 2023), which is what bitsandbytes is for.
"""

import math
from typing import Any, Callable, Collection, Optional

import torch
from torch import nn
from torch.nn import functional

from epochwatt.board.training.text import N_TOKENS
from epochwatt.errors import TrainingError

RANK = 16  # of adapters
SCALE = 2.0  # of what they add; ASSUME: alpha is usually twice the rank
BASE = 10000.0  # of the frequencies of positions
BLOCK = 64  # weights of four bits that share a scale, which takes a byte


class Norm(nn.Module):
    """Divides by the root of the mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return inputs (..., width) with a mean square of about 1, times the weights."""
        values = inputs.float()
        values = values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * values.to(inputs.dtype)


class Attention(nn.Module):
    """Causal attention whose heads share keys and values in groups."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.size, self.repeats = width // heads, heads // groups
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.size, bias=False)
        self.value = nn.Linear(width, groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, inputs: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Return what each token (B, T, width) gathers from those before it.

        `turns`: cosine and sine of each position's angles (2, T, size)
        """
        n, length, _ = inputs.shape
        query, key, value = (
            layer(inputs).view(n, length, -1, self.size).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = turned(query, turns), turned(key, turns)
        key, value = (t.repeat_interleave(self.repeats, 1) for t in (key, value))
        mixed = causal_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).reshape(n, length, -1))


def turned(heads: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Turn pairs of numbers of queries or keys (B, heads, T, size) by their position's angles."""
    cosine, sine = turns.to(heads.dtype)
    first, second = heads.chunk(2, -1)
    return heads * cosine + torch.cat([-second, first], -1) * sine


def causal_attention(query: Any, key: Any, value: Any) -> torch.Tensor:
    """Return the mean of the values (B, heads, T, size) up to each position, by softmax."""
    fused = getattr(functional, "scaled_dot_product_attention", None)
    if fused is not None:
        return fused(query, key, value, is_causal=True)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # torch < 2
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ value


class Block(nn.Module):
    """Attention and a gated layer, each added to its input."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.norm, self.attention = Norm(width), Attention(width, heads, groups)
        self.inner_norm = Norm(width)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, inputs: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Return tokens (B, T, width) for the next block."""
        inputs = inputs + self.attention(self.norm(inputs), turns)
        values = self.inner_norm(inputs)
        return inputs + self.down(functional.silu(self.gate(values)) * self.up(values))


class Decoder(nn.Module):
    """Llama's network in the sizes of SmolLM-135M: 134,515,008 weights."""

    frequencies: torch.Tensor

    def __init__(
        self,
        tokens: int = N_TOKENS,
        width: int = 576,
        layers: int = 30,
        heads: int = 9,
        groups: int = 3,
        inner: int = 1536,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList([Block(width, heads, groups, inner) for _ in range(layers)])
        self.norm = Norm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        self.head.weight = self.embedding.weight
        size = width // heads
        frequencies = BASE ** (-torch.arange(0, size, 2).float() / size)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def get_output_embeddings(self) -> nn.Module:
        """Return the last layer, under the name that networks of transformers have for it."""
        return self.head

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores (B, T, all tokens) of the tokens that follow tokens (B, T), int64."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        angles = positions[:, None] * self.frequencies.float()
        angles = torch.cat([angles, angles], -1)
        turns = torch.stack([angles.cos(), angles.sin()])
        values = self.embedding(tokens)
        for block in self.blocks:
            values = block(values, turns)
        return self.head(self.norm(values))


class Adapted(nn.Module):
    """A linear layer that is frozen, plus the product of two narrow ones that are trained."""

    def __init__(self, layer: Any, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the layer's output, corrected; the adapters have fp32 weights, as peft's."""
        outputs = self.layer(inputs)
        added = self.up(self.down(inputs.to(self.down.weight.dtype)))
        return (outputs + SCALE * added).to(outputs.dtype)


def with_adapters(
    network: nn.Module,
    rank: int = RANK,
    frozen: Optional[Callable[[nn.Linear], nn.Module]] = None,
    names: Optional[Collection[str]] = None,
) -> nn.Module:
    """Freeze a network, and give each linear layer but the last, its head, adapters of a rank.

    `frozen`: makes of a layer what it is kept as; None: it stays as it is
    `names`: of the layers that get adapters; None: all
    """
    network.requires_grad_(False)
    head = getattr(network, "get_output_embeddings", lambda: None)()
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and child is not head:
                kept = child if frozen is None else frozen(child)
                is_adapted = names is None or name in names
                setattr(module, name, Adapted(kept, rank) if is_adapted else kept)
    return network


class _Product(torch.autograd.Function):
    """Multiplies by a weight that is made of four bits for each product and forgotten after it."""

    @staticmethod
    def forward(context: Any, inputs: torch.Tensor, layer: "FourBit") -> torch.Tensor:
        """Return the layer's output."""
        context.layer = layer
        return functional.linear(inputs, layer.weight(inputs.dtype), layer.bias)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        """Return the gradient of the inputs; the layer has none."""
        return gradient @ context.layer.weight(gradient.dtype), None


class FourBit(nn.Module):
    """The shapes of a linear layer in four bits: with them a network is counted, not trained.

    As `Linear4bit` of bitsandbytes it has the type NF4 and scales of a byte (double quantisation),
    computes in bf16, and makes the whole weight anew for each product, forward and backward.
    """

    packed: torch.Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        n, device = layer.weight.numel(), layer.weight.device
        self.register_buffer("packed", torch.empty(n // 2, dtype=torch.uint8, device=device))
        self.register_buffer("scales", torch.empty(n // BLOCK, dtype=torch.uint8, device=device))
        self.bias = layer.bias

    def weight(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the weight (out, in), without its content."""
        pairs = self.packed[:, None].expand(-1, 2).to(dtype)
        return pairs.reshape(self.out_features, self.in_features)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the layer's output, without its content."""
        return _Product.apply(inputs.to(torch.bfloat16), self).to(inputs.dtype)


def four_bit(layer: nn.Linear) -> nn.Module:
    """Return a layer as bitsandbytes keeps it; of one without content the shapes (`FourBit`).

    Raises TrainingError: this interpreter has no bitsandbytes.
    """
    if layer.weight.device.type == "meta":
        return FourBit(layer)
    try:
        from bitsandbytes import nn as bits
    except Exception as error:  # it fails in its own ways where it finds no CUDA
        raise TrainingError(
            "QLoRA needs the package bitsandbytes, which this interpreter lacks",
            found=str(error).strip().split("\n")[0],
            do="install it there (on Orin build it with -DCOMPUTE_CAPABILITY=87), or choose LoRA; "
            "`epochwatt fit --weights nf4` tells memory and time without it",
        ) from error

    class Frozen(bits.Linear4bit):
        """A layer that is made again from the seed: no checkpoint holds it."""

        def _save_to_state_dict(self, *_: Any) -> None:
            pass

        def _load_from_state_dict(self, *_: Any) -> None:
            pass

    kept = Frozen(
        layer.in_features,
        layer.out_features,
        bias=layer.bias is not None,
        compute_dtype=torch.bfloat16,
        quant_type="nf4",
    )
    # its weight becomes four bits when the network is moved to its device
    kept.weight = bits.Params4bit(layer.weight.data, requires_grad=False, quant_type="nf4")
    kept.bias = layer.bias
    return kept


def smollm_lora() -> nn.Module:
    """Return the decoder for LoRA: adapters alone are trained."""
    return with_adapters(Decoder())


def smollm_qlora() -> nn.Module:
    """Return the decoder for QLoRA; TrainingError: there is no bitsandbytes."""
    return with_adapters(Decoder(), frozen=four_bit)
