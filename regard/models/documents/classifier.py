"""Text classification: a learned query looks over the states of a text and says what matters (Yang et al. 2016).

    x_1 … x_S = words,   h = states(x),   a = softmax(score(u, h)),   c = Σ_j a_j h_j
    p(label) = softmax((W c + b) / T)

The states are the words themselves or what a convolution, an RNN or self-attention makes of them: document_states.py.
With several queries c is all that they found, side by side. T is 1 unless probabilities are asked for as calibrated.

Little data is judged better by several: each judge has words, states and queries of its own and learns by its own loss;
what they say together is the mean of their logits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast, get_args

import torch
from torch import Tensor, nn

from regard.core.checks import choices, share, whole_number
from regard.core.kernels.gpu.kernels import without_kernels
from regard.models.documents.counts import Counts
from regard.models.documents.levels import Flat, Hierarchical
from regard.models.documents.states import Kind, States
from regard.models.documents.words import Words
from regard.models.dropout import Dropout
from regard.models.transformer.layers import Looking, Shape
from regard.text.documents import DocumentBatch

COUNTED = 8.0
"""how much the counts of a label speak for it before anything is learned"""


@dataclass(frozen=True)
class ClassifierOptions:
    """What can be chosen."""

    kind: Literal["classifier"] = "classifier"
    states: str = "embeddings + convolution + counts"
    """what a query looks at: embeddings, convolution, rnn, attention, counts; joined by + they are several judges"""
    hierarchical: bool = False
    """words to sentences, sentences to the text"""
    width: int = 64
    """features of a word"""
    spelling: bool = True
    """words also by their letters"""
    neighbours: int = 32768
    """places for pairs of words side by side; 0: none"""
    positions: int = 24
    """so many first words are told apart by where they stand; 0: none"""
    hidden: int = 64
    """features of a convolution, and of each direction of an RNN"""
    layers: int = 1
    """of an RNN or of self-attention"""
    heads: int = 4
    feedforward: int = 128
    encoder: Looking = field(default_factory=Looking)
    """how self-attention looks: a text of thousands of words wants a pattern, as `window(64) | global(0)`"""
    queries: int = 1
    attention: int = 32
    """hidden features of the additive score"""
    dropout: float = 0.5
    """of words and states"""
    output_dropout: float = 0.3
    """of what the queries found"""
    left_out: float = 0.1
    """the share of words that are not looked at in training, and of each of their representations"""

    def __post_init__(self) -> None:
        for name in ("width", "hidden", "layers", "queries", "attention"):
            whole_number("model", name, getattr(self, name), least=1)
        for name in ("neighbours", "positions"):
            whole_number("model", name, getattr(self, name))
        for name in ("output_dropout", "left_out"):
            share(f"model.{name}", getattr(self, name))
        choices("model", self)
        assert self.judges and self.shape  # which check the rest

    @property
    def judges(self) -> list[Kind]:
        """What each looks at."""
        found = [each.strip() for each in self.states.split("+")]
        for each in found:
            if each not in get_args(Kind):
                raise ValueError(f"model: states: expected {', '.join(get_args(Kind))}, joined by +; got {each!r}")
        return cast(list[Kind], found)

    @property
    def shape(self) -> Shape:
        """Of the blocks of self-attention."""
        return Shape(self.width, self.heads, self.feedforward, rotary=True, dropout=self.dropout)


class Classified(NamedTuple):
    logits: Tensor
    """[B, C]"""
    each: Tensor
    """of each judge, [J, B, C]"""
    weights: Tensor | None
    """of the queries of all judges over the words, [B, J · Q, S], if asked for"""


class TextClassifier(nn.Module):
    def __init__(self, options: ClassifierOptions, vocabulary: int, runs: int, labels: int) -> None:
        """`vocabulary` words, `runs` of letters, `labels` to choose from."""
        super().__init__()
        self.options = options
        self.counts = Counts(vocabulary, labels) if "counts" in options.judges else None
        self.judges = nn.ModuleList(Judge(options, kind, vocabulary, runs, labels) for kind in options.judges)

    def forward(self, batch: DocumentBatch, weights: bool = False) -> Classified:
        ratios = None if self.counts is None else self.counts(batch)
        found = [judge(batch, ratios, weights) for judge in self.judges]
        each = torch.stack([logits for logits, _ in found])
        seen = torch.cat([looked for _, looked in found], 1) if weights else None
        return Classified(each.mean(0), each, seen)

    def recordable(self, device: torch.device) -> bool:
        """Does a loss on the device depend on what lies there alone, never asked for by the host? Sentences would have
        to be counted there."""
        if self.options.hierarchical or without_kernels(device) is not None:
            return False
        return all(judge.level.states.recordable(device) for judge in self.judges)  # type: ignore[operator, union-attr]

    def attentions(self, batch: DocumentBatch) -> Tensor | None:
        """How the words look at one another, [B, layers of all judges, heads, S, S]; None if none lets them."""
        found = [layer for judge in self.judges for layer in judge.attentions(batch)]  # type: ignore[operator]
        return torch.stack(found, 1) if found else None


class Judge(nn.Module):
    """batch, ratios [B, S, 2C] → logits [B, C], and what was looked at [B, Q, S] if asked for"""

    def __init__(self, options: ClassifierOptions, kind: Kind, vocabulary: int, runs: int, labels: int) -> None:
        super().__init__()
        self.left_out = options.left_out
        self.words = None if kind == "counts" else words(options, vocabulary, runs)
        width = 2 * labels if kind == "counts" else options.width
        states = States(kind, width, options.hidden, options.shape, options.layers, options.encoder)
        self.level: Flat | Hierarchical = (
            Hierarchical(states, options.hidden, options.dropout, options.queries, options.attention)
            if options.hierarchical
            else Flat(states, options.queries, options.attention)
        )
        self.dropout = Dropout(options.output_dropout)
        self.output = nn.Linear(self.level.features, labels)
        if kind == "counts" and not options.hierarchical:
            with torch.no_grad():  # the counts of a label speak for it: of words, and of pairs, found by each query
                self.output.weight.copy_(COUNTED / options.queries * torch.eye(labels).repeat(1, 2 * options.queries))

    def forward(
        self, batch: DocumentBatch, ratios: Tensor | None, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        given = ratios if self.words is None else self.words(batch)  # [B, S, D]
        found = self.level(given, batch.lengths, batch.sentences, self._shown(batch.real), weights)
        return self.output(self.dropout(found.context)), found.weights

    def attentions(self, batch: DocumentBatch) -> list[Tensor]:
        """Of each layer [B, heads, S, S], where words look at one another over the whole text."""
        if self.words is None or not isinstance(self.level, Flat) or self.level.states.kind != "attention":
            return []
        return self.level.attentions(self.words(batch), batch.lengths)

    def _shown(self, real: Tensor) -> Tensor:
        """bool [B, S]: the words that may be looked at; in training some are not, but never none."""
        if not self.training or not self.left_out:
            return real
        shown = real & (torch.rand(real.shape, device=real.device) >= self.left_out)
        shown[:, 0] |= ~shown.any(1)
        return shown


def words(options: ClassifierOptions, vocabulary: int, runs: int) -> Words:
    return Words(
        vocabulary,
        runs if options.spelling else 0,
        options.neighbours,
        options.positions,
        options.width,
        options.left_out,
        options.dropout,
    )
