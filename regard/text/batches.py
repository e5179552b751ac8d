"""Batches of examples of similar length, with little padding, in an order that is a pure function of (seed, epoch)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.text.examples import Example
from regard.text.vocabulary import END, PAD, START


@dataclass(frozen=True)
class Batch:
    """A batch of B sentence pairs. S and T are the longest source and target; T includes the start or end token."""

    source: Tensor  # [B, S]: source token ids, padded with PAD after the end
    lengths: Tensor  # [B]: source lengths; on the CPU for the encoder, on the device if the batch is for a CUDA graph
    target: Tensor  # [B, T]: the decoder's input, beginning with START
    expected: Tensor  # [B, T]: the tokens that the decoder should predict, ending with END
    tokens: int  # the number of real target tokens: END counts, START and PAD do not
    token_indices: Tensor | None  # of real tokens in [B · T]; None: padding stays, the loss must ignore it
    alignment: Tensor | None = None  # bool [B, T, S]: the source positions to attend to, if attention is supervised

    def real_tokens(self, values: Tensor) -> Tensor:
        """Return the values [B, T, ...] of the real target tokens only, [N, ...]."""
        flattened, indices = values.flatten(0, 1), self.token_indices
        return flattened if indices is None or len(indices) == len(flattened) else flattened[indices]

    @classmethod
    def of(cls, examples: Sequence[Example], device: torch.device | str = "cpu") -> Batch:
        """Return the batch of the examples, padded to the longest of them; its lengths stay on the CPU."""
        sides = _sides(examples)
        source, target, expected = map(padded, sides)
        real = (expected != PAD).flatten().nonzero()[:, 0]
        source, target, expected, real = (_to_device(part, device) for part in (source, target, expected, real))
        return cls(source, torch.tensor(list(map(len, sides[0]))), target, expected, len(real), real)

    @classmethod
    def in_few_shapes(cls, examples: Sequence[Example], device: torch.device | str = "cpu") -> Batch:
        """Return a batch with B, S and T rounded up and all tensors on the device.

        A CUDA graph captured with one such batch can be replayed for the next of the same shape. Rows that only fill up
        have a source of END alone and no target.
        """
        sides = _sides(examples)
        filler = rounded(len(examples)) - len(examples)
        for side, row in zip(sides, ([END], [], []), strict=True):
            side += [row] * filler
        source, target, expected = (padded(side, rounded(max(map(len, side)))) for side in sides)
        tokens = int((expected != PAD).sum())
        parts = (source, torch.tensor(list(map(len, sides[0]))), target, expected)
        source, lengths, target, expected = (_to_device(part, device) for part in parts)
        return cls(source, lengths, target, expected, tokens, None)

    def parts(self, tokens: int) -> list[Batch]:
        """Return the batch in parts of consecutive rows, as few as have at most `tokens` source and at most `tokens`
        target tokens each, padding counted, or one row. A part is padded to its own longest row."""
        rows, *sizes = self.shape
        count = -(-rows // max(1, tokens // max(sizes)))
        bounds = [part * rows // count for part in range(count + 1)]
        return [self] if count == 1 else [self._rows(*each) for each in pairwise(bounds)]

    def _rows(self, first: int, end: int) -> Batch:
        """Return the rows from `first` to before `end` of a batch that `of` made."""
        lengths, expected = self.lengths[first:end], self.expected[first:end]
        sources, targets = int(lengths.max()), int((expected != PAD).sum(1).max())
        real = (expected[:, :targets] != PAD).flatten().nonzero()[:, 0]
        return Batch(
            self.source[first:end, :sources],
            lengths,
            self.target[first:end, :targets],
            expected[:, :targets],
            len(real),
            real,
            None if self.alignment is None else self.alignment[first:end, :targets, :sources],
        )

    def masked(self, fraction: float) -> Batch:
        """Return the batch with a fraction of the input tokens, drawn at random, replaced by padding; lengths stay."""

        def mask(tokens: Tensor) -> Tensor:
            drawn = torch.rand(tokens.shape, device=tokens.device) < fraction
            return tokens.masked_fill(drawn & (tokens > END), PAD)

        return replace(self, source=mask(self.source), target=mask(self.target)) if fraction else self

    def followed_by(self, other: Batch) -> Batch:
        """Return a batch of the same pairs twice: as they are here, then as in `other`, which has the same shapes."""
        parts: dict[str, Any] = {
            name: torch.cat([part, getattr(other, name)]) for name, part in self._per_row().items()
        }
        indices = self.token_indices
        if indices is not None:
            indices = torch.cat([indices, indices + self.expected.numel()])
        return replace(self, **parts, token_indices=indices)

    def _per_row(self) -> dict[str, Tensor]:
        """Return the tensors with one row per pair, by name."""
        parts = {name: getattr(self, name) for name in ("source", "lengths", "target", "expected", "alignment")}
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def shape(self) -> tuple[int, int, int]:
        """(B, S, T)"""
        return *self.source.shape, self.target.shape[1]  # type: ignore[return-value]


def _sides(examples: Sequence[Example]) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Return the token ids of the sources, of the decoder's input and of its expected output."""
    return (
        [[*example.source, END] for example in examples],
        [[START, *example.target] for example in examples],
        [[*example.target, END] for example in examples],
    )


