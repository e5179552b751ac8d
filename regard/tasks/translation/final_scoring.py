"""What the end of a training adds to a translator: its length penalty, its scores on dev, and its confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.metrics.translation import Scores, score
from regard.runtime.distributed import ALONE, World
from regard.tasks.translation.calibration import MAX_SOURCES, RatedWords, calibrated_confidence, rated_words
from regard.tasks.translation.length_penalty import DEFAULT, PenaltyChoice, RankedTranslation, choose_penalty
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.training.task import evenly_spaced


@dataclass(frozen=True)
class FinalResults:
    """What was measured and chosen on dev."""

    scores: Scores
    length_penalty: float
    choice: PenaltyChoice | None  # None: there was no penalty to choose
    confidence: dict[str, Any] | None  # the entry of the card; None: no translation has words


def final_results(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    calibrated: int = MAX_SOURCES,
    world: World = ALONE,
) -> FinalResults:
    """Score a model as `evaluate` does; before, choose its length penalty if the recipe leaves it open. Its confidence
    is calibrated on at most `calibrated` of the sources, evenly spaced. The processes of `world` share the sources."""
    given, choice = translator.recipe.search, None
    if given.length_penalty is None and given.beam > 1:
        choice = choose_penalty(translator, sources, references, world)
    penalty = DEFAULT if given.length_penalty is None else given.length_penalty
    penalty = penalty if choice is None else choice.penalty
    if choice is not None and not given.mbr:
        translations = choice.translations
    else:
        search = replace(translator.search, length_penalty=penalty)
        translations = world.map(sources, lambda own: _translated(translator, own, search))
    scores = score([each.text for each in translations], references)
    rows = evenly_spaced(len(sources), calibrated)
    chosen, known = [translations[row] for row in rows], [references[row] for row in rows]
    return FinalResults(scores, penalty, choice, _confidence(translator, chosen, known, world))


def _translated(translator: Translator, sources: Sequence[str], search: Search) -> list[RankedTranslation]:
    """Return translations without their traces, which would take much memory for all of dev."""
    best = [answer.translations[0] for answer in translator.answers(sources, search)]
    return [
        RankedTranslation(each.text, [(part.source.text, list(part.target.tokens)) for part in each.parts])
        for each in best
    ]


def _confidence(
    translator: Translator, translations: Sequence[RankedTranslation], references: Sequence[Sequence[str]], world: World
) -> dict[str, Any] | None:
    """Return the entry `confidence` of the card."""

    def rated(own: Sequence[tuple[RankedTranslation, Sequence[str]]]) -> list[RatedWords | None]:
        parts = [[translator.translated_part(*part) for part in each.parts] for each, _ in own]
        return rated_words(translator, parts, [known for _, known in own])

    return calibrated_confidence(world.map(list(zip(translations, references, strict=True)), rated), "dev")
