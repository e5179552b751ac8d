"""From a model's logits to the chances that a search weighs."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from regard.text.vocabulary import END

ROWS = 16
"""sentences at a time on the CPU, where their chances, [16, …, V], stay in the cache"""


def by_rows(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """logits [B, …] a few sentences at a time, and which these are; on a GPU all at once."""
    rows = len(logits) if logits.is_cuda else ROWS
    for first in range(0, len(logits), rows):
        some = slice(first, first + rows)
        yield some, logits[some]


def chances(logits: Tensor, ended: bool) -> Tensor:
    """logits [..., V] → log-probabilities in float32, −inf for what is never said; unless `ended`, for the end too."""
    found = torch.log_softmax(logits.float(), -1)
    found[..., :END] = -torch.inf  # padding and start
    if not ended:
        found[..., END] = -torch.inf
    return found
