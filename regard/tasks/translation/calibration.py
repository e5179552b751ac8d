"""Calibrates the confidence of a translator on translations with references.

A word is right if the edit distance matches it to the closest reference (metrics/word_matches.py). The regression of
words is logistic. That of sentences is fitted in two steps: a ridge regression of their chrF++, which orders them, then
two numbers a, b, so that σ(a + b · its value) is the expected fraction of right words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from regard.metrics.confidence import RatedSentence, calibration_error
from regard.metrics.rank_correlation import spearman
from regard.metrics.translation import chrf
from regard.metrics.word_matches import matched_words
from regard.tasks.translation.answer import Answer
from regard.tasks.translation.confidence import (
    SAMPLES,
    SENTENCE_FEATURES,
    TEMPERATURE,
    ConfidenceModel,
    features_of,
    sentence_features,
)
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.regression import (
    PRIORS,
    Linear,
    Matrix,
    Vector,
    cross_validated,
    log_loss,
    logistic,
    ridge,
    sigmoid,
    squared_loss,
)
from regard.tasks.translation.word_features import FEATURES, TranslatedPart

MIN_SOURCES, MAX_SOURCES = 30, 300  # that the calibration at the end of a training uses
SOURCES_PER_SECOND = 1  # of the time limit of a run: otherwise calibration would take a third of half a minute
MIN_SENTENCES = 10  # with fewer, the confidence of a sentence is the mean of its words


class RatedWords(NamedTuple):
    """The words of one translation, in one part, with references."""

    features: Matrix  # [words, FEATURES]
    right: Vector  # [words]
    chrf: float  # of the sentence


class Calibration(NamedTuple):
    """The fitted regressions, and values of words and sentences by regressions fitted without them."""

    model: ConfidenceModel
    words: Vector | None  # [words]
    sentences: Vector | None  # [sentences]


def calibration_sources(seconds: float | None) -> int:
    """Return how many sources of dev the calibration uses at most, at the end of a run with this time limit."""
    return MAX_SOURCES if seconds is None else max(MIN_SOURCES, min(MAX_SOURCES, round(SOURCES_PER_SECOND * seconds)))


def rated_words(
    translator: Translator, translations: Sequence[Sequence[TranslatedPart]], references: Sequence[Sequence[str]]
) -> list[RatedWords | None]:
    """Return the words of translations, judged by the references of each; None for those in several parts, and for
    those without words."""
    rows = [row for row, parts in enumerate(translations) if len(parts) == 1 and parts[0].words]
    rated: list[RatedWords | None] = [None] * len(translations)
    for row, features in zip(rows, features_of(translator, [translations[row][0] for row in rows]), strict=True):
        right = np.array(right_words(translator, translations[row], references[row]), np.float64)
        rated[row] = RatedWords(features, right, chrf([translations[row][0].target.text], [references[row]]))
    return rated


def right_words(translator: Translator, parts: Sequence[TranslatedPart], references: Sequence[str]) -> list[bool]:
    """Return whether each word of a translation is right, by the closest of the references."""
    words = [word for part in parts for word in part.words]
    return matched_words(words, [translator.target_words(reference) for reference in references])


def fitted_confidence(sentences: Sequence[RatedWords]) -> Calibration:
    """Fit both regressions on rated words of at least one sentence."""
    table = np.concatenate([each.features for each in sentences])
    right = np.concatenate([each.right for each in sentences])
    numbers = np.repeat(np.arange(len(sentences)), [len(each.right) for each in sentences])
    word, _, logits = cross_validated(logistic, log_loss, table, right, numbers)
    if logits is None or len(sentences) < MIN_SENTENCES:
        return Calibration(ConfidenceModel(word, _mean_of_words()), None if logits is None else sigmoid(logits), None)
    words = sigmoid(logits)
    rows = np.stack([sentence_features(each.features, words[numbers == n]) for n, each in enumerate(sentences)])
    sentence, values = _fitted_sentences(rows, sentences)
    return Calibration(ConfidenceModel(word, sentence), words, values)


def _mean_of_words() -> Linear:
    """Return the regression whose value is the log-odds of the mean probability of the words."""
    return Linear(0.0, np.array([float(name == "sentence_words") for name in SENTENCE_FEATURES]))


def _fitted_sentences(rows: Matrix, sentences: Sequence[RatedWords]) -> tuple[Linear, Vector]:
    """Return the regression of sentences with features `rows`, and their values by regressions without their fold."""
    quality = np.array([each.chrf for each in sentences])
    fractions = np.array([each.right.mean() for each in sentences])
    order, _, values = cross_validated(ridge, squared_loss, rows, quality, np.arange(len(rows)))
    assert values is not None
    scale = logistic(values[:, None], fractions, PRIORS[0])
    slope = float(scale.weights[0])
    return Linear(scale.bias + slope * order.bias, slope * order.weights), sigmoid(scale(values[:, None]))


def calibrated_confidence(rated: Sequence[RatedWords | None], data: str) -> dict[str, Any] | None:
    """Return the entry `confidence` of the card, fitted on rated translations of `data`; None if there are none."""
    sentences = [each for each in rated if each is not None]
    if not sentences:
        return None
    calibration = fitted_confidence(sentences)
    right = np.concatenate([each.right for each in sentences])
    return {
        "method": f"words: logistic regression over {len(FEATURES)} features; sentences: ridge regression of chrF++ "
        f"over {len(SENTENCE_FEATURES)} features, scaled to the fraction of right words; {SAMPLES} samples at "
        f"temperature {TEMPERATURE:g}; errors by cross-validation",
        "data": data,
        "sources": len(sentences),
        "words": len(right),
        "words_right": round(float(right.mean()), 4),
        **_errors(sentences, calibration),
        **calibration.model.as_dict(),
    }


def _errors(sentences: Sequence[RatedWords], calibration: Calibration) -> dict[str, float | None]:
    """Return the calibration errors of words and of sentences, and the rank correlation of sentences with chrF++."""
    words, values = calibration.words, calibration.sentences
    right = np.concatenate([each.right for each in sentences])
    fractions = np.array([each.right.mean() for each in sentences])
    quality = np.array([each.chrf for each in sentences])
    errors = {
        "word_error": None if words is None else calibration_error(words, right),
        "sentence_error": None if values is None else calibration_error(values, fractions),
        "correlation": None if values is None else spearman(values, quality),
    }
    return {name: None if value is None else round(value, 4) for name, value in errors.items()}


def rated_sentences(
    translator: Translator, answers: Sequence[Answer], references: Sequence[Sequence[str]]
) -> list[RatedSentence]:
    """Return the best translations of answers with their confidence, and what they are judged by."""
    sentences = []
    for answer, known in zip(answers, references, strict=True):
        best = answer.translations[0]
        length = sum(len(trace.target.pieces) for trace in best.traces)
        words = [value for _, value in best.word_confidence]
        right = right_words(translator, best.parts, known)
        mean = best.log_probability / max(1, length)
        sentences.append(RatedSentence(best.text, known, best.confidence or 0.0, words, right, mean))
    return sentences
