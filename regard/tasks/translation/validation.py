"""A look at how far a model has come: dev translated greedily, scored, and one sentence to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.config.folder import Vocabularies
from regard.look.trace import Trace
from regard.metrics import translation as scoring
from regard.models.building import TranslationModel
from regard.models.ready import Ready, Stepping
from regard.search.hypothesis import Hypothesis, LengthLimit
from regard.search.stepwise import greedy
from regard.tasks.translation.tracing import Tracer
from regard.text.batches import Batch, arrange, by_length, padded
from regard.text.examples import Example
from regard.text.vocabulary import END
from regard.training.loss import smoothed_loss
from regard.training.task import Validation

BATCH = 256
PROBES = 4
PROBE_WORDS = 8
SAME = "every source gets the same translation"
UNRELATED = "the translations fit their own sources no better than others"
LOSS_TOKENS = 4096
"""tokens of a batch, padding counted, whose loss is taken together"""
LEAST = 0.001
"""the lowest score of translations that depend on the source"""
FAINT = 3.0
"""below so much chrF++ above chance, the difference between two models is mostly chance itself"""


@dataclass(frozen=True)
class Probing:
    """What is tried, and on what."""

    model: TranslationModel
    vocabularies: Vocabularies
    limit: LengthLimit
    sources: list[str]
    references: list[list[str]]


def validate(probing: Probing, number: int, device: torch.device) -> Validation:
    """The `number`-th validation shows the `number`-th source."""
    probing.model.eval()
    tokens = translate_all(probing.model, probing.vocabularies, probing.limit, probing.sources, device)
    probes = _probes(probing, device)
    loss = dev_loss(probing, device)
    probing.model.train()
    texts = [probing.vocabularies.target.decode(hypothesis.tokens) for hypothesis in tokens]
    chrf, chance = scoring.chrf_and_chance(texts, probing.references)
    hits = sum(text in options for text, options in zip(texts, probing.references, strict=True))
    exact = 100 * hits / len(texts)
    shown = number % len(texts)
    facts = {
        "chrf": round(chrf, 3),
        "chance": round(chance, 3),
        "exact": round(exact, 3),
        "source": probing.sources[shown],
        "translation": texts[shown],
        "reference": probing.references[shown][0],
        "probes": [trace.as_dict() for trace in probes],
    }
    example = f"{probing.sources[shown]}  →  {texts[shown] or '(nothing)'}"
    same = len(texts) > 1 and _alike([hypothesis.tokens for hypothesis in tokens])
    told = f"chrF++ {chrf:.1f}, exact {exact:.1f} %" + ("" if loss is None else f", dev loss {loss:.3f}")
    score = choosing_score(chrf, chance, len(texts), same)
    constant = SAME if same else UNRELATED if len(texts) > 1 and chrf <= chance else ""
    return Validation(score, told, example, facts, loss, constant)


def choosing_score(chrf: float, chance: float, sources: int, same: bool) -> float:
    """Return the score that models are chosen by: chrF++ above chance.

    chrF++ alone would choose a model that answers every source with the most frequent pieces over one that has begun to
    translate. Models that have hardly begun all get the same score: the loss on dev then chooses among them. With a
    single source there is no chance to compare with.
    """
    if sources < 2:
        return chrf
    above = chrf - chance
    return 0.0 if same else above if above >= FAINT else LEAST


@torch.no_grad()
def dev_loss(probing: Probing, device: torch.device) -> float | None:
    """Return the cross-entropy per token of the first reference of each source, teacher-forced.

    References longer than a translation may become do not count; None if none is left.
    """
    sources = probing.vocabularies.source.encode_all(probing.sources)
    targets = probing.vocabularies.target.encode_all([known[0] for known in probing.references])
    pairs = [Example(*both) for both in zip(sources, targets, strict=True)]
    fitting = [pair for pair in pairs if len(pair.target) < probing.limit.max_length(len(pair.source) + 1)]
    total, count = torch.zeros((), dtype=torch.float64), 0
    for rows in arrange(fitting, BATCH, LOSS_TOKENS, 0, 0) if fitting else []:
        batch = Batch.of([fitting[row] for row in rows], device)
        decoded = probing.model(batch.source, batch.lengths, batch.target)
        output, expected = batch.without_padding(decoded.output), batch.without_padding(batch.expected)
        layer = probing.model.output
        _, losses = smoothed_loss(output, layer.weight, layer.bias, expected, 0.0)
        total += losses.double().sum().cpu()
        count += len(losses)
    return float(total / count) if count else None


def _probes(probing: Probing, device: torch.device) -> list[Trace]:
    """A few sentences that fit on a page, told by their references: the same words at every validation."""
    length = [len(source.split()) for source in probing.sources]
    chosen = sorted(range(len(length)), key=lambda row: (abs(length[row] - PROBE_WORDS), row))[:PROBES]
    sources, targets = [probing.sources[row] for row in chosen], [probing.references[row][0] for row in chosen]
    return Tracer(probing.vocabularies, {}).force_decode(probing.model, sources, targets, device)


def _alike(rows: list[list[int]]) -> bool:
    """Does each begin the longest of them?"""
    longest = max(rows, key=len)
    return all(row == longest[: len(row)] for row in rows)


def translate_all(
    model: Stepping, vocabularies: Vocabularies, limit: LengthLimit, sources: Sequence[str], device: torch.device
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
