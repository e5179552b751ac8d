"""Samples that depend on the seed and the sentence alone, not on the other sentences of the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit, Prefixes
from regard.search.stepwise import sample

ROWS = 1024  # samples that are drawn in one batch


def seeded_samples(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    count: int,
    temperature: float,
    seed: int = 1,
    prefixes: Prefixes = None,
) -> list[list[Hypothesis]]:
    """Draw `count` samples of each sentence. source [B, S] of `lengths` [B]."""
    tokens = [row[:length] for row, length in zip(source.tolist(), lengths.tolist(), strict=True)]
    max_lengths = limit.max_lengths(lengths.tolist(), prefixes)
    drawn: list[list[Hypothesis]] = []
    at_once = max(1, ROWS // count)  # sentences
    for first in range(0, len(lengths), at_once):
        rows = range(first, min(first + at_once, len(lengths)))
        repeated = torch.tensor([row for row in rows for _ in range(count)])
        steps = int(max_lengths[list(rows)].max())
        uniforms = [_uniforms(tokens[row], count, seed, steps) for row in rows]
        own = None if prefixes is None else [prefixes[row] for row in repeated.tolist()]
        inputs = source[repeated.to(source.device)], lengths[repeated]
        noise = torch.from_numpy(np.concatenate(uniforms))
        hypotheses = sample(model, *inputs, limit, temperature=temperature, uniforms=noise, prefixes=own)
        drawn += [hypotheses[start : start + count] for start in range(0, len(hypotheses), count)]
    return drawn


def _uniforms(tokens: Sequence[int], count: int, seed: int, steps: int) -> np.ndarray:
    """Return the random numbers [count, steps] of a sentence: those of a step are the same for any number of steps."""
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *tokens])))
    return random.random((steps, count)).T
