"""Forced decoding: the attention and the probabilities of a model that is given the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.search.hypothesis import DecoderModel
from regard.search.log_probs import top_k
from regard.text.batches import padded
from regard.text.vocabulary import END, START

SelfAttention = Literal["encoder", "decoder"]
Floats = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class ForcedDecoding:
    """One target of T tokens, the end token included if it was given."""

    weights: Floats  # [layers, heads, T, S]
    log_probabilities: Floats  # [T] of the target tokens
    top_tokens: np.ndarray[Any, np.dtype[np.int64]]  # [T, k]: the most probable tokens at each step, descending
    top_probabilities: Floats  # [T, k]
    entropies: Floats  # [T]: of the distribution over all tokens at each step, in nats
    self_attention: dict[SelfAttention, Floats] = field(default_factory=dict)  # [layers, heads, queries, keys]


@torch.no_grad()
def force_decode(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    targets: Sequence[Sequence[int]],
    k: int = 5,
    self_attention: bool = True,
) -> list[ForcedDecoding]:
    """Decode targets, without start token, for source [B, S] of `lengths` [B]; k: tokens listed per step. Without
    `self_attention` the results have none."""
    steps = max(map(len, targets), default=0)
    tokens = padded([[START, *target] for target in targets], steps + 1).to(source.device)
    state = model.start(source, lengths)
    outputs: list[tuple[Tensor, ...]] = []
    for step in range(steps):
        logits, weights, state = model.step(state, tokens[:, step, None])
        log_probs = torch.log_softmax(logits[:, 0].float(), -1)  # [B, V]
        target_log_probs = log_probs.gather(1, tokens[:, step + 1, None])[:, 0]
        entropies = torch.special.entr(log_probs.exp()).sum(-1)
        log_probs[:, :END] = -torch.inf  # padding and start are never generated
        best, best_tokens = top_k(log_probs, min(k, log_probs.shape[-1]))
        outputs.append((weights[:, 0], target_log_probs, best_tokens, best, entropies))
    if not outputs:
        none, no_tokens = np.zeros((0, 0), np.float32), np.zeros((0, 0), np.int64)
        no_steps = np.zeros(0, np.float32)
        return [ForcedDecoding(none[None, None], no_steps, no_tokens, none, no_steps) for _ in targets]
    between: Sequence[dict[SelfAttention, Floats]] = [{} for _ in targets]
    if self_attention:
        between = _self_attention(model, source, lengths, tokens[:, :-1], [len(target) for target in targets])
    weights, target_log_probs, best_tokens, best, entropies = (
        torch.stack(parts, 1).cpu() for parts in zip(*outputs, strict=True)
    )
    return [
        ForcedDecoding(
            weights[row, : len(target), ..., :length].permute(1, 2, 0, 3).float().numpy(),
            target_log_probs[row, : len(target)].numpy(),
            best_tokens[row, : len(target)].numpy(),
            best[row, : len(target)].exp().numpy(),
            entropies[row, : len(target)].numpy(),
            between[row],
        )
        for row, (target, length) in enumerate(zip(targets, lengths.tolist(), strict=True))
    ]


def _self_attention(
    model: DecoderModel, source: Tensor, lengths: Tensor, tokens: Tensor, target_lengths: Sequence[int]
) -> list[dict[SelfAttention, Floats]]:
    """Return the self-attention of each sentence without padding."""
    weights = {name: x.float().cpu().numpy() for name, x in model.attentions(source, lengths, tokens).items()}
    sizes: dict[SelfAttention, Sequence[int]] = {"encoder": lengths.tolist(), "decoder": target_lengths}
    return [
        {name: weights[name][row, ..., : size[row], : size[row]] for name, size in sizes.items() if name in weights}
        for row in range(len(target_lengths))
    ]
