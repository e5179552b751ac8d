"""A look at how far a model has come: dev translated greedily, scored, and one sentence to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard import scoring
from regard.folder import Vocabularies
from regard.look.trace import Trace
from regard.search.hypothesis import Hypothesis, Length, Translating
from regard.search.walk import greedy
from regard.text.batches import by_length, padded
from regard.text.vocabulary import END
from regard.tracing import Tracer
from regard.training.setup import Setup

BATCH = 256
PROBES = 4
PROBE_WORDS = 8


@dataclass(frozen=True)
class Validation:
    chrf: float
    exact: float
    source: str
    translation: str
    reference: str
    same: bool
    """every source got the same translation, but for where it was cut off: nothing was learned"""
    probes: list[Trace]
    """of the same few sources at every validation, with what their references are made of"""


def validate(setup: Setup, number: int, device: torch.device) -> Validation:
    """The `number`-th validation shows the `number`-th source."""
    setup.model.eval()
    tokens = translate_all(setup.model, setup.vocabularies, setup.limit, setup.sources, device)
    probes = _probes(setup, device)
    setup.model.train()
    texts = [setup.vocabularies.target.decode(hypothesis.tokens) for hypothesis in tokens]
    exact = sum(text in options for text, options in zip(texts, setup.references, strict=True))
    shown = number % len(texts)
    return Validation(
        scoring.chrf(texts, setup.references),
        100 * exact / len(texts),
        setup.sources[shown],
        texts[shown],
        setup.references[shown][0],
        len(texts) > 1 and _alike([hypothesis.tokens for hypothesis in tokens]),
        probes,
    )


def _probes(setup: Setup, device: torch.device) -> list[Trace]:
    """A few sentences that fit on a page, told by their references: the same words at every validation."""
    length = [len(source.split()) for source in setup.sources]
    chosen = sorted(range(len(length)), key=lambda row: (abs(length[row] - PROBE_WORDS), row))[:PROBES]
    sources, targets = [setup.sources[row] for row in chosen], [setup.references[row][0] for row in chosen]
    return Tracer(setup.vocabularies, {}).forced(setup.model, sources, targets, device)


def _alike(rows: list[list[int]]) -> bool:
    """Does each begin the longest of them?"""
    longest = max(rows, key=len)
    return all(row == longest[: len(row)] for row in rows)


def translate_all(
    model: Translating, vocabularies: Vocabularies, limit: Length, sources: Sequence[str], device: torch.device
) -> list[Hypothesis]:
    """Greedy, in batches of like length."""
    rows = [[*tokens, END] for tokens in vocabularies.source.encode_all(sources)]
    found: dict[int, Hypothesis] = {}
    for chosen in by_length(rows, BATCH):
        batch = padded([rows[index] for index in chosen]).to(device)
        lengths = torch.tensor([len(rows[index]) for index in chosen])
        found |= dict(zip(chosen, greedy(model, batch, lengths, limit), strict=True))
    return [found[index] for index in range(len(rows))]
