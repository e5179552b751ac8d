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
    """[B] of the sources; on the CPU, where the encoder needs them"""
    target: Tensor
    """[B, T]: what the decoder is given, beginning with START"""
    expected: Tensor
    """[B, T]: what it should say, ending with END"""
    real: Tensor
    """the places of real tokens among B · T"""
    linked: Tensor | None = None
    """bool [B, T, S]: where attention should look, if it is told"""

    @property
    def tokens(self) -> int:
        """real target tokens: END counts, START and PAD do not"""
        return len(self.real)

    def without_padding(self, each: Tensor) -> Tensor:
        """What there is for each target position [B, T, ...] → for each real token [N, ...]"""
        flat = each.flatten(0, 1)
        return flat if len(self.real) == len(flat) else flat[self.real]

    @classmethod
    def of(cls, examples: Sequence[Example], device: torch.device | str = "cpu") -> Batch:
        source = padded([[*example.source, END] for example in examples])
        target = padded([[START, *example.target] for example in examples])
        expected = padded([[*example.target, END] for example in examples])
        lengths = torch.tensor([len(example.source) + 1 for example in examples])
        real = (expected != PAD).flatten().nonzero()[:, 0]
        there = [_sent(part, torch.device(device)) for part in (source, target, expected, real)]
        return cls(there[0], lengths, *there[1:])


def _sent(part: Tensor, device: torch.device) -> Tensor:
    """To the device, without waiting for it."""
    return part.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else part.to(device)


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """[rows, longest], PAD behind the end."""
    longest = max(map(len, rows))
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
