"""Batches of examples of like length: little padding, an order that is a pure function of (seed, epoch)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.text.examples import Example
from regard.text.vocabulary import END, PAD, START


@dataclass(frozen=True)
class Batch:
    """B sentence pairs; S and T are the longest source and target, T with the start or end token."""

    source: Tensor
    """[B, S], PAD behind the end"""
    lengths: Tensor
    """[B] of the sources; on the CPU, where the encoder needs them, or on the device, where nobody may ask"""
    target: Tensor
    """[B, T]: what the decoder is given, beginning with START"""
    expected: Tensor
    """[B, T]: what it should say, ending with END"""
    tokens: int
    """real target tokens: END counts, START and PAD do not"""
    real: Tensor | None
    """the places of real tokens among B · T; None: padding stays, and is to count nothing"""
    linked: Tensor | None = None
    """bool [B, T, S]: where attention should look, if it is told"""

    def without_padding(self, each: Tensor) -> Tensor:
        """What there is for each target position [B, T, ...] → for each real token [N, ...]"""
        flat = each.flatten(0, 1)
        return flat if self.real is None or len(self.real) == len(flat) else flat[self.real]

    @classmethod
    def of(cls, examples: Sequence[Example], device: torch.device | str = "cpu") -> Batch:
        sides = _sides(examples)
        source, target, expected = map(padded, sides)
        real = (expected != PAD).flatten().nonzero()[:, 0]
        source, target, expected, real = (_sent(part, device) for part in (source, target, expected, real))
        return cls(source, _lengths(sides[0]), target, expected, len(real), real)

    @classmethod
    def in_few_shapes(cls, examples: Sequence[Example], device: torch.device | str = "cpu") -> Batch:
        """B, S and T are rounded up, and all is on the device: what is computed of one such batch can be recorded, and
        played back for the next. Rows too many have a source of END alone, and say nothing."""
        sides = _sides(examples)
        more = rounded(len(examples)) - len(examples)
        for side, row in zip(sides, ([END], [], []), strict=True):
            side += [row] * more
        source, target, expected = (padded(side, rounded(max(map(len, side)))) for side in sides)
        tokens = int((expected != PAD).sum())
        parts = (source, _lengths(sides[0]), target, expected)
        source, lengths, target, expected = (_sent(part, device) for part in parts)
        return cls(source, lengths, target, expected, tokens, None)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(B, S, T)"""
        return *self.source.shape, self.target.shape[1]  # type: ignore[return-value]


def _sides(examples: Sequence[Example]) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """What is read, what the decoder is given, and what it should say."""
    return (
        [[*example.source, END] for example in examples],
        [[START, *example.target] for example in examples],
        [[*example.target, END] for example in examples],
    )


def _lengths(rows: Sequence[Sequence[int]]) -> Tensor:
    return torch.tensor([len(row) for row in rows])


def _sent(part: Tensor, device: torch.device | str) -> Tensor:
    """To the device, without waiting for it."""
    device = torch.device(device)
    return part.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else part.to(device)


def rounded(size: int) -> int:
    """Up to one of few sizes, 4, 8, … 32, 40, … 64, 80, … 128, …: by an eighth at most, beyond the first."""
    step = max(4, 1 << max(0, (size - 1).bit_length() - 3))
    return -(-size // step) * step


def padded(rows: Sequence[Sequence[int]], size: int | None = None) -> Tensor:
    """[rows, size], PAD behind the end; None: as long as the longest."""
    longest = max(map(len, rows)) if size is None else size
    table = np.full((len(rows), longest), PAD, dtype=np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return torch.from_numpy(table)


def by_length(rows: Sequence[Sequence[object]], count: int) -> Iterator[list[int]]:
    """The numbers of the rows, `count` at a time, the shortest first: what is translated together."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    for first in range(0, len(order), count):
        yield order[first : first + count]


def arrange(examples: Sequence[Example], sentences: int, tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Which examples go together, and in which order: at most `sentences` and, padding counted, `tokens` a batch.

    Shuffled, then sorted by length, so that examples of one length meet others each time; then the batches are
    shuffled. An example longer than `tokens` is a batch by itself.
    """
    drawn = np.random.default_rng([seed, epoch, 1])
    shuffled = drawn.permutation(len(examples))
    ordered = sorted(shuffled.tolist(), key=lambda index: (len(examples[index].target), len(examples[index].source)))
    batches: list[list[int]] = [[]]
    longest = 0
    for index in ordered:
        longest = max(longest, len(examples[index].source) + 1, len(examples[index].target) + 1)
        here = batches[-1]
        if here and (len(here) >= sentences or longest * (len(here) + 1) > tokens):
            batches.append([])
            longest = max(len(examples[index].source), len(examples[index].target)) + 1
        batches[-1].append(index)
    return [batches[place] for place in drawn.permutation(len(batches)) if batches[place]]
