"""The beam size and the length penalty of a translator, chosen on dev.

A beam's set of ended hypotheses does not depend on the penalty α, only their ranking by log p(y) / |y|^α does. So one
search with each beam size gives the translations of every α.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from regard.metrics.translation import chrf
from regard.models.packed_model import PackedModel
from regard.runtime.distributed import ALONE, World
from regard.search.beam import beam
from regard.search.copying import without_placeholders
from regard.search.hypothesis import Hypothesis
from regard.tasks.translation.predictor import BATCH, Translator
from regard.text.batches import by_length

PENALTIES = (0.0, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 2.0)
DEFAULT = 1.0  # where there is nothing to choose from
BEAMS = (5, 3, 10)
"""the beam sizes that are tried, the preferred first: a smaller one is faster, a larger one often no better"""
MARGIN, MARGIN_OF_ONE = 0.1, 2.0
"""differences of chrF++ that count as noise: MARGIN, and on small dev sets of n sources MARGIN_OF_ONE / √n"""


@dataclass(frozen=True)
class RankedTranslation:
    """The best translation of a source by one penalty."""

    text: str
    parts: list[tuple[str, list[int]]]  # the parts of the source, and the output tokens of each


@dataclass(frozen=True)
class SearchChoice:
    """The chosen beam size and length penalty, and what they give on dev."""

    beam: int
    penalty: float
    translations: list[RankedTranslation]  # by beam search with these
    chrf: dict[int, dict[float, float]]  # of each beam size and each penalty that was tried


def choose_search(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    beams: Sequence[int] = BEAMS,
    penalties: Sequence[float] = PENALTIES,
    world: World = ALONE,
) -> SearchChoice:
    """Translate dev once with each beam size, and choose by chrF++. The processes of `world` share dev.

    Of several beam sizes whose chrF++ differs by noise, the first is chosen.
    """
    choices = {width: _choose_penalty(translator, sources, references, width, penalties, world) for width in beams}
    best = max(choice.chrf[width][choice.penalty] for width, choice in choices.items())
    near = (
        choice for width, choice in choices.items() if choice.chrf[width][choice.penalty] >= best - _noise(len(sources))
    )
    tried = {width: choice.chrf[width] for width, choice in choices.items()}
    return replace(next(near), chrf=tried)


def _choose_penalty(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    width: int,
    penalties: Sequence[float],
    world: World,
) -> SearchChoice:
    """Choose the penalty for one beam size."""

    def translated(part: Sequence[str]) -> list[tuple[RankedTranslation, ...]]:
        ranked = _ranked_by_penalty(translator, part, width, penalties)
        return list(zip(*ranked.values(), strict=True))

    of_sources = world.map(sources, translated)  # of each source, the translations by all penalties
    translations = {penalty: [each[place] for each in of_sources] for place, penalty in enumerate(penalties)}
    scores = {penalty: chrf([each.text for each in ranked], references) for penalty, ranked in translations.items()}
    penalty = chosen_penalty(scores, len(sources))
    return SearchChoice(width, penalty, translations[penalty], {width: scores})


def chosen_penalty(chrf_by_penalty: Mapping[float, float], sources: int) -> float:
    """Return the penalty nearest to 1 whose chrF++ is the best, apart from noise; of two as near, the better one."""
    best = max(chrf_by_penalty.values())
    near = [penalty for penalty, value in chrf_by_penalty.items() if value >= best - _noise(sources)]
    return min(near, key=lambda penalty: (round(abs(penalty - DEFAULT), 6), -chrf_by_penalty[penalty]))


def _noise(sources: int) -> float:
    """Return the difference of chrF++ that counts as noise. It grows as dev gets smaller, so that few sources do not
    lead to an extreme choice."""
    return max(MARGIN, MARGIN_OF_ONE / math.sqrt(sources))


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
        packed = PackedModel.of(translator.model)
        model = without_placeholders(packed, translator.vocabularies.target, translator.device)
        for rows in by_length(tokens, BATCH):
            batch, lengths = translator.batch([tokens[row] for row in rows])
            hypotheses = beam(model, batch, lengths, translator.limit, width=width, best=2 * width)
            by_row |= {
                row: [without_weights(each) for each in ranked] for row, ranked in zip(rows, hypotheses, strict=True)
            }
    return (by_row[row] for row in range(len(parts)))
