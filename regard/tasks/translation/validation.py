"""Validation of a translator: dev is translated greedily and scored; one translation is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch

from regard.config.folder import Vocabularies
from regard.look.trace import Trace
from regard.metrics import translation as scoring
from regard.models.building import TranslationModel
from regard.models.packed_model import PackedModel, SearchModel
from regard.runtime.distributed import ALONE, World
from regard.search.copying import without_placeholders
from regard.search.hypothesis import Hypothesis, LengthLimit
from regard.search.stepwise import greedy
from regard.tasks.translation.tracing import Tracer
from regard.text.batches import Batch, arrange, by_length, padded
from regard.text.examples import Example
from regard.text.respelling import respelled
from regard.text.vocabulary import END
from regard.training.loss import smoothed_loss
from regard.training.task import Validation

BATCH = 256
PROBES = 4  # sentences whose traces are logged at every validation
PROBE_WORDS = 8  # words of such a sentence, as far as possible
SAME = "every source gets the same translation"
UNRELATED = "the translations fit their own sources no better than others"
LOSS_TOKENS = 4096  # tokens of a batch, padding counted, when the loss on dev is computed
MIN_CHRF_ABOVE_CHANCE = 3.0  # with less chrF++ above chance, differences between models are mostly noise


class ValidationInputs(NamedTuple):
    """A model and the dev sources on which it is validated."""

    model: TranslationModel
    vocabularies: Vocabularies
    limit: LengthLimit
    sources: list[str]
    references: list[list[str]]


def validate(inputs: ValidationInputs, number: int, device: torch.device, world: World = ALONE) -> Validation:
    """Translate and score; the `number`-th validation shows the translation of the `number`-th source."""
    inputs.model.eval()
    translations = world.map(inputs.sources, partial(_translated, inputs, device))
    probes = _probes(inputs, device)
    loss = dev_loss(inputs, device, world)
    inputs.model.train()
    texts = [inputs.vocabularies.target.decode(tokens) for tokens in translations]
    chrf, chance = scoring.chrf_and_chance(texts, inputs.references)
    hits = sum(text in options for text, options in zip(texts, inputs.references, strict=True))
    exact = 100 * hits / len(texts)
    shown = number % len(texts)
    facts = {
        "chrf": round(chrf, 3),
        "chance": round(chance, 3),
        "exact": round(exact, 3),
        "source": inputs.sources[shown],
        "translation": texts[shown],
        "reference": inputs.references[shown][0],
        "probes": [trace.as_dict() for trace in probes],
    }
    example = f"{inputs.sources[shown]}  →  {texts[shown] or '(nothing)'}"
    same = len(texts) > 1 and _all_alike(translations)
    summary = f"chrF++ {chrf:.1f}, exact {exact:.1f} %" + ("" if loss is None else f", dev loss {loss:.3f}")
    score = choosing_score(chrf, chance, len(texts))
    constant = SAME if same else UNRELATED if len(texts) > 1 and chrf <= chance else ""
    return Validation(score, summary, example, facts, loss, constant)


def choosing_score(chrf: float, chance: float, sources: int) -> float:
    """Return the score by which the best model is chosen: chrF++ above chance.

    By chrF++ alone, a model that translates every source as the same frequent pieces could win over one that has begun
    to translate. Models that have hardly begun all get the same score, so that the loss on dev decides. Chance is not
    defined for a single source.
    """
    if sources < 2:
        return chrf
    above = chrf - chance
    return above if above >= MIN_CHRF_ABOVE_CHANCE else 0.0


def _translated(inputs: ValidationInputs, device: torch.device, sources: Sequence[str]) -> list[list[int]]:
    """Return the target tokens of each source."""
    hypotheses = translate_all(inputs.model, inputs.vocabularies, inputs.limit, sources, device)
    return [hypothesis.tokens for hypothesis in hypotheses]


@torch.no_grad()
def dev_loss(inputs: ValidationInputs, device: torch.device, world: World = ALONE) -> float | None:
    """Return the cross-entropy per token of the first reference of each source, with teacher forcing.

    References longer than the maximum length do not count; None if no other is left.
    """
    sources = inputs.vocabularies.source.encode_all(inputs.sources)
    targets = inputs.vocabularies.target.encode_all([options[0] for options in inputs.references])
    pairs = [Example(*both) for both in zip(sources, targets, strict=True)]
    fitting = world.share([pair for pair in pairs if len(pair.target) < inputs.limit.max_length(len(pair.source) + 1)])
    total, count = torch.zeros((), dtype=torch.float64), 0
    for rows in arrange(fitting, BATCH, LOSS_TOKENS, 0, 0) if fitting else []:
        batch = Batch.of([fitting[row] for row in rows], device)
        decoded = inputs.model(batch.source, batch.lengths, batch.target)
        output, expected = batch.real_tokens(decoded.output), batch.real_tokens(batch.expected)
        layer = inputs.model.output
        _, losses = smoothed_loss(output, layer.weight, layer.bias, expected, 0.0)
        total += losses.double().sum().cpu()
        count += len(losses)
    total, count = world.sum_(total), round(world.total(count))
    return float(total / count) if count else None


def _probes(inputs: ValidationInputs, device: torch.device) -> list[Trace]:
    """Return the traces of a few short sentences with their references as targets: the same at every validation."""
    lengths = [len(source.split()) for source in inputs.sources]
    chosen = sorted(range(len(lengths)), key=lambda row: (abs(lengths[row] - PROBE_WORDS), row))[:PROBES]
    sources, targets = [inputs.sources[row] for row in chosen], [inputs.references[row][0] for row in chosen]
    return Tracer(inputs.vocabularies, {}).force_decode(inputs.model, sources, targets, device)


def _all_alike(translations: list[list[int]]) -> bool:
    """Return whether each is a prefix of the longest: the same translation, cut off at different lengths."""
    longest = max(translations, key=len)
    return all(tokens == longest[: len(tokens)] for tokens in translations)


def translate_all(
    model: SearchModel, vocabularies: Vocabularies, limit: LengthLimit, sources: Sequence[str], device: torch.device
) -> list[Hypothesis]:
    """Translate sources greedily, in batches of similar length."""
    spelt = [respelled(vocabularies.source, source) for source in sources]
    source_tokens = [[*tokens, END] for tokens in vocabularies.source.encode_all(spelt)]
    hypotheses: dict[int, Hypothesis] = {}
    prepared = without_placeholders(PackedModel.of(model), vocabularies.target, device)
    for rows in by_length(source_tokens, BATCH):
        batch = padded([source_tokens[row] for row in rows]).to(device)
        lengths = torch.tensor([len(source_tokens[row]) for row in rows])
        hypotheses |= dict(zip(rows, greedy(prepared, batch, lengths, limit), strict=True))
    return [hypotheses[row] for row in range(len(source_tokens))]
