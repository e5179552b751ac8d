"""Features of each word of a translation, from which its confidence is computed.

They come from a forced decoding of the translation (log-probabilities, entropies, margins, attention), from samples of
the model, with which words that are right agree more often, and from the texts. Those whose name begins with "sentence"
are the same for all words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from regard.look.diagnostics import MISSED
from regard.look.trace import Side, by_words
from regard.metrics.pairwise_chrf import pairwise_chrf
from regard.metrics.word_matches import aligned_words
from regard.search.force_decode import ForcedDecoding
from regard.tasks.translation.read_source import ReadSource
from regard.tasks.translation.regression import Matrix, Vector
from regard.text.boundaries import is_punctuation

Columns = dict[str, Vector]

MIN_LOG_PROBABILITY = -12.0  # lower ones, −inf too, count as this
MAX_LOG_MARGIN = 6.0
FEATURES = (
    *("log_probability", "lowest_log_probability", "probability", "entropy", "margin"),
    *("agreement", "agreement_logit", "occurrence_logit"),
    *("attention_entropy", "attention_peak", "source_pieces"),
    *("pieces", "letters", "punctuation", "repeated", "position"),
    *("previous_agreement", "next_agreement", "previous_log_probability", "next_log_probability"),
    *("sentence_log_probability", "sentence_probability", "sentence_entropy", "sentence_margin"),
    *("sentence_chrf", "sentence_agreement"),
    *("sentence_attention", "sentence_missed", "sentence_source_pieces", "sentence_length", "sentence_length_ratio"),
)


@dataclass(frozen=True)
class SampledText:
    """A sampled translation with its words, and how often it was drawn."""

    text: str
    words: Sequence[str]
    count: int


class TranslatedPart(NamedTuple):
    """A part of a source and its translation."""

    source: Side
    target: Side
    shown: ReadSource | None = None  # the source with the terms that the model is shown; None: with none

    @property
    def read(self) -> ReadSource:
        """the source as the model reads it"""
        return self.shown or ReadSource.of(self.source)

    @property
    def words(self) -> list[str]:
        """the words of the translation"""
        return [word.text for word in self.target.text_words]


def word_features(part: TranslatedPart, decoding: ForcedDecoding, samples: Sequence[SampledText]) -> Matrix:
    """Return the features [words, FEATURES] of a translated part: its forced decoding, and samples of its source."""
    words = part.words
    if not words:
        return np.zeros((0, len(FEATURES)))
    columns = word_columns(part, decoding, samples)
    return np.stack([np.nan_to_num(np.broadcast_to(columns[name], len(words))) for name in FEATURES], 1)


def word_columns(part: TranslatedPart, decoding: ForcedDecoding, samples: Sequence[SampledText]) -> Columns:
    """Return the features by name: [words], or [1] if they are the same for all words."""
    columns = _probabilities(part, decoding) | _agreement(part, samples) | _attention(part, decoding)
    columns |= _form(part)
    columns |= _neighbours("agreement", columns["agreement"], 1.0)
    columns |= _neighbours("log_probability", columns["lowest_log_probability"], 0.0)
    return columns


def _probabilities(part: TranslatedPart, decoding: ForcedDecoding) -> Columns:
    """What the model's distributions say of the pieces of each word."""
    log_probabilities = np.maximum(decoding.log_probabilities.astype(np.float64), MIN_LOG_PROBABILITY)
    entropies = decoding.entropies.astype(np.float64)
    others = [
        next((value for other, value in zip(*best, strict=True) if other != token), 0.0)
        for token, *best in zip(
            part.target.tokens, decoding.top_tokens.tolist(), decoding.top_probabilities.tolist(), strict=True
        )
    ]
    probability = np.exp(_by_word(part, np.sum, log_probabilities))
    margins = log_probabilities - np.log(np.maximum(others, np.exp(MIN_LOG_PROBABILITY)))
    margin = np.clip(_by_word(part, np.min, margins), -MAX_LOG_MARGIN, MAX_LOG_MARGIN)
    return {
        "log_probability": _by_word(part, np.mean, log_probabilities),
        "lowest_log_probability": _by_word(part, np.min, log_probabilities),
        "probability": probability,
        "entropy": _by_word(part, np.mean, entropies),
        "margin": margin,
        "sentence_probability": probability.mean(keepdims=True),
        "sentence_margin": margin.mean(keepdims=True),
        "sentence_log_probability": log_probabilities.mean(keepdims=True),
        "sentence_entropy": entropies.mean(keepdims=True),
    }


