"""A look at how far a model has come: dev translated greedily, scored, and one sentence to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard import scoring
from regard.folder import Vocabularies
from regard.look.trace import Trace
from regard.models.building import TranslationModel
from regard.models.ready import Ready, Stepping
from regard.search.hypothesis import Hypothesis, Length
from regard.search.walk import greedy
from regard.text.batches import by_length, padded
from regard.text.vocabulary import END
from regard.tracing import Tracer
from regard.training.task import Validation

BATCH = 256
PROBES = 4
PROBE_WORDS = 8
SAME = (
    "nothing is learned yet: every source gets the same translation; if that stays so, try more data, more epochs or a "
    "higher training.learning_rate"
)


@dataclass(frozen=True)
class Probing:
    """What is tried, and on what."""

    model: TranslationModel
    vocabularies: Vocabularies
    limit: Length
    sources: list[str]
    references: list[list[str]]


def validate(probing: Probing, number: int, device: torch.device) -> Validation:
    """The `number`-th validation shows the `number`-th source."""
    probing.model.eval()
    tokens = translate_all(probing.model, probing.vocabularies, probing.limit, probing.sources, device)
    probes = _probes(probing, device)
    probing.model.train()
    texts = [probing.vocabularies.target.decode(hypothesis.tokens) for hypothesis in tokens]
    chrf = scoring.chrf(texts, probing.references)
    hits = sum(text in options for text, options in zip(texts, probing.references, strict=True))
    exact = 100 * hits / len(texts)
    shown = number % len(texts)
    facts = {
        "chrf": round(chrf, 3),
        "exact": round(exact, 3),
        "source": probing.sources[shown],
        "translation": texts[shown],
        "reference": probing.references[shown][0],
        "probes": [trace.as_dict() for trace in probes],
    }
    example = f"{probing.sources[shown]}  →  {texts[shown] or '(nothing)'}"
    same = len(texts) > 1 and _alike([hypothesis.tokens for hypothesis in tokens])
    return Validation(chrf, f"chrF++ {chrf:.1f}, exact {exact:.1f} %", example, facts, SAME if same else "")


def _probes(probing: Probing, device: torch.device) -> list[Trace]:
    """A few sentences that fit on a page, told by their references: the same words at every validation."""
    length = [len(source.split()) for source in probing.sources]
    chosen = sorted(range(len(length)), key=lambda row: (abs(length[row] - PROBE_WORDS), row))[:PROBES]
    sources, targets = [probing.sources[row] for row in chosen], [probing.references[row][0] for row in chosen]
    return Tracer(probing.vocabularies, {}).forced(probing.model, sources, targets, device)


def _alike(rows: list[list[int]]) -> bool:
    """Does each begin the longest of them?"""
    longest = max(rows, key=len)
    return all(row == longest[: len(row)] for row in rows)


def translate_all(
    model: Stepping, vocabularies: Vocabularies, limit: Length, sources: Sequence[str], device: torch.device
) -> list[Hypothesis]:
    """Greedy, in batches of like length."""
    rows = [[*tokens, END] for tokens in vocabularies.source.encode_all(sources)]
    found: dict[int, Hypothesis] = {}
    ready = Ready.of(model)
    for chosen in by_length(rows, BATCH):
        batch = padded([rows[index] for index in chosen]).to(device)
        lengths = torch.tensor([len(rows[index]) for index in chosen])
        found |= dict(zip(chosen, greedy(ready, batch, lengths, limit), strict=True))
    return [found[index] for index in range(len(rows))]
