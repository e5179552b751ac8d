"""TF-IDF with logistic regression beside scikit-learn's, and how its weights explain its logits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from regard.models.documents import tfidf as module
from regard.models.documents.classifier import ClassifierOptions, TextClassifier
from regard.models.documents.logistic import SparseProduct, SparseRows, logistic_regression
from regard.models.documents.tfidf import ALPHA, TfidfMember, log_ratios
from regard.text.documents import DocumentBatch, Reader
from regard.text.spelling import character_ngrams
from regard.text.vocabulary import learn_words

TEXTS = [
    "good film",
    "good good story",
    "bad films",
    "a bad bad story",
    "film",
    "stories",
    "a good film",
    "nothing",
] * 3
LABELS = [0, 0, 1, 1, 0, 2, 0, 1] * 3
READER = Reader(learn_words(TEXTS))


def batch(texts: list[str]) -> DocumentBatch:
    return DocumentBatch.of([READER(text) for text in texts], READER.spelling)


def fitted(targets: torch.Tensor | None = None, weights: torch.Tensor | None = None) -> TfidfMember:
    member = TfidfMember(len(READER.vocabulary), len(READER.spelling), 3)
    hard = functional.one_hot(torch.tensor(LABELS), 3).float()
    parts = [batch(TEXTS[first : first + 5]) for first in range(0, len(TEXTS), 5)]
    member.fit(parts, hard if targets is None else targets, torch.ones(len(TEXTS)) if weights is None else weights)
    return member


def test_beside_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without log-ratios, features and regression are scikit-learn's, with a vectorizer for each kind of n-grams."""
    monkeypatch.setattr(module, "log_ratios", lambda matrix, targets: torch.zeros(matrix.shape[1], targets.shape[1]))
    text = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is not installed here")
    linear = pytest.importorskip("sklearn.linear_model")
    known = {gram for word in set(" ".join(TEXTS).split()) for gram in character_ngrams(word)}
    known = {gram for gram in known if sum(gram in character_ngrams(word) for word in set(" ".join(TEXTS).split())) > 1}
    analyzers = (
        str.split,
        lambda line: list(zip(["", *line.split()], line.split(), strict=False)),
        lambda line: [gram for word in line.split() for gram in character_ngrams(word) if gram in known],
    )
    parts = [text.TfidfVectorizer(analyzer=each, sublinear_tf=True, min_df=2).fit(TEXTS) for each in analyzers]

    def features(texts: list[str]) -> np.ndarray:
        joined = np.hstack([part.transform(texts).toarray() for part in parts])
        return joined / np.maximum(np.linalg.norm(joined, axis=1, keepdims=True), 1e-12)

    regression = linear.LogisticRegression(C=module.C, tol=1e-8, max_iter=10_000).fit(features(TEXTS), LABELS)
    others = ["a good story", "bad bad bad film", "unknown words", "film goodness"]
    expected = regression.predict_log_proba(features(others))
    logits, _ = fitted()(batch(others))
    assert np.allclose(logits.log_softmax(-1).numpy(), expected, atol=5e-3)


@pytest.mark.parametrize("labels", [2, 3])
def test_log_ratios_beside_naive_bayes(labels: int) -> None:
    """They are the differences of scikit-learn's log-probabilities of the features of a label and of the others."""
    bayes = pytest.importorskip("sklearn.naive_bayes", reason="scikit-learn is not installed here")
    torch.manual_seed(1)
    dense, gold = torch.rand(30, 7) * (torch.rand(30, 7) < 0.5), torch.arange(30) % labels
    rows, columns = dense.nonzero(as_tuple=True)
    ratios = log_ratios(SparseRows(rows, columns, dense[rows, columns], (30, 7)), functional.one_hot(gold).float())
    for label in range(labels):
        own, others = (
            bayes.MultinomialNB(alpha=alpha).fit(dense.numpy(), mask.numpy()).feature_log_prob_[1]
            for alpha, mask in ((ALPHA, gold == label), ((labels - 1) * ALPHA, gold != label))
        )
        assert np.allclose(ratios[:, label].numpy(), own - others, atol=1e-5)


def test_ngrams_of_one_label_are_regularized_less() -> None:
    """The weights of a word that occurs with one label alone are larger than those of a word of several labels."""
    table = fitted().tfidf.weight
    good, story = (READER.vocabulary.encode(word)[0] for word in ("good", "story"))
    assert table[good].abs().max() > 2 * table[story].abs().max()


def test_contributions_add_up_to_the_logits() -> None:
    member, given = fitted(), batch(["a good film", "bad", ""])
    logits, weights = member(given, weights=True)
    states = member.tfidf(given)
    assert weights is not None and weights.shape == (3, 1, 3)
    assert torch.allclose(logits, states.sum(1) + member.bias)
    assert torch.allclose(weights.sum(-1), torch.ones(3, 1))
    norms = states[0].norm(dim=-1)
    assert torch.allclose(weights[0, 0], norms / norms.sum())
    assert weights[1, 0].tolist() == pytest.approx([1, 0, 0])
    assert weights[2, 0].tolist() == pytest.approx([1, 0, 0]) and torch.allclose(logits[2], member.bias)


def test_the_word_that_decides_has_the_highest_weight() -> None:
    _, weights = fitted()(batch(["a bad story"]), weights=True)
    assert weights is not None and weights.argmax() == 1


def test_a_text_is_the_same_alone_and_among_longer_ones() -> None:
    member, texts = fitted(), ["good film", "a bad bad story", "", "unknown"]
    together = member(batch(texts))[0]
    assert torch.allclose(torch.cat([member(batch([text]))[0] for text in texts]), together, atol=1e-6)


