"""Run a network on fake tensors of a CPU with the operators of a GPU (board side; torch 2).

On a GPU autocast takes other operators in fp32 than on a CPU, and attention has other kernels, so
that other tensors are kept for backward.
"""

from typing import Any, Dict, Optional

import torch

try:
    from torch.overrides import TorchFunctionMode
except ImportError:  # torch < 1.13, which forecasts nothing
    TorchFunctionMode = object

# SOURCE: aten/src/ATen/autocast_mode.h, AT_FORALL_FP32 and AT_FORALL_FP32_SET_OPT_DTYPE, without
# those that allocate nothing large
IN_FP32 = frozenset(
    (
        *("layer_norm", "group_norm", "softmax", "log_softmax", "logsumexp", "softplus", "pow"),
        *("__pow__", "exp", "expm1", "log", "log1p", "rsqrt", "reciprocal", "norm", "cdist"),
        *("cosine_similarity", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "kl_div"),
        *("smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"),
    )
)
PRODUCTS = frozenset(("aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"))  # cuBLAS does them


class GpuOperators(TorchFunctionMode):
    """Within it functions of torch do on a CPU what they do on a GPU.

    `autocast`: the type that autocast has, if it is on
    """

    def __init__(self, autocast: Optional[torch.dtype]) -> None:
        super().__init__()
        self.autocast = autocast

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Call a function of torch, or what a GPU does in its place."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention" and args[0].dim() == 4:
            return self._attend(*args, **kwargs)
        if name in IN_FP32 and self.autocast is not None:
            args = [self._in_fp32(value) for value in args]
            kwargs = {key: self._in_fp32(value) for key, value in kwargs.items()}
        return func(*args, **kwargs)

    def _in_fp32(self, value: Any) -> Any:
        is_cast = isinstance(value, torch.Tensor) and value.dtype == self.autocast
        return value.float() if is_cast else value

    def _attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: Optional[torch.Tensor] = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Optional[float] = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """Return attention by the kernel that a GPU takes: of flash or little memory, or plain.

        SOURCE: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: flash knows no mask and no
        fp32; the efficient one no groups of heads
        """
        if self.autocast is not None and query.dtype != torch.float64:
            query, key, value = [each.to(self.autocast) for each in (query, key, value)]
        aten = torch.ops.aten
        with torch.autocast("cpu", enabled=False):
            if attn_mask is None and query.dtype in (torch.float16, torch.bfloat16):
                return aten._scaled_dot_product_flash_attention(
                    query, key, value, dropout_p, is_causal, scale=scale
                )[0]
            if query.shape[1] != key.shape[1]:
                groups = {"enable_gqa": True} if enable_gqa else {}  # since torch 2.5
                return aten._scaled_dot_product_attention_math(
                    query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **groups
                )[0]
            if attn_mask is not None:
                bias = attn_mask.to(query.dtype)  # it is added to the scores
                attn_mask = bias.expand(*query.shape[:3], key.shape[2])
            needs_grad = torch.is_grad_enabled() and query.requires_grad
            return aten._scaled_dot_product_efficient_attention(
                query, key, value, attn_mask, needs_grad, dropout_p, is_causal, scale=scale
            )[0]
