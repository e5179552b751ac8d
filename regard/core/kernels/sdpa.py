"""torch's `scaled_dot_product_attention` without the back end whose gradients may be NaN.

cuDNN's backward pass gives NaN where the log-sum-exp of a row is very low (below −88): with a mask where the number of
keys is 64 more than a multiple of 128 (pytorch/pytorch#196678), and with a single query (NVIDIA/cudnn-frontend#1072).
In these cases cuDNN is excluded. It also refuses queries with a stride of 0, which a dimension of size 1 has after
`expand`: they are copied.
"""

from __future__ import annotations

from contextlib import nullcontext

from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

WITHOUT_CUDNN = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def sdpa(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool = False, scale: float
) -> Tensor:
    """Return the context [B, H, T, D] of query [B, H, T, D], key [B, H, S, D] and value [B, H, S, D].

    The mask is bool or float and broadcasts to [B, H, T, S].
    """
    if query.is_cuda and 0 in query.stride():
        query = query.contiguous()
    risky = query.is_cuda and (query.shape[-2] == 1 or (mask is not None and key.shape[-2] % 128 == 64))
    with sdpa_kernel(WITHOUT_CUDNN) if risky else nullcontext():
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal, scale=scale)
