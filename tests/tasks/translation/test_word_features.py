"""The features of words, of a translation made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.look.trace import Side
from regard.look.words import Span
from regard.search.force_decode import ForcedDecoding
from regard.tasks.translation.word_features import (
    FEATURES,
    MIN_LOG_PROBABILITY,
    SampledText,
    TranslatedPart,
    word_features,
)
from regard.text.vocabulary import END
from tests.look.traces import side

SOURCE = side("a cat sat .", ["a", "c", "at", "sat", "."])
TARGET = side("ek manjar manjar .", ["ek", "man", "jar", "man", "jar", "."])
TOKENS = [5, 6, 7, 6, 7, 8, END]


def part() -> TranslatedPart:
    return TranslatedPart(SOURCE, Side(TARGET.text, TARGET.pieces, None, TOKENS))


def decoding(**changed: Any) -> ForcedDecoding:
    """ek looks at a alone, the first manjar at both pieces of cat, the others everywhere alike."""
    weights = np.full((1, 1, 7, 6), 1 / 6, np.float32)
    weights[0, 0, 0] = [1, 0, 0, 0, 0, 0]
    weights[0, 0, 1:3] = [0, 0.5, 0.5, 0, 0, 0]
    given: dict[str, Any] = {
        "weights": weights,
        "log_probabilities": np.log(np.array([0.9, 0.5, 0.8, 0.1, 0.5, 0.9, 0.9], np.float32)),
        "top_tokens": np.array([[5, 9], [6, 9], [7, 9], [9, 6], [9, 7], [8, 9], [END, 9]]),
        "top_probabilities": np.array(
            [[0.9, 0.05], [0.5, 0.25], [0.8, 0.1], [0.8, 0.1], [0.5, 0.5], [0.9, 0.1], [0.9, 0.1]]
        ),
        "entropies": np.arange(7, dtype=np.float32),
    }
    return ForcedDecoding(**given | changed)


SAMPLES = [
    SampledText("ek manjar .", ["ek", "manjar", "."], 3),
    SampledText("don manjar .", ["don", "manjar", "."], 1),
]


def column(name: str, table: np.ndarray) -> list[float]:
    return list(table[:, FEATURES.index(name)])


def test_of_probabilities() -> None:
    table = word_features(part(), decoding(), SAMPLES)
    assert table.shape == (4, len(FEATURES))
    assert column("lowest_log_probability", table) == pytest.approx(np.log([0.9, 0.5, 0.1, 0.9]))
    assert column("probability", table) == pytest.approx([0.9, 0.4, 0.05, 0.9])
    assert column("entropy", table) == pytest.approx([0, 1.5, 3.5, 5])
    assert column("margin", table) == pytest.approx(np.log([18, 2, 1 / 8, 9]))
    assert column("previous_log_probability", table)[1:] == column("lowest_log_probability", table)[:-1]
    assert column("sentence_probability", table) == pytest.approx([2.25 / 4] * 4)


def test_of_samples() -> None:
    table = word_features(part(), decoding(), SAMPLES)
    agreement = column("agreement", table)
    assert agreement[0] == 0.75 and agreement[3] == 1.0
    assert sum(agreement[1:3]) == 1.0  # each sample matches one of the two
    assert column("occurrence_logit", table)[1] == column("occurrence_logit", table)[2] == pytest.approx(np.log(9))
    same = [SampledText(TARGET.text, part().words, 4)]
    assert column("sentence_chrf", word_features(part(), decoding(), same)) == pytest.approx([100] * 4)
    assert set(column("sentence_agreement", word_features(part(), decoding(), same))) == {1.0}


def test_of_attention_and_form() -> None:
    table = word_features(part(), decoding(), SAMPLES)
    assert column("attention_entropy", table)[:2] == pytest.approx([0, 0], abs=1e-6)
    assert column("attention_peak", table)[:2] == pytest.approx([1, 1])
    assert column("source_pieces", table)[:2] == pytest.approx([0, np.log(2)])
    assert column("pieces", table) == pytest.approx(np.log([1, 2, 2, 1]))
    assert column("punctuation", table) == [0, 0, 0, 1] and column("repeated", table) == [0, 0, 1, 0]
    assert column("position", table) == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_a_damaged_model_has_finite_features() -> None:
    """Impossible tokens, and NaN."""
    none, unknown = np.full(7, -np.inf, np.float32), np.full(7, np.nan, np.float32)
    table = word_features(part(), decoding(log_probabilities=none), SAMPLES)
    assert set(column("lowest_log_probability", table)) == {MIN_LOG_PROBABILITY}
    broken = decoding(log_probabilities=unknown, entropies=unknown, weights=np.full((1, 1, 7, 6), np.nan, np.float32))
    assert np.isfinite(word_features(part(), broken, SAMPLES)).all()


def test_without_words_there_are_none() -> None:
    empty = TranslatedPart(SOURCE, Side("", [Span("", 0, 0)], None, [END]))
    assert word_features(empty, decoding(), SAMPLES).shape == (0, len(FEATURES))
