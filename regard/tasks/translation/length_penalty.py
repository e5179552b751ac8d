"""The length penalty of beam search, chosen on dev from one search.

A beam's set of ended hypotheses does not depend on the penalty α, only their ranking by log p(y) / |y|^α does. So one
search gives the translations of every α.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from regard.metrics.translation import chrf
from regard.models.packed_model import PackedModel
from regard.runtime.distributed import ALONE, World
from regard.search.beam import beam
from regard.search.hypothesis import Hypothesis
from regard.tasks.translation.predictor import BATCH, Translator
from regard.text.batches import by_length

PENALTIES = (0.0, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 2.0)
DEFAULT = 1.0  # where there is nothing to choose from
MARGIN, MARGIN_OF_ONE = 0.1, 2.0
"""differences of chrF++ that count as noise: MARGIN, and on small dev sets of n sources MARGIN_OF_ONE / √n"""


@dataclass(frozen=True)
class RankedTranslation:
    """The best translation of a source by one penalty."""

    text: str
    parts: list[tuple[str, list[int]]]  # the parts of the source, and the output tokens of each


@dataclass(frozen=True)
class PenaltyChoice:
    """The chosen length penalty, and what it gives on dev."""

    penalty: float
    translations: list[RankedTranslation]  # by beam search with this penalty
    chrf: dict[float, float]  # of each penalty that was tried


def choose_penalty(
    translator: Translator, sources: Sequence[str], references: Sequence[Sequence[str]], world: World = ALONE
) -> PenaltyChoice:
    """Translate dev once by beam search, and choose the penalty by chrF++. The processes of `world` share dev."""

    def translated(part: Sequence[str]) -> list[tuple[RankedTranslation, ...]]:
        ranked = _ranked_by_penalty(translator, part, translator.search.beam, PENALTIES)
        return list(zip(*ranked.values(), strict=True))

    of_sources = world.map(sources, translated)  # of each source, the translations by all penalties
    translations = {penalty: [each[place] for each in of_sources] for place, penalty in enumerate(PENALTIES)}
    scores = {penalty: chrf([each.text for each in ranked], references) for penalty, ranked in translations.items()}
    penalty = chosen_penalty(scores, len(sources))
    return PenaltyChoice(penalty, translations[penalty], scores)


def chosen_penalty(chrf_by_penalty: Mapping[float, float], sources: int) -> float:
    """Return the penalty nearest to 1 whose chrF++ is the best one, apart from noise; of two as near, the better one.

    The margin for noise grows as dev gets smaller, so that few sources do not lead to an extreme penalty.
    """
    margin = max(MARGIN, MARGIN_OF_ONE / math.sqrt(sources))
    best = max(chrf_by_penalty.values())
    near = [penalty for penalty, value in chrf_by_penalty.items() if value >= best - margin]
    return min(near, key=lambda penalty: (round(abs(penalty - DEFAULT), 6), -chrf_by_penalty[penalty]))


def translations_by_penalty(
    translator: Translator, sources: Sequence[str], width: int, penalties: Sequence[float] = PENALTIES
) -> dict[float, list[str]]:
    """Return the translations of sources by beam search with each penalty, from one search."""
    ranked = _ranked_by_penalty(translator, sources, width, penalties)
    return {penalty: [each.text for each in best] for penalty, best in ranked.items()}


def _ranked_by_penalty(
    translator: Translator, sources: Sequence[str], width: int, penalties: Sequence[float]
) -> dict[float, list[RankedTranslation]]:
    """Return the same with the output tokens of each part."""
    parts_of = [translator.parts(source) for source in sources]
    ended = _ended(translator, [part for parts in parts_of for part in parts], width)
    translations: dict[float, list[RankedTranslation]] = {penalty: [] for penalty in penalties}
    for parts in parts_of:
        own = [next(ended) for _ in parts]
        for penalty in penalties:
            best = [min(hypotheses, key=lambda each: each.rank(penalty)) for hypotheses in own]
            tokens = [(part, each.tokens) for part, each in zip(parts, best, strict=True)]
            translations[penalty].append(RankedTranslation(" ".join(each.text for each in best), tokens))
    return translations


@dataclass(frozen=True)
class _RankedText:
    """A hypothesis without its weights, which would take much memory for all of dev."""

    text: str
    log_probability: float
    tokens: list[int]  # with the end token if it was reached
    finished: bool

    def rank(self, penalty: float) -> tuple[bool, float]:
        """Return the sort key: finished hypotheses before those cut off, then by descending score."""
        return not self.finished, -self.log_probability / len(self.tokens) ** penalty


def _ended(translator: Translator, parts: Sequence[str], width: int) -> Iterator[list[_RankedText]]:
    """Yield all hypotheses of a beam that ended, for each text."""
    decode = translator.vocabularies.target.decode

    def without_weights(each: Hypothesis) -> _RankedText:
        return _RankedText(decode(each.tokens), each.log_probability, each.output_tokens, each.finished)

    tokens = [translator.source_tokens(part) for part in parts]
    by_row: dict[int, list[_RankedText]] = {}
    with translator.autocast():
        model = PackedModel.of(translator.model)
        for rows in by_length(tokens, BATCH):
            batch, lengths = translator.batch([tokens[row] for row in rows])
            hypotheses = beam(model, batch, lengths, translator.limit, width=width, best=2 * width)
            by_row |= {
                row: [without_weights(each) for each in ranked] for row, ranked in zip(rows, hypotheses, strict=True)
            }
    return (by_row[row] for row in range(len(parts)))
