"""Embeddings as on a GPU, against torch's own."""

import pytest
import torch
from torch.nn.functional import embedding

from regard.models.embedding import EmbeddingLookup


@pytest.mark.parametrize("padding", [0, None])
@pytest.mark.parametrize("shape", [(3, 4), (5,), (2, 0)])
def test_as_torchs_own(padding: int | None, shape: tuple[int, ...]) -> None:
    weight = torch.randn(6, 7, dtype=torch.float64, requires_grad=True)
    tokens = torch.randint(0, 6, shape)
    result, right = EmbeddingLookup.apply(weight, tokens, padding), embedding(tokens, weight, padding)
    torch.testing.assert_close(result, right)
    given = torch.randn_like(right)
    ours, theirs = (torch.autograd.grad(x, weight, given)[0] for x in (result, right))
    torch.testing.assert_close(ours, theirs)
