"""Forced decoding: what a model looks at and how sure it is, if it must say what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.search.hypothesis import Translating
from regard.search.top import top
from regard.text.vocabulary import END, PAD, START

Inside = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Forced:
    """One target of T tokens, the end token among them if it was given."""

    weights: np.ndarray[Any, np.dtype[np.float32]]
    """[layers, heads, T, S]"""
    log_probabilities: np.ndarray[Any, np.dtype[np.float32]]
    """[T] of the tokens that had to be said"""
    likeliest: np.ndarray[Any, np.dtype[np.int64]]
    """[T, k] tokens, the likeliest first"""
    chances: np.ndarray[Any, np.dtype[np.float32]]
    """[T, k]: their probabilities"""
    inside: dict[Inside, np.ndarray[Any, np.dtype[np.float32]]] = field(default_factory=dict)
    """what else looks, [layers, heads, rows, columns]: the source at itself, the target at itself"""


@torch.no_grad()
def forced(
    model: Translating, source: Tensor, lengths: Tensor, targets: Sequence[Sequence[int]], among: int = 5
) -> list[Forced]:
    """source [B, S] of `lengths` [B]; targets without the start token. `among`: how many of the likeliest are told."""
    steps = max(map(len, targets), default=0)
    told = torch.full((len(targets), steps + 1), PAD, dtype=torch.int64)
    told[:, 0] = START
    for row, target in enumerate(targets):
        told[row, 1 : len(target) + 1] = torch.tensor(target, dtype=torch.int64)
    told = told.to(source.device)
    state = model.start(source, lengths)
    found: list[tuple[Tensor, ...]] = []
    for step in range(steps):
        logits, weights, state = model.step(state, told[:, step, None])
        chances = torch.log_softmax(logits[:, 0].float(), -1)  # [B, V]
        right = chances.gather(1, told[:, step + 1, None])[:, 0]
        chances[:, :END] = -torch.inf  # padding and start are never said
        found.append((weights[:, 0], right, *reversed(top(chances, min(among, chances.shape[-1])))))
    if not found:
        none, no_tokens = np.zeros((0, 0), np.float32), np.zeros((0, 0), np.int64)
        return [Forced(none[None, None], np.zeros(0, np.float32), no_tokens, none) for _ in targets]
    inside = _inside(model, source, lengths, told[:, :-1], [len(target) for target in targets])
    weights, right, tokens, best = (torch.stack(parts, 1).cpu() for parts in zip(*found, strict=True))
    return [
        Forced(
            weights[row, : len(target), ..., :length].permute(1, 2, 0, 3).float().numpy(),
            right[row, : len(target)].numpy(),
            tokens[row, : len(target)].numpy(),
            best[row, : len(target)].exp().numpy(),
            inside[row],
        )
        for row, (target, length) in enumerate(zip(targets, lengths.tolist(), strict=True))
    ]


def _inside(
    model: Translating, source: Tensor, lengths: Tensor, told: Tensor, said: Sequence[int]
) -> list[dict[Inside, np.ndarray[Any, np.dtype[np.float32]]]]:
    """Of each sentence, what a model shows beside its attention to the source; `said` tokens it was told."""
    found = {name: x.float().cpu().numpy() for name, x in model.attentions(source, lengths, told).items()}
    rows = enumerate(zip(said, lengths.tolist(), strict=True))
    sizes: list[dict[Inside, int]] = [{"encoder": length, "decoder": count} for _, (count, length) in rows]
    return [
        {name: found[name][row, ..., :size, :size] for name, size in each.items() if name in found}
        for row, each in enumerate(sizes)
    ]