def _to_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Copy a tensor to the device, without waiting for a GPU."""
    device = torch.device(device)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def rounded(size: int) -> int:
    """Return the size rounded up to one of 4, 8, … 32, 40, … 64, 80, … 128, …: from 32 on, by an eighth at most."""
    step = max(4, 1 << max(0, (size - 1).bit_length() - 3))
    return -(-size // step) * step


def padded(rows: Sequence[Sequence[int]], size: int | None = None) -> Tensor:
    """Return the rows as a tensor [rows, size], padded with PAD; `size` None: the length of the longest row."""
    width = max(map(len, rows)) if size is None else size
    table = np.full((len(rows), width), PAD, dtype=np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return torch.from_numpy(table)


def by_length(rows: Sequence[Sequence[object]], count: int) -> Iterator[list[int]]:
    """Yield the indices of the rows in batches of `count`, the shortest rows first."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    for first in range(0, len(order), count):
        yield order[first : first + count]


def by_tokens(rows: Sequence[Sequence[object]], tokens: int, min_count: int) -> Iterator[list[int]]:
    """Yield the indices of the rows in batches of at most `tokens`, including padding, the shortest rows first; a batch
    has `min_count` rows in any case, unless it is the last."""
    batch: list[int] = []
    for index in sorted(range(len(rows)), key=lambda index: len(rows[index])):
        if len(batch) >= min_count and (len(batch) + 1) * len(rows[index]) > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def arrange(examples: Sequence[Example], sentences: int, tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Return the batches of an epoch, as indices: at most `sentences` and, including padding, `tokens` per batch.

    Examples are shuffled, then sorted by length, so that examples of equal length are grouped differently in each
    epoch; then the batches are shuffled. An example longer than `tokens` is a batch by itself.
    """
    rng = np.random.default_rng([seed, epoch, 1])
    shuffled = rng.permutation(len(examples))
    ordered = sorted(shuffled.tolist(), key=lambda index: (len(examples[index].target), len(examples[index].source)))
    batches: list[list[int]] = [[]]
    longest = 0
    for index in ordered:
        longest = max(longest, len(examples[index].source) + 1, len(examples[index].target) + 1)
        current = batches[-1]
        if current and (len(current) >= sentences or longest * (len(current) + 1) > tokens):
            batches.append([])
            longest = max(len(examples[index].source), len(examples[index].target)) + 1
        batches[-1].append(index)
    return [batches[index] for index in rng.permutation(len(batches)) if batches[index]]
