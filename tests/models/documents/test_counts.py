"""How telling words are, beside scikit-learn's naive Bayes, and never by a text's own label."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from regard.models.documents.counts import FOLDS, Counts, Folds
from regard.text.documents import DocumentBatch, Reader
from regard.text.vocabulary import learn_words

TEXTS = ["good film", "good good story", "bad film", "a bad bad story", "film", "story", "a good film", "nothing"] * 3
LABELS = [0, 0, 1, 1, 0, 1, 0, 1] * 3
READER = Reader(learn_words(TEXTS))
DOCUMENTS = [READER(text) for text in TEXTS]


def counted() -> Counts:
    counts = Counts(len(READER.vocabulary), 2)
    counts.count(DOCUMENTS, LABELS)
    return counts


def test_by_hand() -> None:
    result = counted()(DocumentBatch.of([READER("good film")], READER.spelling))
    assert result.shape == (1, 2, 4)
    # "good" is in 9 of 12 texts of the first label, and in none of the other; "good film" in 6
    expected = math.log(10 / 14) - math.log(1 / 14)
    assert result[0, 0, :2].tolist() == pytest.approx([expected, -expected])
    assert result[0, 1, 2].item() == pytest.approx(math.log(7 / 14) - math.log(1 / 14))


def test_beside_naive_bayes() -> None:
    """With two labels the sum of ratios over the words that are there is Bernoulli naive Bayes without those absent."""
    bayes = pytest.importorskip("sklearn.naive_bayes", reason="scikit-learn is not installed here").BernoulliNB(alpha=1)
    size = len(READER.vocabulary)
    table = np.zeros((len(TEXTS), size))
    for row, document in enumerate(DOCUMENTS):
        table[row, [piece.token for piece in document.pieces]] = 1
    bayes.fit(table, LABELS)
    telling = bayes.feature_log_prob_[0] - bayes.feature_log_prob_[1]
    result = counted().ratios(torch.arange(size)[None])[0, :, 0]
    assert np.allclose(result.numpy(), telling, atol=1e-5)


def test_a_training_text_is_not_told_its_label() -> None:
    whole = Counts(len(READER.vocabulary), 2)
    folds = Folds(whole, DOCUMENTS, LABELS)
    for mine, all_at_once in zip(whole.parameters(), counted().parameters(), strict=True):
        assert torch.equal(mine, all_at_once)
    row = 3
    source = DocumentBatch.of([DOCUMENTS[row]], READER.spelling).source
    others = Counts(len(READER.vocabulary), 2)
    remaining = [number for number in range(len(TEXTS)) if number % FOLDS != row % FOLDS]
    others.count([DOCUMENTS[number] for number in remaining], [LABELS[number] for number in remaining])
    assert torch.allclose(folds.ratios(Folds.of([row]), source), others.ratios(source), atol=1e-6)
    turned = [1 - label if number == row else label for number, label in enumerate(LABELS)]
    again = Folds(Counts(len(READER.vocabulary), 2), DOCUMENTS, turned)
    assert torch.equal(folds.ratios(Folds.of([row]), source), again.ratios(Folds.of([row]), source))


def test_counts_are_not_trained_but_kept() -> None:
    counts = counted()
    assert {name for name, _ in counts.named_parameters()} == {"words", "pairs", "texts"}
    assert not any(parameter.requires_grad for parameter in counts.parameters())
    assert len(Counts(10, 500).pairs) * 500 <= 2**20