def _agreement(part: TranslatedPart, samples: Sequence[SampledText]) -> Columns:
    """How many samples agree with a word: an alignment matches it, or it occurs anywhere; and the mean chrF++ of the
    translation against the samples."""
    words = part.words
    counts = np.array([sample.count for sample in samples], np.float64)
    chrf = pairwise_chrf([part.target.text, *(sample.text for sample in samples)])[0, 1:]
    total = sum(sample.count for sample in samples)
    matched, occurring = np.zeros(len(words)), np.zeros(len(words))
    for sample in samples:
        known = set(sample.words)
        matched += sample.count * np.array(aligned_words(words, sample.words)[1], np.float64)
        occurring += sample.count * np.array([word in known for word in words], np.float64)
    agreement = matched / total
    return {
        "agreement": agreement,
        "agreement_logit": _logit(matched, total),
        "occurrence_logit": _logit(occurring, total),
        "sentence_chrf": np.array([chrf @ counts / total]),
        "sentence_agreement": np.average(agreement, weights=[len(word) for word in words], keepdims=True),
    }


def _logit(count: Vector, total: int) -> Vector:
    """Return the log-odds of a fraction, with half a count added to both sides."""
    return np.asarray(np.log((count + 0.5) / (total - count + 0.5)), np.float64)


def _attention(part: TranslatedPart, decoding: ForcedDecoding) -> Columns:
    """Where the words attended to, and how much of the source they cover."""
    source = part.source.words
    means = decoding.weights.mean((0, 1))  # [target pieces, source pieces]
    weights = by_words(means, part.target, part.source)[: len(part.words)].astype(np.float64)
    coverage = weights.sum(0)
    content = np.array([bool(word.text) and not all(map(is_punctuation, word.text)) for word in source], bool)
    pieces = np.log(np.maximum(np.bincount(part.source.groups, minlength=len(source)), 1))
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(1)
    missed = (coverage[content] < MISSED).mean() if content.any() else 0.0
    return {
        "attention_entropy": entropy,
        "attention_peak": weights.max(1),
        "source_pieces": weights @ pieces,
        "sentence_missed": np.array([missed]),
        "sentence_attention": entropy.mean(keepdims=True),
        "sentence_source_pieces": pieces.mean(keepdims=True),
        "sentence_length_ratio": np.log([(len(part.words) + 1) / len(source)]),
    }


def _form(part: TranslatedPart) -> Columns:
    """What the word and its place look like."""
    words = part.words
    counts = _by_word(part, len, np.zeros(len(part.target.pieces)))
    return {
        "pieces": np.log(np.maximum(counts, 1)),
        "letters": np.log([len(word) + 1 for word in words]),
        "punctuation": np.array([float(all(map(is_punctuation, word))) for word in words]),
        "repeated": np.array([float(word in words[:place]) for place, word in enumerate(words)]),
        "position": np.arange(len(words)) / max(1, len(words) - 1),
        "sentence_length": np.log([len(words)]),
    }


def _neighbours(name: str, values: Vector, outside: float) -> Columns:
    """Return a feature of the words before and after each."""
    return {
        f"previous_{name}": np.concatenate([[outside], values[:-1]]),
        f"next_{name}": np.concatenate([values[1:], [outside]]),
    }


def _by_word(part: TranslatedPart, function: Callable[[Vector], Any], values: Vector) -> Vector:
    """Return a function of the values [pieces] of each word; 0 for a word in which no piece begins."""
    groups = np.array(part.target.groups)
    by_group = [values[groups == word] for word in range(len(part.words))]
    return np.array([float(function(each)) if len(each) else 0.0 for each in by_group])
