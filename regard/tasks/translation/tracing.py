"""From what a search found, or was told, to a trace of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from regard.config.folder import Vocabularies
from regard.look.trace import Attended, Candidate, Matrix, Side, Span, Step, Trace
from regard.search.distinct import Wording
from regard.search.force_decode import ForcedDecoding, force_decode
from regard.search.hypothesis import DecoderModel, Hypothesis
from regard.text.batches import by_length, padded
from regard.text.normal import tidy
from regard.text.vocabulary import END, WORD_BEGINS, Vocabulary

TOLD = ("languages", "data", "parameters", "seed", "minutes", "scores", "versions")
"""what a trace says of the model, out of its card"""
BATCH = 64


class Tracer:
    """Makes the traces of one model."""

    def __init__(self, vocabularies: Vocabularies, card: dict[str, Any]) -> None:
        self._vocabularies = vocabularies
        self._model = {name: card[name] for name in TOLD if card.get(name) is not None}
        self._languages: Sequence[str | None] = card.get("languages") or (None, None)

    def source(self, text: str) -> Side:
        """Of a tidied text, with the end token."""
        return _encoded(self._vocabularies.source, text, self._languages[0])

    def told(self, text: str) -> Side:
        """The same of a tidied text that must be said."""
        return _encoded(self._vocabularies.target, text, self._languages[1])

    def target(self, tokens: Sequence[int]) -> Side:
        """Of tokens, the end token among them if it was said."""
        ended = tokens[-1:] == [END]
        said = tokens[:-1] if ended else tokens
        text = self._vocabularies.target.decode(said)
        pieces = spans(self._vocabularies.target, said, text)
        if ended:
            pieces.append(Span("", len(text), len(text)))
        return Side(text, pieces, self._languages[1], tokens)

    def trace(
        self,
        source: Side,
        target: Side,
        weights: Matrix,
        forced: ForcedDecoding | None = None,
        candidates: Sequence[Candidate] = (),
    ) -> Trace:
        """weights [layers, heads, target pieces, source pieces]; `forced` tells of each step, and what else looks."""
        steps = [] if forced is None else self._steps(forced, target.tokens)
        seen = [Attended("cross", np.asarray(weights, np.float32))]
        if forced is not None:
            seen += [Attended(name, found) for name, found in forced.self_attention.items()]
        return Trace(source, target, seen, steps, candidates, self._model)

    def force_decode(
        self, model: DecoderModel, sources: Sequence[str], targets: Sequence[str], device: torch.device
    ) -> list[Trace]:
        """Of targets that the model must say."""
        given = [self.source(tidy(text)) for text in sources]
        wanted = [self.told(tidy(text)) for text in targets]
        found: dict[int, Trace] = {}
        for rows in by_length([side.tokens for side in given], BATCH):
            batch = padded([given[row].tokens for row in rows]).to(device)
            lengths = torch.tensor([len(given[row].tokens) for row in rows])
            told = force_decode(model, batch, lengths, [wanted[row].tokens for row in rows])
            for row, each in zip(rows, told, strict=True):
                total = float(each.log_probabilities.sum())
                candidate = Candidate(wanted[row].text, total / len(wanted[row].tokens), total)
                found[row] = self.trace(given[row], wanted[row], each.weights, each, [candidate])
        return [found[row] for row in range(len(sources))]

    def _steps(self, forced: ForcedDecoding, tokens: Sequence[int]) -> list[Step]:
        columns = (forced.log_probabilities, forced.top_tokens, forced.top_probabilities)
        steps = []
        for token, log_probability, top_tokens, top_probabilities in zip(
            tokens, *(column.tolist() for column in columns), strict=True
        ):
            others = [
                (self._name(other), probability)
                for other, probability in zip(top_tokens, top_probabilities, strict=True)
                if other != token and probability > 0
            ]
            steps.append(Step(float(np.exp(log_probability)), others))
        return steps

    def _name(self, token: int) -> str:
        """As a person reads it: nothing for the end token, no mark before a word."""
        return "" if token == END else self._vocabularies.target.name(token).replace(WORD_BEGINS, "")


def _encoded(vocabulary: Vocabulary, text: str, language: str | None) -> Side:
    pieces = vocabulary.pieces(text)
    spans = [Span(text[piece.start : piece.end], piece.start, piece.end) for piece in pieces]
    end = Span("", len(text), len(text))
    return Side(text, [*spans, end], language, [*(piece.token for piece in pieces), END])


def wording(vocabulary: Vocabulary) -> Wording:
    """Return how a search reads the tokens of a vocabulary: words are themselves, subwords spell a text together."""
    name = lru_cache(maxsize=None)(vocabulary.name)

    def surface(tokens: Sequence[int]) -> Hashable:
        return tuple(tokens) if vocabulary.words else "".join(map(name, tokens))

    return Wording(vocabulary.decode, surface)


def candidates(hypotheses: Sequence[Hypothesis], vocabulary: Vocabulary) -> list[Candidate]:
    return [Candidate(vocabulary.decode(each.tokens), each.score, each.log_probability) for each in hypotheses]


def spans(vocabulary: Vocabulary, tokens: Sequence[int], text: str) -> list[Span]:
    """Where each token of a decoded text stands: what the text grew by when it came."""
    found, before = [], ""
    for count in range(1, len(tokens) + 1):
        now = vocabulary.decode(tokens[:count])
        common = len(now) if now.startswith(before) else _shared(before, now)
        start = len(before) if now.startswith(before) else common
        start += text[start : start + 1] == " "
        end = max(min(len(now), len(text)), min(start, len(text)))
        found.append(Span(text[min(start, end) : end], min(start, end), end))
        before = now
    return found


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
