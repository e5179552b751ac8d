"""TF-IDF with logistic regression, as a member of the ensemble: each n-gram has a weight for each label.

    x_f = (1 + log n_f) · idf_f,   idf_f = log((1 + N) / (1 + N_f)) + 1,   logits = Σ_f W_f x_f + b

n_f is how often the text contains the n-gram f, N_f the number of training texts that contain it, of N. There are three
kinds of n-grams: words, pairs of neighbouring words, and the character n-grams of words. Each kind is divided by its L2
norm, so that the many character n-grams of a text do not outweigh its words. The regression is convex and is fitted
before training; no gradient changes it.

Its prior is that of naive Bayes: an n-gram that is more frequent with some labels than with others is regularized less.
W_fc is a sum of two weights with the same prior, one of them multiplied by the log-ratio r_fc (Wang and Manning 2012):

    W_fc = u_fc + r_fc v_fc  ~  N(0, 1 + r_fc²),      r_fc = log (n_fc + α) / Σ_f (n_fc + α) − the same of other labels

n_fc is the sum of x_f over the training texts of label c.

The n-grams at position j contribute s_j to the logits, and the weight of a word is its part of all contributions (the
norm-based weights of Kobayashi et al. 2020):

    s_j = Σ_{f at j} W_f x_f / n_f,   a_j = ‖s_j‖ / Σ_k ‖s_k‖,   logits = Σ_j s_j + b

B texts, S words, C labels, F n-grams of training texts, D distinct n-grams of all texts of a batch, M occurrences.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.models.documents.logistic import SparseProduct, SparseRows, logistic_regression
from regard.models.documents.words import pair_buckets
from regard.text.documents import DocumentBatch
from regard.text.vocabulary import PAD

MAX_PAIRS_SIZE, MAX_KIND_SIZE = 2**20, 2**21
"""the most numbers in the table of pairs of words, and in that of any kind; n-grams beyond it share rows by a hash"""
MIN_TEXTS = 2  # n-grams of fewer training texts are left out
C = 5.0  # the inverse strength of regularization, as in scikit-learn
FURTHER_C = 0.5  # the same for a regression that is fitted further
ALPHA = 0.1  # added to the counts of an n-gram
KINDS = 3  # words, pairs, character n-grams
EPSILON = 1e-12


class Ngrams(NamedTuple):
    """The n-grams of a batch: D distinct ones of its texts, and where each of their M occurrences is."""

    rows: Tensor  # [D]: the text, ascending
    features: Tensor  # [D]
    counts: Tensor  # [D]: how often the text contains it
    indices: Tensor  # [M]: the occurrence is one of this n-gram
    positions: Tensor  # [M]: the position of its last word


class Tfidf(nn.Module):
    """Maps a batch to the contributions [B, S, C] of its words to the logits."""

    def __init__(self, vocabulary: int, runs: int, labels: int) -> None:
        """`vocabulary`, `runs` and `labels` are the numbers of words, of character n-grams and of labels."""
        super().__init__()
        limit = max(1, MAX_KIND_SIZE // labels)
        self._sizes = (min(vocabulary, limit), max(1, MAX_PAIRS_SIZE // labels), min(runs, limit))
        self._starts = (self._sizes[0], self._sizes[0] + self._sizes[1])  # where pairs and character n-grams begin
        size = sum(self._sizes)
        self.weight = nn.Parameter(torch.zeros(size, labels), requires_grad=False)
        self.idf = nn.Parameter(torch.zeros(size), requires_grad=False)

    def forward(self, batch: DocumentBatch) -> Tensor:
        ngrams, (texts, size) = self.ngrams(batch), batch.source.shape
        values = self.values(ngrams.rows, ngrams.features, ngrams.counts, texts) / ngrams.counts
        places, order = (ngrams.rows[ngrams.indices] * size + ngrams.positions).sort(stable=True)
        indices = ngrams.indices[order]
        by_place = SparseRows(places, ngrams.features[indices], values[indices], (texts * size, len(self.weight)))
        return SparseProduct(by_place)(self.weight).view(texts, size, -1)

    def ngrams(self, batch: DocumentBatch) -> Ngrams:
        """Return the n-grams of a batch."""
        rows, positions = (batch.source != PAD).nonzero(as_tuple=True)
        spellings = batch.ngrams[batch.word_indices[rows, positions]]  # [words of all texts, G]
        owners, columns = spellings.nonzero(as_tuple=True)
        words = torch.arange(len(rows), device=rows.device)
        features = (
            batch.source[rows, positions] % self._sizes[0],
            pair_buckets(batch.source, self._sizes[1])[rows, positions] + self._starts[0],
            spellings[owners, columns] % self._sizes[2] + self._starts[1],
        )
        owners = torch.cat([words, words, owners])
        keys = rows[owners] * len(self.idf) + torch.cat(features)  # (text, n-gram) as one number
        distinct, indices, counts = keys.unique(return_inverse=True, return_counts=True)
        return Ngrams(distinct // len(self.idf), distinct % len(self.idf), counts, indices, positions[owners])

    def values(self, rows: Tensor, features: Tensor, counts: Tensor, texts: int) -> Tensor:
        """Return x [D], normalized: each kind of n-grams of a text has the same L2 norm, and the text the norm 1."""
        values = (1 + counts.to(self.idf.dtype).log()) * self.idf[features]
        groups = rows * KINDS + sum((features >= start).long() for start in self._starts)
        squares = values.new_zeros(texts * KINDS).index_add(0, groups, values.square()).view(texts, KINDS)
        norms = (squares * (squares > 0).sum(1, keepdim=True)).sqrt().clamp(min=EPSILON).flatten()
        return values / norms[groups]


class TfidfMember(nn.Module):
    """A member of the ensemble: maps a batch to logits [B, C] and weights [B, 1, S]."""

    def __init__(self, vocabulary: int, runs: int, labels: int) -> None:
        super().__init__()
        self.tfidf = Tfidf(vocabulary, runs, labels)
        self.bias = nn.Parameter(torch.zeros(labels), requires_grad=False)

    def forward(self, batch: DocumentBatch, weights: bool = False) -> tuple[Tensor, Tensor | None]:
        states = self.tfidf(batch)  # [B, S, C]
        return states.sum(1) + self.bias, norm_weights(states, batch.attention_mask)[:, None] if weights else None

    @torch.no_grad()
    def fit(self, batches: Iterable[DocumentBatch], targets: Tensor, weights: Tensor, further: bool = False) -> None:
        """Count n-grams and fit the regression to label distributions [N, C] of texts with weights [N].

        `further`: n-grams that have an idf keep it, and the regression is pulled towards what it was.
        """
        tfidf, parts, begin = self.tfidf, [], 0
        for batch in batches:
            ngrams = tfidf.ngrams(batch)
            parts.append((ngrams.rows + begin, ngrams.features, ngrams.counts))
            begin += len(batch.source)
        rows, features, counts = (torch.cat(each) for each in zip(*parts, strict=True))
        texts = torch.bincount(features, minlength=len(tfidf.idf))  # N_f
        idf = ((1 + begin) / (1 + texts)).log() + 1
        idf = torch.where(texts >= MIN_TEXTS, idf, 0)
        tfidf.idf.copy_(torch.where(tfidf.idf > 0, tfidf.idf, idf) if further else idf)
        used = tfidf.idf[features] > 0
        rows, features, counts = rows[used], features[used], counts[used]
        values = tfidf.values(rows, features, counts, begin)
        distinct, columns = features.unique(return_inverse=True)
        matrix = SparseRows(rows, columns, values, (begin, max(1, len(distinct))))  # 1: torch has no bags of nothing
        before = None
        if further:
            center = tfidf.weight.new_zeros(matrix.shape[1], len(self.bias))
            center[: len(distinct)] = tfidf.weight[distinct]
            before = center, self.bias.detach()
        scale = (1 + log_ratios(matrix, targets).square()).sqrt()
        table, bias = logistic_regression(matrix, targets, weights, FURTHER_C if further else C, scale, before)
        tfidf.weight[distinct] = table[: len(distinct)]
        self.bias.copy_(bias)


def log_ratios(features: SparseRows, targets: Tensor) -> Tensor:
    """Return r [F, C] of features [N, F] and label distributions [N, C]."""
    counts = SparseProduct(features.transposed)(targets) + ALPHA
    others = (counts.sum(1, keepdim=True) - counts).clamp(min=ALPHA)
    return (counts / counts.sum(0)).log() - (others / others.sum(0)).log()


def norm_weights(states: Tensor, real: Tensor) -> Tensor:
    """Return weights [B, S] proportional to the norms of contributions [B, S, C]; equal ones if all are 0."""
    norms = states.norm(dim=-1)
    total = norms.sum(-1, keepdim=True)
    equal = real / real.sum(-1, keepdim=True)
    return torch.where(total > 0, norms / total.clamp(min=EPSILON), equal)
