"""Text classification: a learned query attends to the states of a text (Yang et al. 2016).

    x_1 … x_S = words,   h = states(x),   a = softmax(score(u, h)),   c = Σ_j a_j h_j
    p(label) = softmax((W c + b) / T)

The states are the embeddings themselves or the outputs of a convolution, an RNN or self-attention: states.py. With
several queries, c is the concatenation of their contexts. T is 1 unless calibrated probabilities are requested.

A classifier is an ensemble, which is better on little data: each member ("judge") has embeddings, states and queries of
its own and is trained by its own loss; the ensemble's logits are the mean of theirs, or a weighted sum. The member
`tfidf` has no query. It is a linear model of n-grams, fitted before training; its weights are the words' parts of its
logits: tfidf.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast, get_args

import torch
from torch import Tensor, nn

from regard.core.checks import choices, fraction, whole_number
from regard.core.kernels.gpu.kernels import why_no_triton
from regard.models.documents.counts import Counts
from regard.models.documents.levels import FlatLevel, Hierarchical
from regard.models.documents.states import Kind, States
from regard.models.documents.tfidf import TfidfMember
from regard.models.documents.words import WordEmbedding
from regard.models.dropout import Dropout
from regard.models.training_sizes import TrainingSizes
from regard.models.transformer.layers import AttentionOptions, Shape
from regard.runtime.device_cache import device_constant
from regard.text.documents import DocumentBatch

TFIDF = "tfidf"  # in `states`: the linear model of n-grams
INITIAL_COUNT_WEIGHT = 8.0  # the initial weight of a label's count ratios in its logit


@dataclass(frozen=True)
class ClassifierOptions(TrainingSizes):
    """The options of a text classifier."""

    kind: Literal["classifier"] = "classifier"
    states: str = "embeddings + convolution + tfidf"
    """what a query attends to: embeddings, convolution, rnn, attention or counts; an ensemble: several, joined by +,
    with or without tfidf, a linear model of n-grams"""
    member_weights: str = ""
    """the weights of the members in the logits, in the order of `states`, such as 0.5 + 0.2 + 0.3; empty: equal"""
    hierarchical: bool = False
    """pool words to sentences, then sentences to the text"""
    width: int = 64
    """features of a word"""
    spelling: bool = True
    """also embed words by their letters"""
    neighbours: int = 32768
    """hash buckets for pairs of neighbouring words; 0: none"""
    positions: int = 24
    """the number of positions, from the first word on, that have a vector of their own; 0: none"""
    hidden: int = 64
    """features of a convolution, and of each direction of an RNN"""
    layers: int = 1
    """of an RNN or of self-attention"""
    heads: int = 4
    feedforward: int = 128
    encoder: AttentionOptions = field(default_factory=AttentionOptions)
    """self-attention; texts of thousands of words need a sparse pattern, such as `window(64) | global(0)`"""
    queries: int = 1
    attention: int = 32
    """hidden features of the additive score"""
    dropout: float = 0.5
    """of words and states"""
    output_dropout: float = 0.3
    """of the contexts of the queries"""
    left_out: float = 0.1
    """the fraction of words that are masked in training, and of each of their representations that is left out"""

    def __post_init__(self) -> None:
        for name in ("width", "hidden", "layers", "queries", "attention"):
            whole_number("model", name, getattr(self, name), minimum=1)
        for name in ("neighbours", "positions"):
            whole_number("model", name, getattr(self, name))
        for name in ("output_dropout", "left_out"):
            fraction(f"model.{name}", getattr(self, name))
        choices("model", self)
        assert self.judges and self.shape and self.weights != []  # which check the rest

    @property
    def judges(self) -> list[Kind]:
        """The kind of states of each trained member of the ensemble."""
        trained = [kind for kind in self._kinds if kind != TFIDF]
        for kind in trained:
            if kind not in get_args(Kind):
                expected = ", ".join((*get_args(Kind), TFIDF))
                raise ValueError(f"model: states: expected {expected}, joined by +; got {kind!r}")
        if not trained or len(self._kinds) - len(trained) > 1:
            raise ValueError(f"model: states: expected {TFIDF} once at most, beside another; got {self.states!r}")
        return cast(list[Kind], trained)

    @property
    def has_tfidf(self) -> bool:
        return TFIDF in self._kinds

    @property
    def members(self) -> list[str]:
        """The kind of each member in the order of the model's: the trained ones, then `tfidf` if it is one."""
        return [*self.judges, *([TFIDF] if self.has_tfidf else [])]

    @property
    def _kinds(self) -> list[str]:
        return [kind.strip() for kind in self.states.split("+")]

    @property
    def weights(self) -> list[float] | None:
        """The weights of the members, `tfidf` last as in the model; None: the logits are the mean."""
        if not self.member_weights:
            return None
        try:
            weights = [float(text) for text in self.member_weights.split("+")]
        except ValueError:
            weights = []
        expected = f"{len(self._kinds)} numbers of at least 0, one for each member, not all of them 0, joined by +"
        if len(weights) != len(self._kinds) or not any(weights) or not all(0 <= w < float("inf") for w in weights):
            raise ValueError(f"model: member_weights: expected {expected}; got {self.member_weights!r}")
        by_kind = list(zip(self._kinds, weights, strict=True))
        return [w for kind, w in by_kind if kind != TFIDF] + [w for kind, w in by_kind if kind == TFIDF]

    @property
    def shape(self) -> Shape:
        """The sizes and options of the blocks of self-attention."""
        return Shape(self.width, self.heads, self.feedforward, rotary=True, dropout=self.dropout)


