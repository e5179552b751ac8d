"""cuDNN is left out where its gradients may be NaN."""

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend

from regard.core.kernels import sdpa as module
from regard.core.kernels.sdpa import sdpa


class OnAGpu(torch.Tensor):
    """Says that it lies on a GPU."""

    @property
    def is_cuda(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("queries", "keys", "masked", "cudnn"),
    [
        (64, 64, True, False),
        (200, 192, True, False),
        (64, 64, False, True),
        (64, 128, True, True),
        (1, 128, False, False),
    ],
)
def test_cudnn_is_left_out_where_its_gradients_may_be_nan(
    queries: int, keys: int, masked: bool, cudnn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[bool] = []

    def note(*states: Any, **options: Any) -> torch.Tensor:
        allowed.append(torch.backends.cuda.cudnn_sdp_enabled())
        return states[0]

    monkeypatch.setattr(module, "scaled_dot_product_attention", note)
    query, key = (torch.zeros(1, 1, size, 8).as_subclass(OnAGpu) for size in (queries, keys))
    mask = torch.ones(queries, keys, dtype=torch.bool) if masked else None
    before = torch.backends.cuda.cudnn_sdp_enabled()
    sdpa(query, key, key, mask, scale=1.0)
    assert allowed == [before and cudnn]
    assert torch.backends.cuda.cudnn_sdp_enabled() == before
    assert SDPBackend.CUDNN_ATTENTION not in module.WITHOUT_CUDNN


def test_it_is_torchs() -> None:
    query, key, value = (torch.randn(1, 2, 5, 8) for _ in range(3))
    right = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.3)
    torch.testing.assert_close(sdpa(query, key, value, causal=True, scale=0.3), right)