def test_an_ngram_of_one_text_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_TEXTS", 4)  # every word is in at least 3 texts
    token = READER.vocabulary.encode("nothing")[0]
    assert fitted().tfidf.idf[token] == 0
    assert fitted().tfidf.idf[READER.vocabulary.encode("film")[0]] > 0


def test_texts_without_a_common_ngram() -> None:
    """Then only the frequencies of the labels are left."""
    texts = ["one", "two", "three"]
    reader = Reader(learn_words(texts))
    given = DocumentBatch.of([reader(text) for text in texts], reader.spelling)
    member = TfidfMember(len(reader.vocabulary), len(reader.spelling), 2)
    member.fit([given], torch.tensor([[1.0, 0], [1, 0], [0, 1]]), torch.ones(3))
    logits, weights = member(given, weights=True)
    assert torch.allclose(logits.softmax(-1), torch.tensor([2 / 3, 1 / 3]).expand(3, 2), atol=1e-3)
    assert weights is not None and torch.equal(weights.sum(-1), torch.ones(3, 1))


def test_tables_of_many_labels_are_bounded() -> None:
    member = TfidfMember(50_000, 90_000, 1_000)
    assert member.tfidf.weight.numel() < 2 * module.MAX_KIND_SIZE + module.MAX_PAIRS_SIZE + 1
    assert member(batch(TEXTS))[0].shape == (24, 1_000)


def test_soft_labels_and_weights_of_texts() -> None:
    hard = functional.one_hot(torch.tensor(LABELS), 3).float()
    soft = torch.lerp(hard, torch.full_like(hard, 1 / 3), 0.9)
    given = batch(["good film"])
    sure, unsure = (fitted(each)(given)[0].softmax(-1).max() for each in (hard, soft))
    assert unsure < 0.6 < sure
    alone = torch.tensor([float(label == 1) for label in LABELS])
    assert fitted(weights=alone)(given)[0].argmax() == 1


@pytest.mark.parametrize("scaled", [False, True])
def test_regression_finds_the_minimum(scaled: bool) -> None:
    torch.manual_seed(1)
    scale = 0.5 + 2 * torch.rand(6, 3) if scaled else torch.ones(6, 3)
    dense = torch.randn(40, 6) * (torch.rand(40, 6) < 0.5)
    rows, columns = dense.nonzero(as_tuple=True)
    matrix = SparseRows(rows, columns, dense[rows, columns], (40, 6))
    assert torch.allclose(SparseProduct(matrix)(torch.eye(6)), dense)
    targets, weights = torch.softmax(torch.randn(40, 3), -1), torch.rand(40)
    found = logistic_regression(matrix, targets, weights, 2.0, scale if scaled else None)
    table, bias = (each.detach().requires_grad_() for each in found)
    log_probs = (dense @ table + bias).log_softmax(-1)
    loss = -(weights[:, None] * targets * log_probs).sum() + (table / scale).square().sum() / (2 * 2.0)
    gradients = torch.autograd.grad(loss, (table, bias))
    assert all(each.abs().max() < 1e-2 for each in gradients)


def test_a_member_of_the_ensemble_that_no_gradient_changes() -> None:
    options = ClassifierOptions(states="tfidf + embeddings", width=8, neighbours=16, queries=2)
    model = TextClassifier(options, len(READER.vocabulary), len(READER.spelling), 3).eval()
    assert model.tfidf is not None and not any(each.requires_grad for each in model.tfidf.parameters())
    model.tfidf = fitted()
    given = batch(["good film", "a bad bad story"])
    result = model(given, weights=True)
    assert result.each.shape == (2, 2, 3) and result.weights is not None and result.weights.shape == (2, 3, 4)
    assert torch.equal(result.each[1], model.tfidf(given)[0])
    assert torch.equal(model.trained_logits(given), result.each[:1])


def test_refusals() -> None:
    with pytest.raises(ValueError, match="expected tfidf once at most, beside another; got 'tfidf'"):
        ClassifierOptions(states="tfidf")
    with pytest.raises(ValueError, match="expected tfidf once at most"):
        ClassifierOptions(states="tfidf + rnn + tfidf")


def test_fitted_further_it_is_pulled_towards_what_it_was() -> None:
    member, before = fitted(), fitted()
    known = before.tfidf.idf > 0
    texts = ["good film"] * 6
    targets = functional.one_hot(torch.tensor([1] * 6), 3).float()
    member.fit([batch(texts)], targets, torch.ones(6), further=True)
    assert torch.equal(member.tfidf.idf[known], before.tfidf.idf[known]), "n-grams keep their idf"
    old, new = (each(batch(["good film", "stories"]))[0].softmax(-1) for each in (before, member))
    assert new[0, 1] > old[0, 1] + 0.2, "the new label of the text becomes more probable"
    change = (new - old).abs().amax(-1)
    assert change[1] < change[0] / 2 and new[1].argmax() == old[1].argmax(), "other texts hardly change"


def test_a_regression_without_new_evidence_stays() -> None:
    rows = SparseRows(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.ones(2), (2, 2))
    before = torch.tensor([[3.0, -3.0], [-2.0, 2.0]]), torch.tensor([0.5, -0.5])
    probabilities = (before[0] + before[1]).softmax(-1)
    table, bias = logistic_regression(rows, probabilities, torch.ones(2), 5.0, before=before)
    torch.testing.assert_close((table, bias), before)
