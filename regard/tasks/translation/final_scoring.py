"""What the end of a training adds to a translator: its length penalty, its scores on dev, and its confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.metrics.translation import Scores, score
from regard.tasks.translation.calibration import MAX_SOURCES, calibrated_confidence
from regard.tasks.translation.length_penalty import DEFAULT, PenaltyChoice, choose_penalty
from regard.tasks.translation.predictor import Translator


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
) -> FinalResults:
    """Score a model as `evaluate` does; before, choose its length penalty if the recipe leaves it open. Its confidence
    is calibrated on at most `calibrated` of the sources, evenly spaced."""
    given, choice = translator.recipe.search, None
    if given.length_penalty is None and given.beam > 1:
        choice = choose_penalty(translator, sources, references)
    penalty = DEFAULT if given.length_penalty is None else given.length_penalty
    penalty = penalty if choice is None else choice.penalty
    rows = np.linspace(0, len(sources) - 1, min(len(sources), calibrated)).astype(int).tolist()
    if choice is not None and not given.mbr:
        texts = [each.text for each in choice.translations]
        parts = [[translator.translated_part(*part) for part in choice.translations[row].parts] for row in rows]
    else:
        answers = translator.answers(sources, replace(translator.search, length_penalty=penalty))
        texts = [answer.text for answer in answers]
        parts = [answers[row].translations[0].parts for row in rows]
    entry = calibrated_confidence(translator, parts, [references[row] for row in rows], "dev")
    return FinalResults(score(texts, references), penalty, choice, entry)
