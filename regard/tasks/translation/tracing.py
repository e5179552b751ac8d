"""Traces of a translator: from hypotheses, or from forced decoding, to what they attended to."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from regard.config.folder import Vocabularies
from regard.look.table import BLANK
from regard.look.trace import AttentionWeights, Candidate, Matrix, Side, Step, Trace
from regard.look.words import Span
from regard.search.distinct import Wording
from regard.search.force_decode import ForcedDecoding, force_decode
from regard.search.hypothesis import DecoderModel, Hypothesis
from regard.text.batches import by_length, padded
from regard.text.normal import tidy
from regard.text.respelling import respelled
from regard.text.vocabulary import END, WORD_BEGINS, Vocabulary

TRACED_FACTS = ("languages", "data", "parameters", "seed", "minutes", "scores", "versions")
"""entries of the model's card that a trace repeats"""
BATCH = 64


class Tracer:
    """Builds the traces of one model."""

    def __init__(self, vocabularies: Vocabularies, card: dict[str, Any]) -> None:
        self._vocabularies = vocabularies
        self._model = traced_facts(card)
        self._languages: Sequence[str | None] = card.get("languages") or (None, None)

    def source(self, text: str) -> Side:
        """Return the source side of a tidied text, ending with the end token. Its tokens are those of the text as the
        vocabulary knows it best; text and spans are those of the original."""
        spelling = respelled(self._vocabularies.source, text)
        return _encoded(self._vocabularies.source, text, self._languages[0], spelling)

    def encoded_target(self, text: str) -> Side:
        """Return the target side of a tidied text, ending with the end token."""
        return _encoded(self._vocabularies.target, text, self._languages[1])

    def target(self, tokens: Sequence[int]) -> Side:
        """Return the target side of generated tokens, with the end token if they end with it."""
        finished = tokens[-1:] == [END]
        text_tokens = tokens[:-1] if finished else tokens
        text = self._vocabularies.target.decode(text_tokens)
        pieces = spans(self._vocabularies.target, text_tokens, text)
        if finished:
            pieces.append(Span("", len(text), len(text)))
        return Side(text, pieces, self._languages[1], tokens)

    def trace(
        self,
        source: Side,
        target: Side,
        weights: Matrix,
        decoding: ForcedDecoding | None = None,
        candidates: Sequence[Candidate] = (),
    ) -> Trace:
        """Return a trace with the cross-attention `weights` [layers, heads, target pieces, source pieces]; from
        `decoding` it also gets the probabilities of each step and the self-attention."""
        steps = [] if decoding is None else self._steps(decoding, target.tokens)
        attentions = [AttentionWeights("cross", np.asarray(weights, np.float32))]
        if decoding is not None:
            attentions += [AttentionWeights(name, values) for name, values in decoding.self_attention.items()]
        return Trace(source, target, attentions, steps, candidates, self._model)

    def trace_of(
        self,
        source: Side,
        hypothesis: Hypothesis,
        decoding: ForcedDecoding | None = None,
        candidates: Sequence[Candidate] = (),
    ) -> Trace:
        """Return the trace of a hypothesis."""
        return self.trace(source, self.target(hypothesis.output_tokens), hypothesis.weights, decoding, candidates)

    def force_decode(
        self, model: DecoderModel, sources: Sequence[str], targets: Sequence[str], device: torch.device
    ) -> list[Trace]:
        """Return the traces of given targets, by forced decoding."""
        source_sides = [self.source(tidy(text)) for text in sources]
        target_sides = [self.encoded_target(tidy(text)) for text in targets]
        traces: dict[int, Trace] = {}
        for rows in by_length([side.tokens for side in source_sides], BATCH):
            batch = padded([source_sides[row].tokens for row in rows]).to(device)
            lengths = torch.tensor([len(source_sides[row].tokens) for row in rows])
            decoded = force_decode(model, batch, lengths, [target_sides[row].tokens for row in rows])
            for row, decoding in zip(rows, decoded, strict=True):
                source, target = source_sides[row], target_sides[row]
                total = float(decoding.log_probabilities.sum(dtype=np.float64))
                candidate = Candidate(target.text, total / len(target.tokens), total)
                traces[row] = self.trace(source, target, decoding.weights, decoding, [candidate])
        return [traces[row] for row in range(len(sources))]

    def _steps(self, decoding: ForcedDecoding, tokens: Sequence[int]) -> list[Step]:
        columns = (decoding.log_probabilities, decoding.top_tokens, decoding.top_probabilities)
        steps = []
        for token, log_probability, top_tokens, top_probabilities in zip(
            tokens, *(column.tolist() for column in columns), strict=True
        ):
            others = [
                (self.token_text(other), probability)
                for other, probability in zip(top_tokens, top_probabilities, strict=True)
                if other != token and probability > 0
            ]
            steps.append(Step(float(np.exp(log_probability)), others))
        return steps

    def token_text(self, token: int) -> str:
        """Return the text of a target token without the mark of a word's beginning, a blank if it is that alone; empty
        for the end token."""
        return "" if token == END else self._vocabularies.target.name(token).replace(WORD_BEGINS, "") or BLANK


def traced_facts(card: dict[str, Any]) -> dict[str, Any]:
    """Return what a trace says of its model."""
    return {name: card[name] for name in TRACED_FACTS if card.get(name) is not None}


def _encoded(vocabulary: Vocabulary, text: str, language: str | None, spelling: str | None = None) -> Side:
    """Return a side with the tokens of `spelling`, which has the same length as the text; None: of the text itself."""
    pieces = vocabulary.pieces(text if spelling is None else spelling)
    spans = [Span(text[piece.start : piece.end], piece.start, piece.end) for piece in pieces]
    end = Span("", len(text), len(text))
    return Side(text, [*spans, end], language, [*(piece.token for piece in pieces), END])


def wording(vocabulary: Vocabulary) -> Wording:
    """Return how a search tells equal texts: by their tokens for words, by the text they spell for subwords."""
    if vocabulary.words:
        return Wording(vocabulary.decode, tuple)
    names = [vocabulary.name(token) for token in range(len(vocabulary))]  # a search asks for each very often
    return Wording(vocabulary.decode, lambda tokens: "".join(map(names.__getitem__, tokens)))


def candidates(hypotheses: Sequence[Hypothesis], vocabulary: Vocabulary) -> list[Candidate]:
    """Return the texts of hypotheses with their scores, as a trace lists them."""
    return [Candidate(vocabulary.decode(each.tokens), each.score, each.log_probability) for each in hypotheses]


def spans(vocabulary: Vocabulary, tokens: Sequence[int], text: str) -> list[Span]:
    """Return the span of each token in the decoded text: what decoding one token more appends to it. The last byte of a
    character stands for it, those before for nothing."""
    token_spans, before = [], ""
    for count in range(1, len(tokens) + 1):
        now = vocabulary.decode(tokens[:count]).rstrip("\ufffd")  # an incomplete character
        start = len(os.path.commonprefix([before, now]))  # noqa: RUF071, characters are meant
        start += text[start : start + 1] == " "
        end = max(min(len(now), len(text)), min(start, len(text)))
        token_spans.append(Span(text[min(start, end) : end], min(start, end), end))
        before = now
    return token_spans
