"""The confidence of a translation: the probability that each word is right, and the expected fraction of right words.

    p(word is right)            = σ(b + Σ_f w_f x_f)
    E(fraction of right words)  = σ(c + Σ_k v_k z_k)

x_f are the features of word_features.py; z_k are those of the whole sentence, and the log-odds of the mean probability
of its words. b, w, c and v are fitted on dev (calibration.py) and stored in the model's card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from regard.config.folder import Vocabularies
from regard.models.ensemble import AnyTranslationModel
from regard.models.packed_model import PackedModel
from regard.search.force_decode import force_decode
from regard.search.hypothesis import LengthLimit
from regard.search.seeded_samples import seeded_samples
from regard.tasks.translation.regression import Linear, Matrix, Vector, sigmoid
from regard.tasks.translation.word_features import FEATURES, SampledText, TranslatedPart, word_features
from regard.text.batches import by_length

SAMPLES, TEMPERATURE = 16, 1.0  # drawn for each source
BATCH = 64
SENTENCE_COLUMNS = (
    *("sentence_log_probability", "sentence_probability", "sentence_margin", "sentence_chrf", "sentence_agreement"),
)
SENTENCE_FEATURES = (*SENTENCE_COLUMNS, "sentence_words")
_PLACES = [FEATURES.index(name) for name in SENTENCE_COLUMNS]


class RatedModel(Protocol):
    """A translator as the rating of its words sees it."""

    model: AnyTranslationModel
    vocabularies: Vocabularies
    limit: LengthLimit

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context in which the model computes in its precision."""

    def batch(self, tokens: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return source tokens as (padded [B, S], lengths [B])."""

    def target_words(self, text: str) -> list[str]:
        """Return the words of a text in the target language."""


class PartConfidence(NamedTuple):
    """The confidence of a translated part."""

    fraction: float  # of its words, expected to be right
    words: list[float]


@dataclass(frozen=True)
class ConfidenceModel:
    """The two regressions."""

    word: Linear  # over FEATURES
    sentence: Linear  # over SENTENCE_FEATURES

    def rate(self, features: Matrix) -> PartConfidence:
        """Return the confidence of a part by the features [words, FEATURES] of its words; 0 without words."""
        if not len(features):
            return PartConfidence(0.0, [])
        words = sigmoid(self.word(features))
        row = sentence_features(features, words)
        return PartConfidence(float(sigmoid(self.sentence(row[None]))[0]), words.tolist())

    def as_dict(self) -> dict[str, Any]:
        """Return the regressions as the card has them."""
        return {"word": _entry(self.word, FEATURES), "sentence": _entry(self.sentence, SENTENCE_FEATURES)}

    @classmethod
    def from_card(cls, card: Mapping[str, Any], name: str) -> ConfidenceModel:
        """Return the regressions that a model's card has; `name` is what messages call the model."""
        entry, command = card.get("confidence"), f"`regard calibrate {name or 'MODEL'} PAIRS`"
        if entry is None:
            raise ValueError(f"{name or 'this model'} has no calibrated confidence; {command} adds it")
        try:
            parts = _linear(entry["word"], FEATURES), _linear(entry["sentence"], SENTENCE_FEATURES)
        except (KeyError, TypeError, ValueError, AttributeError):
            reason = "card.json: its confidence is damaged, or of another version of regard"
            raise ValueError(f"{name or 'this model'}: {reason}; {command} calibrates anew") from None
        return cls(*parts)


def sentence_features(features: Matrix, words: Vector) -> Vector:
    """Return the SENTENCE_FEATURES for the features of its words [words, FEATURES] and their probabilities [words]."""
    mean = float(np.clip(words.mean(), 0.001, 0.999))
    return np.array([*features[0, _PLACES], np.log(mean / (1 - mean))], np.float64)


def _entry(linear: Linear, names: Sequence[str]) -> dict[str, Any]:
    weights = {name: round(float(value), 6) for name, value in zip(names, linear.weights, strict=True)}
    return {"bias": round(linear.bias, 6), "weights": weights}


def _linear(entry: Mapping[str, Any], names: Sequence[str]) -> Linear:
    """Return an entry of the card as a function; raise a ValueError unless it has exactly these weights, all finite."""
    weights = {str(name): float(value) for name, value in entry["weights"].items()}
    linear = Linear(float(entry["bias"]), np.array([weights[name] for name in names]))
    if len(weights) != len(names) or not np.isfinite([linear.bias, *linear.weights]).all():
        raise ValueError("expected a finite weight for each feature")
    return linear


def rate(translator: RatedModel, model: ConfidenceModel, parts: Sequence[TranslatedPart]) -> list[PartConfidence]:
    """Return the confidence of each translated part."""
    return [model.rate(features) for features in features_of(translator, parts)]


def features_of(translator: RatedModel, parts: Sequence[TranslatedPart]) -> list[Matrix]:
    """Return the features [words, FEATURES] of the words of each translated part."""
    reads = [part.read for part in parts]
    sources = [read.tokens for read in reads]
    samples = _samples(translator, sources)
    features: dict[int, Matrix] = {}
    with translator.autocast():
        model = PackedModel.of(translator.model)
        for rows in by_length(sources, BATCH):
            batch, lengths = translator.batch([sources[row] for row in rows])
            decoded = force_decode(model, batch, lengths, [parts[row].target.tokens for row in rows], 2, False)
            for row, decoding in zip(rows, decoded, strict=True):
                features[row] = word_features(parts[row], reads[row].decoding(decoding), samples[tuple(sources[row])])
    return [features[row] for row in range(len(parts))]


def _samples(translator: RatedModel, sources: Sequence[Sequence[int]]) -> dict[tuple[int, ...], list[SampledText]]:
    """Return the sampled translations of each distinct source, given by its tokens."""
    distinct = list(dict.fromkeys(map(tuple, sources)))
    decode = translator.vocabularies.target.decode
    samples: dict[tuple[int, ...], list[SampledText]] = {}
    with translator.autocast():
        model = PackedModel.of(translator.model)
        for rows in by_length(distinct, BATCH):
            batch, lengths = translator.batch([distinct[row] for row in rows])
            drawn = seeded_samples(model, batch, lengths, translator.limit, SAMPLES, TEMPERATURE)
            for row, hypotheses in zip(rows, drawn, strict=True):
                counts = Counter(decode(each.tokens) for each in hypotheses)
                samples[distinct[row]] = [
                    SampledText(text, translator.target_words(text), count) for text, count in counts.items()
                ]
    return samples