class TextClassifierOutput(NamedTuple):
    """The output of a text classifier: B texts, C labels, J members of the ensemble, Q queries each, S words.

    The last member is `tfidf`, if there is one; its weights are those of one query.
    """

    logits: Tensor  # [B, C]
    each: Tensor  # the logits of each member of the ensemble, [J, B, C]
    weights: Tensor | None  # the weights of all queries over the words, [B, J · Q, S], if requested


class TextClassifier(nn.Module):
    """An ensemble of classifiers; its logits are the mean or the weighted sum of theirs."""

    def __init__(self, options: ClassifierOptions, vocabulary: int, runs: int, labels: int) -> None:
        """`vocabulary`, `runs` and `labels` are the numbers of words, of letter n-grams and of labels."""
        super().__init__()
        self.options = options
        self.counts = Counts(vocabulary, labels) if "counts" in options.judges else None
        self.judges = nn.ModuleList(Judge(options, kind, vocabulary, runs, labels) for kind in options.judges)
        self.tfidf = TfidfMember(vocabulary, runs, labels) if options.has_tfidf else None

    def forward(self, batch: DocumentBatch, weights: bool = False) -> TextClassifierOutput:
        outputs = self._judged(batch, weights)
        if self.tfidf is not None:
            outputs.append(self.tfidf(batch, weights))
        each = torch.stack([logits for logits, _ in outputs])
        attention = torch.cat([w for _, w in outputs if w is not None], 1) if weights else None
        by_member = self.options.weights
        if by_member is None:
            return TextClassifierOutput(each.mean(0), each, attention)
        logits = torch.tensordot(device_constant(tuple(by_member), each.dtype, each.device), each, 1)
        return TextClassifierOutput(logits, each, attention)

    def trained_logits(self, batch: DocumentBatch) -> Tensor:
        """Return the logits of the members that gradients train, [J, B, C]: all but `tfidf`."""
        return torch.stack([logits for logits, _ in self._judged(batch, weights=False)])

    def _judged(self, batch: DocumentBatch, weights: bool) -> list[tuple[Tensor, Tensor | None]]:
        """Return the logits [B, C] of each trained member, and its weights [B, Q, S] if requested."""
        ratios = None if self.counts is None else self.counts(batch)
        return [judge(batch, ratios, weights) for judge in self.judges]

    def can_capture(self, device: torch.device) -> bool:
        """Can a CUDA graph capture an update, because nothing in it synchronizes with the host? Hierarchical pooling
        does: it counts the sentences."""
        if self.options.hierarchical or why_no_triton(device) is not None:
            return False
        return all(judge.level.states.can_capture(device) for judge in self.judges)  # type: ignore[operator, union-attr]

    def attentions(self, batch: DocumentBatch) -> Tensor | None:
        """Return the self-attention weights [B, layers of all judges, heads, S, S]; None without self-attention."""
        layers = [layer for judge in self.judges for layer in judge.attentions(batch)]  # type: ignore[operator]
        return torch.stack(layers, 1) if layers else None


class Judge(nn.Module):
    """A member of the ensemble: maps a batch and count ratios [B, S, 2C] to logits [B, C] and weights [B, Q, S]."""

    def __init__(self, options: ClassifierOptions, kind: Kind, vocabulary: int, runs: int, labels: int) -> None:
        super().__init__()
        self.left_out = options.left_out
        self.words = None
        if kind != "counts":
            sizes = (runs if options.spelling else 0, options.neighbours, options.positions, options.width)
            self.words = WordEmbedding(vocabulary, *sizes, options.left_out, options.dropout)
        width = 2 * labels if kind == "counts" else options.width
        states = States(kind, width, options.hidden, options.shape, options.layers, options.encoder)
        self.level: FlatLevel | Hierarchical = (
            Hierarchical(states, options.hidden, options.dropout, options.queries, options.attention)
            if options.hierarchical
            else FlatLevel(states, options.queries, options.attention)
        )
        self.dropout = Dropout(options.output_dropout)
        self.output = nn.Linear(self.level.features, labels)
        if kind == "counts" and not options.hierarchical:
            with torch.no_grad():  # the logit of a label begins as the sum of its ratios, of words and of pairs
                share = INITIAL_COUNT_WEIGHT / options.queries
                self.output.weight.copy_(share * torch.eye(labels).repeat(1, 2 * options.queries))

    def forward(
        self, batch: DocumentBatch, ratios: Tensor | None, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        inputs = ratios if self.words is None else self.words(batch)  # [B, S, D]
        visible = self._visible(batch.attention_mask)
        context, query_weights = self.level(inputs, batch.lengths, batch.sentences, visible, weights)
        return self.output(self.dropout(context)), query_weights

    def attentions(self, batch: DocumentBatch) -> list[Tensor]:
        """Return the self-attention weights of each layer [B, heads, S, S]; [] without self-attention over the text."""
        if self.words is None or not isinstance(self.level, FlatLevel) or self.level.states.kind != "attention":
            return []
        return self.level.attentions(self.words(batch), batch.lengths)

    def _visible(self, real: Tensor) -> Tensor:
        """Return a mask [B, S] of the words to attend to; in training some are left out, but never all of a text."""
        if not self.training or not self.left_out:
            return real
        visible = real & (torch.rand(real.shape, device=real.device) >= self.left_out)
        visible[:, 0] |= ~visible.any(1)
        return visible
